"""One module for each thing that is measured. A probe takes a `Subject`; it returns a dataclass of `..measured`."""

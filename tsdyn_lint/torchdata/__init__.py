"""What each torch version does, as data: `rules/torch-X.Y.json`, written by `generate`, read by `load`.

A file is JSON with one top-level section a line; the loader parses a section when it is first asked for. The file of
2.13 is whole. Any other holds, per section, only the names whose value differs from it (null: this version lacks the
name), but for `meta` and `source`, which are its own. Sections map names to values; the *grouped* ones are stored as
`scope -> value -> "name name ..."`, so `returns["torch"]["tensor"]` lists the functions of `torch` that give a tensor.

| section | name -> value |
| --- | --- |
| `meta` | torch, Python and NumPy version the file was made with |
| `source` | section -> `read` (from the wheel's files) or `run` (torch was called) |
| `returns` (grouped) | function, class call, Tensor method or attribute -> kind of its value |
| `choices` | name whose overloads differ -> [parameter, position, kind that selects, kind]; "" is the plain call |
| `fields` | function -> names of the parts of the named tuple that it gives |
| `dtype` (grouped) | function -> bool, int, float, complex or same (as the input) |
| `rank` (grouped) | function -> 0 where a call with tensors alone reduces them to a 0-dim tensor |
| `choices` | name whose overloads differ -> [parameter, position, selecting kind, kind]; "" is the plain call |
| `dynamo` (grouped) | call -> `trace`, `skip GBxxxx`, `refuse GBxxxx` or `raise` (out of torch.compile) |
| `families` | package -> the verdict for all its functions that `dynamo` does not name |
| `gb` | graph-break id -> title |
| `modules` | class of `torch.nn` -> `category kind parameters` |
| `config` | option of `torch._dynamo.config` -> default |
| `version_rows` | construct -> rows (engine, verdict, since, until, gb) that differ between versions |

Kinds: tensor, int, float, bool, complex, number (int or float), str, none, size, dtype, device, layout, memory_format,
qscheme, storage, generator, ndarray, module, callable, packed (PackedSequence), context (context manager), future,
object, dict, list, tuple, any (anything), call (what the passed callable gives), `list[kind]`, `tuple[kind,...]` (any
length), `tuple[kind,kind]`, `iterator[kind]`; a `?` after a kind: or None.

Conditions of tags: `nargs=1` (one argument only), `NAME:tensor` (that argument is a tensor), `any:tensor` (some
argument is), `index:bool` (indexed by a bool mask), `!NAME` (that argument is absent), joined by a space:
all hold.
"""

"""Constructs whose verdict changed between torch versions, each confirmed on both sides by
`tests/torch_versions.py`."""

from __future__ import annotations

Row = dict[str, str]


def _row(engine: str, verdict: str, *, since: str = "", until: str = "", gb: str = "") -> Row:
    """`verdict` holds from `since` (inclusive) up to `until` (exclusive); outside of that the capture is fine."""
    row = {"engine": engine, "verdict": verdict, "since": since, "until": until, "gb": gb}
    return {key: value for key, value in row.items() if value}


ROWS: dict[str, list[Row]] = {
    # traced with a stand-in generator since 2.14; a branch on the number then depends on data
    "random.random": [_row("dynamo", "breaks", until="2.14", gb="GB0007")],
    "random.seed": [_row("dynamo", "breaks", until="2.14", gb="GB0007")],
    "random.sample": [_row("dynamo", "breaks", until="2.14", gb="GB0007")],
    "random.shuffle": [_row("dynamo", "breaks", until="2.14", gb="GB0007")],
    "branch-on-random.random": [
        _row("dynamo", "breaks", until="2.14", gb="GB0007"),
        _row("dynamo", "breaks", since="2.14", gb="GB0170"),
    ],
    # the same breaks under other ids
    "range-of-tensor": [
        _row("dynamo", "breaks", until="2.14", gb="GB0059"),
        _row("dynamo", "breaks", since="2.14", gb="GB0124"),
    ],
    "str-of-tensor": [
        _row("dynamo", "breaks", until="2.14", gb="GB0059"),
        _row("dynamo", "breaks", since="2.14", gb="GB0569"),
    ],
    # a global counter that is written but never decides anything is not guarded any more
    "global-counter": [_row("recompile", "recompiles", until="2.14")],
    # an error that an operator raises inside the user's own try is caught as in eager since 2.14
    "torch-error-in-try": [_row("dynamo", "raises", until="2.14", gb="GB4315")],
    # out[b, idx[b]] = v with 0-dim tensor indices
    "tensor-index-assignment": [_row("export", "raises", until="2.14")],
    # traced by 2.13 alone
    "torch.nn.Module.state_dict": [
        _row("dynamo", "breaks", until="2.13", gb="GB0059"),
        _row("dynamo", "breaks", since="2.14", gb="GB0467"),
    ],
    "torch.autograd.Function.apply": [_row("script", "raises", since="2.14")],
}

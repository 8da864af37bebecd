"""`rules/torch-X.Y.json` -> what the checks ask about one torch version. Reads each section when it is first asked
for; no torch."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KNOWN: tuple[tuple[int, int], ...] = ((2, 11), (2, 12), (2, 13), (2, 14), (2, 15))
BASE = (2, 13)
"""The version whose file is whole; the others hold what differs from it."""
GROUPED = frozenset({"returns", "dtype", "rank", "tags", "dynamo"})
_TENSOR_BASES = ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer")


class _File:
    """One data file: its lines by section name, parsed on demand."""

    def __init__(self, path: Path) -> None:
        self._lines: dict[str, str] = {}
        self._parsed: dict[str, Any] = {}
        for line in path.read_text("utf-8").splitlines()[1:-1]:
            name, _, value = line.partition(":")
            self._lines[name[1:-1]] = value.rstrip(",")

    def section(self, name: str) -> Mapping[str, Any]:
        if name not in self._parsed:
            self._parsed[name] = json.loads(self._lines.get(name, "{}"))
        section: Mapping[str, Any] = self._parsed[name]
        return section


@dataclass(frozen=True)
class ModuleClass:
    """A class of `torch.nn`: `category` (rnn, cell, container, loss, norm, conv, lazy, ...), the kind its call
    gives (`any`: not
    known, `same`: its input's, `call`: its last element's), its constructor's parameters in order."""

    category: str
    forward: str
    parameters: tuple[str, ...]


class TorchData:
    """What is known of one torch version. Every question takes qualified names (`torch.nn.functional.relu`,
    `torch.Tensor.max`,
    `time.time`, `builtins.print`) and answers None, or an empty collection, for a name the data does not have."""

    def __init__(self, version: tuple[int, int], path: Path, base: Path | None = None) -> None:
        self.version = version
        self._file = _File(path)
        self._base = _File(base) if base else None
        self._names: dict[tuple[str, str], dict[str, str]] = {}
        self._found: dict[tuple[str, str], str | None] = {}
        self._captured: dict[str, str | None] = {}

    # -- return values
    def returns(
        self, qualname: str, args: Sequence[str | None] | None = None, keywords: Mapping[str, str | None] | None = None
    ) -> str | None:
        """Kind of what a function, class call, method or attribute gives: `tensor`, `int`, `tuple[tensor,tensor]`, ...

        `args` are the kinds of the positional arguments (without `self`), `keywords` those of the named ones: "true" or
        "false" for literal flags, None for an unknown kind. They pick the overload where overloads differ; without
        them such a name gives None unless all its overloads agree.
        """
        kind = self._get("returns", qualname)
        if kind is not None:
            return kind
        choices = self.choices(qualname)
        if not choices or (args is None and keywords is None):
            return None
        return _choose(choices, tuple(args or ()), dict(keywords or {}))

    def choices(self, qualname: str) -> tuple[tuple[str, int, str, str], ...]:
        """(parameter, its position or -1, kind of value that selects or '', return kind); parameter '' is the
        plain call."""
        found = self._flat("choices", _tensor_name(qualname)) or ()
        return tuple((str(c[0]), int(c[1]), str(c[2]), str(c[3])) for c in found)

    def fields(self, qualname: str) -> tuple[str, ...]:
        """Names of the parts of a returned named tuple, such as ("values", "indices")."""
        return tuple(str(self._flat("fields", _tensor_name(qualname)) or "").split())

    def dtype(self, qualname: str) -> str | None:
        """Class of the result's dtype: bool, int, float, complex, same (as the input); comma-separated where the
        parts of a tuple differ."""
        return self._get("dtype", qualname)

    def rank(self, qualname: str) -> int | None:
        """0 where a call with tensors alone (no dim) gives a 0-dim tensor, such as `x.sum()`."""
        rank = self._get("rank", qualname)
        return int(rank) if rank is not None else None

    # -- capture
    def tags(self, qualname: str) -> frozenset[str]:
        """Subset of {"data_dependent_output", "dynamic_output_shape"}, whatever the call looks like (see
        `tag_condition`)."""
        value = self._get("tags", qualname)
        return frozenset({value.partition(" if ")[0]}) if value else frozenset()

    def tag_condition(self, qualname: str) -> str:
        """When the tag holds: '' always; `repeats:tensor` that argument is one; `nargs=1` only one argument;
        `!num_classes` absent."""
        return (self._get("tags", qualname) or "").partition(" if ")[2]

    def dynamo_call(self, qualname: str) -> str | None:
        """What Dynamo does with a call: `trace`, `skip` (breaks: marked as skipped), `refuse` (breaks otherwise);
        None: not known."""
        value = self._dynamo(qualname)
        return value.partition(" ")[0] if value else None

    def dynamo_gb(self, qualname: str) -> str | None:
        """The GB id of the break that calling `qualname` gives, where it was measured or is implied."""
        return (self._dynamo(qualname) or "").partition(" ")[2] or None

    def mended(self, qualname: str) -> bool:
        """Whether this version traces a call at which the base version, which the rules were written for, breaks."""
        return self.dynamo_call(qualname) == "trace" and load(BASE).dynamo_call(qualname) in ("skip", "refuse")

    def renamed(self, qualname: str) -> str | None:
        """The GB id of the break at a call, where the base version gives another id."""
        found = self.dynamo_gb(qualname)
        return found if found != load(BASE).dynamo_gb(qualname) else None

    def differs(self, name: str) -> tuple[Mapping[str, str], ...]:
        """Rows of a construct or name whose verdict changed between versions: engine, verdict, since, until
        (exclusive), gb."""
        rows: Sequence[Mapping[str, str]] = self._flat("version_rows", name) or ()
        return tuple(rows)

    def verdicts(self, name: str) -> Mapping[str, str]:
        """Engine -> GB id (or verdict, where there is no id) of the rows that hold in this version; {} where it is
        fine."""
        return {
            row["engine"]: row.get("gb") or row["verdict"]
            for row in self.differs(name)
            if _version(row.get("since", "0.0")) <= self.version < _version(row.get("until", "99.0"))
        }

    def gb(self, code: str) -> str | None:
        """Title of a graph-break id."""
        title: str | None = self._flat("gb", code)
        return title

    def module(self, name: str) -> ModuleClass | None:
        """A class of `torch.nn` by its bare name."""
        entry = self._flat("modules", name)
        if entry is None:
            return None
        category, forward, parameters = str(entry).split(" ")
        return ModuleClass(category, forward, tuple(parameters.split(",")) if parameters else ())

    def config(self, option: str) -> object:
        """Default of an option of `torch._dynamo.config`; None where there is no such option (or its default is
        computed)."""
        return self._flat("config", option)

    def source(self, section: str) -> str:
        """How a section came about: `run`, `read`, `hand`, or `neighbour X.Y`."""
        return str(self._flat("source", section) or "read")

    # -- lookup
    def _dynamo(self, qualname: str) -> str | None:
        if qualname not in self._captured:
            self._captured[qualname] = self._find_dynamo(qualname)
        return self._captured[qualname]

    def _find_dynamo(self, qualname: str) -> str | None:
        value = self._get("dynamo", qualname)
        if value is None and self._get("returns", qualname) is not None and qualname.startswith("torch."):
            return "trace"
        scope = qualname
        while value is None and "." in scope:
            scope = scope.rpartition(".")[0]
            value = self._flat("families", scope)
        return value

    def _get(self, section: str, qualname: str) -> str | None:
        key = (section, qualname)
        if key not in self._found:
            self._found[key] = self._find(section, qualname)
        return self._found[key]

    def _find(self, section: str, qualname: str) -> str | None:
        qualname = _tensor_name(qualname)
        if self._base is not None:
            own = self._file.section(section)
            if qualname in own:
                value: str | None = own[qualname]
                return value
        scope, _, name = qualname.rpartition(".")
        key = (section, scope)
        if key not in self._names:
            groups = (self._base or self._file).section(section).get(scope, {})
            self._names[key] = {n: value for value, names in groups.items() for n in names.split(" ")}
        return self._names[key].get(name)

    def _flat(self, section: str, key: str) -> Any:
        own = self._file.section(section)
        if key in own or self._base is None:
            return own.get(key)
        return self._base.section(section).get(key)


@functools.cache
def load(version: tuple[int, int]) -> TorchData:
    """The data of `version`, or of the nearest version that has any."""
    nearest = min(max(version, KNOWN[0]), KNOWN[-1])
    path, base = (folder() / f"torch-{v[0]}.{v[1]}.json" for v in (nearest, BASE))
    if not path.is_file():
        path = base
    return TorchData(nearest, path, base if path != base else None)


def folder() -> Path:
    """Where the data files lie: in the package of an installed wheel, beside it in a checkout."""
    package = Path(__file__).parent.parent
    wheel = package / "_rules"
    return wheel if wheel.is_dir() else package.parent / "rules"


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _tensor_name(qualname: str) -> str:
    """`torch.nn.Parameter.sum` is `torch.Tensor.sum`."""
    scope, dot, name = qualname.rpartition(".")
    return f"torch.Tensor.{name}" if dot and scope in _TENSOR_BASES else qualname


def _choose(
    choices: Collection[tuple[str, int, str, str]], args: tuple[str | None, ...], keywords: dict[str, str | None]
) -> str | None:
    """The first choice that the call selects, else the plain one; None where an argument of unknown kind could
    decide either way."""
    plain: str | None = None
    doubt = False
    for names, index, wanted, kind in choices:
        if not names:
            plain = kind
            continue
        verdicts = [_selects(name, index + i, wanted, args, keywords) for i, name in enumerate(names.split("&"))]
        if all(verdicts):
            return kind
        doubt = doubt or (None in verdicts and False not in verdicts and kind != plain)
    return None if doubt else plain


def _selects(
    name: str, index: int, wanted: str, args: tuple[str | None, ...], keywords: dict[str, str | None]
) -> bool | None:
    if name in keywords:
        given = keywords[name]
        return given == "true" if wanted == "true" and given else (None if wanted == "true" else True)
    if not 0 <= index < len(args):
        return False
    given = args[index]
    if not wanted:
        return True
    return given == wanted if given is not None else None

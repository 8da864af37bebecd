"""Configuration files -> `Options`: found near each file, inherited by `extend`, checked key by key."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsdyn_lint import toml
from tsdyn_lint.findings import Confidence, Engine
from tsdyn_lint.globs import anchored
from tsdyn_lint.spelling import nearest, suggestion

if TYPE_CHECKING:
    from tsdyn_lint.tomlplaces import Path as Keys

FILE_NAMES = ("tsdyn-lint.toml", ".tsdyn-lint.toml", "pyproject.toml")
PYPROJECT = ("tool", "tsdyn-lint")
"""The table of a `pyproject.toml` that is ours."""
FORMATS = ("full", "concise", "json", "json-lines", "sarif", "github", "gitlab", "junit")


class ConfigError(Exception):
    """A configuration that cannot be used; the message names the file and, where one is at fault, the line."""


@dataclass(frozen=True)
class Options:
    """One layer of settings by their key in TOML, and where each value was read."""

    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None

    def over(self, lower: Options) -> Options:
        """These options, and the lower layer's where these are silent."""
        return Options({**lower.values, **self.values}, {**lower.origins, **self.origins}, self.file or lower.file)


def options_from(values: Mapping[str, Any]) -> Options:
    """A layer from the command line, whose relative paths count from the working folder; raises ConfigError."""
    for key, value in values.items():
        if wanted := _KEYS[key](value):
            raise ConfigError(f"--{key} must be {wanted}, not {value!r}")
    placed = {key: _anchored(key, value, Path.cwd()) for key, value in values.items()}
    return Options(placed, {key: f"--{key}" for key in values})


def find_config(folder: Path) -> Path | None:
    """The configuration that holds in this very folder; a pyproject without our table does not count."""
    for name in FILE_NAMES:
        path = folder / name
        if path.is_file() and (name != "pyproject.toml" or _has_table(path)):
            return path
    return None


def read_config(path: Path, _seen: tuple[Path, ...] = ()) -> Options:
    """A file's options over those it extends; raises ConfigError."""
    path = path.absolute()
    if path in _seen:
        raise ConfigError(f"{path}: `extend` goes round in a circle")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as problem:
        raise ConfigError(f"{path}: {problem}") from problem
    options = parse_options(text, path, path.name == "pyproject.toml")
    if "extend" not in options.values:
        return options
    base = (path.parent / os.path.expanduser(options.values["extend"])).resolve()
    if not base.is_file():
        where = _Where(path, text, PYPROJECT if path.name == "pyproject.toml" else ()).at("extend")
        raise ConfigError(f"{where.place}: `extend` names a file that does not exist: {base}")
    return options.over(read_config(base, (*_seen, path)))


def parse_options(text: str, path: Path, in_pyproject: bool = False) -> Options:
    """The options in a TOML text; relative paths in it count from the file's folder."""
    try:
        table: Any = toml.loads(text)
    except ValueError as problem:
        raise ConfigError(f"{path}: {problem}") from problem
    where = _Where(path, text, PYPROJECT if in_pyproject else ())
    if in_pyproject:
        for depth, key in enumerate(PYPROJECT, 1):
            table = table.get(key, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{where.place}: `{'.'.join(PYPROJECT[:depth])}` must be a table")
    _check(table, _KEYS, where)
    values = {key: _anchored(key, value, path.parent) for key, value in table.items()}
    return Options(values, dict.fromkeys(values, str(path)), path)


def parse_assignment(text: str) -> Options:
    """`--config "torch-version='2.13'"`: one setting as TOML."""
    options = parse_options(text, Path("--config"))
    return Options(options.values, options.origins)


def _has_table(path: Path) -> bool:
    """Whether a `pyproject.toml` configures us: also where it says so in a way that is refused later."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if b"tsdyn-lint" not in data:
        return False
    try:
        tool = toml.loads(data.decode("utf-8-sig")).get("tool")
    except ValueError:
        return re.search(rb"^\s*\[\[?\s*tool\s*\.\s*\"?tsdyn-lint\b", data, re.MULTILINE) is not None
    return isinstance(tool, dict) and PYPROJECT[-1] in tool


def _anchored(key: str, value: Any, folder: Path) -> Any:
    if key in ("baseline", "cache-dir"):
        return str((folder / value).absolute())
    if key == "rule-paths":
        return [str((folder / item).absolute()) for item in value]
    if key in ("exclude", "extend-exclude"):
        return [anchored(item, folder) for item in value]
    if key == "per-file-ignores":
        return {anchored(pattern, folder): rules for pattern, rules in value.items()}
    return value


Check = Callable[[Any], str | None]
"""Says what a value ought to have been, or None if it is right."""


def _is(kind: type, words: str) -> Check:
    return lambda value: None if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) else words


def _path(value: Any) -> str | None:
    return None if isinstance(value, str) and value and "\0" not in value else "a path"


def _paths(value: Any) -> str | None:
    right = isinstance(value, list) and all(_path(item) is None for item in value)
    return None if right else "a list of paths"


def _strings(value: Any) -> str | None:
    right = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return None if right else "a list of strings"


def _one_of(*allowed: str) -> Check:
    return lambda value: None if value in allowed else f"one of {', '.join(allowed)}"


def _engines(value: Any) -> str | None:
    names = value.split(",") if isinstance(value, str) else value
    if names == ["auto"]:
        return None
    right = isinstance(names, list) and all(name in [engine.value for engine in Engine] for name in names)
    return None if right and names else f"auto, or some of {', '.join(engine.value for engine in Engine)}"


def _version(value: Any) -> str | None:
    return None if isinstance(value, str) and re.fullmatch(r"\d+\.\d+(\.\d+)?", value) else 'a string such as "2.13"'


def _minor_version(value: Any) -> str | None:
    return None if re.fullmatch(r"\d+\.\d+", value) else 'a torch version such as "2.13"'


def _ignores(value: Any) -> str | None:
    right = isinstance(value, dict) and all(_strings(item) is None for item in value.values())
    return None if right else "a table of pattern = [rules]"


def _format(value: Any) -> bool:
    name, _, file = value.partition(":") if isinstance(value, str) else ("", "", "")
    return name in FORMATS and "\0" not in file


def _formats(value: Any) -> str | None:
    items = [value] if isinstance(value, str) else value
    right = isinstance(items, list) and all(_format(item) for item in items)
    return None if right else f"some of {', '.join(FORMATS)}, each with or without :FILE"


def _number(most: float | None = None) -> Check:
    words = "a number from 0 up" if most is None else f"a number from 0 to {most:g}"

    def check(value: Any) -> str | None:
        right = isinstance(value, (int, float)) and not isinstance(value, bool)
        return None if right and 0 <= value and (most is None or value <= most) else words

    return check


def _seconds(value: Any) -> str | None:
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return None if right else "a number of seconds above 0"


def _above(least: int, words: str) -> Check:
    return lambda value: None if isinstance(value, int) and not isinstance(value, bool) and value >= least else words


_whole = _above(0, "a whole number from 0 up")


@dataclass(frozen=True)
class _Each:
    """A table whose keys are the user's, each with such a table."""

    key: Check
    table: Mapping[str, Any]


_anything: Check = lambda value: None  # noqa: E731
_BUDGET: dict[str, Any] = {
    "graph_breaks": _whole,
    "recompiles": _whole,
    "guards": _whole,
    "min_coverage": _number(1),
    "min_speedup": _number(),
    "max_compile_s": _number(),
    "max_kernels": _whole,
}
_TARGET: dict[str, Any] = {
    "module": _is(str, "a string such as pkg.model:Gate"),
    "inputs": _anything,
    "kwargs": _is(dict, "a table"),
    "second": _anything,
    "mode": _one_of("eval", "train"),
    "budget": _BUDGET,
    "budgets": _Each(_minor_version, _BUDGET),
}
TARGET_KEYS = frozenset(_TARGET)
_VERIFY: dict[str, Any] = {
    "timeout": _seconds,
    "memory": _above(1, "a whole number of MB"),
    "device": _one_of("auto", "cpu", "cuda"),
    "backend": _is(str, "a string"),
    "calls": _above(1, "a whole number from 1 up"),
    "targets": [_TARGET],
}
_KEYS: dict[str, Any] = {
    "extend": _path,
    "engine": _engines,
    "torch-version": _version,
    "select": _strings,
    "extend-select": _strings,
    "ignore": _strings,
    "extend-ignore": _strings,
    "per-file-ignores": _ignores,
    "min-confidence": _one_of(*[confidence.value for confidence in Confidence]),
    "exclude": _strings,
    "extend-exclude": _strings,
    "respect-gitignore": _is(bool, "true or false"),
    "force-exclude": _is(bool, "true or false"),
    "rule-paths": _paths,
    "output-format": _formats,
    "baseline": _path,
    "cache-dir": _path,
    "fix": _is(bool, "true or false"),
    "unsafe-fixes": _is(bool, "true or false"),
    "verify": _VERIFY,
}
"""Every key: its check, a table of keys, a list that holds such tables, or a table of them."""

KEYS = tuple(_KEYS)


@dataclass(frozen=True)
class _Where:
    """A table of a file: the file, its text, and the keys that lead there, those of `pyproject.toml` among them."""

    file: Path
    text: str
    base: Keys
    keys: Keys = ()

    def at(self, *keys: str | int) -> _Where:
        return replace(self, keys=(*self.keys, *keys))

    @property
    def name(self) -> str:
        return ".".join(key for key in self.keys if isinstance(key, str))

    @property
    def place(self) -> str:
        """`file:line`, the file alone where no line is known."""
        from tsdyn_lint.tomlplaces import row_of

        row = row_of(self.text, (*self.base, *self.keys))
        return f"{self.file}:{row}" if row else str(self.file)


def _check(table: Any, keys: Mapping[str, Any], where: _Where) -> None:
    for key, value in table.items():
        here = where.at(key)
        if key not in keys:
            near = nearest(keys, key.replace("_", "-"), key)
            raise ConfigError(f"{here.place}: unknown key `{here.name}`{suggestion(near)}")
        _check_value(value, keys[key], here)


def _check_value(value: Any, check: Any, here: _Where) -> None:
    if isinstance(check, list):
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ConfigError(f"{here.place}: `{here.name}` must be a list of tables")
        for index, item in enumerate(value):
            _check(item, check[0], here.at(index))
    elif isinstance(check, (dict, _Each)):
        if not isinstance(value, dict):
            raise ConfigError(f"{here.place}: `{here.name}` must be a table")
        if isinstance(check, dict):
            _check(value, check, here)
            return
        for key, item in value.items():
            if wanted := check.key(key):
                raise ConfigError(f"{here.at(key).place}: a key of `{here.name}` must be {wanted}, not `{key}`")
            _check_value(item, check.table, here.at(key))
    elif wanted := check(value):
        raise ConfigError(f"{here.place}: `{here.name}` must be {wanted}")

"""Configuration files -> `Options`: found near each file, inherited by `extend`, checked key by key."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.findings import Confidence, Engine
from tsdyn_lint.globs import anchored

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAMES = ("tsdyn-lint.toml", ".tsdyn-lint.toml", "pyproject.toml")
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
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as problem:
        raise ConfigError(f"{path}: {problem}") from problem
    options = parse_options(text, path, path.name == "pyproject.toml")
    if "extend" not in options.values:
        return options
    base = (path.parent / Path(options.values["extend"]).expanduser()).resolve()
    if not base.is_file():
        raise ConfigError(f"{_place(path, text, 'extend')}: `extend` names a file that does not exist: {base}")
    return options.over(read_config(base, (*_seen, path)))


def parse_options(text: str, path: Path, in_pyproject: bool = False) -> Options:
    """The options in a TOML text; relative paths in it count from the file's folder."""
    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path}: {problem}") from problem
    if in_pyproject:
        table = table.get("tool", {}).get("tsdyn-lint", {})
    _check(table, _KEYS, path, text)
    values = {key: _anchored(key, value, path.parent) for key, value in table.items()}
    return Options(values, dict.fromkeys(values, str(path)), path)


def parse_assignment(text: str) -> Options:
    """`--config "torch-version='2.13'"`: one setting as TOML."""
    options = parse_options(text, Path("--config"))
    return Options(options.values, options.origins)


def _has_table(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    heading = rb"^\s*\[\[?\s*tool\s*\.\s*\"?tsdyn-lint\b"
    return b"tsdyn-lint" in data and re.search(heading, data, re.MULTILINE) is not None


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


def _ignores(value: Any) -> str | None:
    right = isinstance(value, dict) and all(_strings(item) is None for item in value.values())
    return None if right else "a table of pattern = [rules]"


def _formats(value: Any) -> str | None:
    items = [value] if isinstance(value, str) else value
    right = isinstance(items, list) and all(str(item).partition(":")[0] in FORMATS for item in items)
    return None if right else f"some of {', '.join(FORMATS)}, each with or without :FILE"


_anything: Check = lambda value: None  # noqa: E731
_BUDGET: dict[str, Any] = dict.fromkeys(
    ("graph_breaks", "recompiles", "guards", "min_coverage", "min_speedup", "max_compile_s", "max_kernels"), _anything
)
_TARGET: dict[str, Any] = {
    "module": _is(str, "a string such as pkg.model:Gate"),
    "inputs": _anything,
    "kwargs": _is(dict, "a table"),
    "second": _anything,
    "mode": _one_of("eval", "train"),
    "budget": _BUDGET,
}
_VERIFY: dict[str, Any] = {
    "timeout": _anything,
    "memory": _anything,
    "device": _one_of("auto", "cpu", "cuda"),
    "backend": _is(str, "a string"),
    "calls": _is(int, "a whole number"),
    "targets": [_TARGET],
}
_KEYS: dict[str, Any] = {
    "extend": _is(str, "the path of another configuration"),
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
    "rule-paths": _strings,
    "output-format": _formats,
    "baseline": _is(str, "a path"),
    "cache-dir": _is(str, "a path"),
    "fix": _is(bool, "true or false"),
    "unsafe-fixes": _is(bool, "true or false"),
    "verify": _VERIFY,
}
"""Every key: its check, a table of keys, or a list that holds such a table."""

KEYS = tuple(_KEYS)


def _check(table: Any, keys: Mapping[str, Any], path: Path, text: str, prefix: str = "") -> None:
    for key, value in table.items():
        if key not in keys:
            raise ConfigError(f"{_place(path, text, key)}: unknown key `{prefix}{key}`{_suggestion(key, keys)}")
        check = keys[key]
        if isinstance(check, dict):
            if not isinstance(value, dict):
                raise ConfigError(f"{_place(path, text, key)}: `{prefix}{key}` must be a table")
            _check(value, check, path, text, f"{prefix}{key}.")
        elif isinstance(check, list):
            if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
                raise ConfigError(f"{_place(path, text, key)}: `{prefix}{key}` must be a list of tables")
            for item in value:
                _check(item, check[0], path, text, f"{prefix}{key}.")
        elif wanted := check(value):
            raise ConfigError(f"{_place(path, text, key)}: `{prefix}{key}` must be {wanted}")


def _suggestion(key: str, keys: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(key.replace("_", "-"), keys, n=1) or difflib.get_close_matches(key, keys, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _place(path: Path, text: str, key: str) -> str:
    """`file:line` of a key's first appearance, which TOML's reader does not tell."""
    quoted = rf"[\"']?{re.escape(key)}[\"']?"
    pattern = rf"^\s*(?:{quoted}\s*[=.]|\[\[?[^\]]*\b{quoted}\s*\])|[{{,]\s*{quoted}\s*="
    own_table = max(text.find("tool.tsdyn-lint"), 0)
    found = re.compile(pattern, re.MULTILINE).search(text, text.rfind("\n", 0, own_table) + 1)
    if not found:
        return str(path)
    lead = len(found[0]) - len(found[0].lstrip())
    return f"{path}:{text.count(chr(10), 0, found.start() + lead) + 1}"

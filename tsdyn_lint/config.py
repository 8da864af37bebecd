"""Options from files and the command line -> one frozen `Settings` for each group of files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsdyn_lint.configfile import ConfigError, Options, find_config, read_config
from tsdyn_lint.findings import Confidence, Engine
from tsdyn_lint.globs import matches, matches_any
from tsdyn_lint.rulebook import RuleBook, RuleError, load_rules
from tsdyn_lint.torchversion import KNOWN_TORCH, default_torch

__all__ = ["KNOWN_TORCH", "Configs", "Settings", "make_settings"]

DEFAULT_EXCLUDE = (
    *(".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache"),
    *(".ruff_cache", ".svn", ".tox", ".tsdyn_cache", ".venv", ".vscode", "__pycache__", "_build", "buck-out", "build"),
    *("dist", "node_modules", "site-packages", "venv"),
)


@dataclass(frozen=True)
class Settings:
    """Settings of one group of files. `root` is the folder of its configuration, else of the project.

    `engines` is None for `auto`; `own_engines` are those that the project asks for, whatever the command line does;
    `selected` holds rule codes; `torch_reason` says where `torch_version` came from.
    """

    root: Path
    engines: frozenset[Engine] | None = None
    own_engines: frozenset[Engine] | None = None
    torch_version: tuple[int, int] = KNOWN_TORCH[-1]
    torch_reason: str = "the newest known"
    selected: frozenset[str] = frozenset()
    min_confidence: Confidence = Confidence.LIKELY
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    rule_paths: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    respect_gitignore: bool = True
    force_exclude: bool = False
    output_format: tuple[str, ...] = ()
    baseline: Path | None = None
    cache_dir: Path | None = None
    fix: bool = False
    unsafe_fixes: bool = False
    verify: Mapping[str, Any] = field(default_factory=dict, hash=False)
    config_file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

    def selected_for(self, path: Path) -> frozenset[str]:
        """The codes to report in one file."""
        selected = self.selected
        for pattern, codes in self.per_file_ignores:
            if matches(path, pattern):
                selected -= codes
        return selected

    def excludes(self, path: Path) -> bool:
        """Whether an absolute path itself (not a folder above it) is excluded."""
        return matches_any(path.as_posix(), path.name, self.exclude)


class Configs:
    """The settings of any folder: those of the closest configuration file, the command line's over them."""

    def __init__(self, cli: Options, isolated: bool = False, file: Path | None = None) -> None:
        """`file` stands for every folder, as `--config` asks; raises ConfigError for one that cannot be used."""
        self._cli = cli
        self._isolated = isolated
        self._given = read_config(file) if file else None
        self._by_folder: dict[Path, Settings] = {}
        self._by_config: dict[tuple[Path | None, Path], Settings] = {}
        self._rulebooks: dict[tuple[Path, ...], RuleBook] = {}

    def settings_for(self, folder: Path) -> Settings:
        """The settings for the files in an absolute folder; raises ConfigError."""
        found = self._by_folder.get(folder)
        if found is None:
            found = self._by_folder[folder] = self._find(folder)
        return found

    def rulebook(self, settings: Settings) -> RuleBook:
        return self._rulebook(settings.rule_paths)

    def _find(self, folder: Path) -> Settings:
        if self._isolated or self._given:
            return self._settings(self._given, Path.cwd())
        if config := find_config(folder):
            return self._settings(config, folder)
        above = self.settings_for(folder.parent) if folder.parent != folder else self._settings(None, Path.cwd())
        return self._settings(None, folder) if not above.config_file and is_project_root(folder) else above

    def _settings(self, config: Path | Options | None, root: Path) -> Settings:
        key = (config.file if isinstance(config, Options) else config, root)
        if key not in self._by_config:
            options = read_config(config) if isinstance(config, Path) else config or Options()
            self._by_config[key] = make_settings(options, self._cli, root, self._rulebook)
        return self._by_config[key]

    def _rulebook(self, rule_paths: tuple[Path, ...]) -> RuleBook:
        if rule_paths not in self._rulebooks:
            try:
                self._rulebooks[rule_paths] = load_rules(rule_paths)
            except RuleError as problem:
                raise ConfigError(str(problem)) from problem
        return self._rulebooks[rule_paths]


def is_project_root(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in (".git", "pyproject.toml", "setup.py", "setup.cfg"))


def make_settings(
    file: Options, cli: Options, root: Path, rulebook_of: Callable[[tuple[Path, ...]], RuleBook]
) -> Settings:
    """The command line's options over a file's, resolved through the rule book; raises ConfigError."""
    both = cli.over(file)
    values = both.values
    rule_paths = tuple(map(Path, values.get("rule-paths", ())))
    rulebook = rulebook_of(rule_paths)
    try:
        selected = _selected(file, cli, rulebook)
        ignores = tuple(
            (pattern, frozenset().union(*map(rulebook.matching, selectors)))
            for pattern, selectors in values.get("per-file-ignores", {}).items()
        )
    except RuleError as problem:
        raise ConfigError(f"{file.file}: {problem}" if file.file else str(problem)) from problem
    torch_version, torch_reason = _torch(both, root)
    formats = values.get("output-format", ("full",))
    return Settings(
        root=root,
        engines=_engines(values.get("engine", "auto")),
        own_engines=_engines(file.values.get("engine", "auto")),
        torch_version=torch_version,
        torch_reason=torch_reason,
        selected=selected,
        min_confidence=Confidence(values.get("min-confidence", "likely")),
        per_file_ignores=ignores,
        rule_paths=rule_paths,
        exclude=(*values.get("exclude", DEFAULT_EXCLUDE), *values.get("extend-exclude", ())),
        respect_gitignore=values.get("respect-gitignore", True),
        force_exclude=values.get("force-exclude", False),
        output_format=(formats,) if isinstance(formats, str) else tuple(formats),
        baseline=Path(values["baseline"]) if "baseline" in values else None,
        cache_dir=Path(values["cache-dir"]) if "cache-dir" in values else None,
        fix=values.get("fix", False),
        unsafe_fixes=values.get("unsafe-fixes", False),
        verify=values.get("verify", {}),
        config_file=file.file,
        origins=both.origins,
    )


def _selected(file: Options, cli: Options, rulebook: RuleBook) -> frozenset[str]:
    """`--select` starts anew and keeps a file's ignores only where the command line has none, as in ruff."""
    select: list[str] = ["ALL"]
    ignore: list[str] = []
    for layer in (file, cli):
        own_ignore = [*layer.values.get("ignore", ()), *layer.values.get("extend-ignore", ())]
        if "select" in layer.values:
            select = list(layer.values["select"])
            ignore = own_ignore or ignore
        else:
            ignore = ignore + own_ignore
        select = select + list(layer.values.get("extend-select", ()))
    return rulebook.resolve(select, ignore)


def _engines(value: str | Sequence[str]) -> frozenset[Engine] | None:
    names = value.split(",") if isinstance(value, str) else list(value)
    return None if names == ["auto"] else frozenset(map(Engine, names))


def _torch(options: Options, root: Path) -> tuple[tuple[int, int], str]:
    if "torch-version" not in options.values:
        return default_torch(root)
    text = options.values["torch-version"]
    found = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+.*)?", text)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version not in KNOWN_TORCH:
        known = f"{KNOWN_TORCH[0][0]}.{KNOWN_TORCH[0][1]} to {KNOWN_TORCH[-1][0]}.{KNOWN_TORCH[-1][1]}"
        raise ConfigError(f"{options.origins['torch-version']}: torch-version {text}: static verdicts cover {known}")
    return version, f"set in {options.origins['torch-version']}"

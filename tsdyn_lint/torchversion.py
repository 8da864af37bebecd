"""Which torch a run judges, when nobody says: the installed one's, the project's requirement, or the newest known."""

from __future__ import annotations

import re
import sys
from pathlib import Path

KNOWN_TORCH: tuple[tuple[int, int], ...] = ((2, 11), (2, 12), (2, 13), (2, 14), (2, 15))
"""The torch versions that static verdicts cover, oldest first."""

Version = tuple[int, int]

_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "environment.yml", "environment.yaml")
_REQUIREMENT = re.compile(
    r"(?:^|[\"'\s\[,-])(?:py)?torch\s*(?:\[[^\]]*\])?\s*\(?(?P<clauses>(?:(?:===|==|~=|>=|<=|<|>|!=|=)\s*[\d.*+\w]+\s*,?\s*)+)",
    re.MULTILINE,
)
_CLAUSE = re.compile(r"(===|==|~=|>=|<=|<|>|!=|=)\s*(\d+)\.(\d+)(?:\.(\d+))?")


def default_torch(folder: Path) -> tuple[Version, str]:
    """The version to judge by for files in `folder`, and why in a few words."""
    if installed := installed_torch():
        return nearest_known(installed, "installed")
    for parent in (folder, *folder.parents):
        for name in _PROJECT_FILES:
            if required := required_torch(parent / name):
                return nearest_known(required, f"required in {name}")
        if (parent / ".git").exists():
            break
    return KNOWN_TORCH[-1], "the newest known"


def installed_torch() -> Version | None:
    """The version of this interpreter's torch, read from its metadata folder's name; torch is not imported."""
    for entry in sys.path:
        for info in Path(entry or ".").glob("torch-*.dist-info"):
            if found := re.match(r"torch-(\d+)\.(\d+)", info.name):
                return int(found[1]), int(found[2])
    return None


def required_torch(path: Path) -> Version | None:
    """The newest known torch that a requirement in the file allows; None without one, or where none is allowed."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for found in _REQUIREMENT.finditer(text):
        clauses = [(c[1], (int(c[2]), int(c[3])), int(c[4] or 0)) for c in _CLAUSE.finditer(found["clauses"])]
        allowed = [version for version in KNOWN_TORCH if all(_allows(*clause, version) for clause in clauses)]
        if clauses and allowed:
            return allowed[-1]
        exact = [version for operator, version, _ in clauses if operator in ("==", "===", "=", "<=", "~=")]
        if exact:
            return exact[0]
    return None


def nearest_known(version: Version, reason: str) -> tuple[Version, str]:
    """The known version that stands for another one, and the reason with that substitution said."""
    if version in KNOWN_TORCH:
        return version, reason
    known = KNOWN_TORCH[0] if version < KNOWN_TORCH[0] else KNOWN_TORCH[-1]
    return known, f"the nearest known to {version[0]}.{version[1]}, which is {reason}"


def _allows(operator: str, bound: Version, patch: int, version: Version) -> bool:
    if operator in ("==", "===", "="):
        return version == bound
    if operator == "~=":
        return version[0] == bound[0] and version >= bound
    if operator == ">=":
        return version >= bound
    if operator == "<=":
        return version <= bound
    if operator == "<":
        return version < bound or (version == bound and patch > 0)
    if operator == ">":
        return version >= bound if patch else version > bound
    return True  # `!=` takes out one patch release

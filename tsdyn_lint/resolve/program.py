"""The program: modules found by dotted name in the linted files' own source tree, and what names mean across them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import libcst as cst

from tsdyn_lint.imports import import_folders, import_root
from tsdyn_lint.outline import EVERYTHING, Summary, classes_of
from tsdyn_lint.parse import ParseFailure, Tree
from tsdyn_lint.resolve.symbols import Assigned, Class, Function, Imported, Module, Symbol
from tsdyn_lint.usage import says_of_others

Definition = Symbol | Module | str
"""What a dotted name stands for; a plain string is a name outside of the program (`torch.nn.Linear`)."""

_NEVER_READ = frozenset({"torch", "numpy", "typing", "libcst"})
_NEVER_MODULES = (
    "torch.autograd.Function",
    "torch.utils.data.",
    "torch.optim.",
    "torch.distributions.",
    "enum.",
    "abc.",
)
_SEVERAL = 3
_MODULE_LIKE = ("Module", "Model", "Layer", "Block", "Net", "Network", "Encoder", "Decoder", "Backbone")


class Program:
    """Loads modules lazily. `read` gives a file's text (None if it cannot be read) and is the only access to files."""

    def __init__(
        self,
        read: Callable[[Path], str | None],
        trees: Mapping[Path, Tree] | None = None,
        heirs: Mapping[str, Sequence[str]] | None = None,
        exports: dict[tuple[Path, str], bool] | None = None,
    ) -> None:
        """`trees` are those of files that were parsed before and have not changed, `heirs` the files of the project
        with classes that derive from one of a name, `exports` what is known of files that `*` imports and names."""
        self._heirs = heirs or {}
        self._read = read
        self._trees = trees or {}
        self._by_path: dict[Path, Module | ParseFailure | None] = {}
        self._by_name: dict[tuple[str, str], Module | None] = {}
        self._tops: dict[Module, str] = {}
        self._roots: dict[Path, Path] = {}
        self._is_folder: dict[tuple[Path, str], bool] = {}
        self._mro: dict[Class, tuple[Class | str, ...]] = {}
        self.linted: list[Module] = []
        """The modules whose entry points are judged."""
        self.loose: set[Path] = set()
        """Linted files without any capture or module class, whose functions are the entry points."""
        self._derived_from: dict[Class, bool] = {}
        self.heirs_of: dict[tuple[Path, str], tuple[bool, list[Path]]] = {}
        """Classes that were asked for subclasses: whether there are any, and the files that were looked into."""
        self._looked_up: dict[tuple[Module, str], Definition | None] = {}
        self._members: dict[tuple[Class, str, Class | None], Function | Assigned | Class | None] = {}
        self._starred: dict[tuple[str, str], Path | None] = {}
        self._stars: dict[tuple[Module, str], list[str]] = {}
        """Modules that a module imports with `*` and that may bind a name."""
        self._mentioned = {} if exports is None else exports
        self._noted: set[tuple[Module, Module | Path, str]] = set()
        self.read_by: dict[Path, dict[Path, set[str]]] = {}
        """For each module's file, the files that were looked up from it, and the names that they were asked for."""
        self.missing: set[Path] = set()
        """Paths that a module was looked for at in vain: were one there, verdicts could differ."""

    # --- modules

    def load(self, path: Path) -> Module:
        """The module of a file. Raises ParseFailure."""
        if path not in self._by_path:
            self._by_path[path] = self._load(path)
        found = self._by_path[path]
        if isinstance(found, ParseFailure):
            raise found
        if found is None:
            raise ParseFailure("cannot be read", 1, 1)
        return found

    def _load(self, path: Path) -> Module | ParseFailure | None:
        tree = self._trees.get(path)
        if tree is None:
            text = self._read(path)
            if text is None:
                return None
            try:
                tree = Tree(text, path)
            except ParseFailure as failure:
                return failure
        root = self.root(path)
        parts = list(path.relative_to(root).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package and len(parts) > 1 else parts)
        return Module(name, path, tree, is_package)

    def root(self, path: Path) -> Path:
        """The folder that the file's absolute imports start from: the first one upward that is no package."""
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = import_root(folder)
        return self._roots[folder]

    def _top(self, module: Module) -> str:
        """The root of a module's file as text: paths are slow as keys."""
        top = self._tops.get(module)
        if top is None:
            top = self._tops[module] = str(self.root(module.path))
        return top

    def module(self, dotted: str, asking: Module) -> Module | None:
        """The module of that dotted name in the source tree of `asking`, read on first use; None outside of it."""
        if dotted == asking.name:
            return asking
        key = (self._top(asking), dotted)
        if key not in self._by_name:
            self._by_name[key] = self._find(dotted, self.root(asking.path), asking)
        found = self._by_name[key]
        if found is not None and found is not asking:
            self._asked(asking, found)
        return found

    def _asked(self, asking: Module, asked: Module | Path, name: str = "") -> None:
        note = (asking, asked, name)
        if note not in self._noted:
            self._noted.add(note)
            path = asked.path if isinstance(asked, Module) else asked
            self.read_by.setdefault(asking.path, {}).setdefault(path, set()).add(name)

    def _find(self, dotted: str, root: Path, asking: Module) -> Module | None:
        path = self._locate(dotted, root, asking)
        if path is None:
            return None
        try:
            return self.load(path)
        except ParseFailure:
            return None

    def _locate(self, dotted: str, root: Path, asking: Module) -> Path | None:
        """The file of a module's dotted name."""
        head = dotted.partition(".")[0]
        if head in _NEVER_READ or not head:
            return None
        if root.name in ("site-packages", "dist-packages") and head != asking.name.partition(".")[0]:
            return None
        is_own = asking.name.partition(".")[0] == head
        relative = Path(*dotted.split("."))
        for folder in (root,) if is_own else import_folders(root):
            # as text: to make a path costs more than to ask for its file
            stem = f"{folder}{os.sep}{relative}"
            for candidate in (f"{stem}.py", f"{stem}{os.sep}__init__.py"):
                if os.path.isfile(candidate):
                    return Path(candidate)
            self.missing.update(self._absent(folder, head, relative))
        return None

    def _absent(self, folder: Path, head: str, relative: Path) -> Iterable[Path]:
        """The shallowest paths whose appearance could make a lookup succeed."""
        top = folder / head
        if (folder, head) not in self._is_folder:
            self._is_folder[folder, head] = top.is_dir()
        if not self._is_folder[folder, head]:
            return (top, folder / f"{head}.py")
        return (folder / relative.with_suffix(".py"), folder / relative / "__init__.py")

    def dependencies(self) -> dict[Path, dict[Path, set[str]]]:
        """For each file that was read, the other files that were looked up from it, and what they were asked for."""
        return {
            path: {other: names for other, names in self.read_by.get(path, {}).items() if other != path}
            for path in self._by_path
        }

    def summaries(self) -> dict[Path, Summary]:
        """What the files that were read bind at their module level, as far as `ast` can tell."""
        return {
            path: module.tree.summary
            for path, module in self._by_path.items()
            if isinstance(module, Module) and module.tree.syntax is not None
        }

    def roots(self) -> dict[Path, frozenset[str]]:
        """The names of the linted files that their entry points hang on; all where any statement may matter."""
        return {module.path: self._roots_of(module) for module in self.linted}

    def _roots_of(self, module: Module) -> frozenset[str]:
        tree = module.tree
        if tree.syntax is None or module.path in self.loose:
            return frozenset({EVERYTHING})
        if says_of_others(tree.text, tree.nodes if tree.may_capture else ()):
            return frozenset({EVERYTHING})
        return classes_of(tree.outline)

    def common(self) -> dict[Path, Tree]:
        """The trees of files that were read for others, or from several folders: the next files will ask for them."""
        linted = {module.path for module in self.linted}
        folders: dict[Path, set[Path]] = {}
        for reader, read in self.read_by.items():
            for path in read.keys() & linted:
                folders.setdefault(path, set()).add(reader.parent)
        return {
            path: module.tree
            for path, module in self._by_path.items()
            if isinstance(module, Module) and (path not in linted or len(folders.get(path, ())) >= _SEVERAL)
        }

    def release(self) -> None:
        """Takes the modules apart, once all is known of them: they hold what they define, which holds them, and to
        find that among the nodes of all trees takes the garbage collector a tenth of the run.
        """
        for module in self._by_path.values():
            if isinstance(module, Module):
                module.release()

    # --- names

    def lookup(self, module: Module, name: str, _seen: frozenset[tuple[str, str]] = frozenset()) -> Definition | None:
        """What a module-level name of `module` stands for, imports followed; None if the module does not bind it."""
        if _seen:
            return self._lookup(module, name, _seen)
        key = (module, name)
        if key not in self._looked_up:
            self._looked_up[key] = self._lookup(module, name, _seen)
        return self._looked_up[key]

    def _lookup(self, module: Module, name: str, _seen: frozenset[tuple[str, str]]) -> Definition | None:
        if (module.name, name) in _seen:
            return None
        seen = _seen | {(module.name, name)}
        symbol = module.symbols.get(name)
        if isinstance(symbol, Imported):
            return self.find(symbol.dotted, module, seen)
        if symbol is not None:
            return symbol
        key = (module, name)
        if key not in self._stars:
            self._stars[key] = [star for star in module.stars if self._mentions(star, name, module)]
        for star in self._stars[key]:
            other = self.module(star, module)
            if other is not None:
                self._asked(module, other, name)
                found = self.lookup(other, name, seen)
                if found is not None:
                    return found
        return None

    def _mentions(self, star: str, name: str, asking: Module) -> bool:
        """Whether a module imported with `*` may bind a name; a package may star hundreds of files."""
        key = (self._top(asking), star)
        if key in self._by_name:
            return True
        if key not in self._starred:
            self._starred[key] = self._locate(star, self.root(asking.path), asking)
        path = self._starred[key]
        if path is None:
            return False
        self._asked(asking, path, name)
        asked = (path, name)
        if asked not in self._mentioned:
            self._mentioned[asked] = _may_export(self._read(path) or "", name)
        return self._mentioned[asked]

    def find(self, dotted: str, asking: Module, _seen: frozenset[tuple[str, str]] = frozenset()) -> Definition:
        """What an absolute dotted name stands for; the name itself if it lies outside of the program."""
        parts = dotted.split(".")
        for cut in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:cut]), asking)
            if module is None:
                continue
            found: Definition = module
            for part in parts[cut:]:
                if isinstance(found, Module):
                    self._asked(asking, found, part)
                member = self.member(found, part, _seen)
                if member is None:
                    return dotted
                found = member
            if isinstance(found, Module):  # whatever is asked of it later
                self._asked(asking, found, EVERYTHING)
            return found
        return dotted

    def member(
        self, owner: Definition | None, name: str, _seen: frozenset[tuple[str, str]] = frozenset()
    ) -> Definition | None:
        """`owner.name` for a module, a class or an outside name."""
        if isinstance(owner, str):
            return f"{owner}.{name}"
        if isinstance(owner, Module):
            if owner.is_package and name not in owner.symbols:
                inner = self.module(f"{owner.name}.{name}", owner)
                if inner is not None:
                    self._asked(owner, inner, EVERYTHING)
                    return inner
            return self.lookup(owner, name, _seen)
        if isinstance(owner, Class):
            return self.class_member(owner, name)
        return None

    def resolve(self, node: cst.CSTNode, module: Module) -> Definition | None:
        """What a Name or Attribute chain at module level means; None for other expressions and unknown names."""
        if isinstance(node, cst.Name):
            return self.lookup(module, node.value)
        if isinstance(node, cst.Attribute):
            owner = self.resolve(node.value, module)
            return self.member(owner, node.attr.value) if owner is not None else None
        if isinstance(node, cst.Subscript):  # Generic[T]
            return self.resolve(node.value, module)
        return None

    # --- classes

    def mro(self, cls: Class) -> tuple[Class | str, ...]:
        """The class and its bases, nearest first, as far as they can be read; outside bases as dotted names.

        Depth first with later duplicates kept, which agrees with Python's order for the hierarchies that models have.
        """
        if cls not in self._mro:
            self._mro[cls] = (cls,)  # a cycle ends here
            line: list[Class | str] = [cls]
            for base in cls.bases:
                found = self.resolve(base, cls.module)
                if isinstance(found, Assigned) and len(found.values) == 1:
                    found = self.resolve(found.values[0], cls.module)
                if isinstance(found, Class):
                    line += self.mro(found)
                elif isinstance(found, str):
                    line.append(found)
                else:
                    line.append(cls.module.dotted(base) or "?")
            self._mro[cls] = tuple(reversed(dict.fromkeys(reversed(line))))
        return self._mro[cls]

    def class_member(self, cls: Class, name: str, after: Class | None = None) -> Function | Assigned | Class | None:
        """A member by the class hierarchy; with `after`, only from the bases that follow that class (`super()`)."""
        key = (cls, name, after)
        if key not in self._members:
            self._members[key] = self._class_member(cls, name, after)
        return self._members[key]

    def _class_member(self, cls: Class, name: str, after: Class | None) -> Function | Assigned | Class | None:
        line = self.mro(cls)
        if after is not None:
            line = line[line.index(after) + 1 :] if after in line else ()
        for owner in line:
            if isinstance(owner, Class):
                for table in (owner.methods, owner.assigned, owner.classes):
                    if name in table:
                        return table[name]
        return None

    def has_member(self, cls: Class, name: str) -> bool:
        """Whether the class hierarchy has a member of that name; asking parses none."""
        owners = (owner for owner in self.mro(cls) if isinstance(owner, Class))
        return any(name in table for owner in owners for table in (owner.methods, owner.assigned, owner.classes))

    def is_nn_module(self, cls: Class) -> bool:
        """Whether the class descends from `torch.nn.Module`, as far as its bases can be read or guessed by name."""
        for base in self.mro(cls):
            if isinstance(base, str):
                if base.startswith(_NEVER_MODULES):
                    return False
                if base.startswith("torch.nn.") or base.endswith((".LightningModule", ".PreTrainedModel")):
                    return True
        outside = [b for b in self.mro(cls) if isinstance(b, str)]
        return (
            any(
                b.rpartition(".")[2].endswith(_MODULE_LIKE) and not b.startswith(("torch.", "typing.", "enum."))
                for b in outside
            )
            and self.class_member(cls, "forward") is not None
        )

    def outside_bases(self, cls: Class) -> tuple[str, ...]:
        """Dotted names of the bases that the program does not contain."""
        return tuple(b for b in self.mro(cls) if isinstance(b, str))

    def has_subclasses(self, cls: Class) -> bool:
        """Whether a class of the project derives from this one."""
        if cls not in self._derived_from:
            looked_into: list[Path] = []
            found = any(self._derives(path, cls, looked_into) for path in self._may_derive(cls))
            self._derived_from[cls] = found
            self.heirs_of[cls.module.path, cls.qualname] = (found, looked_into)
        return self._derived_from[cls]

    def _may_derive(self, cls: Class) -> Iterable[Path]:
        return dict.fromkeys([cls.module.path, *map(Path, self._heirs.get(cls.name, ()))])

    def _derives(self, path: Path, cls: Class, looked_into: list[Path]) -> bool:
        looked_into.append(path)
        self._asked(cls.module, path)
        try:
            return any(cls in self.mro(other)[1:] for other in self.load(path).classes)
        except ParseFailure:
            return False


def _may_export(text: str, name: str) -> bool:
    """Whether `from .. import *` of a file with this text can give that name, as far as the text alone says."""
    if "import *" in text:
        return True
    if name not in text:
        return False
    if "__all__" in text:
        return f'"{name}"' in text or f"'{name}'" in text
    defined = rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b"
    assigned = rf"^[ \t]*{name}[ \t]*(?:[=:,)]|as\b|$)"
    bound = rf"{defined}|{assigned}|\bimport\b.*\b{name}\b"
    return re.search(bound, text, re.MULTILINE) is not None


__all__ = ["Assigned", "Class", "Definition", "Function", "Imported", "Module", "Program"]

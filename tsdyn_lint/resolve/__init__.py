"""Trees -> Program: modules, imports, classes and functions of a source tree, and what a name means."""

from tsdyn_lint.resolve.checking import checks_only, only_raises
from tsdyn_lint.resolve.program import Program
from tsdyn_lint.resolve.symbols import Assigned, Class, Function, Imported, Module

__all__ = ["Assigned", "Class", "Function", "Imported", "Module", "Program", "checks_only", "only_raises"]

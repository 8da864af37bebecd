"""The walk's own state: variables of a scope, and what is known of the call being walked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import ALL_ENGINES, CERTAIN, Sides, Step
from tsdyn_lint.infer.values import Value, join
from tsdyn_lint.resolve import Function, Module


class Env:
    """Variables of one scope. Keys with a dot (`self.x`) hold what a test has refined an attribute to."""

    __slots__ = ("before", "globals_", "module", "outer", "read", "refined", "vars")

    def __init__(self, module: Module, outer: Env | None = None, variables: dict[str, Value] | None = None) -> None:
        self.module, self.outer = module, outer
        self.vars: dict[str, Value] = variables if variables is not None else {}
        self.globals_: set[str] = set()
        self.refined: set[str] = set()
        """What keys with a dot have been the attributes of, so far: most names never are."""
        self.before: dict[str, Value] = {}
        self.read: set[str] | None = None
        """In a loop: the keys that its body has read though an earlier round may have set them, as they are among the
        variables `before` it, or not set yet.
        """

    def find(self, name: str) -> Value | None:
        env: Env | None = self
        while env is not None:
            value = env.vars.get(name)
            if env.read is not None and (value is None or name in env.before):
                env.read.add(name)
            if value is not None:
                return value
            env = env.outer
        return None

    def assign(self, name: str, value: Value) -> None:
        if "." in name:
            self.hold(name, value)
        else:
            self.vars[name] = value
        if name in self.refined:
            inside = name + "."
            for known in [k for k in self.vars if k.startswith(inside)]:
                del self.vars[known]

    def hold(self, path: str, value: Value) -> None:
        """Sets a name or an attribute, and leaves what is known of the attributes of it."""
        self.vars[path] = value
        owner, dot, _ = path.rpartition(".")
        while dot:
            self.refined.add(owner)
            owner, dot, _ = owner.rpartition(".")


def joined(snapshots: Iterable[dict[str, Value]]) -> dict[str, Value] | None:
    """The variables after paths that end in these snapshots meet; None if no path arrives."""
    result: dict[str, Value] | None = None
    for variables in snapshots:
        if result is None:
            result = dict(variables)
            continue
        for name, value in variables.items():
            known = result.get(name)
            if known is None:
                if "." not in name:
                    result[name] = value
            elif known is not value:
                result[name] = join(known, value)
        if not result.keys() <= variables.keys():
            for name in [k for k in result if "." in k and k not in variables]:
                del result[name]
    return result


@dataclass(slots=True)
class Loop:
    """Variables at each `break` and `continue` of the loop being walked."""

    breaks: list[dict[str, Value]] = field(default_factory=list)
    continues: list[dict[str, Value]] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """One function being walked."""

    function: Function
    env: Env
    stack: tuple[Step, ...] = ()
    entry: str = ""
    confidence: int = CERTAIN
    engines: frozenset[Engine] = ALL_ENGINES
    blocks: tuple[str, ...] = ()
    """Enclosing statements of this frame that Dynamo cannot resume in: loop, try, with."""
    sides: Sides = ()
    """Undecided tests of this frame around the place being walked."""
    given: Mapping[str, object] = field(default_factory=dict)
    """Defaults of the parameters for which the caller passes something else."""
    asked: Step | None = None
    """The call that passes what leads to the place being walked, where the defaults lead elsewhere."""
    repeated: bool = False
    apart: bool = False
    """In a comprehension that is no generator."""
    returns: list[Value] = field(default_factory=list)
    aside: list[Value] = field(default_factory=list)
    """What is returned only in captures other than Dynamo's: `if torch.jit.is_tracing(): return ...`."""
    entered: frozenset[Engine] = ALL_ENGINES
    """The captures that reach the function, before any test of the capture inside of it."""
    loops: list[Loop] = field(default_factory=list)
    self_value: Value | None = None
    uncertain: int = 0
    """Depth of branches and loops that may not run, or run more than once: writes inside are weak."""
    yields: list[Value] = field(default_factory=list)
    rebuilt: set[str] = field(default_factory=set)
    """Attribute paths that this call has set without looking at what they held: reading them back is no state."""

    @property
    def block(self) -> str:
        """The innermost enclosing statement that Dynamo cannot resume in; empty where there is none."""
        return self.blocks[-1] if self.blocks else ""

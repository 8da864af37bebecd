"""The abstract values of the walk and how two of them join where paths meet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union
from weakref import WeakValueDictionary

from tsdyn_lint.findings import Engine
from tsdyn_lint.infer.events import Event, Hypothesis
from tsdyn_lint.resolve import Class, Function, Module

if TYPE_CHECKING:
    from tsdyn_lint.infer.frames import Env

Sources = frozenset  # of the events whose value this one was made from
NONE: frozenset[Event] = frozenset()


@dataclass(eq=False, slots=True)
class Unknown:
    """Nothing is known. `src`: the reads it derives from, so that their uses are still seen.

    `given`: an argument of the constructor, which is the same in all calls.
    """

    src: frozenset[Event] = NONE
    given: bool = False


@dataclass(eq=False, slots=True)
class Const:
    """A Python constant. `soft`: a default or an attribute that calls rewrite, so that other values are possible."""

    value: Any
    soft: bool = False
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Scalar:
    """A Python number, bool or string of unknown value.

    `type`: int, float, bool, number or str. `origin`: where its value comes from:
    size (of an input), data (of a tensor), rank, grad (requires_grad), meta (dtype, device: fixed by the guards),
    random, clock, training, constant (known when captured), state (changes from call to call), unknown.
    """

    type: str
    origin: str = "unknown"
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Flag:
    """A test that some captures decide: `torch.compiler.is_compiling()` and its like, alone or beside other tests.

    `may`: the captures in which it can be true, `sure`: those in which it always is.
    """

    may: frozenset[Engine]
    sure: frozenset[Engine]
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor, or with `numpy` an array, which Dynamo traces as one.

    `dtype`: bool, int, float or None. `rank`: its number of dimensions where known. `origin`: data (an input or
    computed from one), constant (made of literals), parameter, buffer, random.
    `data_sized`: its length depends on data. `literal`: where it was made of Python values, which a trace holds as one
    tensor for all calls. `fixed`: which dimensions have one size whatever the input, where a view says so.
    """

    dtype: str | None = None
    rank: int | None = None
    origin: str = "data"
    numpy: bool = False
    data_sized: bool = False
    hypothesis: Hypothesis | None = None
    intermediate: bool = True
    literal: Event | None = None
    src: frozenset[Event] = NONE
    fixed: tuple[bool, ...] | None = None


@dataclass(eq=False, slots=True)
class Seq:
    """A list, tuple, set, deque, generator or torch.Size. `items` where each is known, else any element is `elem`.

    `owner`: local, self, global, argument or default: who else sees a mutation; `name` is the attribute or global.
    """

    kind: str
    items: list[Value] | None
    elem: Value
    owner: str = "local"
    name: str = ""
    data_sized: bool = False
    src: frozenset[Event] = NONE
    cls: Class | None = None
    """The named tuple class, for a tuple made by one."""
    fields: tuple[str, ...] = ()
    """Names of the items, for a named tuple that torch returns."""

    @property
    def of_modules(self) -> bool:
        """Whether this is a container of submodules: nn.ModuleList, nn.Sequential or what walks one."""
        return self.kind in ("modulelist", "sequential")


@dataclass(eq=False, slots=True)
class Mapping:
    """A dict. `items` by constant key; `rest` is the value under any other key, None when there is none."""

    items: dict[Hashable, Value]
    rest: Value | None = None
    owner: str = "local"
    name: str = ""
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Instance:
    """An object: of a class of the program (`cls`) or of one outside of it (`outside`, a dotted name).

    `complete`: the constructor was followed, so that an attribute not in `attrs` does not exist. `owner`: who else
    knows it, or "call" for a module that the captured call has made.
    """

    cls: Class | None
    outside: str
    attrs: dict[str, Value] = field(default_factory=dict)
    is_module: bool = False
    complete: bool = False
    owner: str = "local"
    args: tuple[Value, ...] = ()
    kwargs: dict[str, Value] = field(default_factory=dict)
    src: frozenset[Event] = NONE

    @property
    def is_layer(self) -> bool:
        """Whether it is a module of torch that holds no others, which is never false."""
        return self.cls is None and self.outside.startswith("torch.nn.") and self.outside not in CONTAINERS


@dataclass(eq=False, slots=True)
class Func:
    """A function of the program, bound to `self` for a method; `env` is what a nested one closes over.

    `bare`: the function itself, as its decorators see it.
    """

    function: Function
    self: Value | None = None
    env: Env | None = None
    src: frozenset[Event] = NONE
    defaults: dict[str, Value] | None = None
    bare: bool = False


@dataclass(eq=False, slots=True)
class ClassRef:
    cls: Class
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class ModuleRef:
    module: Module
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Outside:
    """A function, class, module or constant that the program does not contain, by its dotted name."""

    dotted: str
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Method:
    """A method of a value that is not a class of the program: a tensor's, a list's, a logger's."""

    receiver: Value
    name: str
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Partial:
    func: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class SuperRef:
    """`super()` in a method of `cls`, for `self`."""

    cls: Class
    self: Value
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class SliceValue:
    parts: tuple[Value, ...]
    src: frozenset[Event] = NONE


@dataclass(eq=False, slots=True)
class Either:
    """One of a few values, where paths met."""

    options: tuple[Value, ...]
    src: frozenset[Event] = NONE


Value = Union[  # noqa: UP007 - some of the parts are evaluated late
    Unknown, Const, Scalar, Flag, Tensor, Seq, Mapping, Instance, Func, ClassRef, ModuleRef, Outside, Method, Partial,
    SuperRef, SliceValue, Either,
]  # fmt: skip

CONTAINERS = frozenset(
    {
        "torch.nn.ModuleList",
        "torch.nn.Sequential",
        "torch.nn.ModuleDict",
        "torch.nn.ParameterList",
        "torch.nn.ParameterDict",
    }
)
"""Modules that hold others, and are false where they hold none."""
UNKNOWN = Unknown()
GIVEN = Unknown(given=True)
NOTHING = Const(None)
TRUE, FALSE = Const(True), Const(False)
INT, FLOAT, BOOL, STR = (Scalar(t, "unknown") for t in ("int", "float", "bool", "str"))
CONSTANT_INT = Scalar("int", "constant")
_LIMIT = 5


def options(value: Value) -> tuple[Value, ...]:
    return value.options if type(value) is Either else (value,)


def unknown(*values: Value) -> Value:
    """Unknown, but for the reads that went into it."""
    src = sources(*values)
    return Unknown(src) if src else UNKNOWN


def sources(*values: Value) -> frozenset[Event]:
    """The reads that any of the values derives from."""
    found: frozenset[Event] = NONE
    for value in values:
        if value.src:
            found = found | value.src if found else value.src
        elif type(value) is Either:
            for option in value.options:
                if option.src:
                    found |= option.src
    return found


def either(values: Iterable[Value]) -> Value:
    """The join of any number of values."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def join(a: Value, b: Value) -> Value:
    """A value that stands for both."""
    if a is b:
        return a
    ka, kb = type(a), type(b)
    if ka is kb:
        merged = _merge(a, b)
        if merged is not None:
            return merged
    if ka is Unknown or kb is Unknown:
        # an unknown path does not make a known tensor less of one: keep both
        if (ka is Unknown and kb in (Const, Scalar)) or (kb is Unknown and ka in (Const, Scalar)):
            return Unknown(sources(a, b)) if a.src or b.src else UNKNOWN
    found: list[Value] = []
    for value in (*options(a), *options(b)):
        for i, known in enumerate(found):
            if known is value:
                break
            if type(known) is type(value):
                merged = _merge(known, value)
                if merged is not None:
                    found[i] = merged
                    break
        else:
            found.append(value)
    if len(found) == 1:
        return found[0]
    if len(found) > _LIMIT:
        return unknown(*found)
    return Either(tuple(found))


def _merge(a: Any, b: Any) -> Value | None:
    """The join of two values of one kind where that is again of this kind."""
    if isinstance(a, Const):
        if type(a.value) is type(b.value) and a.value == b.value:
            return Const(a.value, a.soft and b.soft, a.src | b.src)
        if isinstance(a.value, bool) and isinstance(b.value, bool):
            return Scalar("bool", "constant" if not (a.soft or b.soft) else "unknown", a.src | b.src)
        if type(a.value) is type(b.value) and isinstance(a.value, (int, float, str)):
            return Scalar(type(a.value).__name__, "constant", a.src | b.src)
        return None
    if isinstance(a, Tensor):
        if a.numpy != b.numpy:
            return None
        return Tensor(
            a.dtype if a.dtype == b.dtype else None,
            a.rank if a.rank == b.rank else None,
            _common_origin(a.origin, b.origin),
            a.numpy,
            a.data_sized or b.data_sized,
            shared_hypothesis(a, b),
            a.intermediate or b.intermediate,
            a.literal if a.literal is b.literal else None,
            a.src | b.src,
            _common_sizes(a.fixed, b.fixed),
        )
    if isinstance(a, Scalar):
        if a.type == b.type:
            return Scalar(a.type, worse(a.origin, b.origin), a.src | b.src)
        return Scalar("number" if "str" not in (a.type, b.type) else "str", worse(a.origin, b.origin), a.src | b.src)
    if isinstance(a, Unknown):
        return unknown(a, b)
    if isinstance(a, (Seq, Mapping)):
        pair = (id(a), id(b))
        if pair in _merging:
            return a  # they hold themselves
        _merging.add(pair)
        try:
            return _merge_containers(a, b)
        finally:
            _merging.remove(pair)
    if isinstance(a, Outside) and a.dotted == b.dotted:
        return a
    if isinstance(a, ClassRef) and a.cls is b.cls:
        return a
    if isinstance(a, Func) and a.function is b.function and a.self is b.self and a.bare is b.bare:
        return a
    if (
        isinstance(a, Instance)
        and a.cls is None
        and b.cls is None
        and a.outside == b.outside
        and not a.attrs
        and not b.attrs
    ):
        return a
    if isinstance(a, SliceValue):
        return SliceValue(tuple(join(x, y) for x, y in zip(a.parts, b.parts, strict=False)), a.src | b.src)
    if isinstance(a, Flag) and (a.may, a.sure) == (b.may, b.sure):
        return a
    return None


def _common_origin(a: str, b: str) -> str:
    """Where a tensor comes from on two paths: data, unless it belongs to the module or the program on both."""
    if a == b:
        return a
    both = {a, b}
    if both <= {"parameter", "buffer", "constant"}:
        return "buffer" if "buffer" in both else "parameter"
    return "data"


def _common_sizes(a: tuple[bool, ...] | None, b: tuple[bool, ...] | None) -> tuple[bool, ...] | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x and y for x, y in zip(a, b, strict=True))


def shared_hypothesis(a: Tensor, b: Tensor) -> Hypothesis | None:
    """What a value made from two tensors rests on: a guess as long as both are guesses, else nothing."""
    one, other = a.hypothesis, b.hypothesis
    if one is None or other is None or one.confirmed or other.confirmed:
        return None
    if other.leaves <= one.leaves:
        return one
    if one.leaves <= other.leaves:
        return other
    leaves = one.leaves | other.leaves
    joint = _joint.get(leaves)
    if joint is None:
        joint = _joint[leaves] = Hypothesis(f"{one.name}, {other.name}", leaves)
    return joint


_joint: WeakValueDictionary[frozenset[Hypothesis], Hypothesis] = WeakValueDictionary()
"""What a use proves of one value made from some parameters, one of which is a tensor, it proves of them all."""
_merging: set[tuple[int, int]] = set()
"""The containers whose join is under way."""


def _merge_containers(a: Any, b: Any) -> Value | None:
    if isinstance(a, Seq) and a.kind == b.kind and a.cls is b.cls:
        items = None
        if a.items is not None and b.items is not None and len(a.items) == len(b.items):
            items = [join(x, y) for x, y in zip(a.items, b.items, strict=True)]
        elem = join(element(a), element(b))
        return Seq(a.kind, items, elem, a.owner if a.owner == b.owner else "local", a.name,
                   a.data_sized or b.data_sized, a.src | b.src, a.cls,
                   a.fields if a.fields == b.fields else ())  # fmt: skip
    if isinstance(a, Mapping):
        table = dict(a.items)
        for key, value in b.items.items():
            table[key] = join(table[key], value) if key in table else value
        rest = a.rest if b.rest is None else b.rest if a.rest is None else join(a.rest, b.rest)
        return Mapping(table, rest, a.owner, a.name, a.src | b.src)
    return None


_ORDER = ("constant", "meta", "unknown", "training", "rank", "grad", "size", "state", "clock", "random", "data")


def worse(a: str, b: str) -> str:
    return a if _ORDER.index(a) >= _ORDER.index(b) else b


def element(value: Seq) -> Value:
    """What iterating over the sequence gives."""
    return value.elem if value.items is None else either(value.items) if value.items else UNKNOWN


def hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def key(value: Value, depth: int = 3) -> Hashable:
    """What a call's result may depend on: calls with equal keys are walked once."""
    if type(value) is Const:
        if not hashable(value.value):
            return id(value)
        return ("c", type(value.value), value.value, value.soft, value.src)
    if type(value) is Tensor:
        made = (value.origin, value.literal, value.numpy, value.data_sized, value.fixed)
        return ("t", value.dtype, value.rank, made, value.hypothesis, value.src)
    if type(value) is Scalar:
        return ("s", value.type, value.origin, value.src)
    if type(value) is Unknown:
        return ("?", value.src, value.given)
    if type(value) is Seq:
        if depth == 0:
            return ("q", value.kind)
        inner = (
            tuple(key(v, depth - 1) for v in value.items[:12])
            if value.items is not None
            else key(value.elem, depth - 1)
        )
        return ("q", value.kind, value.owner, value.items is None, inner, value.src)
    if type(value) is Mapping:
        if depth == 0:
            return ("m",)
        pairs = tuple((k, key(v, depth - 1)) for k, v in list(value.items.items())[:20])
        return ("m", pairs, None if value.rest is None else key(value.rest, depth - 1))
    if type(value) is Either:
        return ("e", *(key(v, depth) for v in value.options))
    if type(value) is Outside:
        return ("o", value.dotted)
    if type(value) is ClassRef:
        return ("k", id(value.cls))
    if type(value) is Func:
        return ("f", id(value.function), id(value.self), id(value.env), value.bare)
    if type(value) is Instance and value.cls is None and not value.attrs:
        return ("i", value.outside)
    return id(value)

"""Objects: classes instantiated by walking `__init__`, their attributes, and modules called."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import libcst as cst

from tsdyn_lint.infer import inside_modules
from tsdyn_lint.infer.calls import Calls
from tsdyn_lint.infer.events import CERTAIN, LIKELY, POSSIBLE
from tsdyn_lint.infer.frames import Env, Frame
from tsdyn_lint.infer.recall import Args, instance_key
from tsdyn_lint.infer.refine import is_soft_none
from tsdyn_lint.infer.sharing import Sharing
from tsdyn_lint.infer.values import (
    BOOL,
    CONTAINERS,
    FLOAT,
    INT,
    NOTHING,
    STR,
    UNKNOWN,
    ClassRef,
    Const,
    Either,
    Func,
    Instance,
    Mapping,
    Method,
    Outside,
    Scalar,
    Seq,
    Tensor,
    Unknown,
    Value,
    either,
    options,
    unknown,
)
from tsdyn_lint.infer.walk import ANY
from tsdyn_lint.parse import parsed_expression
from tsdyn_lint.resolve import Assigned, Class, Function, Module

RNNS = frozenset({"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"})
_RNN_METHODS = frozenset("forward flatten_parameters parameters named_parameters zero_grad __call__".split())
_PARAMETERS = frozenset(
    (
        "weight bias running_mean running_var num_batches_tracked in_proj_weight in_proj_bias weight_g "
        "weight_v bias_k bias_v"
    ).split()
)
_BUFFERS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_TENSOR_NAMES = frozenset(
    {
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "BoolTensor",
        "IntTensor",
        "HalfTensor",
        "DoubleTensor",
        "Parameter",
        "Variable",
    }
)
_PLAIN_TYPES = frozenset("int float bool str bytes list tuple dict set complex object ndarray".split())
_MODULE_METHODS = frozenset(
    (
        "items keys values pop update append extend insert children modules named_children named_modules parameters "
        "named_parameters buffers named_buffers register_buffer register_parameter add_module to cuda cpu eval train "
        "half float double apply state_dict load_state_dict requires_grad_ zero_grad _modules _buffers _parameters"
    ).split()
)
_NO_PARAMETERS = tuple(
    (
        "ReLU Softmax Sigmoid Tanh GELU Dropout Loss Pool Identity Flatten Upsample Pad LeakyReLU ELU SiLU "
        "Softplus Unfold Fold PixelShuffle LogSoftmax Hardtanh Threshold CosineSimilarity PairwiseDistance "
        "ReLU6 Mish Hardswish Hardsigmoid LogSigmoid"
    ).split()
)


class Instances(Calls):
    """`instantiate`, attribute lookup on objects and classes, and calls of objects."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._annotations: dict[tuple[int, int], Value] = {}
        self._building: set[int] = set()
        self.sharing = Sharing(self._shared, self._leaves)

    def start_afresh(self) -> None:
        super().start_afresh()
        self._building.clear()

    # --- building

    def instantiate(self, cls: Class, args: Args, node: cst.CSTNode | None) -> Value:
        line = self.program.mro(cls)
        outside = [b for b in line if isinstance(b, str)]
        is_module = self.program.is_nn_module(cls)
        if any(b in ("typing.NamedTuple", "NamedTuple") for b in outside):
            return self.named_tuple(cls, args)
        memo = instance_key(cls, args, args.open, args.rest is not None)
        known = self._instances.get(memo)
        if known is not None:
            self.constructed_here(known, cls, node)
            return known
        if cls in self._active or id(cls) in self._building:
            self._relies_on = 0
            return Instance(cls, "", is_module=is_module)
        instance = Instance(
            cls,
            next((b for b in outside if b.startswith("torch.nn.")), outside[-1] if outside else ""),
            is_module=is_module,
        )
        instance.args, instance.kwargs = tuple(args.pos), dict(args.kw)
        if not is_module:
            if any(
                b in ("builtins.dict", "collections.OrderedDict", "collections.UserDict", "dict") for b in outside
            ) and not is_dataclass(cls):
                return instance
            if any(b.startswith("torch.autograd.") for b in outside):
                return instance

        def construct() -> Instance:
            if is_module:
                self._instances[memo] = instance
            self.construct(instance, cls, args, node)
            return instance

        if self.muted or is_module or node is None:
            what = (cls, self.frame.engines, len(args.pos), tuple(args.kw), args.open)
            made = self.once(what, args, len(self._active), construct)
            assert isinstance(made, Instance)
            instance = made
        else:
            construct()
        if is_module and not self.muted:
            instance = self._instances[memo] = self.sharing.shared(instance)
            self.constructed_here(instance, cls, node)
        return instance

    def construct(self, instance: Instance, cls: Class, args: Args, node: cst.CSTNode | None) -> None:
        """Walks the constructor of a new object."""
        init = self.program.class_member(cls, "__init__")
        self._building.add(id(cls))
        try:
            # a plain object made in captured code is made by what its constructor does there
            with self.quietly() if instance.is_module or node is None else nullcontext():
                if isinstance(init, Function):
                    self.call_function(Func(init, instance), args, node)
                elif any(isinstance(b, Class) and is_dataclass(b) for b in self.program.mro(cls)):
                    self.fill_fields(instance, cls, args)
            instance.complete = True
        finally:
            self._building.discard(id(cls))

    def constructed_here(self, instance: Instance, cls: Class, node: cst.CSTNode | None) -> None:
        """The event of a module class instantiated in captured code."""
        if node is not None and not self.muted:
            instance.owner = "call"
            self.emit("construct", node, None, target="torch.nn.Module", name=cls.name,
                      parameters=owns_parameters(instance))  # fmt: skip

    def named_tuple(self, cls: Class, args: Args) -> Value:
        names = self.fields(cls)
        items = [args.get(i, n) or self.field_default(cls, n) for i, n in enumerate(names)]
        return Seq("tuple", items, UNKNOWN, cls=cls)

    def fields(self, cls: Class) -> list[str]:
        """Field names of a dataclass or named tuple, those of its bases first."""
        names: list[str] = []
        for owner in reversed(self.program.mro(cls)):
            if isinstance(owner, Class):
                names += [n for n, slot in owner.assigned.items() if slot.annotation is not None and n not in names]
        return names

    def field_default(self, cls: Class, name: str) -> Value:
        member = self.program.class_member(cls, name)
        if not isinstance(member, Assigned):
            return UNKNOWN
        if member.values:
            value = self.assigned_value(member, cls.module, name, cls, "local")
            return Const(value.value, True) if isinstance(value, Const) else value
        return self.annotated(member.annotation, cls.module)

    def fill_fields(self, instance: Instance, cls: Class, args: Args) -> None:
        for index, name in enumerate(self.fields(cls)):
            given = args.get(index, name)
            instance.attrs[name] = given if given is not None else self.field_default(cls, name)

    # --- attributes

    def instance_attribute(self, owner: Instance, name: str, node: cst.CSTNode) -> Value:
        if owner.outside in RNNS and owner.cls is None and name not in _RNN_METHODS:
            # Dynamo wraps the module before it reads anything of it
            self.meets_rnn(owner, node)
        self.touch(name)
        value = owner.attrs.get(name)
        if value is not None:
            if node is not self.part and type(value) in (Instance, Either):
                self.meets_rnn(value, node)
            return self.track(id(owner), name, value, node) if self.tracked else value
        if name == "training" and owner.is_module:
            return self.training
        if owner.cls is not None:
            if name == "__class__":
                return ClassRef(owner.cls)
            member = self.program.class_member(owner.cls, name)
            if isinstance(member, Function):
                if member.is_property:
                    return self.call_function(Func(member, owner), Args(), node)
                if member.is_static:
                    return Func(member)
                return Func(member, ClassRef(owner.cls) if member.is_class_method else owner)
            if isinstance(member, Assigned):
                return self.class_constant(member, owner.cls, name, "self")
            if isinstance(member, Class):
                return ClassRef(member)
            if "*" in owner.attrs and name not in _MODULE_METHODS:
                return owner.attrs["*"]
        if owner.outside.startswith("torch.nn.") and name in _PARAMETERS and owner.outside != "torch.nn.Module":
            return Tensor(None, None, "buffer" if name in _BUFFERS else "parameter", intermediate=False)
        if (
            owner.cls is None
            and owner.outside.startswith("torch.nn.")
            and name
            in (
                "in_features",
                "out_features",
                "in_channels",
                "out_channels",
                "embedding_dim",
                "num_embeddings",
                "hidden_size",
                "num_heads",
                "normalized_shape",
                "kernel_size",
                "stride",
                "padding",
                "dilation",
                "groups",
                "eps",
                "p",
                "padding_idx",
                "embed_dim",
                "num_layers",
            )
        ):
            return Scalar("number", "constant")
        if owner.outside == "contextlib.<user>":
            return UNKNOWN
        return Method(owner, name, owner.src)

    def class_constant(self, member: Assigned, cls: Class, name: str, owner: str) -> Value:
        home = next((c for c in self.program.mro(cls) if isinstance(c, Class) and c.assigned.get(name) is member), cls)
        if "enum." in "".join(self.program.outside_bases(cls)):
            return Outside(f"{home.module.name}.{home.qualname}.{name}")
        memo = (id(member), -1)
        if memo not in self._annotations:
            self._annotations[memo] = UNKNOWN
            self._annotations[memo] = self.share(self.assigned_value(member, home.module, name, home, owner))
        value = self._annotations[memo]
        if isinstance(value, Func) and type(owner) is str and value.self is None:
            return value
        return value

    def class_attribute(self, owner: ClassRef, name: str, node: cst.CSTNode) -> Value:
        member = self.program.class_member(owner.cls, name)
        if isinstance(member, Function):
            return Func(member, owner if member.is_class_method else None)
        if isinstance(member, Assigned):
            return self.class_constant(member, owner.cls, name, "global")
        if isinstance(member, Class):
            return ClassRef(member)
        if name == "__name__":
            return Const(owner.cls.name)
        return Method(owner, name)

    def instance_item(self, owner: Instance, index: Value, node: cst.CSTNode) -> Value:
        if owner.cls is None:
            return unknown(owner)
        getter = self.program.class_member(owner.cls, "__getitem__")
        if isinstance(index, Const) and isinstance(index.value, str) and index.value in owner.attrs:
            self.touch(index.value)
            return owner.attrs[index.value]
        if (
            is_dataclass(owner.cls)
            or self.fields(owner.cls)
            and any(b.endswith("ModelOutput") for b in map(_base_name, self.program.mro(owner.cls)))
        ):
            self.notes.touched |= ANY
            values = list(owner.attrs.values())
            if isinstance(index, Const) and isinstance(index.value, int):
                present = [v for v in values if not (isinstance(v, Const) and v.value is None)]
                if present and index.value == 0:
                    return present[0]
                return either(present) if present else UNKNOWN
            return Seq("tuple", None, either(values))
        if isinstance(getter, Function):
            return self.call_function(Func(getter, owner), Args([index]), node)
        return UNKNOWN

    def iterate_instance(self, value: Instance, node: cst.CSTNode) -> Value:
        if value.cls is not None:
            getter = self.program.class_member(value.cls, "__iter__")
            if isinstance(getter, Function):
                found = self.call_function(Func(getter, value), Args(), node)
                return self.iterate(found, node, "loop") if isinstance(found, Seq) else UNKNOWN
            if value.outside in CONTAINERS and "*" in value.attrs:
                return STR if value.outside.endswith("Dict") else value.attrs["*"]
        return UNKNOWN

    # --- calling

    def call_instance(self, owner: Instance, args: Args, node: cst.CSTNode) -> Value:
        if "<pre-hooks>" in owner.attrs:
            self.run_hooks(owner, "<pre-hooks>", args, UNKNOWN, node)
        if "<backward-hooks>" in owner.attrs:
            self.emit("call", node, None, sub="backward-hooks", target="torch.nn.Module.<backward hooks>")
        result = self.call_object(owner, args, node)
        return self.run_hooks(owner, "<hooks>", args, result, node) if "<hooks>" in owner.attrs else result

    def run_hooks(self, owner: Instance, kind: str, args: Args, result: Value, node: cst.CSTNode | None) -> Value:
        """Hooks that a constructor put on a module: what a forward hook returns takes the place of the result."""
        held = owner.attrs.get(kind)
        for hook in held.items if isinstance(held, Seq) and held.items is not None else ():
            given: Value = UNKNOWN
            if isinstance(hook, Func):
                after = [result] if kind == "<hooks>" else []
                given = self.call_function(hook, Args([owner, Seq("tuple", list(args.pos), UNKNOWN), *after]), node)
            kept = [v for v in options(given) if not (isinstance(v, Const) and v.value is None)]
            if kept and not all(isinstance(v, Unknown) for v in kept):
                result = either(kept) if len(kept) == len(options(given)) else either([result, *kept])
        return result

    def call_object(self, owner: Instance, args: Args, node: cst.CSTNode) -> Value:
        if owner.cls is not None:
            names = (
                ("__call__", "forward")
                if not owner.is_module or isinstance(self.program.class_member(owner.cls, "__call__"), Function)
                else ("forward",)
            )
            for name in names:
                method = owner.attrs.get(name) or None
                if method is not None:
                    return self.invoke(method, args, node)
                member = self.program.class_member(owner.cls, name)
                if isinstance(member, Function):
                    return self.call_function(Func(member, owner), args, node)
        if owner.outside.startswith("torch.nn."):
            return self.call_builtin_module(owner, args, node)
        if owner.outside == "torch.jit.ScriptModule":
            with self.under(block="script"):
                self.emit("call", node, None, sub="script-module", target=owner.outside)
            with self.quietly():
                return self.invoke(owner.args[0], args, node) if owner.args else UNKNOWN
        for value in args.all():
            self.use(value, "arg", node)
        return unknown(*args.all())

    def meets_rnn(self, value: Value, node: cst.CSTNode, packed: bool = False) -> None:
        """An RNN, which Dynamo cannot wrap: wherever it meets one, it gives up the function that it is in."""
        for option in options(value):
            if type(option) is Instance and option.cls is None and option.outside in RNNS:
                sure = (
                    CERTAIN if option is value else LIKELY if not any(map(is_soft_none, options(value))) else POSSIBLE
                )
                with self.under(sure, block="rnn"):
                    self.emit(
                        "rnn", node, None, target=option.outside, cls=option.outside.rpartition(".")[2], packed=packed
                    )
                return

    def call_builtin_module(self, owner: Instance, args: Args, node: cst.CSTNode) -> Value:
        kind = owner.outside
        for value in args.all():
            self.use(value, "arith", node)
        first = args.get(0, "input") or UNKNOWN
        self.confirm(first)
        if kind in RNNS:
            packed = isinstance(first, Instance) and first.outside.endswith("PackedSequence")
            self.meets_rnn(owner, node, packed=packed)
            state: Value = Tensor()
            if kind == "torch.nn.LSTM":
                state = Seq("tuple", [Tensor(), Tensor()], UNKNOWN)
            out: Value = Instance(None, "torch.nn.utils.rnn.PackedSequence") if packed else Tensor("float")
            return Seq("tuple", [out, state], UNKNOWN)
        if kind == "torch.nn.CTCLoss":
            self.emit("dynshape", node, None, op="ctc_loss", target=kind, spelling="module", origin="data")
        for mask in inside_modules.compared_masks(kind, args):
            self.confirm(mask)
            unlikely = any(map(is_soft_none, options(mask)))
            sure = POSSIBLE if unlikely else CERTAIN if isinstance(mask, Tensor) else LIKELY
            origin = getattr(self.tensor(mask), "origin", "")
            self.emit("module-read", node, mask, sure, cls=kind.rpartition(".")[2], baked=origin == "data")
        if (
            inside_modules.counts_batches(owner)
            and self.truth(owner.attrs.get("training", self.training))[0] is not False
        ):
            self.emit("module-read", node, None, LIKELY, cls=kind.rpartition(".")[2], baked=False)
        if kind == "torch.nn.AdaptiveLogSoftmaxWithLoss" and len(args.all()) == 2:
            self.emit("dynshape", node, None, op="cutoffs", target=kind, spelling="module", origin="data")
            return Seq("tuple", [Tensor("float"), Tensor("float", 0)], UNKNOWN)
        if kind == "torch.nn.GaussianNLLLoss":
            return self.outside_call("torch.nn.functional.gaussian_nll_loss", args, node)
        if kind in ("torch.nn.MultiheadAttention", "torch.nn.LSTMCell"):
            return Seq("tuple", [Tensor("float"), Tensor("float")], UNKNOWN)
        if "MaxPool" in kind and (owner.kwargs.get("return_indices") is not None):
            return Seq("tuple", [Tensor("float"), Tensor("int")], UNKNOWN)
        if kind in ("torch.nn.Module", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel"):
            inner = owner.args[0] if owner.args else owner.kwargs.get("module")
            if inner is not None and kind != "torch.nn.Module":
                return self.invoke(inner, args, node)
            return UNKNOWN
        tensor = self.tensor(first)
        rank = (
            tensor.rank
            if tensor is not None and not kind.endswith(("Embedding", "Flatten", "Bilinear", "Loss"))
            else None
        )
        if kind.endswith("Loss"):
            rank = 0 if "reduction" not in owner.kwargs else None
        if kind == "torch.nn.Identity":
            return first
        return Tensor("float", rank)

    # --- annotations

    def annotated(self, annotation: cst.CSTNode | None, module: Module) -> Value:
        """The value that an annotation promises, unknown if it says nothing of use."""
        if annotation is None:
            return UNKNOWN
        memo = (id(annotation), id(module))
        if memo not in self._annotations:
            self._annotations[memo] = UNKNOWN
            self._annotations[memo] = self.share(self._annotated(annotation, module))
        return self._annotations[memo]

    def _annotated(self, node: cst.CSTNode, module: Module) -> Value:
        if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
            try:
                return self._annotated(parsed_expression(str(node.evaluated_value)), module)
            except Exception:
                return UNKNOWN
        if isinstance(node, cst.BinaryOperation):
            return self._union([self._annotated(node.left, module), self._annotated(node.right, module)])
        if isinstance(node, cst.Subscript):
            return self._generic(node, module)
        if isinstance(node, cst.Name) and node.value == "None":
            return NOTHING
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return UNKNOWN
        found = self.program.resolve(node, module)
        dotted = found if isinstance(found, str) else module.dotted(node) if found is None else None
        if isinstance(found, Class):
            return self.example(found)
        if isinstance(found, Assigned) and found.values:
            return self._annotated(found.values[0], module) if not isinstance(found.values[0], cst.Call) else UNKNOWN
        return _named(dotted or "")

    def example(self, cls: Class) -> Value:
        """An instance of a class as its defaults build it."""
        if "enum." in "".join(self.program.outside_bases(cls)):
            return Scalar("other", "constant")
        if any(
            b in ("typing.TypedDict", "TypedDict", "typing.Protocol", "abc.ABC")
            for b in self.program.outside_bases(cls)
        ):
            return UNKNOWN
        if "forward" not in cls.methods and self.program.is_nn_module(cls) and self.program.has_subclasses(cls):
            return UNKNOWN
        with self.quietly(), self.inside(self.frame or _nowhere(cls)):
            if self.frame is None:
                self.frame = _nowhere(cls)
            return self.instantiate(cls, Args(open=True), None)

    def _union(self, values: list[Value]) -> Value:
        if any(isinstance(v, Unknown) for v in values):
            rest = [v for v in values if not isinstance(v, Unknown)]
            if any(isinstance(v, Tensor) for v in rest):
                return Either((*rest, UNKNOWN))
            return UNKNOWN
        return either(values)

    def _generic(self, node: cst.Subscript, module: Module) -> Value:
        head = module.dotted(node.value) or ""
        name = head.rpartition(".")[2]
        inner = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
        if name == "Optional" and inner:
            return self._union([NOTHING, self._annotated(inner[0], module)])
        if name == "Union":
            return self._union([self._annotated(i, module) for i in inner])
        if name in ("List", "list", "Sequence", "Iterable", "Set", "set", "Collection") and inner:
            return Seq("list", None, self._annotated(inner[0], module), "argument")
        if name in ("Tuple", "tuple"):
            if len(inner) == 2 and isinstance(inner[1], cst.Ellipsis):
                return Seq("tuple", None, self._annotated(inner[0], module))
            return Seq("tuple", [self._annotated(i, module) for i in inner], UNKNOWN)
        if name in ("Dict", "dict", "Mapping", "OrderedDict") and len(inner) == 2:
            return Mapping({}, self._annotated(inner[1], module), "argument")
        if name in ("Final", "Annotated", "ClassVar", "Required") and inner:
            return self._annotated(inner[0], module)
        if head.startswith("jaxtyping.") and inner:
            return self._annotated(inner[0], module)
        return UNKNOWN

    # --- isinstance

    def is_instance(self, value: Value, wanted: Value) -> bool | None:
        """`isinstance(value, wanted)`, None if that is open."""
        classes = wanted.items if isinstance(wanted, Seq) and wanted.items is not None else [wanted]
        answers = [self._is_one(value, c) for c in classes]
        if any(a is True for a in answers):
            return True
        return None if any(a is None for a in answers) else False

    def _is_one(self, value: Value, wanted: Value) -> bool | None:
        if isinstance(value, (Unknown, Method)) or isinstance(value, Scalar) and value.type == "other":
            return None
        if isinstance(wanted, ClassRef):
            if isinstance(value, Seq) and value.cls is not None:
                return value.cls is wanted.cls
            if isinstance(value, Instance):
                if value.cls is not None:
                    line = self.program.mro(value.cls)
                    return wanted.cls in line or (
                        None
                        if any(
                            isinstance(b, str) and not b.startswith(("torch.nn", "builtins", "abc", "typing"))
                            for b in line
                        )
                        else False
                    )
                return False
            return False if isinstance(value, (Tensor, Const, Scalar, Seq, Mapping)) else None
        if not isinstance(wanted, Outside):
            return None
        name = wanted.dotted
        short = name.rpartition(".")[2]
        if name == "builtins.type":
            named = value.dotted.rpartition(".")[2] if isinstance(value, Outside) else ""
            return isinstance(value, ClassRef) or (
                named[:1].isupper() or named in _PLAIN_TYPES or None if named else False
            )
        if name.startswith("torch.") and short in _TENSOR_NAMES:
            if not isinstance(value, Tensor):
                # a list that only an annotation speaks of may be a tensor where the code asks
                told = isinstance(value, Seq) and value.owner == "argument"
                return None if told or isinstance(value, Outside) else False
            if value.numpy:
                return False
            if short == "Parameter":
                return value.origin == "parameter"
            if value.hypothesis is not None and not value.hypothesis.confirmed:
                return None
            return True if short == "Tensor" else None
        if name == "numpy.ndarray":
            return value.numpy if isinstance(value, Tensor) else None if isinstance(value, Outside) else False
        table = {"int": int, "float": float, "str": str, "bool": bool}
        if name.startswith("builtins.") and short in table:
            if isinstance(value, Const):
                return isinstance(value.value, table[short])
            if isinstance(value, Scalar):
                if value.type in ("number", "bool"):
                    return None if short != "str" else False
                return value.type == short
            if isinstance(value, Tensor):
                return None if value.hypothesis is not None and not value.hypothesis.confirmed else False
            return False if isinstance(value, (Seq, Mapping, Instance, Func)) else None
        if short in ("list", "tuple", "set", "Sequence", "Iterable", "List", "Tuple"):
            if isinstance(value, Seq):
                if short in ("Sequence", "Iterable"):
                    return True
                held = "tuple" if value.kind == "size" else value.kind
                return held == short.lower()
            if isinstance(value, Tensor):
                return None if value.hypothesis is not None and not value.hypothesis.confirmed else False
            return False if isinstance(value, (Const, Scalar, Mapping, Instance)) else None
        if short in ("dict", "Mapping", "OrderedDict", "Dict"):
            if isinstance(value, Mapping):
                return True
            if isinstance(value, Tensor):
                return None if value.hypothesis is not None and not value.hypothesis.confirmed else False
            return False if isinstance(value, (Const, Scalar, Seq)) else None
        if isinstance(value, Instance):
            if value.cls is None and value.outside:
                if value.outside == name:
                    return True
                if name == "torch.nn.Module":
                    return value.is_module or None
                return (
                    False
                    if value.outside.startswith("torch.nn.")
                    and name.startswith("torch.nn.")
                    and short[0].isupper()
                    and not short.startswith("_")
                    else None
                )
            if value.cls is not None:
                line = self.program.mro(value.cls)
                if name in line or name == "torch.nn.Module" and value.is_module:
                    return True
                return False if name.startswith("torch.nn.") else None
        if isinstance(value, Seq) and name in CONTAINERS:
            return value.kind == short.lower()
        if isinstance(value, Tensor) and value.hypothesis is not None and not value.hypothesis.confirmed:
            return None
        return False if isinstance(value, (Tensor, Const, Scalar, Seq, Mapping)) else None

    def instance_of(self, wanted: Value) -> Value | None:
        """What an unknown value is once `isinstance(value, wanted)` holds."""
        if isinstance(wanted, Seq) and wanted.items:
            several = [self.instance_of(one) for one in wanted.items]
            return either(one for one in several if one is not None) if None not in several else None
        if isinstance(wanted, ClassRef):
            return self.example(wanted.cls)
        if isinstance(wanted, Outside):
            found = _named(wanted.dotted)
            if not isinstance(found, Unknown):
                return found
            short = wanted.dotted.rpartition(".")[2]
            if short in ("list", "tuple"):
                return Seq(short, None, UNKNOWN, "argument")
            if short == "dict":
                return Mapping({}, UNKNOWN, "argument")
        return None


def _named(dotted: str) -> Value:
    """The value of a type named outside of the program."""
    short = dotted.rpartition(".")[2]
    plain = {"int": INT, "float": FLOAT, "bool": BOOL, "str": STR}
    if short in plain and dotted.partition(".")[0] in (short, "builtins"):
        return plain[short]
    if short in _TENSOR_NAMES and (dotted.startswith("torch.") or dotted == short):
        dtype = {"LongTensor": "int", "IntTensor": "int", "BoolTensor": "bool", "FloatTensor": "float"}.get(short)
        return Tensor(dtype, None, "parameter" if short == "Parameter" else "data")
    if dotted in ("numpy.ndarray", "np.ndarray"):
        return Tensor(numpy=True)
    if dotted in ("torch.device", "torch.dtype", "torch.layout", "torch.memory_format"):
        return Scalar("other", "meta")
    if dotted == "torch.Size":
        return Seq("size", None, Scalar("int", "size"))
    if short in ("list", "List", "tuple", "Tuple") and "." not in dotted.removeprefix("typing.").removeprefix(
        "builtins."
    ):
        return Seq(short.lower(), None, UNKNOWN, "argument")
    if short in ("dict", "Dict") and "." not in dotted.removeprefix("typing.").removeprefix("builtins."):
        return Mapping({}, UNKNOWN, "argument")
    if dotted.startswith("torch.nn.") and short[:1].isupper():
        return Instance(None, dotted, is_module=True)
    return UNKNOWN


def has_parameters(dotted: str) -> bool:
    """Whether a module class of torch.nn owns parameters: building it in a forward is what breaks."""
    return not dotted.rstrip("123d").endswith(_NO_PARAMETERS)


def owns_parameters(value: Value, depth: int = 4) -> bool:
    """Whether an object, as its constructor left it, holds parameters of its own or in its submodules."""
    if isinstance(value, Tensor):
        return value.origin == "parameter"
    if isinstance(value, Instance):
        if value.cls is None:
            return value.outside.startswith("torch.nn.") and has_parameters(value.outside)
        return depth > 0 and any(owns_parameters(v, depth - 1) for v in value.attrs.values())
    if isinstance(value, Seq) and depth > 0:
        return any(owns_parameters(v, depth - 1) for v in (value.items or [value.elem]))
    if isinstance(value, Mapping) and depth > 0:
        return any(owns_parameters(v, depth - 1) for v in value.items.values())
    return isinstance(value, Either) and any(owns_parameters(v, depth) for v in value.options)


def holds_rnn(value: Value, depth: int = 4) -> bool:
    """Whether a module is or contains an RNN."""
    if isinstance(value, Instance):
        if value.outside in RNNS:
            return True
        return value.is_module and depth > 0 and any(holds_rnn(v, depth - 1) for v in value.attrs.values())
    if isinstance(value, Seq) and depth > 0:
        return any(holds_rnn(v, depth - 1) for v in (value.items or [value.elem]))
    return False


def is_dataclass(cls: Class) -> bool:
    for decorator in cls.node.decorators:
        name = cls.module.dotted(
            decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        )
        if name and name.rpartition(".")[2] in ("dataclass", "define", "frozen"):
            return True
    return False


def _base_name(base: Class | str) -> str:
    return base if isinstance(base, str) else base.name


def _nowhere(cls: Class) -> Frame:
    from tsdyn_lint.infer.walk import _level

    return Frame(_level(cls.module, None), Env(cls.module))

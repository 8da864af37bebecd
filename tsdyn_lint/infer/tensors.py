"""Tensors: attributes, methods, torch functions, indexing; what they return comes from the torch data."""

from __future__ import annotations

import libcst as cst

from tsdyn_lint.infer import shapes
from tsdyn_lint.infer.events import CERTAIN, LIKELY, POSSIBLE, Event, Hypothesis
from tsdyn_lint.infer.instances import Instances
from tsdyn_lint.infer.operators import derived
from tsdyn_lint.infer.recall import Args
from tsdyn_lint.infer.values import (
    CONSTANT_INT,
    NOTHING,
    UNKNOWN,
    ClassRef,
    Const,
    Func,
    Instance,
    Mapping,
    Method,
    Outside,
    Scalar,
    Seq,
    SliceValue,
    Tensor,
    Unknown,
    Value,
    options,
    sources,
    unknown,
)

_META = frozenset(
    (
        "dtype device is_cuda is_cpu is_mps is_sparse is_quantized is_complex layout itemsize is_meta is_xla "
        "is_nested is_mkldnn names is_leaf output_nr nbytes flags"
    ).split()
)
_SAME = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
_META_METHODS = frozenset(
    (
        "is_floating_point is_complex is_contiguous get_device type is_signed element_size is_pinned "
        "is_inference is_conj is_neg"
    ).split()
)
_KEEPS_DTYPE = frozenset(
    (
        "view reshape flatten squeeze unsqueeze transpose permute contiguous expand repeat detach clone cpu "
        "cuda to expand_as view_as narrow chunk split unbind t flip roll index_select gather unfold swapaxes "
        "movedim numpy requires_grad_ squeeze_ unsqueeze_ tril triu masked_fill masked_fill_ diagonal select "
        "repeat_interleave from_numpy cumsum clamp clamp_ stack cat concat where abs neg sum max min amax "
        "amin new_full Variable"
    ).split()
)
# a trace holds what these make of Python values as one tensor, which calls then share; the others are ops of the graph
_LITERAL_MAKERS = frozenset(
    {"tensor", "as_tensor", "scalar_tensor", "from_numpy", "Tensor", "FloatTensor", "LongTensor"}
)
_FROM_ARRAYS = frozenset({"from_numpy", "tensor", "as_tensor"})
_SAME_STORAGE = frozenset(
    "Variable float to type_as cpu detach requires_grad_ contiguous view reshape squeeze unsqueeze".split()
)
_CONSTRUCTORS = frozenset(
    (
        "tensor zeros ones empty full arange eye linspace logspace as_tensor scalar_tensor from_numpy "
        "zeros_like ones_like empty_like full_like tril_indices triu_indices hann_window Tensor FloatTensor "
        "LongTensor range hamming_window blackman_window"
    ).split()
)
_TAKE_NUMBERS = frozenset(
    (
        "tensor as_tensor is_tensor full zeros ones empty arange range eye linspace logspace rand randn randint "
        "randperm"
    ).split()
)
"""Functions whose first argument need not be a tensor."""
_RANDOM = frozenset(
    ("rand randn randint randperm rand_like randn_like randint_like bernoulli normal multinomial poisson").split()
)
_FULL_REDUCTIONS = frozenset(
    (
        "sum mean prod std var norm any all median max min argmax argmin nansum nanmean logsumexp amax amin "
        "count_nonzero dist dot trace vdot"
    ).split()
)
_BOOL_OPS = frozenset(
    (
        "eq ne lt le gt ge isnan isinf isfinite isclose logical_and logical_or logical_not logical_xor any "
        "all bool equal not_equal less greater greater_equal less_equal isin signbit isneginf isposinf isreal"
    ).split()
)
_INT_OPS = frozenset(
    (
        "argmax argmin argsort nonzero long int randint randperm bincount searchsorted bucketize short "
        "multinomial count_nonzero argwhere char floor_divide_int histc_int"
    ).split()
)
_FLOAT_OPS = frozenset(
    (
        "float half double bfloat16 mean softmax sigmoid sqrt exp log rand randn std var tanh norm "
        "log_softmax cos sin linspace dropout linear conv2d interpolate layer_norm"
    ).split()
)
_SIZE_ARGS = frozenset(
    {"zeros", "ones", "empty", "full", "randn", "rand", "eye", "new_zeros", "new_ones", "new_empty", "new_full"}
)
# where an operator takes an integer and has no overload for a tensor, the position with the tensor itself counted
_INTEGER_ARGS = {
    "topk": 1, "kthvalue": 1, "tril": 1, "triu": 1, "roll": 1, "unfold": 2, "select": 2, "multinomial": 1,
}  # fmt: skip
_RAMPS = (
    "arange",
    "range",
    "linspace",
    "logspace",
)  # the last two take tensors for their ends, but not for their steps
_SPECIALISED = {
    "linspace": ((2, "steps"),),
    "logspace": ((2, "steps"),),
    "tril_indices": ((0, "row"), (1, "col")),
    "triu_indices": ((0, "row"), (1, "col")),
    **{f"{window}_window": ((0, "window_length"),) for window in ("hann", "hamming", "blackman", "bartlett", "kaiser")},
}
"""Integers that Dynamo takes as constants, where `arange`, `zeros` and their like take a size as it is (2.13).

`one_hot(index, classes)` is one of them, but the number of classes hardly varies.
"""
_RETYPES = frozenset({"to", "type_as"})
"""Methods that take no more than the type of another tensor."""
_OBJECTS = {"generator": "torch.Generator", "storage": "torch.UntypedStorage"}


class Tensors(Instances):
    """Everything that starts with `torch.` or happens on a tensor."""

    # --- attributes

    def tensor_attribute(self, owner: Tensor, name: str, node: cst.CSTNode) -> Value:
        if name == "shape":
            self.confirm(owner)
            return self.size_of(owner)
        if name == "ndim":
            self.confirm(owner)
            return self.rank_of(owner)
        if name == "requires_grad":
            return Scalar("bool", "grad", owner.src)
        if name in ("data", "grad", "grad_fn", "_version", "is_leaf"):
            self.emit(
                "tensor-attr",
                node,
                owner,
                sub=name,
                name=name,
                mode="read",
                origin="data" if owner.fixed is not None and not all(owner.fixed) else owner.origin,
                intermediate=owner.intermediate,
            )
        if name in _SAME:
            result = derived(owner, owner.dtype, owner.rank if name == "data" else None)
            return result
        if name in _META:
            self.confirm(owner)
            if isinstance(node, cst.Attribute):
                self.type_asked(node.value)
            return Scalar(
                "other" if name in ("dtype", "device", "layout") else "bool" if name.startswith("is_") else "number",
                "meta",
            )
        if name == "grad_fn":
            return UNKNOWN
        return Method(owner, name, owner.src)

    def size_of(self, owner: Tensor) -> Value:
        """`x.shape`: one traced integer per dimension."""
        size = self.data_size(owner) if owner.data_sized else Scalar("int", "size", owner.src)
        if owner.fixed is not None and not owner.data_sized:
            return Seq("size", [CONSTANT_INT if one else size for one in owner.fixed], size, src=owner.src)
        if owner.origin in shapes.OWN and not owner.data_sized:
            size = CONSTANT_INT if not owner.src else Scalar("int", "constant", owner.src)
        if owner.rank is not None:
            return Seq("size", [size] * owner.rank, size, src=owner.src)
        return Seq("size", None, size, src=owner.src)

    def rank_of(self, owner: Tensor) -> Value:
        """`x.dim()`: one number for a parameter, a buffer or what an operator gave that many, whatever the input."""
        if owner.rank is not None:
            return Const(owner.rank, True, owner.src)
        return Scalar("int", "constant" if owner.origin in shapes.OWN else "rank", owner.src)

    def data_size(self, owner: Tensor) -> Scalar:
        """A size that depends on data: `nonzero(x).shape[0]`, marked so that a branch on it is seen."""
        if self.sized_mark is None:
            frame = self.frame
            self.sized_mark = Event("data-size", cst.Name("_"), frame.function, (), "")
        return Scalar("int", "data", owner.src | {self.sized_mark})

    # --- methods

    def tensor_method(self, owner: Tensor, name: str, args: Args, node: cst.CSTNode) -> Value:
        qualified = f"torch.Tensor.{name}"
        if name in ("item", "tolist"):
            self.confirm(owner)
            event = self.emit(
                "scalar",
                node,
                owner,
                spelling=name,
                origin=owner.origin,
                numpy=owner.numpy,
                dtype=owner.dtype or "",
                data_sized=owner.data_sized,
            )
            src = frozenset([event]) if event is not None else owner.src
            if name == "item":
                kind = owner.dtype if owner.dtype in ("int", "float", "bool") else "number"
                return Scalar(kind, "data" if owner.origin != "constant" else "constant", src)
            return Seq("list", None, Scalar(owner.dtype or "number", "data", src), data_sized=owner.data_sized, src=src)
        if owner.hypothesis is not None and (
            self.torch.returns(qualified) is not None or self.torch.choices(qualified)
        ):
            if name not in (
                "copy",
                "index",
                "count",
                "pop",
                "get",
                "items",
                "values",
                "keys",
                "format",
                "split",
                "update",
                "type",
                "size",
                "min",
                "max",
                "sum",
            ):
                self.confirm(owner)
            elif name in ("size", "min", "max", "sum"):
                self.confirm(owner)
        elif owner.hypothesis is not None and name in (
            "items",
            "keys",
            "append",
            "get",
            "values",
            "update",
            "extend",
            "pop",
            "startswith",
            "format",
        ):
            owner.hypothesis.mapping |= name in ("items", "keys", "get", "values", "update")
            self.contradict(owner)
            return UNKNOWN
        if name == "size":
            sizes = self.size_of(owner)
            assert isinstance(sizes, Seq)
            if not args.pos and "dim" not in args.kw:
                return sizes
            dim = args.get(0, "dim")
            return self.sequence_item(sizes, dim, node) if isinstance(dim, Const) else shapes.size_at(sizes, dim)
        if name in ("dim", "ndimension"):
            return self.rank_of(owner)
        if name in ("numel", "nelement") and owner.data_sized:
            return self.data_size(owner)
        if name in ("numel", "nelement"):
            varies = owner.origin not in shapes.OWN if owner.fixed is None else not all(owner.fixed)
            return Scalar("int", "size" if varies else "constant", owner.src)
        if name in ("__len__",):
            return Scalar("int", "size", owner.src)
        if name in _META_METHODS and not args.pos:
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                self.type_asked(node.func.value)
            self.maybe_method_event(qualified, owner, node, args)
            return Scalar("str" if name == "type" else "bool", "meta")
        if name == "stride" or name == "storage_offset":
            return Scalar("int", "meta") if args.pos else Seq("tuple", None, Scalar("int", "meta"))
        if name == "numpy":
            self.emit("method", node, owner, sub=qualified, target=qualified, origin=owner.origin)
            return Tensor(owner.dtype, owner.rank, owner.origin, True, owner.data_sized, None, src=owner.src)
        if name in ("apply_", "map_"):
            return owner
        if name in ("add_", "sub_", "mul_", "div_") and self.tensor(args.get(0) or UNKNOWN) is not None:
            self.accumulated(owner, node)
        if (
            name.endswith("_")
            and not name.endswith("__")
            and isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and isinstance(node.func.value, cst.Attribute)
            and node.func.value.attr.value == "data"
        ):
            self.emit("tensor-attr", node, owner, name="data", mode="write", form="in-place", value="tensor",
                      intermediate=False, origin=owner.origin)  # fmt: skip
        self.maybe_method_event(qualified, owner, node, args)
        return self.torch_result(qualified, name, args, node, owner)

    def maybe_method_event(self, qualified: str, owner: Tensor, node: cst.CSTNode, args: Args) -> None:
        if self.wanted(qualified):
            switch = args.get(0, "requires_grad")
            self.emit(
                "method",
                node,
                owner,
                sub=qualified,
                target=qualified,
                intermediate=owner.intermediate,
                args=len(args.pos),
                origin=owner.origin,
                off=isinstance(switch, Const) and switch.value is False,
                kept=isinstance(switch, Scalar) and switch.origin == "grad",
            )

    # --- functions

    def torch_call(self, dotted: str, args: Args, node: cst.CSTNode) -> Value:
        """A call of `torch.*` that is no class of modules."""
        name = dotted.rpartition(".")[2]
        first = args.get(0, "input")
        if first is not None and not name[:1].isupper() and not dotted.startswith(("torch.is_tensor", "torch.jit.")):
            if self.torch.returns(dotted) is not None or self.torch.choices(dotted):
                if name not in _TAKE_NUMBERS:
                    self.confirm(first)
        if dotted.startswith("torch.nested.") and name in ("nested_tensor", "as_nested_tensor"):
            layout = args.get(2, "layout")
            jagged = isinstance(layout, Outside) and layout.dotted == "torch.jagged"
            self.emit("call", node, None, sub=dotted, target=dotted, layout="jagged" if jagged else "strided")
            return Tensor() if jagged else Instance(None, "torch.nested.<strided>")
        if isinstance(first, Instance) and first.outside == "torch.nested.<strided>":
            self.emit("call", node, None, sub=dotted, target="torch.nested.<strided>", layout="strided")
            return Tensor()
        made = args.kw.get("generator")
        if isinstance(made, Instance) and made.outside == "torch.Generator" and made.owner == "local":
            self.emit("call", node, None, sub="generator", target="torch.<made generator>")
        learned = args.kw.get("requires_grad")
        if isinstance(learned, Const) and learned.value is True and not learned.soft:
            self.emit("call", node, None, sub="requires_grad", target="torch.<requires_grad=True>")
        if dotted == "torch.sparse.mm" and isinstance(first, Tensor) and not first.intermediate:
            self.emit("call", node, first, LIKELY, sub=dotted, target="torch.sparse.mm")
            return Tensor("float")
        if self.wanted(dotted):
            event = self.emit(
                "call",
                node,
                first,
                sub=dotted,
                target=dotted,
                args=len(args.pos),
                keywords=tuple(args.kw),
                first=_kind(first),
            )
            result = self.torch_result(dotted, name, args, node, None)
            if event is not None and isinstance(result, (Scalar, Unknown)):
                if isinstance(result, Scalar):
                    return Scalar(
                        result.type, "data" if result.origin == "unknown" else result.origin, result.src | {event}
                    )
                return Unknown(frozenset([event]))
            return result
        return self.torch_result(dotted, name, args, node, None)

    def torch_result(self, dotted: str, name: str, args: Args, node: cst.CSTNode, owner: Tensor | None) -> Value:
        """The value of a torch function or method, with the events of what its arguments and its shape depend on."""
        self.argument_events(dotted, name, args, node, owner)
        sized = self.dynamic_shape(dotted, name, args, node, owner)
        everything = args.all()
        if owner is not None:
            everything = [owner, *everything]
        kinds = [_kind(v) for v in args.pos]
        returned = self.torch.returns(dotted, kinds, {k: _kind(v) for k, v in args.kw.items()})
        if returned is None:
            if args.rest is not None or args.open:
                returned = self.torch.returns(dotted)
            if returned is None:
                if owner is not None and owner.numpy:
                    return Tensor(None, None, owner.origin, True)
                if name.endswith("_like") or name in _CONSTRUCTORS or name in _RANDOM:
                    returned = "tensor"
                elif name[:1].isupper() and owner is None:
                    return Instance(None, dotted, args=tuple(args.pos), kwargs=dict(args.kw))
                else:
                    return unknown(*everything)
        result = self.from_kind(returned, dotted, name, args, node, owner, everything)
        if sized:
            for option in options(result):
                if isinstance(option, Tensor):
                    option.data_sized = True
                elif isinstance(option, Seq):
                    for item in option.items or [option.elem]:
                        if isinstance(item, Tensor):
                            item.data_sized = True
        return result

    def from_kind(
        self, kind: str, dotted: str, name: str, args: Args, node: cst.CSTNode, owner: Tensor | None,
        everything: list[Value],
    ) -> Value:  # fmt: skip
        """A return kind of the torch data as a value."""
        kind = kind.strip()
        if kind == "tensor":
            return self.result_tensor(dotted, name, args, node, owner, everything)
        if kind in ("int", "float", "bool", "number", "str"):
            tensors = [t for t in map(self.tensor, everything) if t is not None]
            data = "data_dependent_output" in self.torch.tags(dotted) or name in ("equal", "allclose", "is_nonzero")
            origin = "data" if data and tensors else "meta" if tensors else "unknown"
            return Scalar(kind, origin, sources(*everything))
        if kind.startswith(("list[", "tuple[")):
            outer, _, inner = kind[:-1].partition("[")
            if outer == "list" or inner.endswith(",..."):
                each = self.from_kind(inner.removesuffix(",..."), dotted, name, args, node, owner, everything)
                return Seq("tuple", None, each, name="<rows>" if _rows(name, args, owner) else "")
            parts = [self.from_kind(p, dotted, name, args, node, owner, everything) for p in _split(inner)]
            dtypes = (self.torch.dtype(dotted) or "").split(",")
            if len(dtypes) == len(parts):
                for part, dtype in zip(parts, dtypes, strict=False):
                    if isinstance(part, Tensor) and dtype in ("bool", "int", "float"):
                        part.dtype = dtype
            fields = self.torch.fields(dotted)
            return Seq("tuple", parts, UNKNOWN, fields=fields if len(fields) == len(parts) else ())
        if kind == "size":
            return Seq("size", None, Scalar("int", "size", sources(*everything)), src=sources(*everything))
        if kind in ("dtype", "device", "layout"):
            return Scalar("other", "meta")
        if kind == "none":
            return NOTHING
        if kind in _OBJECTS:
            return Instance(None, _OBJECTS[kind])
        return unknown(*everything)

    def result_tensor(
        self, dotted: str, name: str, args: Args, node: cst.CSTNode, owner: Tensor | None, everything: list[Value]
    ) -> Tensor:
        tensors = [t for v in everything for t in self._tensors_in(v)]
        dtype = self.torch.dtype(dotted)
        if dtype == "same" or dtype is None:
            same = {t.dtype for t in tensors[:2]}
            dtype = same.pop() if len(same) == 1 and (name.rstrip("_") in _KEEPS_DTYPE or dtype == "same") else None
            if name == "where" and len(tensors) > 1:
                dtype = tensors[-1].dtype
            if name in ("to", "type") and args.pos:
                dtype = _dtype_of(args.pos[0]) or (
                    dtype
                    if isinstance(args.pos[0], (Scalar, Const, Unknown, Outside)) and not _is_dtype(args.pos[0])
                    else None
                )
            if name == "where" and len(everything) == 1:
                dtype = "int"  # indices of what is true
        base = name.rstrip("_")
        if base in _BOOL_OPS:
            dtype = "bool"
        elif base in _INT_OPS:
            dtype = "int"
        elif base in _FLOAT_OPS and dtype is None:
            dtype = "float"
        if "dtype" in args.kw:
            dtype = _dtype_of(args.kw["dtype"])
        elif name in ("tensor", "full", "full_like") and dtype is None:
            filled = args.get(0 if name == "tensor" else 1)
            dtype = _literal_dtype(filled)
        elif (
            name == "arange"
            and dtype is None
            and all(
                isinstance(v, Const) and isinstance(v.value, int) or isinstance(v, Scalar) and v.type == "int"
                for v in args.pos
            )
        ):
            dtype = "int"
        fixed = shapes.result_fixed(name, args, owner, tensors)
        rank = shapes.result_rank(name, args, owner, tensors, name in _FULL_REDUCTIONS)
        origin = self.result_origin(name, args, [owner] if owner is not None and name in _RETYPES else tensors, fixed)
        numpy = bool(tensors) and all(t.numpy for t in tensors) and owner is not None
        if name in ("from_numpy", "as_tensor", "tensor"):
            numpy = False
        sized = any(t.data_sized for t in tensors) and name not in _FULL_REDUCTIONS
        hypothesis = next(
            (t.hypothesis for t in tensors if t.hypothesis is not None and not t.hypothesis.confirmed), None
        )
        if name in _CONSTRUCTORS or any(t.hypothesis is None or t.hypothesis.confirmed for t in tensors):
            hypothesis = None
        literal = None
        alias = tensors[0] if name == "Variable" and tensors else owner
        if owner is None and origin == "constant" and name in _LITERAL_MAKERS:
            literal = self.emit("literal", node)
        elif alias is not None and name in _SAME_STORAGE and alias.dtype in (dtype, None):
            literal = alias.literal
        made = Tensor(dtype, rank, origin, numpy, sized, hypothesis, literal=literal, fixed=fixed)
        if name in _LITERAL_MAKERS and owner is None and args.pos and (depth := _depth(args.pos[0])):
            made.rank, made.fixed = depth, (True,) * depth
        return made

    def result_origin(self, name: str, args: Args, tensors: list[Tensor], fixed: tuple[bool, ...] | None) -> str:
        """Where the values of what an operator makes of the tensors come from."""
        if name in _RANDOM:
            return "random"
        if name in shapes.NEW and fixed is not None and not any(map(self.tensor, args.pos)):
            return "constant"
        if tensors and all(t.origin == "constant" for t in tensors) or not tensors and name in _CONSTRUCTORS:
            plain = [v for v in args.pos if self.tensor(v) is None]
            if name in ("zeros", "ones", "empty", "arange", "full") or name.endswith("_like"):
                return "constant"
            if name in shapes.VIEWS and fixed is not None:
                return "constant"
            unknowns = any(
                isinstance(v, Unknown) or isinstance(v, Scalar) and v.origin in ("data", "size", "unknown")
                for v in _flat(plain)
            )
            return "data" if unknowns else "constant"
        if tensors and all(t.origin in shapes.OWN for t in tensors):
            return "buffer" if any(t.origin == "buffer" for t in tensors) else "parameter"
        return "random" if tensors and all(t.origin in ("random", "constant") for t in tensors) else "data"

    def _tensors_in(self, value: Value) -> list[Tensor]:
        if type(value) is Tensor:
            return [value]
        found = [v for v in options(value) if isinstance(v, Tensor)]
        for option in options(value):
            if isinstance(option, Seq):
                found += [
                    t
                    for v in (option.items if option.items is not None else [option.elem])
                    for t in options(v)
                    if isinstance(t, Tensor)
                ]
        return found

    # --- events of arguments

    def argument_events(self, dotted: str, name: str, args: Args, node: cst.CSTNode, owner: Tensor | None) -> None:
        pos = args.pos
        for value in args.all():
            if value.src or not isinstance(value, Tensor):
                self.use(
                    value,
                    "shape"
                    if name in _SIZE_ARGS
                    or name in ("view", "reshape", "expand", "repeat", "arange", "split", "narrow", "chunk")
                    else "arith",
                    node,
                )
                if isinstance(value, Seq):
                    for item in (value.items or ())[:8]:
                        if item.src:
                            self.use(item, "shape", node)
        if (
            name
            in (
                "tensor",
                "as_tensor",
                "Tensor",
                "LongTensor",
                "FloatTensor",
                "scalar_tensor",
                "new_tensor",
                "BoolTensor",
                "IntTensor",
            )
            and pos
        ):
            self.constructed(name, pos[0], node, dotted)
        if name in _FROM_ARRAYS and pos and isinstance(array := self.tensor(pos[0]), Tensor) and array.numpy:
            self.emit("from-array", node, array, origin=array.origin)
        if name == "new" or name.endswith("Tensor"):
            given = _flat(pos if args.rest is None else [*pos, args.rest])
            if any(isinstance(v, Scalar) and v.origin == "size" for v in given):
                self.emit("size", node, None, sub="tensor", spelling="tensor", constructor=name)
        if owner is None and name in _RAMPS:
            for value in pos if name.endswith("range") else [args.get(2, "steps") or UNKNOWN]:
                tensor = self.tensor(value)
                if tensor is not None and tensor.intermediate:
                    self.emit(
                        "datasize",
                        node,
                        tensor,
                        self.mixed(value) if tensor is not value else CERTAIN,
                        target=dotted,
                        form="argument",
                        origin=tensor.origin,
                    )
        if name in _SIZE_ARGS and owner is None or name in ("new_zeros", "new_ones", "new_empty"):
            self.integers_read(dotted, pos[:1] if name in ("full", "new_full") else pos, node)
        elif name in _INTEGER_ARGS:
            self.integers_read(dotted, [v for v in (args.get(_INTEGER_ARGS[name] - (owner is not None)),) if v], node)
        for index, keyword in _SPECIALISED.get(name, ()) if owner is None else ():
            if any(isinstance(v, Scalar) and v.origin == "size" for v in options(args.get(index, keyword) or UNKNOWN)):
                self.emit("size-argument", node, None, target=dotted)
        if dotted == "torch.nn.functional.gaussian_nll_loss" and not isinstance(
            args.get(2, "var") or UNKNOWN, (Const, Scalar)
        ):
            # it asks whether any of the variance is negative, unless that is a number
            self.emit("value-check", node, None, target=dotted)
        if name == "tensor_split" and len(pos) > (0 if owner is not None else 1):
            tensor = self.tensor(pos[0 if owner is not None else 1])
            if tensor is not None:
                self.hint(tensor)
                self.emit("datasize", node, tensor, target=dotted, form="split", origin=tensor.origin)

    def integers_read(self, dotted: str, given: list[Value], node: cst.CSTNode) -> None:
        """Tensors where an operator takes plain integers: fine for an input or a buffer, which Dynamo turns into a
        size of its own; a computed one, or a parameter, has to be read.
        """
        for value in _flat(given):
            if not isinstance(value, Tensor) or not (value.rank == 0 or value.dtype == "int"):
                continue
            if value.intermediate or value.origin == "parameter":
                self.emit("datasize", node, value, target=dotted, form="size", origin=value.origin)

    def constructed(self, name: str, value: Value, node: cst.CSTNode, dotted: str) -> None:
        """`torch.tensor([..])` of sizes or of tensors: a trace bakes the first in, export refuses the second.

        A single size is recorded, as it is a tensor while a trace is made, but not without a warning.
        """
        flat = _flat([value])
        if any(isinstance(v, Scalar) and v.origin == "size" for v in flat):
            kept = isinstance(value, Scalar)
            self.emit("size", node, None, sub="tensor", spelling="tensor", constructor=name, kept=kept)
        tensors = [v for v in flat if isinstance(v, Tensor)]
        if isinstance(value, Seq) and tensors:
            self.emit("tensors-to-tensor", node, tensors[0], constructor=name, form="sequence")
        elif tensors and isinstance(value, Tensor) and name == "tensor" and not value.numpy:
            self.emit("tensors-to-tensor", node, tensors[0], constructor=name, form="tensor")

    def dynamic_shape(self, dotted: str, name: str, args: Args, node: cst.CSTNode, owner: Tensor | None) -> bool:
        """Whether the result's shape depends on data; emits the event if so."""
        if name == "ctc_loss" and owner is None:
            self.emit("dynshape", node, None, op=name, target=dotted, spelling="function", origin="data")
            return False
        if "dynamic_output_shape" not in self.torch.tags(dotted):
            return False
        given = len(args.pos) + (1 if owner is not None else 0)
        if not _holds(self.torch.tag_condition(dotted), args, given, owner is not None, self):
            return False
        on = owner or next((t for v in args.pos if (t := self.tensor(v)) is not None), None)
        if owner is None and on is None and args.pos and isinstance(args.pos[0], (Seq, Const)):
            return False
        confidence = (
            CERTAIN
            if on is not None
            else LIKELY
            if name in ("nonzero", "masked_select", "unique", "argwhere") or given
            else POSSIBLE
        )
        if owner is None and args.pos and on is None and not isinstance(args.pos[0], Unknown):
            return False
        self.emit(
            "dynshape",
            node,
            on,
            confidence,
            op=name,
            target=dotted,
            spelling="function" if owner is None else "method",
            origin=on.origin if on else "data",
        )
        return True

    # --- indexing

    def read(self, owner: Tensor, index: Value, node: cst.CSTNode) -> Value:
        """`t[index]`."""
        parts = index.items if isinstance(index, Seq) and index.kind == "tuple" and index.items is not None else [index]
        sized = owner.data_sized
        rank = owner.rank
        integers = 0
        for part in parts:
            self.use(part, "index", node)
            for option in options(part):
                if isinstance(option, Tensor):
                    if option.hypothesis is None:
                        self.confirm(owner)
                    elif option.dtype == "bool" and not self.doubtful(owner):
                        self.confirm(option)
                    sized |= self.mask_read(option, part, node)
                    if option.rank == 0 and option.intermediate and option.dtype != "bool" and not option.numpy:
                        # one index is read as a number, where a computed one is none yet
                        self.emit("datasize", node, option, target="torch.Tensor.__getitem__", form="index",
                                  origin=option.origin)  # fmt: skip
                    rank = None
                elif isinstance(option, SliceValue):
                    if isinstance(option.parts[2], Const) and _is_negative(option.parts[2].value):
                        self.contradict(owner)  # no tensor is sliced backwards: its items may be some
                        return Seq("list", None, Tensor(hypothesis=Hypothesis("items"), intermediate=False), "argument")
                    self.slice_bounds(option, node)
                    sized |= any(isinstance(p, Scalar) and p.origin == "data" for p in option.parts)
                elif isinstance(option, Seq) and option.kind == "list":
                    inner = option.items if option.items is not None else [option.elem]
                    if inner and all(isinstance(v, Const) and isinstance(v.value, bool) for v in inner):
                        self.emit(
                            "dynshape",
                            node,
                            owner,
                            op="mask-index",
                            target="torch.Tensor.__getitem__",
                            spelling="index",
                            origin=owner.origin,
                        )
                    rank = None
            if isinstance(part, Const) and part.value is None:
                rank = rank + 1 if rank is not None else None
            elif isinstance(part, (Const, Scalar)):
                if not (isinstance(part, Const) and part.value is ...):
                    integers += 1
        if rank is not None:
            rank = rank - integers if rank >= integers else None
        result = derived(owner, owner.dtype, rank)
        result.data_sized = sized
        result.fixed = shapes.indexed_fixed(owner, parts)
        return result

    def mask_read(self, mask: Tensor, value: Value, node: cst.CSTNode) -> bool:
        """Indexing with a tensor: with a mask the result's length depends on data."""
        if mask.dtype == "bool":
            self.emit(
                "dynshape",
                node,
                mask,
                op="mask-index",
                target="torch.Tensor.__getitem__",
                spelling="index",
                origin=mask.origin,
            )
            return True
        if mask.dtype is None and mask.origin != "constant" and _mask_name(node):
            self.emit(
                "dynshape",
                node,
                mask,
                LIKELY,
                op="mask-index",
                target="torch.Tensor.__getitem__",
                spelling="index",
                origin=mask.origin,
            )
            return True
        return mask.data_sized

    def mask_store(self, mask: Tensor, node: cst.CSTNode) -> None:
        """`y[mask] = values[mask]` and `y[mask] += 1`: a trace keeps how many values the example had."""
        self.emit("mask-store", node, mask, op="mask-index", origin=mask.origin)

    def slice_bounds(self, part: SliceValue, node: cst.CSTNode, form: str = "slice") -> None:
        for bound in part.parts:
            tensor = self.tensor(bound)
            if tensor is not None:
                if tensor.intermediate and tensor.hypothesis is not None and "len" in tensor.hypothesis.name:
                    self.hint(tensor)
                self.emit(
                    "datasize",
                    node,
                    tensor,
                    self.mixed(bound) if bound is not tensor else CERTAIN,
                    target="torch.Tensor.__getitem__",
                    form=form,
                    origin=tensor.origin,
                )

    def store(self, owner: Tensor, index: Value, value: Value, node: cst.CSTNode) -> None:
        """`t[index] = value`: masks are fine here, slice bounds and 0-dim integer tensors are not."""
        parts = index.items if isinstance(index, Seq) and index.kind == "tuple" and index.items is not None else [index]
        self.use(value, "arith", node)
        held = self.tensor(value)
        if held is not None and held.origin == "data" and owner.origin == "constant" and not self.muted:
            owner.origin, owner.fixed = "data", shapes.fixed_sizes(owner)
        for part in parts:
            self.use(part, "index", node)
            for option in options(part):
                if isinstance(option, SliceValue):
                    self.slice_bounds(option, node, "slice-store")
                elif isinstance(option, Tensor) and option.dtype == "bool":
                    held = self.tensor(value)
                    if held is not None and held.data_sized:
                        self.mask_store(option, node)
        integers = [
            p
            for p in parts
            if isinstance(p, (Const, Scalar)) and not (isinstance(p, Const) and not isinstance(p.value, int))
        ]
        tensors = [
            p for p in parts if isinstance(p, Tensor) and p.dtype != "bool" and p.rank == 0 and p.origin != "constant"
        ]
        if tensors and len(integers) + len(tensors) == len(parts):
            self.emit(
                "datasize",
                node,
                tensors[0],
                target="torch.Tensor.__setitem__",
                form="setitem",
                origin=tensors[0].origin,
            )


def _rows(name: str, args: Args, owner: Tensor | None) -> bool:
    """Whether a split gives one part for each row or step of the input: `x.unbind()`, `x.split(1)`."""
    rest = args.pos[0 if owner is not None else 1 :]
    if name == "unbind":
        first = rest[0] if rest else args.kw.get("dim")
    elif name == "split" and rest and isinstance(rest[0], Const) and rest[0].value == 1:
        first = rest[1] if len(rest) > 1 else args.kw.get("dim")
    else:
        return False
    return first is None or isinstance(first, Const) and first.value in (0, 1)


def _mask_name(node: cst.CSTNode) -> bool:
    """Whether the index of a subscript is called a mask by its author."""
    if not isinstance(node, cst.Subscript):
        return False
    for part in node.slice:
        if isinstance(part.slice, cst.Index):
            inner = part.slice.value
            name = (
                inner.value
                if isinstance(inner, cst.Name)
                else inner.attr.value
                if isinstance(inner, cst.Attribute)
                else ""
            )
            if "mask" in name.lower():
                return True
    return False


def _kind(value: Value | None) -> str | None:
    """The kind of an argument in the torch data's words."""
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, Const):
        inner = value.value
        if inner is True:
            return "true"
        if inner is False:
            return "false"
        return "none" if inner is None else type(inner).__name__
    if isinstance(value, Scalar):
        return value.type if value.type != "other" else None
    if isinstance(value, Seq):
        return "list" if value.kind == "list" else "tuple"
    if isinstance(value, (Func, Method, ClassRef)):
        return "function"
    if isinstance(value, Mapping):
        return "dict"
    return None


def _flat(values: list[Value], depth: int = 3) -> list[Value]:
    """Values with those inside of sequences."""
    found: list[Value] = []
    for value in values:
        for option in options(value):
            if isinstance(option, Seq) and depth:
                found += _flat(option.items if option.items is not None else [option.elem], depth - 1)
            else:
                found.append(option)
    return found


def _split(inner: str) -> list[str]:
    """`a,tuple[b,c]` -> its top-level parts."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(inner):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(inner[start:i])
            start = i + 1
    return [*parts, inner[start:]]


def _is_dtype(value: Value) -> bool:
    return isinstance(value, Outside) and value.dotted.startswith("torch.")


def _dtype_of(value: Value) -> str | None:
    if isinstance(value, Outside):
        name = value.dotted.rpartition(".")[2]
        if name in ("bool", "BoolTensor"):
            return "bool"
        if name.startswith(("int", "long", "uint", "short", "LongTensor", "IntTensor", "ByteTensor")):
            return "int"
        if name.startswith(("float", "half", "double", "bfloat", "FloatTensor", "HalfTensor", "DoubleTensor")):
            return "float"
    return None


def _is_negative(step: object) -> bool:
    return isinstance(step, int) and step < 0


def _depth(value: Value) -> int | None:
    """How many dimensions the tensor has that a list of numbers, or of lists of them, makes; None if unknown."""
    if isinstance(value, (Const, Scalar)):
        return 0
    if not isinstance(value, Seq) or value.kind not in ("list", "tuple", "size") or value.data_sized:
        return None
    inner = {_depth(item) for item in (value.items if value.items is not None else [value.elem])}
    depth = inner.pop() if len(inner) == 1 else None
    return depth + 1 if depth is not None else None


def _literal_dtype(value: Value | None) -> str | None:
    if value is None:
        return None
    flat = _flat([value])
    names = {type(v.value).__name__ if isinstance(v, Const) else v.type if isinstance(v, Scalar) else "?" for v in flat}
    for name in ("float", "int", "bool"):
        if name in names and names <= {"float", "int", "bool"}:
            return name
    return None


def _holds(condition: str, args: Args, given: int, method: bool, walk: Tensors) -> bool:
    """Whether a tag's condition is met by this call."""
    if not condition:
        return True
    if " " in condition:
        return all(_holds(part, args, given, method, walk) for part in condition.split())
    if condition.startswith("nargs="):
        return given == int(condition[6:]) and not args.kw
    if condition.startswith("!"):
        return condition[1:] not in args.kw and (given < 2 or condition == "!output_size")
    name, _, wanted = condition.partition(":")
    value = args.kw.get(name)
    if value is None:
        index = 0 if method else 1
        value = args.pos[index] if index < len(args.pos) else None
    if value is None:
        return False
    if wanted == "tensor":
        return walk.tensor(value) is not None
    return True

"""Return kinds: from Python annotations (stubs) and from operator schemas."""

from __future__ import annotations

import ast

from tsdyn_lint.torchdata.sources.schema import Schema

_NAMES = {
    "Tensor": "tensor", "Self": "tensor", "S": "tensor", "Parameter": "tensor", "Buffer": "tensor",
    "Variable": "tensor",
    "_int": "int", "int": "int", "SymInt": "int", "builtins.int": "int",
    "_float": "float", "float": "float", "SymFloat": "float", "builtins.float": "float",
    "_bool": "bool", "bool": "bool", "SymBool": "bool", "builtins.bool": "bool",
    "_complex": "complex", "complex": "complex",
    "Number": "number", "IntLikeType": "int", "FloatLikeType": "float", "BoolLikeType": "bool",
    "str": "str", "None": "none", "Size": "size", "_size": "size", "_dtype": "dtype", "dtype": "dtype",
    "_device": "device",
    "device": "device", "_layout": "layout", "layout": "layout", "memory_format": "memory_format",
    "_qscheme": "qscheme",
    "Storage": "storage", "UntypedStorage": "storage", "TypedStorage": "storage", "ndarray": "ndarray",
    "Generator": "generator", "_C.Generator": "generator", "PackedSequence": "packed", "Module": "module",
    "ScriptModule": "module", "RecursiveScriptModule": "module", "ScriptFunction": "callable", "Callable": "callable",
    "list": "list", "dict": "dict", "tuple": "tuple", "bytes": "bytes",
}  # fmt: skip
_LISTS = {"list", "List", "Sequence", "Iterable"}


def of_annotation(node: ast.expr | None, structs: dict[str, tuple[str, ...]]) -> str | None:
    """The kind an annotation promises (`structs`: names of the fields of `torch.return_types`), None where it says
    nothing."""
    if node is None:
        return None
    if isinstance(node, ast.Constant):
        return _of_constant(node, structs)
    text = ast.unparse(node)
    if text.startswith("torch.return_types."):
        fields = structs.get(text.rpartition(".")[2])
        return f"tuple[{','.join(['tensor'] * len(fields))}]" if fields else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = text.rpartition(".")[2] if text not in _NAMES else text
        return _NAMES.get(name)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([of_annotation(node.left, structs), of_annotation(node.right, structs)])
    if isinstance(node, ast.Subscript):
        return _of_subscript(node, structs)
    return None


def _of_constant(node: ast.Constant, structs: dict[str, tuple[str, ...]]) -> str | None:
    if node.value is None:
        return "none"
    if isinstance(node.value, str):
        try:
            return of_annotation(ast.parse(node.value, mode="eval").body, structs)
        except SyntaxError:
            return None
    return None


def _of_subscript(node: ast.Subscript, structs: dict[str, tuple[str, ...]]) -> str | None:
    base = ast.unparse(node.value).rpartition(".")[2]
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if base in {"Optional", "Union"}:
        extra = ["none"] if base == "Optional" else []
        return _union([*(of_annotation(i, structs) for i in items), *extra])
    if base in _LISTS:
        inner = of_annotation(items[0], structs)
        return f"list[{inner}]" if inner else "list"
    if base in {"tuple", "Tuple"}:
        if len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is Ellipsis:
            inner = of_annotation(items[0], structs)
            return f"tuple[{inner},...]" if inner else "tuple"
        return f"tuple[{','.join(of_annotation(i, structs) or 'any' for i in items)}]"
    if base in {"dict", "Dict", "OrderedDict"}:
        return "dict"
    return "callable" if base == "Callable" else None


def _union(kinds: list[str | None]) -> str | None:
    """One kind for a union; `tensor?` for an optional tensor; None where the members disagree."""
    known = {k for k in kinds if k}
    if None in kinds or not known:
        return None
    optional = "none" in known
    known.discard("none")
    if known in ({"int", "float"}, {"int", "float", "bool"}):
        return "number"
    if len(known) != 1:
        return None
    (kind,) = known
    return kind + "?" if optional and not kind.endswith("?") else kind


_SCHEMA = {
    "Tensor": "tensor", "Tensor[]": "tuple[tensor,...]", "bool": "bool", "SymBool": "bool", "int": "int",
    "SymInt": "int", "float": "float", "Scalar": "number", "ScalarType": "dtype", "QScheme": "qscheme",
    "Layout": "layout", "Device": "device", "Tensor?": "tensor?",
}  # fmt: skip


def of_schema(schema: Schema) -> str | None:
    """The kind of Python value an operator's binding gives."""
    kinds = [_SCHEMA.get(type_) for type_, _ in schema.returns]
    if not kinds:
        return "none"
    if len(kinds) == 1:
        return kinds[0]
    return f"tuple[{','.join(k or 'any' for k in kinds)}]"

"""Calling each operator on small tensors -> the dtype class of its result, and whether its plain call gives a
0-dim tensor."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

from tsdyn_lint.torchdata.sources.natives import Native
from tsdyn_lint.torchdata.sources.rules import resolve
from tsdyn_lint.torchdata.sources.schema import Arg, Schema

_SCOPES = {
    "": ("torch", ""), "nn": ("torch.nn.functional", ""), "linalg": ("torch.linalg", "linalg_"),
    "special": ("torch.special", "special_"), "fft": ("torch.fft", "fft_"),
}  # fmt: skip
_INTS = {"int", "SymInt", "int?", "SymInt?"}
_HAND = {
    "bool": "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ bool isin __contains__",
    "int": "long int short byte char bincount",
    "float": "float half double bfloat16",
}
_MORE = {
    "torch.isin": "bool", "torch.bucketize": "int", "torch.bincount": "int", "torch.nn.functional.one_hot": "int",
    "torch.ones": "float", "torch.zeros": "float", "torch.rand": "float", "torch.randn": "float",
    "torch.linspace": "float",
}  # fmt: skip
_DEPENDS = {"torch.full", "torch.Tensor.new_full", "torch.arange", "torch.range"}


def collect(natives: list[Native]) -> tuple[dict[str, str], dict[str, str]]:
    """(qualified name -> dtype class, qualified name -> "0" for full reductions); names whose sample call fails
    are left out.

    A class is bool, int, float, complex or same (as the input), per part of a tuple where the parts differ.
    """
    import torch

    torch.manual_seed(0)
    dtypes: dict[str, set[str]] = {}
    ranks: dict[str, set[str]] = {}
    for native in natives:
        # the native_* operators are internal; native_batch_norm crashes without running statistics
        if native.schema.is_out or native.schema.name.startswith(("_", "native_")):
            continue
        for qualname in names(native):
            function = resolve(qualname)
            if function is None:
                continue
            results = [call(torch, function, native.schema, kind) for kind in ("float", "int")]
            if results[0] is None and results[1] is None:
                continue
            dtypes.setdefault(qualname, set()).add(_class(torch, results))
            ranks.setdefault(qualname, set()).add(_rank(torch, native.schema, results))
    known = {name: classes.pop() for name, classes in dtypes.items() if len(classes) == 1 and name not in _DEPENDS}
    known |= {f"torch.Tensor.{name}": value for value, names in _HAND.items() for name in names.split(" ")} | _MORE
    return (
        {name: value for name, value in known.items() if value},
        {name: "0" for name, found in ranks.items() if "0" in found},
    )


def names(native: Native) -> list[str]:
    """The qualified names under which Python reaches an operator."""
    scope = _SCOPES.get(native.module)
    name = native.schema.name
    found = []
    if scope and "function" in native.variants:
        found.append(f"{scope[0]}.{name.removeprefix(scope[1])}")
    if "method" in native.variants:
        found.append(f"torch.Tensor.{name}")
    return found


def call(torch: Any, function: Any, schema: Schema, kind: str) -> Any:
    """The result on sample arguments, None where they do not suit the function."""
    args = arguments(torch, schema, kind)
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except Exception:
        return None


def arguments(torch: Any, schema: Schema, kind: str) -> list[Any]:
    """Something for each required positional parameter; `kind` float or int is that of the tensors."""
    return [_value(torch, arg, kind) for arg in schema.args if not arg.has_default and not arg.keyword_only]


def _value(torch: Any, arg: Arg, kind: str) -> Any:
    """Something of the argument's type that most operators accept."""
    if arg.type == "Tensor":
        if arg.name in {"mask", "condition"}:
            return torch.ones(3, 3) > 0
        if arg.name in {"index", "indices"}:
            return torch.zeros(3, 3, dtype=torch.int64)
        return torch.rand(3, 3) if kind == "float" else torch.randint(1, 5, (3, 3))
    if arg.type == "Tensor[]":
        return [torch.rand(3, 3) if kind == "float" else torch.randint(1, 5, (3, 3)) for _ in range(2)]
    if arg.type in _INTS:
        return 1
    if arg.type.startswith(("int[", "SymInt[")):
        return [3, 3] if arg.name in {"size", "shape"} else [0]
    return {"Scalar": 2, "float": 0.5, "bool": False, "ScalarType": torch.float32}.get(arg.type)


def _class(torch: Any, results: list[Any]) -> str:
    """Per part: bool, int, float, complex or same; '' where the result has no dtype."""
    parts = [r if isinstance(r, tuple) else (r,) for r in results if r is not None]
    named = []
    for values in zip(*parts, strict=False):
        if not all(isinstance(v, torch.Tensor) for v in values):
            return ""
        named.append(_one(torch, [v.dtype for v in values], results[0] is not None))
    return named[0] if len(set(named)) == 1 else ",".join(named)


def _one(torch: Any, dtypes: list[Any], has_float: bool) -> str:
    if all(d == torch.bool for d in dtypes):
        return "bool"
    if len(dtypes) == 1:
        dtype = dtypes[0]
        if dtype.is_complex:
            return "complex"
        return "same" if dtype.is_floating_point == has_float else ("int" if has_float else "float")
    first, second = dtypes
    if first.is_complex:
        return "complex"
    if not first.is_floating_point and not second.is_floating_point:
        return "int"
    return "float" if second.is_floating_point else "same"


def _rank(torch: Any, schema: Schema, results: list[Any]) -> str:
    """'0' where the call with tensors alone reduced rank 2 to rank 0."""
    result = next((r for r in results if r is not None), None)
    plain = all(a.type == "Tensor" for a in schema.args if not a.has_default and not a.keyword_only)
    return "0" if plain and schema.args and isinstance(result, torch.Tensor) and result.dim() == 0 else ""

"""An installed torch -> what its TorchScript compiler knows (`rules/torch-X.Y.script.json`).

Run as `python -m tsdyn_lint.torchdata.generate_script --out rules/` in an environment that has the torch to be
described. Nothing in here is kept by hand but the constructor arguments that let a module class be built and scripted.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import inspect
import json
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.jit._builtins
import torch.jit._recursive
import torch.nn.attention
import torch.utils.checkpoint

from tsdyn_lint.torchdata import delta, write
from tsdyn_lint.torchdata.load import BASE

CONSTRUCTOR: dict[str, Any] = {
    "in_channels": 4,
    "out_channels": 4,
    "kernel_size": 3,
    "num_features": 4,
    "in_features": 4,
    "out_features": 4,
    "input_size": 4,
    "hidden_size": 4,
    "num_embeddings": 4,
    "embedding_dim": 4,
    "embed_dim": 4,
    "num_heads": 2,
    "d_model": 4,
    "nhead": 2,
    "num_channels": 4,
    "num_groups": 2,
    "normalized_shape": 4,
    "output_size": 3,
    "padding": 1,
    "scale_factor": 2,
    "upscale_factor": 2,
    "downscale_factor": 2,
    "in1_features": 4,
    "in2_features": 4,
    "min_val": -1.0,
    "max_val": 1.0,
    "threshold": 0.5,
    "value": 0.5,
    "cutoffs": [2, 3],
    "n_classes": 8,
    "groups": 2,
    "unflattened_size": (2, 2),
    "dim": 1,
    "size": 2,
    "num_layers": 1,
    "norm_type": 2.0,
}
FUNCTION_MODULES = (
    "torch",
    "torch.functional",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.distributed",
    "torch.utils.checkpoint",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.random",
    "torch.cuda",
    "torch.jit",
    "torch.amp",
    "torch.cuda.amp",
    "torch.compiler",
    "torch.onnx",
    "torch.backends.cudnn",
    "torch.fx",
    "torch.nn.parallel",
    "torch.nn.utils.parametrize",
    "torch.nn.attention",
    "torch.func",
)
PYTHON_MODULES = (
    "math",
    "cmath",
    "warnings",
    "random",
    "time",
    "os",
    "os.path",
    "copy",
    "operator",
    "itertools",
    "functools",
    "logging",
    "re",
    "json",
)


def operators() -> dict[str, list[str]]:
    """Operator name -> its overloads' schemas, from the parenthesis on; out variants and private operators left out."""
    found: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, short = schema.name.partition("::")
        if space not in ("aten", "prim") or (short.startswith("_") and not short.startswith("__")):
            continue
        if schema.overload_name.endswith("out") or any(a.is_out for a in schema.arguments):
            continue
        text = str(schema)
        if "Dimname" in text or "SymBool" in text:
            continue
        found.setdefault(schema.name, []).append(text[text.index("(") :])
    return found


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # neither addresses nor the folder that torch was built in
    return re.sub(r" at (0x[0-9a-f]+|\".*)", "", lines[0] if lines else type(error).__name__)[:120]


def schema_of(function: Any) -> list[str]:
    """The compiled function's schemas; an uncompilable one gives one string that starts with `!` and says why."""
    overloads = probe(
        lambda: torch._jit_internal._get_fn_overloads(torch._jit_internal._qualified_name(function)), None
    )
    dispatched = torch._jit_internal.boolean_dispatched.get(function)
    if dispatched is not None:
        return [s for branch in ("if_true", "if_false") for s in schema_of(dispatched[branch])]
    if overloads:
        return [text for overload in overloads if (text := annotated(overload))]
    return [in_child(lambda: compile_text(function))]


def annotated(overload: Any) -> str | None:
    """The schema that an overload's annotations give."""
    signature = torch.jit.annotations.get_signature(overload, None, None, False)
    parameters = [p for p in inspect.signature(overload).parameters.values() if p.name != "self"]
    if signature is None:
        return None
    types = signature[0][len(signature[0]) - len(parameters) :]
    # a union that the annotation reader does not know comes back as None
    parts = [
        f"{'Any' if t.annotation_str == 'NoneType' else t.annotation_str} {p.name}"
        + ("" if p.default is p.empty else f"={p.default!r}")
        for t, p in zip(types, parameters, strict=False)
    ]
    return "(" + ", ".join(parts) + f") -> {signature[1].annotation_str}"


def compile_text(function: Any) -> str:
    try:
        return render(torch.jit.script(function).schema)
    except BaseException as error:
        return "!" + first_line(error)


def render(schema: Any) -> str:
    """A schema's text from its parts; its own `str` fails on some defaults."""
    parts, keyword_only = [], False
    for argument in schema.arguments:
        if argument.name == "self":
            continue
        if argument.kwarg_only and not keyword_only:
            keyword_only = True
            parts.append("*")
        # `~2`: a single number stands for a list of two
        text = f"{argument.type.annotation_str}{f'~{argument.N}' if argument.N else ''} {argument.name}"
        if argument.has_default_value():
            text += f"={probe(partial(getattr, argument, 'default_value'), ...)!r}"
        parts.append(text)
    returned = [str(r.type.annotation_str) for r in schema.returns]
    return f"({', '.join(parts)}) -> {returned[0] if len(returned) == 1 else '(' + ', '.join(returned) + ')'}"


def in_child(call: Callable[[], str]) -> str:
    """The call's result from a forked child: some functions (a bare `-> list`) crash the compiler."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        faulthandler.disable()  # a crash is an answer, and no news
        os.write(write, call().encode()[:60000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text or "!the compiler crashes"


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        if not name.startswith("_"):
            yield name, getattr(module, name, None)


def functions() -> tuple[dict[str, str], dict[str, list[str]]]:
    """(Python name -> operator it stands for, Python name -> compiled schemas or refusal)."""
    table = torch.jit._builtins._get_builtin_table()
    ops: dict[str, str] = {}
    compiled: dict[str, list[str]] = {}
    cache: dict[int, list[str]] = {}
    for module_name in FUNCTION_MODULES + PYTHON_MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name, value in public(module):
            if not callable(value) or isinstance(value, type) or of_typing(value):
                continue
            qualified = f"{module_name}.{name}"
            op = table.get(id(value))
            if op:
                ops[qualified] = op
            elif inspect.isfunction(value):
                if id(value) not in cache:
                    cache[id(value)] = schema_of(value)
                compiled[qualified] = cache[id(value)]
            elif module_name.startswith("torch") and (
                inspect.isbuiltin(value) or type(value).__name__ in ("builtin_function_or_method", "method_descriptor")
            ):
                # a C function that is no registered builtin is looked up as an aten operator of its name
                ops[qualified] = f"aten::{name}"
            elif inspect.isbuiltin(value):
                compiled[qualified] = [
                    f"!Python builtin {value!r} is currently not supported in Torchscript".split(" at 0x")[0]
                ]
            else:
                compiled[qualified] = ["!" + first_line_of_value(value)]
    return ops, compiled


def of_typing(value: Any) -> bool:
    """Whether it is one of the forms of `typing` that a module happens to import."""
    return getattr(value, "__module__", None) in ("typing", "typing_extensions")


def first_line_of_value(value: Any) -> str:
    try:
        torch.jit._recursive.try_compile_fn(value, None)
    except BaseException as error:
        return first_line(error)
    return f"cannot call a value of type '{type(value).__name__}'"


def build(cls: type, **given: Any) -> torch.nn.Module | None:
    arguments: dict[str, Any] = dict(given)
    if cls.__name__ in ("RNN", "LSTM", "GRU"):
        return cls(4, 4, **given)
    for name, parameter in inspect.signature(cls).parameters.items():
        if (
            name in given
            or parameter.default is not parameter.empty
            or parameter.kind
            in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            )
        ):
            continue
        if name == "encoder_layer":
            arguments[name] = torch.nn.TransformerEncoderLayer(4, 2)
        elif name == "decoder_layer":
            arguments[name] = torch.nn.TransformerDecoderLayer(4, 2)
        elif name == "padding" and cls.__name__.startswith(("Conv", "Max", "Avg")):
            continue
        elif name in CONSTRUCTOR:
            arguments[name] = CONSTRUCTOR[name]
        else:
            return None
    try:
        return cls(**arguments)
    except Exception:
        return None


def floats_that_refuse_ints(cls: type) -> list[str]:
    """Constructor parameters that Python takes an int for, and the compiler then does not."""
    found = []
    for name, parameter in inspect.signature(cls).parameters.items():
        if not isinstance(parameter.default, float) and "float" not in str(parameter.annotation):
            continue
        instance = probe(lambda name=name: build(cls, **{name: 1}), None)  # type: ignore[misc]
        if instance is None:
            continue
        try:
            torch.jit.script(instance)
        except BaseException:
            found.append(name)
    return found


def sizes_that_refuse_none(cls: type) -> list[str]:
    """Constructor parameters that Python takes a tuple with a None for, and the compiler then does not."""
    found = []
    for name, parameter in inspect.signature(cls).parameters.items():
        if "NoneType" not in (text := str(parameter.annotation)) and "Optional" not in text or "uple" not in text:
            continue
        instance = probe(lambda name=name: build(cls, **{name: (1, None)}), None)  # type: ignore[misc]
        if instance is not None and not probe(lambda made=instance: torch.jit.script(made), None):  # type: ignore[misc]
            found.append(name)
    return found


def modules() -> dict[str, dict[str, Any]]:
    """`torch.nn` class name -> forward's schema, attributes' types, constants; or `error`."""
    found: dict[str, dict[str, Any]] = {}
    for name in dir(torch.nn):
        cls = getattr(torch.nn, name)
        if not (inspect.isclass(cls) and issubclass(cls, torch.nn.Module)) or name in ("Module", "Container"):
            continue
        instance = build(cls)
        if instance is None:
            found[name] = {}
            continue
        entry: dict[str, Any] = {}
        try:
            concrete = torch.jit._recursive.get_module_concrete_type(instance)
        except Exception as error:
            found[name] = {"error": first_line(error)}
            continue
        entry["attributes"] = {k: str(v[0]) for k, v in concrete.get_attributes().items()}
        entry["constants"] = {k: type(v).__name__ for k, v in concrete.get_constants().items()}
        entry["modules"] = [k for k, _ in concrete.get_modules()]
        entry["methods"] = sorted(k for k, v in vars(cls).items() if inspect.isfunction(v) and not k.startswith("__"))
        try:
            scripted = torch.jit.script(instance)
            names = [n for n in scripted._c._method_names() if n == "forward" or n.startswith("forward__")]
            entry["forward"] = [render(scripted._c._get_method(n).schema) for n in names]
        except BaseException as error:
            entry["error"] = first_line(error)
        if "error" not in entry:
            refused = {"floats": floats_that_refuse_ints(cls), "sizes": sizes_that_refuse_none(cls)}
            entry |= {key: names for key, names in refused.items() if names}
            if entry["constants"]:
                parameters = inspect.signature(cls).parameters
                entry["parameters"] = list(parameters)
                entry["ints"] = [k for k, v in parameters.items() if v.annotation is int and k in entry["constants"]]
        found[name] = entry
    return found


def probe(call: Callable[[], Any], default: Any) -> Any:
    try:
        return call()
    except Exception:
        return default


PROBED = {
    "Tensor": "Tensor",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "complex": "complex",
    "str": "str",
    "List[int]": "List[int]",
    "List[float]": "List[float]",
    "List[bool]": "List[bool]",
    "List[str]": "List[str]",
    "List[Tensor]": "List[Tensor]",
    "Optional[Tensor]": "Optional[Tensor]",
    "Optional[int]": "Optional[int]",
    "Optional[float]": "Optional[float]",
    "Device": "Device",
    "Tuple[int, int]": "Tuple[int, int]",
    "Tuple[Tensor, Tensor]": "Tuple[Tensor, Tensor]",
    "Dict[str, Tensor]": "Dict[str, Tensor]",
    "Dict[str, int]": "Dict[str, int]",
    "Dict[int, int]": "Dict[int, int]",
    "List[List[int]]": "List[List[int]]",
}
BINARY = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "in",
    "is",
    "is not",
)
ONE_ARGUMENT = (
    "-",
    "~",
    "not ",
    "int",
    "float",
    "bool",
    "complex",
    "str",
    "len",
    "abs",
    "min",
    "max",
    "sum",
    "any",
    "all",
    "round",
    "sorted",
    "list",
    "ord",
    "chr",
    "hex",
    "oct",
    "bin",
    "hash",
    "id",
    "tuple",
    "dict",
    "reversed",
)
TWO_ARGUMENTS = ("min", "max", "pow", "divmod", "round")


def result_of(body: str, parameters: str) -> str | None:
    """The type that an expression compiles to; None where it does not compile."""
    try:
        unit = torch.jit.CompilationUnit(f"def f({parameters}):\n    return {body}\n")
        return str(unit.f.schema.returns[0].type.annotation_str)
    except BaseException:
        return None


def operand(kind: str, name: str) -> tuple[str, str]:
    """(expression, parameter) for an operand; a Python number of unknown kind and None are made in the expression."""
    if kind == "number":
        return f"{name}.item()", f"{name}: Tensor"
    if kind == "NoneType":
        return "None", f"{name}: int"
    return name, f"{name}: {PROBED[kind]}"


def expressions() -> dict[str, dict[str, str]]:
    """Operator or builtin -> operand types joined by `|` -> result type; what is absent does not compile."""
    kinds = [*PROBED, "number", "NoneType"]
    table: dict[str, dict[str, str]] = {}
    for left in kinds:
        a, pa = operand(left, "a")
        for word in ONE_ARGUMENT:
            found = result_of(f"{word}{a}" if word in ("-", "~", "not ") else f"{word}({a})", pa)
            if found:
                table.setdefault(word.strip() + "()", {})[left] = found
        for right in kinds:
            b, pb = operand(right, "b")
            for op in BINARY:
                found = result_of(f"{a} {op} {b}", f"{pa}, {pb}")
                if found:
                    table.setdefault(op, {})[f"{left}|{right}"] = found
            for word in TWO_ARGUMENTS:
                found = result_of(f"{word}({a}, {b})", f"{pa}, {pb}")
                if found:
                    table.setdefault(word + "(,)", {})[f"{left}|{right}"] = found
    return table


def tensor_members() -> dict[str, Any]:
    """Attributes of a tensor -> type; methods that no operator stands for -> schemas; and names that do not exist."""
    properties: dict[str, str] = {}
    extra: dict[str, list[str]] = {}
    absent: list[str] = []
    for name in dir(torch.Tensor):
        if name.startswith("__"):
            continue
        kind = result_of(f"x.{name}", "x: Tensor")
        if kind:
            properties[name] = kind
            continue
        if torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            continue
        called = result_of(f"x.{name}()", "x: Tensor")
        if called:
            extra[name] = [f"(Tensor self) -> {called}"]
            continue
        try:
            torch.jit.CompilationUnit(f"def f(x: Tensor):\n    return x.{name}\n")
        except BaseException as error:
            if "has no attribute or method" in str(error):
                absent.append(name)
            else:
                extra[name] = []
    return {"properties": properties, "methods": extra, "absent": absent}


def sections() -> dict[str, Any]:
    """Everything there is to know of the installed torch, section by section."""
    warnings.simplefilter("ignore")
    ops, compiled = functions()
    tensor = tensor_members()
    found: dict[str, Any] = {
        "operators": operators(),
        "names": ops,
        "functions": compiled,
        "modules": modules(),
        "expressions": expressions(),
        "dtypes": sorted(n for n, v in public(torch) if isinstance(v, torch.dtype)),
    } | tensor
    meta = {"torch": torch.__version__, "python": platform.python_version()[:4]}
    return found | {"meta": meta, "source": dict.fromkeys(found, "run")}


def generate(out: Path) -> Path:
    """Writes the file of the installed torch: whole for the base version, else what differs from the base in `out`."""
    found = sections()
    version = ".".join(torch.__version__.split(".")[:2])
    path, base = (out / f"torch-{v}.script.json" for v in (version, f"{BASE[0]}.{BASE[1]}"))
    if path != base:
        found = delta.between(json.loads(base.read_text("utf-8")), found)
    path.write_text(write.text(found), "utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the data files")
    print(generate(parser.parse_args().out))

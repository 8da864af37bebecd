"""A torch folder -> what each public function, method and attribute returns."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tsdyn_lint.torchdata.sources import kinds, stubs
from tsdyn_lint.torchdata.sources.natives import Native
from tsdyn_lint.torchdata.sources.supplement import CLASSES, RETURNS

# Python files whose public functions are reachable under a shorter public name
_FILES = {
    "torch": (
        "__init__.py", "functional.py", "serialization.py:load,save",
        "random.py:manual_seed,seed,initial_seed,get_rng_state,set_rng_state,thread_safe_generator",
        "_tensor_str.py:set_printoptions",
        "_lobpcg.py:lobpcg", "_lowrank.py:svd_lowrank,pca_lowrank", "utils/dlpack.py",
    ),
    "torch.nn.functional": ("nn/functional.py", "nn/functional.pyi"),
    "torch.nn.utils.rnn": ("nn/utils/rnn.py",),
    "torch.nn.utils": (
        "nn/utils/clip_grad.py", "nn/utils/convert_parameters.py", "nn/utils/fusion.py", "nn/utils/weight_norm.py",
        "nn/utils/spectral_norm.py", "nn/utils/init.py",
    ),
    "torch.nn.utils.parametrize": ("nn/utils/parametrize.py",),
    "torch.nn.utils.parametrizations": ("nn/utils/parametrizations.py",),
    "torch.nn.init": ("nn/init.py",),
    "torch.utils.checkpoint": ("utils/checkpoint.py",),
    "torch.autograd": ("autograd/__init__.py",),
    "torch.autograd.functional": ("autograd/functional.py",),
    "torch.jit": (
        "jit/__init__.py", "jit/_script.py:script,script_method,interface", "jit/_trace.py:trace,trace_module",
        "jit/_freeze.py:freeze,optimize_for_inference,run_frozen_optimizations", "jit/_async.py:fork,wait",
        "jit/_serialization.py:save,load", "_jit_internal.py:export,unused,ignore,is_scripting",
    ),
    "torch.distributed": ("distributed/distributed_c10d.py", "distributed/__init__.py"),
    "torch.distributed.nn.functional": ("distributed/nn/functional.py",),
    "torch.func": ("_functorch/apis.py", "_functorch/eager_transforms.py", "_functorch/functional_call.py"),
    "torch.compiler": ("compiler/__init__.py",),
    "torch.cuda": ("cuda/__init__.py", "cuda/memory.py", "cuda/random.py", "cuda/nvtx.py"),
    "torch.cuda.amp": ("cuda/amp/common.py",),
    "torch.amp": ("amp/autocast_mode.py",),
    "torch.mps": ("mps/__init__.py",),
    "torch.xpu": ("xpu/__init__.py", "xpu/memory.py", "xpu/random.py"),
    "torch.cpu": ("cpu/__init__.py",),
    "torch.accelerator": ("accelerator/__init__.py", "accelerator/memory.py"),
    "torch.random": ("random.py",),
    "torch.overrides": ("overrides.py",),
    "torch.sparse": ("sparse/__init__.py",),
    "torch.nested": ("nested/__init__.py",),
    "torch.signal.windows": ("signal/windows/windows.py",),
    "torch.masked": ("masked/_ops.py",),
    "torch.nn.attention": ("nn/attention/__init__.py",),
    "torch.nn.attention.flex_attention": ("nn/attention/flex_attention.py",),
    "torch.onnx": ("onnx/__init__.py",),
    "torch.export": ("export/__init__.py",),
    "torch.hub": ("hub.py",),
    "torch.fx": ("fx/_symbolic_trace.py",),
    "torch.utils.data": ("utils/data/dataset.py", "utils/data/_utils/worker.py"),
    "torch.backends.cuda": ("backends/cuda/__init__.py",),
    "torch.backends.cudnn": ("backends/cudnn/__init__.py",),
    "torch.library": ("library.py",),
    "torch._dynamo": ("_dynamo/__init__.py", "_dynamo/decorators.py"),
}  # fmt: skip
# in the stubs or sources that the wheel ships, but not in the module
_NOT_EXPORTED = {"torch.get_num_thread", "torch.symbolize_tracebacks", "torch.gather_traceback", "torch.unique_dim"}
_MODULES = {"linalg": "torch.linalg", "fft": "torch.fft", "special": "torch.special", "sparse": "torch.sparse"}

Choice = tuple[str, int, str, str]
"""(parameter, its position or -1, the kind of value that selects, return kind); the parameter '' is the plain call."""


@dataclass
class Returns:
    """Kinds by qualified name; `choices` where overloads differ; `fields` names the parts of a tuple."""

    kinds: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[Choice]] = field(default_factory=dict)
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)


def collect(torch_dir: Path, natives: list[Native]) -> Returns:
    """Everything `torch_dir` says about return values; later sources fill only what earlier ones left open."""
    structs = stubs.return_types(torch_dir)
    found = Returns()
    c_stub = stubs.read(torch_dir / "_C/__init__.pyi")
    _add_functions(
        found, "torch", list(stubs.functions(stubs.read(torch_dir / "_C/_VariableFunctions.pyi").body)), structs
    )
    _add_tensor(found, torch_dir, c_stub, structs)
    for native in natives:
        _add_native(found, native)
    for scope, files in _FILES.items():
        for spec in files:
            name, _, only = spec.partition(":")
            tree = stubs.read(torch_dir / name)
            wanted = [s for s in stubs.functions(tree.body) if not only or s.name in only.split(",")]
            _add_functions(found, scope, wanted, structs)
            _add_dispatches(found, scope, tree)
            _add_aliases(found, scope, tree, natives)
    _add_functions(found, "torch", list(stubs.functions(c_stub.body)), structs)
    _supplement(found)
    return found


def _add_functions(
    found: Returns, scope: str, signatures: list[stubs.Signature], structs: dict[str, tuple[str, ...]]
) -> None:
    groups: dict[str, list[stubs.Signature]] = defaultdict(list)
    for signature in signatures:
        if not signature.name.startswith("_") or scope == "torch.Tensor":
            groups[f"{scope}.{signature.name}"].append(signature)
    for qualname, group in groups.items():
        if qualname in found.kinds or qualname in found.choices or qualname in _NOT_EXPORTED:
            continue
        found.known.add(qualname)
        _decide(found, qualname, [(s, kinds.of_annotation(s.returns, structs)) for s in group])
        names = {structs.get(ast.unparse(s.returns).rpartition(".")[2]) for s in group if s.returns} - {None, ()}
        if len(names) == 1 and (fields := names.pop()):
            found.fields[qualname] = fields


def _decide(found: Returns, qualname: str, overloads: list[tuple[stubs.Signature, str | None]]) -> None:
    known = {kind for _, kind in overloads if kind}
    if len(known) == 1 and all(kind for _, kind in overloads):
        found.kinds[qualname] = known.pop()
    elif len(known) > 1 and all(kind for _, kind in overloads):
        found.choices[qualname] = _choices([(s, kind) for s, kind in overloads if kind])


def _choices(overloads: list[tuple[stubs.Signature, str]]) -> list[Choice]:
    """The shortest overload is the plain call; any other is told by its first parameter that the plain one lacks."""
    plain, plain_kind = min(overloads, key=lambda o: len(o[0].params))
    choices: list[Choice] = [("", -1, "", plain_kind)]
    for signature, kind in overloads:
        for index, name in enumerate(signature.params):
            if name not in plain.params:
                annotation = kinds.of_annotation(
                    ast.parse(signature.annotations[index] or "object", mode="eval").body, {}
                )
                if (name, index, kind) not in [(c[0], c[1], c[3]) for c in choices]:
                    choices.append((name, index, annotation or "", kind))
                break
    return choices


def _add_tensor(found: Returns, torch_dir: Path, c_stub: ast.Module, structs: dict[str, tuple[str, ...]]) -> None:
    """Tensor: what `_tensor.py` defines in Python hides what the C base class has."""
    for tree, name in ((stubs.read(torch_dir / "_tensor.py"), "Tensor"), (c_stub, "TensorBase")):
        for cls in stubs.classes(tree.body):
            if cls.name == name:
                signatures = list(stubs.functions(cls.body, method=True))
                if name == "Tensor":
                    signatures = [s for s in signatures if s.returns is not None]
                _add_functions(found, "torch.Tensor", signatures, structs)
                for attribute, annotation in stubs.attributes(cls):
                    kind = kinds.of_annotation(annotation, structs)
                    found.known.add(f"torch.Tensor.{attribute}")
                    if kind:
                        found.kinds.setdefault(f"torch.Tensor.{attribute}", kind)


def _add_native(found: Returns, native: Native) -> None:
    """Operators bound outside `torch` and `Tensor`, whose stubs the wheel lacks."""
    scope = _MODULES.get(native.module)
    if scope is None or "function" not in native.variants or native.schema.is_out:
        return
    name = native.schema.name.removeprefix(f"{native.module}_")
    qualname = f"{scope}.{name}"
    kind = kinds.of_schema(native.schema)
    if name.startswith("_") or kind is None:
        return
    found.known.add(qualname)
    if found.kinds.setdefault(qualname, kind) == kind and len(native.schema.returns) > 1:
        names = tuple(n for _, n in native.schema.returns)
        if all(names):
            found.fields[qualname] = names


def _add_aliases(found: Returns, scope: str, tree: ast.Module, natives: list[Native]) -> None:
    """`gelu = _add_docstr(torch._C._nn.gelu, ...)`, `relu_ = _add_docstr(torch.relu_, ...)`."""
    bound = {n.schema.name: kinds.of_schema(n.schema) for n in natives if n.module == "nn" and not n.schema.is_out}
    for name, target in stubs.aliases(tree).items():
        kind = found.kinds.get(target)
        if target.startswith("torch._C._nn."):
            kind = bound.get(target.rpartition(".")[2])
        if kind and not name.startswith("_") and f"{scope}.{name}" not in found.choices:
            found.known.add(f"{scope}.{name}")
            found.kinds.setdefault(f"{scope}.{name}", kind)


def _add_dispatches(found: Returns, scope: str, tree: ast.Module) -> None:
    for name, (argument, index, if_true, if_false) in stubs.dispatches(tree).items():
        del if_true, if_false
        qualname = f"{scope}.{name}"
        found.known.add(qualname)
        found.kinds.pop(qualname, None)
        found.choices[qualname] = [("", -1, "", "tensor"), (argument, index, "true", "tuple[tensor,tensor]")]


def _supplement(found: Returns) -> None:
    """By hand; names this torch does not have are caught by the test that compares with a real one."""
    for qualname, kind in {**RETURNS, **CLASSES}.items():
        found.known.add(qualname)
        if isinstance(kind, str):
            found.kinds[qualname] = kind
            found.choices.pop(qualname, None)
        else:
            found.kinds.pop(qualname, None)
            found.choices[qualname] = list(kind)

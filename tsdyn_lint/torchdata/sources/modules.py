"""The classes of `torch.nn` -> what their forward gives, what they are, how their constructor's parameters are
named."""

from __future__ import annotations

import ast
from pathlib import Path

from tsdyn_lint.torchdata.sources import kinds, stubs

# forward results that no annotation tells, or that the annotation widens
_KINDS = {
    "LSTM": "tuple[tensor,tuple[tensor,tensor]]",
    "GRU": "tuple[tensor,tensor]",
    "RNN": "tuple[tensor,tensor]",
    "RNNBase": "tuple[tensor,tensor]",
    "LSTMCell": "tuple[tensor,tensor]",
    "MultiheadAttention": "tuple[tensor,tensor?]",
    "AdaptiveLogSoftmaxWithLoss": "tuple[tensor,tensor]",
    "Sequential": "call",
    "Identity": "same",
    "Unflatten": "tensor",
}
_RNNS = {"RNNBase", "RNN", "LSTM", "GRU"}
_FILES = {"container": "container", "loss": "loss", "rnn": "cell", "activation": "activation", "dropout": "dropout",
          "pooling": "pooling",
          "batchnorm": "norm", "instancenorm": "norm", "normalization": "norm", "conv": "conv", "linear": "linear",
          "sparse": "embedding",
          "transformer": "transformer", "padding": "padding"}  # fmt: skip
_RNN_PARAMETERS = (
    "input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size device dtype".split(" ")
)


def collect(torch_dir: Path) -> dict[str, str]:
    """Class name -> `category forward-kind constructor,parameters`; `return_indices` decides the kind of a pooling
    that has it."""
    classes: dict[str, tuple[ast.ClassDef, str]] = {}
    for path in sorted((torch_dir / "nn/modules").glob("*.py")):
        for cls in stubs.classes(stubs.read(path).body):
            classes[cls.name] = (cls, path.stem)
    exported = _exported(torch_dir)
    return {name: _entry(name, classes) for name in sorted(classes) if name in exported}


def _exported(torch_dir: Path) -> set[str]:
    for node in stubs.read(torch_dir / "nn/modules/__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _entry(name: str, classes: dict[str, tuple[ast.ClassDef, str]]) -> str:
    category = "lazy" if name.startswith("Lazy") else "rnn" if name in _RNNS else _FILES.get(classes[name][1], "other")
    forward, init = _method(name, "forward", classes), _method(name, "__init__", classes)
    kind = _KINDS.get(name) or (kinds.of_annotation(forward.returns, {}) if forward else None)
    parameters = [*init.params, *init.keywords] if init else []
    if category == "rnn":
        parameters = _RNN_PARAMETERS
    if kind is None and forward is not None:
        kind = "tensor" if category not in {"container", "other"} else None
    return f"{category} {kind or 'any'} {','.join(parameters)}"


def _method(name: str, method: str, classes: dict[str, tuple[ast.ClassDef, str]]) -> stubs.Signature | None:
    """The method as the class or its nearest base defines it."""
    if name not in classes:
        return None
    cls = classes[name][0]
    own = [s for s in stubs.functions(cls.body, method=True) if s.name == method]
    if own:
        return own[-1]
    for base in cls.bases:
        found = _method(ast.unparse(base).rpartition(".")[2], method, classes)
        if found:
            return found
    return None

"""Which context managers and wrappers Dynamo traces through, refuses, or cannot resume inside of (measured on
torch 2.13).
"""

from __future__ import annotations

from tsdyn_lint.infer.values import Func, Instance, Method, Outside, Value

DISABLERS = tuple(("torch.compiler.disable torch._dynamo.disable torch._dynamo.skip torch._disable_dynamo").split())

SUPPORTED = tuple(
    (
        "torch.no_grad torch.enable_grad torch.set_grad_enabled torch.inference_mode torch.autocast "
        "torch.cuda.amp.autocast torch.amp.autocast torch.cpu.amp.autocast torch.autograd.no_grad "
        "torch.autograd.grad_mode. torch.autograd.profiler. torch.profiler. torch.cuda.device "
        "torch.cuda.stream torch.nn.attention.sdpa_kernel torch.autograd.graph. contextlib.nullcontext "
        "torch.autograd.enable_grad torch.autograd.inference_mode torch.autograd.set_grad_enabled torch.compiler. "
        "torch.cuda.nvtx. torch._C.DisableTorchFunction torch.overrides.BaseTorchFunctionMode"
    ).split()
)
"""Traced, and a break inside is resumed from."""
REFUSED = tuple(
    (
        "torch.random.fork_rng torch.autograd.set_detect_anomaly torch.autograd.detect_anomaly "
        "torch.autograd.anomaly_mode. torch.autograd.set_multithreading_enabled "
        "torch.autograd.grad_mode.set_multithreading_enabled torch.autograd.graph.save_on_cpu "
        "torch.autograd.graph.saved_tensors_hooks torch.autograd.graph.allow_mutation_on_saved_tensors "
        "torch.autograd.profiler.emit_nvtx torch.device torch.cuda.device_of torch.backends.cuda.sdp_kernel "
        "torch.backends.cudnn.flags torch.backends.mkldnn.flags torch.jit.fuser torch.jit.optimized_execution "
        "torch.jit.strict_fusion torch.compiler.set_stance torch.sparse.check_sparse_tensor_invariants "
        "torch._dynamo.config.patch torch.utils.flop_counter. torch.serialization. "
        "contextlib.ExitStack contextlib.closing contextlib.redirect_stdout "
        "contextlib.redirect_stderr contextlib.chdir builtins.open io.open io.StringIO io.BytesIO threading.Lock "
        "threading.RLock threading.Semaphore threading.Condition multiprocessing.Lock tempfile. zipfile. tarfile. "
        "gzip. pathlib.Path.open decimal.localcontext unittest.mock. numpy.errstate numpy.printoptions os.scandir"
    ).split()
)
"""A break by themselves. All others, those of the program among them, are traced, but none is resumed in."""


def describe(value: Value) -> str:
    """The dotted name of a context manager's class or factory, as far as it is known."""
    if isinstance(value, Instance):
        return value.outside if value.cls is None else value.cls.qualname
    if isinstance(value, Outside):
        return value.dotted
    if isinstance(value, Func):
        return value.function.qualname
    if isinstance(value, Method):
        return f"{describe(value.receiver)}.{value.name}"
    return ""


def kind(dotted: str) -> str:
    """`supported`, `refused`, or `unknown` for the managers that torch was never asked about."""
    if dotted.startswith(REFUSED):
        return "refused"
    return "supported" if dotted.startswith(SUPPORTED) else "unknown"

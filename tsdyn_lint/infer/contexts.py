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
        "torch.autograd.grad_mode. torch.autograd.profiler. torch.profiler. torch.device torch.cuda.device "
        "torch.cuda.stream torch.nn.attention.sdpa_kernel torch.backends.cuda.sdp_kernel "
        "torch.autograd.graph. contextlib.nullcontext contextlib.suppress torch.autograd.enable_grad "
        "torch.autograd.inference_mode torch.autograd.set_grad_enabled torch.jit. torch.compiler. "
        "torch.cuda.nvtx. torch.nn.utils.parametrize.cached"
    ).split()
)
REFUSED = tuple(
    (
        "torch.random.fork_rng torch.autograd.set_detect_anomaly torch.autograd.detect_anomaly "
        "torch.autograd.anomaly_mode. warnings.catch_warnings contextlib.ExitStack contextlib.redirect_stdout "
        "contextlib.redirect_stderr builtins.open io.open threading.Lock threading.RLock threading.Semaphore "
        "threading.Condition multiprocessing.Lock tempfile. zipfile. tarfile. gzip. pathlib.Path.open"
    ).split()
)


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
    if dotted.startswith(SUPPORTED):
        return "supported"
    return "refused" if dotted.startswith(REFUSED) else "unknown"

"""What Dynamo does with a call by name: its trace rules for torch, the standard library and NumPy, overruled by
what probes saw."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterable
from typing import Any

from tsdyn_lint.torchdata.load import BASE, load
from tsdyn_lint.torchdata.sources import observe, probes

# Modules whose public functions are looked up one by one
_STDLIB = (
    "atexit base64 binascii bisect calendar cmath codecs collections configparser contextlib contextvars "
    "copy csv ctypes dataclasses "
    "datetime decimal difflib functools gc getpass glob gzip hashlib heapq hmac html importlib inspect io "
    "itertools json linecache "
    "locale logging math multiprocessing operator os os.path pathlib pickle platform pprint random re "
    "resource secrets shlex shutil "
    "signal socket statistics string struct subprocess sys tempfile textwrap threading time timeit "
    "traceback types typing "
    "unicodedata uuid warnings weakref zlib"
).split(" ")
_NUMPY = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft")
_TRACE, _SKIP = "trace", "skip GB0007"


def collect(known: Iterable[str], returned: set[str]) -> dict[str, str]:
    """Qualified name -> `trace`, `skip GB0007` or `refuse GBxxxx`; a torch name that is traced and has a return
    kind is left out."""
    found = dict(_torch(sorted(known), returned))
    found.update(_stdlib())
    found.update(_numpy())
    found.update(_probed())
    return {
        name: verdict
        for name, verdict in found.items()
        if verdict != _TRACE or name not in returned or not name.startswith("torch.")
    }


def _torch(known: list[str], returned: set[str]) -> Iterable[tuple[str, str]]:
    for name in known:
        value = resolve(name)
        if value is None or not callable(value) or isinstance(value, type):
            continue
        verdict = _lookup(value)
        if verdict == _SKIP or (verdict and name not in returned):
            yield name, verdict


def resolve(qualname: str) -> Any:
    """The object of that name, None where this torch has none."""
    parts = qualname.split(".")
    value: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return None
    return value


def _lookup(value: Any) -> str | None:
    from torch._dynamo import trace_rules

    rule = trace_rules.lookup_callable(value) or trace_rules.lookup(value)
    if rule is None:
        return None
    return _SKIP if "Skip" in rule.__name__ else _TRACE


def _stdlib() -> dict[str, str]:
    """Functions written in C that no rule names, and those in files that Dynamo skips. Others are inlined: what happens
    then is decided inside them, so nothing is said."""
    found: dict[str, str] = {}
    for module_name in _STDLIB:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
            value = getattr(module, name, None)
            if name.startswith("_") or not isinstance(value, (types.BuiltinFunctionType, types.FunctionType)):
                continue
            if name.endswith("hook"):  # whoever runs this, pytest say, may have put its own there
                continue
            if _lookup(value) == _SKIP:
                found[f"{module_name}.{name}"] = _SKIP
    return found


def _numpy() -> dict[str, str]:
    """NumPy functions: traced where `torch._numpy` has a counterpart."""
    from torch._dynamo.variables.misc import get_np_to_tnp_map

    counterparts = set(get_np_to_tnp_map())
    found: dict[str, str] = {}
    for module_name in _NUMPY:
        module = importlib.import_module(module_name)
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or not callable(value) or inspect.isclass(value):
                continue
            found[f"{module_name}.{name}"] = _TRACE if value in counterparts else "refuse GB0294"
    return found


def _probed() -> dict[str, str]:
    """What really compiling a call gave."""
    rows = probes.table()
    base = load(BASE)
    likely = {code for name, code in rows if base.dynamo_call(name) == "trace"}
    found: dict[str, str] = {}
    for (name, _), outcome in zip(rows, observe.observe([code for _, code in rows], likely), strict=True):
        if outcome == "ok":
            found[name] = _TRACE
        elif outcome.startswith("GB"):
            found[name] = f"{'skip' if outcome in _SKIPS else 'refuse'} {outcome}".strip()
        elif outcome.startswith(("raise:", "dies")):
            found[name] = "raise"
    return found


_SKIPS = ("GB0007", "GB0008", "GB0098", "GB0099")

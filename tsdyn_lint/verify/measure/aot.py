"""`torch.export` with AOTInductor: a package that runs without Python, built, loaded, compared and timed."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import torch
import torch.export

from tsdyn_lint.verify.figures import Aot
from tsdyn_lint.verify.measure.clock import per_call
from tsdyn_lint.verify.measure.rig import Rig, bound, rig
from tsdyn_lint.verify.measure.toolchain import Unavailable, warm_up
from tsdyn_lint.verify.observe import agree
from tsdyn_lint.verify.probes.agreement import agreement
from tsdyn_lint.verify.probes.export import as_module, is_refusal
from tsdyn_lint.verify.probes.places import fault, shorten
from tsdyn_lint.verify.probes.subject import Subject, quiet


def probe(subject: Subject) -> Aot:
    """What export refuses ends here; so does a torch or a machine that cannot build packages."""
    made = rig(subject)
    try:
        warm_up("inductor", made.device)
    except Unavailable as error:
        return Aot(False, unavailable=str(error))
    inductor: Any = torch._inductor
    if not hasattr(inductor, "aoti_compile_and_package"):
        return Aot(False, unavailable="this torch has no torch._inductor.aoti_compile_and_package")
    call = subject.example.copy()
    try:
        with quiet(), torch.no_grad():
            program = torch.export.export(as_module(made.instance), call.args, call.kwargs or None, strict=False)
    except Exception as error:
        return Aot(False, _failed(error, subject))
    with tempfile.TemporaryDirectory(dir=subject.folder) as folder:
        return _packaged(made, program, os.path.join(folder, "model.pt2"))


def _packaged(made: Rig, program: Any, file: str) -> Aot:
    inductor: Any = torch._inductor
    try:
        with quiet(), torch.no_grad():
            begin = time.perf_counter()
            inductor.aoti_compile_and_package(program, package_path=file)
            built = time.perf_counter() - begin
            begin = time.perf_counter()
            package = inductor.aoti_load_package(file)
            loaded = time.perf_counter() - begin
        answers = agreement(made.subject).answers(package, is_refusal)
        with quiet(), torch.no_grad():
            spent = per_call(bound(package, made.subject.example), made.clock)
    except Exception as error:
        return Aot(False, _failed(error, made.subject))
    size = os.path.getsize(file) / (1 << 20)
    return Aot(
        True, None, built, loaded, size, agree(answers, ("example",)), agree(answers, ("again", "values")), spent
    )


def _failed(error: Exception, subject: Subject) -> dict[str, Any]:
    seen = fault(error, subject.project)
    return {
        "filename": seen.site.filename if seen.site else None,
        "location": {"row": seen.site.row} if seen.site else None,
        "message": shorten(f"{seen.type}: {seen.message}", 600),
    }

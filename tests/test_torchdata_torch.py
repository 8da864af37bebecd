"""The data files against the torch that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tsdyn_lint.torchdata import generate
from tsdyn_lint.torchdata.load import BASE, folder, load
from tsdyn_lint.torchdata.sources import natives, observe, probes, rules, sample

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")
numpy = pytest.importorskip("numpy")

BASE_FILE = folder() / f"torch-{BASE[0]}.{BASE[1]}.json"
META = json.loads(BASE_FILE.read_text())["meta"]
GENERATED_ON = "3.11.7"
"""The Python of the data: even its next patch releases have other names and messages."""
same_torch = pytest.mark.skipif(not torch.__version__.startswith(META["torch"]), reason="another torch")


@same_torch
def test_rereading_gives_the_same_bytes(tmp_path: Path) -> None:
    copy = tmp_path / BASE_FILE.name
    copy.write_bytes(BASE_FILE.read_bytes())
    generate.generate(generate.installed(), tmp_path, run=False)
    assert copy.read_bytes() == BASE_FILE.read_bytes()


@same_torch
def test_probes_still_see_what_the_data_says() -> None:
    """A sample; the whole table takes minutes."""
    wanted = {
        "builtins.print",
        "time.time",
        "random.randint",
        "os.path.join",
        "json.dumps",
        "torch.Tensor.item",
        "torch.vmap",
    }
    rows = [row for row in probes.table() if row[0] in wanted]
    data = load(BASE)
    statements = [code for _, code in rows]
    outcomes = observe.observe(statements, likely=[code for name, code in rows if data.dynamo_call(name) == "trace"])
    seen = dict(zip((name for name, _ in rows), outcomes, strict=True))
    assert seen == {name: data.dynamo_gb(name) or "ok" for name, _ in rows}


@same_torch
@pytest.mark.slow
def test_regenerating_gives_the_same_bytes(tmp_path: Path) -> None:
    import platform

    if (platform.python_version(), numpy.__version__) != (GENERATED_ON, META["numpy"]):
        pytest.skip("another Python or NumPy: the standard library and NumPy sections may differ")
    path = generate.generate(generate.installed(), tmp_path)
    assert path.read_bytes() == BASE_FILE.read_bytes()


@same_torch
@pytest.mark.slow
def test_regenerating_the_script_data_gives_the_same_bytes(tmp_path: Path) -> None:
    import platform

    from tsdyn_lint.torchdata import generate_script

    path = BASE_FILE.with_suffix(".script.json")
    if (torch.__version__, platform.python_version()) != (json.loads(path.read_text())["meta"]["torch"], GENERATED_ON):
        pytest.skip("another build or Python: messages may differ")
    assert generate_script.generate(tmp_path).read_bytes() == path.read_bytes()


@same_torch
def test_what_is_named_exists() -> None:
    groups: dict[str, dict[str, str]] = json.loads(BASE_FILE.read_text())["returns"]
    names = {f"{scope}.{name}" for scope, kinds in groups.items() for line in kinds.values() for name in line.split()}
    missing = {name for name in names if rules.resolve(name) is None and not name.startswith("torch.Tensor._")}
    assert not {
        name for name in missing if name.count(".") == 1 or name.startswith(("torch.nn.functional", "torch.Tensor"))
    }


@same_torch
@pytest.mark.slow
def test_return_kinds_are_what_calls_give() -> None:
    data = load(BASE)
    wrong = []
    for native in natives.read(generate.installed()):
        if native.schema.is_out or native.schema.name.startswith(("_", "native_")):
            continue
        for name in sample.names(native):
            if name.rpartition(".")[2].startswith("_"):
                continue
            wrong += _disagreements(data, name, native)
    assert not wrong


def _disagreements(data: Any, name: str, native: natives.Native) -> list[tuple[str, str | None, str]]:
    function = rules.resolve(name)
    args = sample.arguments(torch, native.schema, "float")
    result = sample.call(torch, function, native.schema, "float") if function else None
    if result is None:
        return []
    names = {torch.Tensor: "tensor", int: "int", float: "float", bool: "bool", list: "list"}
    given = [names.get(type(a)) for a in args][name.startswith("torch.Tensor.") :]
    expected, seen = data.returns(name, given, {}), _kind(result)
    return [] if _fits(expected, seen) else [(name, expected, seen)]


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, torch.Size):
        return "size"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__ if type(value) is list else 'tuple'}[{','.join(_kind(v) for v in value)}]"
    return {type(None): "none", torch.dtype: "dtype"}.get(type(value), type(value).__name__)


def _fits(expected: str | None, seen: str) -> bool:
    if expected is None:
        return False
    if expected.endswith(",...]"):
        return seen.startswith(expected[: -len(",...]")])
    if "..." in expected:
        return seen.startswith(expected.partition(",...")[0])
    return (
        expected == seen
        or (expected == "number" and seen in {"int", "float"})
        or (expected == "list[tensor]" and seen.startswith("list["))
    )


@pytest.mark.slow
def test_version_rows_hold_for_the_installed_torch() -> None:
    script = Path(__file__).parent / "torch_versions.py"
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert run.stdout.count("table") == 12

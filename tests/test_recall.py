"""What is worked out once for several entry points or chunks comes out as if worked out each time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tsdyn_lint import judge as judging
from tsdyn_lint.config import Settings
from tsdyn_lint.findings import Confidence, Engine
from tsdyn_lint.judge import judge
from tsdyn_lint.resolve import program
from tsdyn_lint.rulebook import load_rules
from tsdyn_lint.source import make_source

RULEBOOK = load_rules()
SETTINGS = Settings(Path("."), frozenset(Engine))
ATTRIBUTES = "\n".join(f"        self.a{n} = kwargs.pop('a{n}', {n}) + {n}" for n in range(20))
CONFIG = f"""
class Config:
    def __init__(self, **kwargs):
        self.debug = False
        self.parts = ["norm"]
{ATTRIBUTES}
"""
HEAD = f"import torch\nfrom torch import nn\n{CONFIG}"


def model(name: str, init: str, forward: str) -> str:
    return f"""
class {name}(nn.Module):
    config_class = Config

    def __init__(self, config):
        super().__init__()
        self.config = config
        {init}

    def forward(self, x: torch.Tensor):
        {forward}
        return x
"""


def found(*files: tuple[str, str]) -> list[tuple[str, str, int]]:
    sources = [make_source(Path("/project") / name, text.encode()) for name, text in files]
    findings = judge(sources, SETTINGS, RULEBOOK, 1).findings
    return [(f.filename, f.name, f.start.row) for f in findings if f.confidence.rank > 1]


@pytest.fixture
def recalled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was done again, not walked."""
    from tsdyn_lint.infer import recall

    seen: list[object] = []
    real = recall.recall

    def spy(summary: object, objects: object) -> object:
        seen.append(summary)
        return real(summary, objects)  # type: ignore[arg-type]

    monkeypatch.setattr(recall, "recall", spy)
    return seen


def test_what_one_entry_point_does_to_its_objects_the_next_does_not_see(recalled: list[object]) -> None:
    shows = "if self.config.debug:\n            print(x)"
    text = HEAD + model("Loud", "config.debug = True", shows) + model("Quiet", "pass", shows)
    assert [(name, row) for _, name, row in found(("model.py", text))] == [
        ("print-call", text[: text.index("print(x)")].count("\n") + 1)
    ]
    assert recalled


def test_what_a_recalled_call_changes_in_its_arguments_is_changed_again(recalled: list[object]) -> None:
    steps = "\n".join(f"    config.a{n} = config.a{n} + 1" for n in range(20))
    text = f"{HEAD}\ndef switch_on(config):\n    config.debug = True\n{steps}\n    return config\n"
    shows = "if self.config.debug:\n            print(x)"
    text += model("First", "switch_on(config)", shows) + model("Second", "switch_on(config)", shows)
    assert [name for _, name, _ in found(("model.py", text))] == ["print-call", "print-call"]
    assert recalled


def test_objects_that_are_made_again_are_objects_of_their_own(recalled: list[object]) -> None:
    text = HEAD + model("Adds", 'config.parts.append("drop")', "pass")
    text += model("Counts", "pass", "if len(self.config.parts) > 1:\n            print(x)")
    assert found(("model.py", text)) == found(("model.py", HEAD + model("Counts", "pass", "pass")))
    assert recalled


def test_a_base_module_is_parsed_once_for_all_chunks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    base = "from torch import nn\nclass Base(nn.Module):\n    def show(self, x):\n        print(x)\n        return x\n"
    text = (
        "import torch\nfrom package.base import Base\n"
        "class Model(Base):\n    def forward(self, x: torch.Tensor):\n        return self.show(x)\n"
    )
    folder = tmp_path / "package"
    files = {"base.py": base, "a/model.py": text, "b/model.py": text, "c/model.py": text}
    for name, code in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)
        ((folder / name).parent / "__init__.py").touch()
    sources = [make_source(folder / name, code.encode()) for name, code in files.items() if name != "base.py"]

    def findings() -> list[tuple[str, str, int]]:
        found = judge(sources, SETTINGS, RULEBOOK, 1, frozenset(str(folder / name) for name in files)).findings
        return [(f.filename, f.name, f.start.row) for f in found]

    together = findings()
    parsed: Counter[str] = Counter()

    def parse(code: str, path: Path) -> program.Tree:
        parsed[path.name] += 1
        return tree(code, path)

    tree = program.Tree
    monkeypatch.setattr(program, "Tree", parse)
    monkeypatch.setattr(judging, "_CHUNK_BYTES", 1)
    assert len(judging.plan_chunks(sources, 1)) == 3
    assert findings() == together != []
    assert parsed["base.py"] == 1


def test_what_torchscript_surely_reaches_makes_the_other_captures_no_surer() -> None:
    text = """
import torch
from torch import nn

@torch.jit.script_if_tracing
def kept(scores, groups):
    for group in torch.unique(groups):
        scores = scores + group
    return scores

class Detector(nn.Module):
    def __init__(self, fast):
        super().__init__()
        self.fast = fast

    def forward(self, scores, groups):
        if self.fast:
            return kept(scores, groups)
        return scores
"""
    found = judge(
        [make_source(Path("model.py"), text.encode())], SETTINGS, RULEBOOK, 1, frozenset({"model.py"})
    ).findings
    (unique,) = [f for f in found if Engine.DYNAMO in f.engines]
    assert (unique.confidence, unique.entry) == (Confidence.LIKELY, "model.Detector.forward")


def test_a_file_that_a_star_imports_is_read_once_for_the_names_that_it_lacks(tmp_path: Path) -> None:
    package, layers = tmp_path / "package" / "__init__.py", tmp_path / "package" / "layers.py"
    package.parent.mkdir()
    package.write_text("from .layers import *\n")
    layers.write_text("def norm(x):\n    return x\n")
    reads: list[Path] = []
    exports: dict[tuple[Path, str], bool] = {}

    def read(path: Path) -> str:
        reads.append(path)
        return path.read_text()

    for times in (1, 0):
        reads.clear()
        chunk = program.Program(read, exports=exports)
        assert chunk.lookup(chunk.load(package), "attend") is None
        assert reads.count(layers) == times
    assert chunk.lookup(chunk.load(package), "norm") is not None

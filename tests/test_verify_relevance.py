"""Which named targets the linted files are part of."""

from __future__ import annotations

from pathlib import Path

from tsdyn_lint.verify.relevance import relevant
from tsdyn_lint.verify.target import Target

FILES = {
    "pkg/__init__.py": "",
    "pkg/model.py": "from . import layers\n",
    "pkg/layers.py": "def build():\n    from pkg.deep.inner import Block\n",
    "pkg/deep/__init__.py": "from .inner import Block\n",
    "pkg/deep/inner.py": "import pkg.model\n",
    "pkg/alone.py": "import torch\nimport pkg.nothing\n",
    "factories/make.py": "import src_only\n",
    "src/src_only.py": "from pkg.deep import Block\n",
    "broken.py": "def (:\n",
}


def test_a_target_is_run_where_a_linted_file_is_reached(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    targets = [Target(name, tmp_path / name, "X") for name in FILES]

    def reached(linted: str) -> set[str]:
        found = relevant(targets, [tmp_path / linted], tmp_path)
        return {target.name for target in found}

    everything = {"pkg/model.py", "pkg/layers.py", "pkg/deep/__init__.py", "pkg/deep/inner.py", "factories/make.py",
                  "src/src_only.py"}  # fmt: skip
    assert reached("pkg/deep/inner.py") == everything == reached("pkg/layers.py")
    assert reached("pkg/alone.py") == {"pkg/alone.py"}
    assert reached("src/src_only.py") == {"src/src_only.py", "factories/make.py"}
    assert reached("broken.py") == {"broken.py"}
    installed = Target("timm:Net", tmp_path / "env" / "site-packages" / "timm.py", "Net")
    assert relevant([installed], [tmp_path / "broken.py"], tmp_path) == [installed]

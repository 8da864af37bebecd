"""The TorchScript checker: types, schemas, and what it says of small files."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tsdyn_lint.resolve import Program
from tsdyn_lint.script import schema, types
from tsdyn_lint.script.check import script_events
from tsdyn_lint.script.data import load
from tsdyn_lint.torchdata.load import KNOWN

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom typing import *\n"


def causes(code: str, version: tuple[int, int] = (2, 13)) -> list[str]:
    """`row:cause` of each likely problem; rows count from the first line of `code`."""
    path = Path("/project/model.py")
    program = Program(lambda asked: HEAD + code if asked == path else None)
    program.linted.append(program.load(path))

    def fail(entry: object, error: BaseException) -> None:
        raise error

    events = script_events(program, version, fail)
    shift = HEAD.count("\n")
    return [f"{e.module.tree.places.span(e.node)[0].row - shift}:{e.facts['cause']}" for e in events if e.judged > 1]


def forward(body: str, signature: str = "self, x", init: str = "pass") -> list[str]:
    """Problems of a module whose forward has this body; row 1 is the body's first line."""
    lines = ["class Net(nn.Module):", "    def __init__(self):", "        super().__init__()", f"        {init}"]
    lines += [f"    def forward({signature}):", *(f"        {line}" for line in body.splitlines())]
    found = causes("\n".join(lines) + "\n")
    return [f"{int(c.partition(':')[0]) - 5}:{c.partition(':')[2]}" for c in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = x + 1\ny = x.size(0)\nreturn y", []),
        ("y = None\nif x.sum() > 0:\n    y = x\nreturn y", ["3:rebind"]),
        ("if x.sum() > 0:\n    y = x\nreturn y", ["1:undefined"]),
        ("for i in range(3):\n    y = x\nreturn y", ["3:loop-only"]),
        ("b, c = x.shape\nreturn x.view(c, b)", []),
        ("a, b = x\nreturn a", ["1:unpack"]),
        ("return x.view(*x.shape)", ["1:unsized"]),
        ("return F.dropout(x, p=0)", ["1:schema"]),
        ("return torch.sum(x, axis=1)", ["1:schema"]),
        ("return x.mean((2, 3), keepdim=True)", []),
        ("return x.sort().values", []),
        ("return sum([x, x])", ["1:builtin-arguments"]),
        ("out = []\nfor i in range(3):\n    out.append(i)\nreturn x", ["3:element-type"]),
        ("out: List[int] = []\nfor i in range(3):\n    out.append(i)\nreturn x", []),
        ("if x.dim() > 1:\n    return x, x\nreturn x", ["3:return-types"]),
        ("return None if x.dim() > 1 else x", []),
        ("if not torch.jit.is_scripting():\n    return {0: x, 'a': x}\nreturn x", []),
        ("if not torch.jit.is_scripting():\n    return {1, 2}\nreturn x", ["2:expression"]),
    ],
)
def test_of_a_body(body: str, expected: list[str]) -> None:
    assert forward(body) == expected


@pytest.mark.parametrize(
    ("init", "body", "expected"),
    [
        ("self.n = None", "return x if self.n is None else self.n(x)", []),
        # torch compiles the right side of `and` even where the left side decides
        (
            "self.n = None",
            "if self.n is not None and self.n(x).sum() > 0:\n    x = x + 1\nreturn x",
            ["1:not-callable"],
        ),
        ("self.act = lambda v: v", "return self.act(x)", ["1:untypable-attribute"]),
        ("self.act = F.relu", "return self.act(x)", []),
        ("self.ls = nn.ModuleList([nn.Linear(2, 2)])", "return self.ls[0](x)", []),
        (
            "self.ls = nn.ModuleList([nn.Linear(2, 2)])",
            "for i in range(1):\n    x = self.ls[i](x)\nreturn x",
            ["2:container-index"],
        ),
        ("self.sizes = [1, 2]", "for s in self.sizes:\n    x = x + s\nreturn x", []),
        ("self.__fc = nn.Linear(2, 2)", "return self.__fc(x)", ["1:missing-attribute"]),
        ("self.drop = nn.Dropout(0)", "return self.drop(x)", ["-1:module-argument"]),
        ("self.drop = nn.Dropout(0.0)", "return self.drop(x)", []),
    ],
)
def test_of_an_instance(init: str, body: str, expected: list[str]) -> None:
    assert forward(body, init=init) == expected


@pytest.mark.parametrize(
    ("annotation", "refused"),
    [
        ("List[int]", False),
        ("list[torch.Tensor]", False),
        ("Optional[torch.Tensor]", False),
        ("torch.Tensor | None", False),
        ("'Dict[str, int]'", False),
        ("Tuple[int, ...]", True),
        ("Sequence[int]", True),
        ("dict", True),
        ("torch.Size", True),
    ],
)
def test_of_annotations(annotation: str, refused: bool) -> None:
    assert ("0:annotation" in forward("return x", f"self, x, m: {annotation}")) is refused


def test_a_default_of_another_type_than_tensor_needs_an_annotation() -> None:
    assert forward("return x", "self, x, k=2") == ["0:default"]
    assert forward("return x", "self, x, k: int = 2") == []


def test_optionals_are_refined_where_torch_refines_them() -> None:
    signature = "self, x, m: Optional[torch.Tensor] = None"
    assert forward("if m is None:\n    return x\nreturn x * m", signature) == []
    assert forward("if m is None:\n    m = x\nreturn x * m", signature) == []
    assert forward("has = m is not None\nif has:\n    x = x * m\nreturn x", signature) == ["3:optional"]
    assert forward("if m:\n    x = x + 1\nreturn x", signature) == ["1:condition"]


def test_what_is_not_known_is_not_claimed() -> None:
    assert causes("class Net(nn.Module):\n    def __init__(self, cfg, block):\n        super().__init__()\n"
                  "        self.cfg = cfg\n        self.block = block(cfg.width)\n    def forward(self, x):\n"
                  "        if isinstance(self.cfg, list):\n            return [self.block(x)]\n"
                  "        return self.block(x)[self.cfg.index]\n") == []  # fmt: skip


def test_schemas_are_read_with_lists_optionals_and_named_results() -> None:
    found = schema.parse("(Tensor self, int[2]? dim=None, *, bool keepdim=False) -> (Tensor values, Tensor indices)")
    assert [a.name for a in found.args] == ["self", "dim", "keepdim"]
    assert found.args[1].type is types.Optional(types.List(types.INT)) and found.args[1].repeat == 2
    assert found.args[2].keyword_only and found.args[2].has_default
    assert found.result.args == (types.TENSOR, types.TENSOR) and found.result.extra[1] == ("values", "indices")


def test_versions_differ() -> None:
    code = "class Net(nn.Module):\n    def forward(self, x):\n        return torch.qr(x)[0]\n"
    assert causes(code, (2, 13)) == []
    assert causes(code, (2, 14)) == ["3:uncompilable-function"]
    code = "class Net(nn.Module):\n    def forward(self, x):\n        return x.align_to(['N', 'C'])\n"
    assert causes(code, (2, 11)) == []
    assert causes(code, (2, 13)) == causes(code, (2, 15)) == ["3:tensor-attribute"]


def test_an_int_is_no_float_and_a_tensor_is_a_number_only_in_the_second_round() -> None:
    assert not types.converts(types.INT, types.FLOAT, True)
    assert types.converts(types.TENSOR, types.FLOAT, True) and not types.converts(types.TENSOR, types.FLOAT, False)
    assert types.converts(types.Tuple([types.INT, types.INT]), types.List(types.INT), False)


def test_branches_join_to_an_optional_or_not_at_all() -> None:
    assert types.unify(types.NONE, types.TENSOR) is types.Optional(types.TENSOR)
    assert types.unify(types.INT, types.FLOAT) is None


@pytest.mark.parametrize("version", KNOWN)
def test_every_schema_of_the_data_can_be_read(version: tuple[int, int]) -> None:
    data = load(version)
    texts = [x for group in (data.operators, data.functions) for found in group.values() for x in found]
    assert len([schema.parse(x) for x in texts if not x.startswith("!")]) > 2000


def test_a_program_does_not_outlive_its_check() -> None:
    code = HEAD + (
        "class Inner(nn.Module):\n    def forward(self, x):\n        return torch.cat(x, x, x)\n"
        "@torch.jit.interface\nclass One:\n    def one(self, x: Tensor) -> Tensor:\n        pass\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = Inner()\n"
        "    def forward(self, x, ones: List[One]):\n        return torch.cat(ones), self.inner(x)\n"
    )
    path = Path("/project/model.py")
    program = Program(lambda asked: code if asked == path else None)
    program.linted.append(program.load(path))
    assert script_events(program, (2, 13), lambda entry, error: None)
    watched = weakref.ref(program.linted[0])
    del program
    gc.collect()
    assert watched() is None

"""The data files and their loader: no torch needed."""

from __future__ import annotations

import json

import pytest

from tsdyn_lint.torchdata.load import TorchData, load


@pytest.fixture(scope="module")
def data() -> TorchData:
    return load((2, 13))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.relu", "tensor"),
        ("torch.nn.functional.conv2d", "tensor"),
        ("torch.Tensor.shape", "size"),
        ("torch.Tensor.dim", "int"),
        ("torch.Tensor.item", "number"),
        ("torch.nn.Parameter.abs", "tensor"),
        ("torch.Tensor.split", "tuple[tensor,...]"),
        ("torch.topk", "tuple[tensor,tensor]"),
        ("torch.linalg.svd", "tuple[tensor,tensor,tensor]"),
        ("torch.is_tensor", "bool"),
        ("torch.Tensor.max", None),
        ("torch.no_such_function", None),
    ],
)
def test_returns(data: TorchData, name: str, kind: str | None) -> None:
    assert data.returns(name) == kind


@pytest.mark.parametrize(
    ("name", "args", "keywords", "kind"),
    [
        ("torch.Tensor.max", [], {}, "tensor"),
        ("torch.Tensor.max", ["int"], {}, "tuple[tensor,tensor]"),
        ("torch.Tensor.max", [], {"dim": "int"}, "tuple[tensor,tensor]"),
        ("torch.max", ["tensor", "tensor"], {}, "tensor"),
        ("torch.max", ["tensor", None], {}, None),
        ("torch.Tensor.size", [], {}, "size"),
        ("torch.Tensor.size", ["int"], {}, "int"),
        ("torch.where", ["tensor"], {}, "tuple[tensor,...]"),
        ("torch.where", ["tensor", "tensor", "tensor"], {}, "tensor"),
        ("torch.unique", ["tensor"], {"return_inverse": "true"}, "tuple[tensor,tensor]"),
        ("torch.unique", ["tensor"], {"return_inverse": "true", "return_counts": "true"}, "tuple[tensor,tensor,tensor]"),
        ("torch.unique", ["tensor"], {"return_counts": None}, None),
        ("torch.nn.functional.max_pool2d", ["tensor", "int"], {}, "tensor"),
        ("torch.nn.functional.max_pool2d", ["tensor", "int"], {"return_indices": "true"}, "tuple[tensor,tensor]"),
        ("torch.nn.functional.max_pool2d", ["tensor", "int"], {"return_indices": "false"}, "tensor"),
    ],
)
def test_returns_of_a_call(
    data: TorchData, name: str, args: list[str | None], keywords: dict[str, str | None], kind: str | None
) -> None:
    assert data.returns(name, args, keywords) == kind


def test_fields_name_the_parts_of_a_tuple(data: TorchData) -> None:
    assert data.fields("torch.Tensor.max") == ("values", "indices")
    assert data.fields("torch.relu") == ()


def test_tags(data: TorchData) -> None:
    assert data.tags("torch.Tensor.item") == {"data_dependent_output"}
    assert data.tags("torch.where") == {"dynamic_output_shape"}
    assert data.tag_condition("torch.where") == "nargs=1"
    assert data.tags("torch.relu") == frozenset()


def test_graph_break_titles(data: TorchData) -> None:
    assert data.gb("GB0170") == "Data-dependent branching"
    assert data.gb("GB9999999") is None


def test_an_unknown_version_takes_the_nearest() -> None:
    assert load((2, 9)).version == (2, 11)
    assert load((3, 0)).version == (2, 15)


def test_files_are_json_with_one_section_a_line() -> None:
    from tsdyn_lint.torchdata import load as module

    for path in module._folder().glob("torch-*.json"):
        sections = json.loads(path.read_text())
        assert len(path.read_text().splitlines()) == len(sections) + 2
        assert list(sections) == sorted(sections)

"""The data files and their loader: no torch needed."""

from __future__ import annotations

import json
import time

import pytest

from tsdyn_lint.torchdata import delta
from tsdyn_lint.torchdata.load import TorchData, folder, load
from tsdyn_lint.torchdata.sources import schema


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
        (
            "torch.unique",
            ["tensor"],
            {"return_inverse": "true", "return_counts": "true"},
            "tuple[tensor,tensor,tensor]",
        ),
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
    for path in folder().glob("torch-*.json"):
        sections = json.loads(path.read_text())
        assert len(path.read_text().splitlines()) == len(sections) + 2
        assert list(sections) == sorted(sections)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("builtins.print", "refuse"),
        ("builtins.len", "trace"),
        ("time.time", "skip"),
        ("os.path.join", "trace"),
        ("os.path.exists", "skip"),
        ("warnings.warn", "skip"),
        ("logging.Logger.info", "refuse"),
        ("logging.Logger.setLevel", "refuse"),
        ("math.sqrt", "trace"),
        ("random.randint", "trace"),
        ("numpy.sqrt", "trace"),
        ("numpy.interp", "refuse"),
        ("tqdm.auto.tqdm", "skip"),
        ("cv2.resize", "skip"),
        ("torch.relu", "trace"),
        ("torch.save", "skip"),
        ("torch.autograd.Variable", "skip"),
        ("torch.Tensor.backward", "refuse"),
        ("torch.Tensor.add", "trace"),
        ("torch.nn.utils.rnn.pack_padded_sequence", "skip"),
        ("somepackage.function", None),
    ],
)
def test_dynamo_call(data: TorchData, name: str, verdict: str | None) -> None:
    assert data.dynamo_call(name) == verdict


def test_a_break_names_its_id(data: TorchData) -> None:
    assert data.dynamo_gb("builtins.print") == "GB0059"
    assert data.dynamo_gb("torch.relu") is None


def test_dtype_and_rank(data: TorchData) -> None:
    assert data.dtype("torch.isnan") == "bool"
    assert data.dtype("torch.Tensor.__lt__") == "bool"
    assert data.dtype("torch.argmax") == "int"
    assert data.dtype("torch.topk") == "same,int"
    assert data.rank("torch.Tensor.sum") == 0
    assert data.rank("torch.Tensor.abs") is None


def test_modules(data: TorchData) -> None:
    lstm = data.module("LSTM")
    assert lstm is not None
    assert (lstm.category, lstm.forward) == ("rnn", "tuple[tensor,tuple[tensor,tensor]]")
    assert lstm.parameters[:2] == ("input_size", "hidden_size")
    pool = data.module("MaxPool2d")
    assert pool is not None
    assert "return_indices" in pool.parameters
    assert data.module("NoSuchModule") is None


def test_config(data: TorchData) -> None:
    assert data.config("capture_scalar_outputs") is False
    assert data.config("recompile_limit") == 8


def test_versions_differ() -> None:
    assert load((2, 13)).dynamo_call("random.random") == "skip"
    assert load((2, 14)).dynamo_call("random.random") == "trace"
    assert load((2, 15)).dynamo_call("heapq.heappush") == "trace"
    assert load((2, 13)).verdicts("global-counter") == {"recompile": "recompiles"}
    assert load((2, 14)).verdicts("global-counter") == {}
    assert load((2, 14)).verdicts("torch.nn.Module.state_dict") == {"dynamo": "GB0467"}
    assert load((2, 12)).verdicts("torch.nn.Module.state_dict") == {"dynamo": "GB0059"}
    assert load((2, 13)).differs("torch.relu") == ()


@pytest.mark.parametrize("version", [(2, 11), (2, 12), (2, 13), (2, 14), (2, 15)])
def test_every_version_has_its_own_data(version: tuple[int, int]) -> None:
    data = load(version)
    assert data.version == version
    assert data.returns("torch.relu") == "tensor"
    assert data.returns("torch.Tensor.shape") == "size"
    assert data.source("returns") == "read"
    assert data.gb("GB0170") == "Data-dependent branching"


def test_loading_is_cheap(data: TorchData) -> None:
    fresh = TorchData(data.version, folder() / "torch-2.13.json")
    start = time.process_time()
    fresh.returns("torch.relu")
    fresh.dynamo_call("time.time")
    fresh.tags("torch.where")
    assert time.process_time() - start < 0.05


def test_a_delta_gives_back_what_it_was_made_from() -> None:
    base = {
        "returns": {"torch": {"tensor": "abs relu", "int": "numel"}},
        "config": {"a": 1, "b": 2},
        "meta": {"torch": "1"},
    }
    other = {
        "returns": {"torch": {"tensor": "abs new"}, "torch.fft": {"tensor": "fft"}},
        "config": {"a": 1},
        "meta": {},
    }
    changes = delta.between(base, other)
    assert changes["returns"] == {
        "torch.relu": None,
        "torch.numel": None,
        "torch.new": "tensor",
        "torch.fft.fft": "tensor",
    }
    assert changes["config"] == {"b": None}
    assert changes["meta"] == {}
    assert delta.apply("returns", base, changes) == other["returns"]


def test_a_delta_of_script_data_gives_back_what_it_was_made_from() -> None:
    base = {
        "operators": {"aten::relu": ["(Tensor self) -> Tensor"], "aten::qr": ["(Tensor self) -> Tensor"]},
        "modules": {"ReLU": {"attributes": {}}},
        "dtypes": ["float32", "int8"],
        "meta": {"torch": "1"},
        "source": {"operators": "run"},
    }
    other = {
        "operators": {"aten::new": ["() -> int"], "aten::relu": ["(Tensor self) -> Tensor"]},
        "modules": {"ReLU": {"error": "gone"}},
        "dtypes": ["float32", "int4"],
        "meta": {"torch": "2"},
        "source": {"operators": "neighbour 1"},
    }
    changes = delta.between(base, other)
    assert changes["operators"] == {"aten::new": ["() -> int"], "aten::qr": None}
    assert changes["dtypes"] == {"int4": True, "int8": None}
    assert delta.merge(base, changes) == other


@pytest.mark.parametrize(
    ("text", "names", "keyword_only", "returns"),
    [
        (
            "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
            "self dim keepdim",
            "",
            "values indices",
        ),
        ("add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", "self other alpha", "alpha", ""),
        ("aten::split(str self, str? separator=None, int max=-1) -> str[]", "self separator max", "", ""),
        ("backward(Tensor self) -> ()", "self", "", None),
    ],
)
def test_schema(text: str, names: str, keyword_only: str, returns: str | None) -> None:
    found = schema.parse(text)
    assert [a.name for a in found.args] == names.split()
    assert [a.name for a in found.args if a.keyword_only] == keyword_only.split()
    if returns is None:
        assert found.returns == ()
    else:
        assert [n for _, n in found.returns if n] == returns.split()
    assert "!" not in "".join(a.type for a in found.args)

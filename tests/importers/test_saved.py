# SPDX-License-Identifier: Apache-2.0
"""`.pt2` files of strangers: whatever is in them, loading one runs nothing and makes no file."""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.torch_helpers import run
from tinyet.errors import DynamicShape, ModelError
from tinyet.importers.torch.source import load_source

Entries = dict[str, bytes]
_GRAPH = "net/models/model.json"
_SAMPLES = "net/data/sample_inputs/model.pt"
_WEIGHTS = "net/data/weights/model_weights_config.json"
_CONSTANTS = "net/data/constants/model_constants_config.json"
_RUN = "__import__('pathlib').Path('pwned').touch()"


class _Net(nn.Module):
    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("table", torch.arange(3.0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * self.table


class _Pwn:
    """Its pickle makes a file when it is loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return builtins.exec, (_RUN,)


@pytest.fixture(scope="module")
def saved() -> Entries:
    buffer = io.BytesIO()
    torch.manual_seed(0)
    torch.export.save(torch.export.export(_Net().eval(), (torch.ones(1, 4),)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        names = archive.namelist()
        return {"net/" + name.partition("/")[2]: archive.read(name) for name in names}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory to be in; at the end of the test nothing has been made there but the file."""
    monkeypatch.chdir(tmp_path)
    yield
    assert [path.name for path in tmp_path.iterdir()] == ["net.pt2"]


pytestmark = pytest.mark.usefixtures("here")


def write(entries: Entries, compression: int = zipfile.ZIP_STORED) -> str:
    with zipfile.ZipFile("net.pt2", "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return "net.pt2"


def changed(entries: Entries, name: str, change: Callable[[Any], object]) -> Entries:
    value = json.loads(entries[name])
    change(value)
    return entries | {name: json.dumps(value).encode()}


def refused(entries: Entries, kind: type[ModelError] = ModelError) -> str:
    with pytest.raises(kind) as caught:
        load_source(write(entries))
    assert len(str(caught.value)) < 4000
    return str(caught.value)


def graph_of(program: Any) -> Any:
    return program["graph_module"]["graph"]


def renamed(value: Any, old: str, new: str) -> Any:
    """The value with another name wherever the old one stands, as key or text."""
    if isinstance(value, dict):
        return {new if k == old else k: renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, old, new) for v in value]
    return new if value == old else value


def test_a_plain_program_is_what_torch_loads(saved: Entries) -> None:
    source = load_source(write(saved))
    expected = torch.export.load("net.pt2").module()
    x = torch.randn(1, 4)
    assert torch.equal(run(source.program, x), expected(x))
    assert [tuple(value.shape) for value in source.example_inputs] == [(1, 4)]


def test_sample_inputs_are_not_unpickled(saved: Entries) -> None:
    zipped = io.BytesIO()
    torch.save(((torch.ones(1, 4), _Pwn()), {}), zipped)
    for evil in (zipped.getvalue(), pickle.dumps(_Pwn()), b"", b"junk"):
        assert load_source(write(saved | {_SAMPLES: evil})).example_inputs[0].shape == (1, 4)


def test_pickled_weights_and_constants_are_refused(saved: Entries) -> None:
    evil = pickle.dumps(_Pwn())

    def as_pickle(table: Any) -> None:
        table["config"]["linear.weight"]["use_pickle"] = True

    entries = changed(saved, _WEIGHTS, as_pickle) | {"net/data/weights/weight_0": evil}
    assert "linear.weight: a pickle" in refused(entries)

    for kind in ("opaque_obj_0", "custom_obj_0"):

        def as_object(table: Any, kind: str = kind) -> None:
            table["config"] = {
                "thing": {"path_name": kind, "is_param": False, "use_pickle": True, "tensor_meta": None}
            }

        entries = changed(saved, _CONSTANTS, as_object) | {f"net/data/constants/{kind}": evil}
        assert "'thing': an object" in refused(entries)

    for folder in ("weights", "constants"):
        message = refused(saved | {f"net/data/{folder}/model.pt": evil})
        assert f"data/{folder}/model.pt: a pickle, as old versions of torch saved weights" in message


def test_the_form_of_old_versions_is_refused(saved: Entries) -> None:
    evil = pickle.dumps(_Pwn())
    entries = {
        "version": b"8.20",
        "serialized_exported_program.json": saved[_GRAPH],
        "serialized_state_dict.pt": evil,
        "serialized_constants.pt": evil,
        "serialized_example_inputs.pt": evil,
    }
    assert "it was saved by torch 2.7 or older" in refused(entries)


def test_compiled_code_is_refused(saved: Entries) -> None:
    assert "compiled code" in refused(saved | {"net/data/aotinductor/model/x.so": b"\x7fELF"})


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("torch.os.system", "a function, not an operator"),
        ("torch.hub.load", "a function, not an operator"),
        ("_operator.methodcaller", "a function, not an operator"),
        ("math.exp", "a function, not an operator"),
        ("torch.ops.aten.add.Tensor.__class__", "a function, not an operator"),
        ("torch.ops.aten.save.default", "it does more than compute tensors"),
        ("torch.ops.aten.from_file.default", "it does more than compute tensors"),
        ("torch.ops.aten.nothing.default", "there is no such operator"),
        ("torch.ops.load_library", "a function, not an operator"),
        (
            "torch.ops.other.add.default",
            "an operator that is not known here: register it with tinyet.custom_op",
        ),
        ("torch.ops.higher_order.triton_kernel_wrapper_mutation", "an operator that takes functions"),
        ("#evil:x", "a function, not an operator"),
    ],
)
def test_only_operators_are_called(saved: Entries, target: str, why: str) -> None:
    def change(program: Any) -> None:
        node = graph_of(program)["nodes"][0]
        node["target"] = target
        node["inputs"] = [{"name": "", "arg": {"as_string": "touch pwned"}, "kind": 1}]

    message = refused(changed(saved, _GRAPH, change))
    assert f"{target!r}: {why}" in message


@pytest.mark.parametrize("old", ["x", "p_linear_weight", "linear", "linear.weight", "weight"])
def test_names_are_no_python(saved: Entries, old: str) -> None:
    """FX writes names into source that it executes."""
    for evil in (f"x={_RUN}", f"x): {_RUN} #", f'x"), {_RUN}, ("', "x\ny", "__class__", "a.__init__.b"):
        entries = dict(saved)
        for name in (_GRAPH, _WEIGHTS):
            entries[name] = json.dumps(renamed(json.loads(saved[name]), old, evil)).encode()
        message = refused(entries)
        assert "no name of" in message or "is not a program" in message


def test_argument_names_are_no_python(saved: Entries) -> None:
    def change(program: Any) -> None:
        signature = program["graph_module"]["module_call_graph"][0]["signature"]
        signature["forward_arg_names"] = [f"x={_RUN}"]

    assert "no name of a value" in refused(changed(saved, _GRAPH, change))


@pytest.mark.parametrize(
    "tree",
    [
        {
            "type": "collections.defaultdict",
            "context": {"default_factory_module": "pwned", "default_factory_name": "x", "dict_context": []},
            "children_spec": [],
        },
        {
            "type": "builtins.dict",
            "context": '[{"__enum__": true, "fqn": "pwned:x", "name": "x"}]',
            "children_spec": [],
        },
        {"type": "builtins.dict", "context": f'["x={_RUN}"]', "children_spec": []},
    ],
)
def test_nothing_is_imported_for_the_form_of_inputs_and_outputs(saved: Entries, tree: Any) -> None:
    def change(program: Any) -> None:
        program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, tree])

    message = refused(changed(saved, _GRAPH, change))
    assert "outputs in more than tuples" in message or "is not a program" in message


def test_expressions_of_shapes_are_not_evaluated(saved: Entries) -> None:
    def change(program: Any) -> None:
        sizes = graph_of(program)["tensor_values"]["linear"]["sizes"]
        sizes[0] = {"as_expr": {"expr_str": _RUN, "hint": None}}

    assert "value linear" in refused(changed(saved, _GRAPH, change), DynamicShape)


def test_code_that_no_one_needs_is_left_out(saved: Entries) -> None:
    def change(program: Any) -> None:
        program["guards_code"] = [_RUN]
        program["graph_module"]["metadata"] = {"custom": "{}"}
        for node in graph_of(program)["nodes"]:
            node["metadata"] |= {
                "source_fn_stack": "x,torch.os.system",
                "torch_fn": f"{_RUN};{_RUN}",
                "custom": json.dumps({"tinyet": {"aten": _RUN}, "other": 1}),
                "from_node": _RUN,
            }

    source = load_source(write(changed(saved, _GRAPH, change)))
    assert torch.equal(
        run(source.program, torch.ones(1, 4)), run(load_source(write(saved)).program, torch.ones(1, 4))
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sizes", [1 << 40]),
        ("sizes", [-1]),
        ("strides", [1 << 40]),
        ("storage_offset", 1 << 40),
        ("sizes", [3] * 9),
    ],
)
def test_weights_lie_inside_their_bytes(saved: Entries, key: str, value: Any) -> None:
    def change(table: Any) -> None:
        meta = table["config"]["linear.bias"]["tensor_meta"]
        numbers = value if isinstance(value, list) else [value]
        meta[key] = [{"as_int": n} for n in numbers] if isinstance(value, list) else {"as_int": value}

    assert "linear.bias: its shape leaves its 12 bytes" in refused(changed(saved, _WEIGHTS, change))


def test_values_that_no_memory_holds_are_refused(saved: Entries) -> None:
    """The file says that the value is small; the operator would make it large."""
    size = {"name": "size", "arg": {"as_ints": [1 << 38, 3]}, "kind": 1}
    fill = {"name": "fill_value", "arg": {"as_float": 1.0}, "kind": 1}

    def change(program: Any) -> None:
        graph = graph_of(program)
        full = copy.deepcopy(graph["nodes"][0])
        full |= {
            "target": "torch.ops.aten.full.default",
            "inputs": [size, fill],
            "outputs": [{"as_tensor": {"name": "full"}}],
            "name": "full",
        }
        graph["tensor_values"]["full"] = graph["tensor_values"]["linear"]
        graph["nodes"].insert(0, full)
        graph["nodes"][2]["inputs"][0]["arg"] = {"as_tensor": {"name": "full"}}

    assert "full (274877906944, 3)" in refused(changed(saved, _GRAPH, change))


def test_damaged_and_oversized_archives_are_refused(saved: Entries) -> None:
    bomb = {**saved, "net/data/weights/weight_0": bytes(1 << 20)}
    with pytest.raises(ModelError, match="the archive is compressed"):
        load_source(write(bomb, zipfile.ZIP_DEFLATED))
    for graph in (b"[" * 100_000, b"{}", b"null", b'{"graph_module": 1}', b"1" * 10_000, b"\xff"):
        assert "is not a program saved by torch.export.save" in refused(saved | {_GRAPH: graph})
    for name in (_GRAPH, _WEIGHTS, _CONSTANTS, "net/data/weights/weight_0"):
        assert "is not a program saved by torch.export.save" in refused(
            {k: v for k, v in saved.items() if k != name}
        )
    data = bytearray(Path(write(saved)).read_bytes())
    for at in range(0, len(data), 997):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        Path("net.pt2").write_bytes(damaged)
        with contextlib.suppress(ModelError):
            load_source("net.pt2")


def test_inputs_in_other_forms_are_refused() -> None:
    class Lists(nn.Module):
        def forward(self, x: list[torch.Tensor], *, y: torch.Tensor | None = None) -> torch.Tensor:
            return x[0] if y is None else x[0] + y

    x = torch.ones(1, 2)
    torch.export.save(torch.export.export(Lists(), ([x],)), "net.pt2")
    with pytest.raises(ModelError, match="input 0 is a list, not a tensor"):
        load_source("net.pt2")
    torch.export.save(torch.export.export(Lists(), ([x],), {"y": x}), "net.pt2")
    with pytest.raises(ModelError, match="inputs by keyword"):
        load_source("net.pt2")


def test_a_part_without_gradients_is_ordinary() -> None:
    class Part(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                y = torch.relu(x)
            return y + x

    torch.export.save(torch.export.export(Part(), (torch.ones(1, 2),)), "net.pt2")
    assert torch.equal(run(load_source("net.pt2").program, torch.ones(1, 2)), torch.full((1, 2), 2.0))


def test_quantized_programs_are_ordinary() -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from tinyet import TinyetQuantizer

    x = (torch.ones(1, 4),)
    prepared = prepare_pt2e(
        torch.export.export(nn.Sequential(nn.Linear(4, 3)).eval(), x).module(), TinyetQuantizer()
    )
    prepared(*x)
    quantized = torch.export.export(convert_pt2e(prepared), x)
    torch.export.save(quantized, "net.pt2")
    program = load_source("net.pt2").program
    assert torch.equal(run(program, *x), quantized.module()(*x))
    assert any("quantized_decomposed" in str(node.target) for node in program.graph.nodes)

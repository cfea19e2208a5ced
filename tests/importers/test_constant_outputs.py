# SPDX-License-Identifier: Apache-2.0
"""Outputs, and states' next values, that are constants: as they come, folded, moved; through every door."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.tflite_files import Writer
from tinyet.errors import UnsupportedShape
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.tflite import Model
from tinyet.tflite.options import CallOnceOptions, VarHandleOptions
from tinyet.tflite.write import write_model


class Anchors(nn.Module):
    """Predictions beside constants of all kinds, and a state that is given a constant."""

    anchors: torch.Tensor
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.first = nn.Parameter(torch.tensor([0.5, -0.5]))
        self.register_buffer("anchors", torch.randn(1, 2, 5, 4))
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("counts", torch.arange(5))

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        before = self.seen.clone()
        self.seen.copy_(self.first)
        return {
            "y": self.conv(x),
            "anchors": self.anchors,
            "again": self.anchors,
            "folded": [self.anchors.exp().sum(1), torch.relu(self.conv(self.anchors))],
            "zeros": torch.zeros_like(x),
            "bias": (self.first, self.counts, torch.tensor(3.0)),
            "before": before,
        }


@pytest.mark.parametrize("quantized", [False, True])
def test_of_torch(quantized: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, x = Anchors().eval(), torch.randn(1, 2, 8, 8)
    program = tinyet.compile(net, (x,), calibration=[x] if quantized else None, channels_last=not quantized)
    wanted, _ = torch.utils._pytree.tree_flatten(net(x))
    image = x if quantized else x.permute(0, 2, 3, 1)
    session = program.session()
    session.run(image.numpy())
    results = session.run(image.numpy())
    wanted[-1] = net.first.detach()
    for found, expected in zip(results, wanted, strict=True):
        right = expected.detach() if quantized or expected.ndim < 4 else expected.detach().permute(0, 2, 3, 1)
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=0.05 if found is results[0] else 1e-5)
    loaded = tinyet.program.from_bytes(program.data, "net.tet")
    project = tinyet.generate(loaded, "mps2_an386", tmp_path / "net")
    assert project.validate(image.numpy(), on="host").bit_exact


def test_of_a_streaming_network() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(2, 3, 3)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.conv(x), self.conv.weight

    net = Net().eval()
    program = tinyet.compile(tinyet.streaming(net, (torch.randn(1, 2, 16),), axis=2))
    _, weight = program.run(np.zeros((1, 2, 1), np.float32))
    np.testing.assert_array_equal(weight, net.conv.weight.detach().numpy())


def _with_constants() -> Writer:
    w = Writer()
    x, y = w.value((1, 4)), w.value((1, 4))
    w.call("RELU", (x,), (y,))
    outputs = [
        y,
        w.constant(np.arange(-3, 3).astype(np.int8), (0.5,)),
        w.constant(np.arange(6).astype(np.uint8), (0.5,), zero_point=3),
        w.constant(np.arange(6).astype(np.float32)),
        w.constant(np.arange(6)),
        w.call("EXP", (w.constant(np.zeros(6, np.float32)),), (w.value((6,), "float32", None),)),
        w.call("ZEROS_LIKE", (x,), (w.value((1, 4)),)),
    ]
    w.outputs = (*outputs, outputs[1])  # type: ignore[attr-defined]
    return w


def test_of_tflite(tmp_path: Path) -> None:
    w = _with_constants()
    path = tmp_path / "net.tflite"
    path.write_bytes(w.file((0,), w.outputs))  # type: ignore[attr-defined]
    program = tinyet.from_tflite(path)
    results = program.outputs_for([np.zeros((1, 4), np.int8)])
    six = np.arange(6)
    wanted = [np.zeros((1, 4)), six - 3, six, six, six, np.ones(6), np.zeros((1, 4)), six - 3]
    for found, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    project = tinyet.generate(program, "mps2_an386", tmp_path / "net")
    assert project.validate(on="host").bit_exact


def test_of_tflite_by_channel_is_refused(tmp_path: Path) -> None:
    w = Writer()
    x, y = w.value((1, 4)), w.value((1, 4))
    w.call("RELU", (x,), (y,))
    by_channel, nobody = w.constant(np.ones((2, 3), np.int8), (0.5, 0.2)), w.value((1,))
    path = tmp_path / "net.tflite"
    path.write_bytes(w.file((x,), (y, by_channel, nobody)))
    with pytest.raises(UnsupportedShape, match=r"output 1 .*per channel(.|\n)*output 2 .*nobody computes"):
        tinyet.from_tflite(path)


def test_of_a_tflite_variable(tmp_path: Path) -> None:
    """A variable that every run sets to the same numbers, behind a run that finds others there."""
    main, once = Writer(), Writer()
    for w in (main, once):
        w.call("VAR_HANDLE", (), (w.value((), "resource", None),), VarHandleOptions("", "kept"))
    once.call("ASSIGN_VARIABLE", (0, once.constant(np.full((1, 4), 9, np.int8), (1.0,))), ())
    main.call("CALL_ONCE", (), (), CallOnceOptions(1))
    x = main.value((1, 4))
    found = main.call("READ_VARIABLE", (0,), (main.value((1, 4)),))
    y = main.call("RELU", (found,), (main.value((1, 4)),))
    main.call("ASSIGN_VARIABLE", (0, main.constant(np.full((1, 4), 5, np.int8), (1.0,))), ())
    path = tmp_path / "net.tflite"
    both = (main.model((x,), (y,)).subgraphs[0], once.model((), ()).subgraphs[0])
    path.write_bytes(write_model(Model(both)))
    session = tinyet.from_tflite(path).session()
    given = np.zeros((1, 4), np.int8)
    assert [int(np.asarray(session.run(given))[0, 0]) for _ in range(3)] == [9, 5, 5]


def test_of_onnx(tmp_path: Path) -> None:
    models = pytest.importorskip("tests.importers.onnx_models")
    onnx, helper, node = models.onnx, models.helper, models.node
    constants = {
        "s": np.array(0.1, np.float32),
        "z": np.array(3, np.int8),
        "anchors": np.linspace(-1, 1, 6).astype(np.float32),
        "counts": np.arange(6),
        "two": np.array(2.0, np.float32),
        "weights": np.arange(-3, 3).astype(np.int8),
    }
    nodes = [
        node("DequantizeLinear", ["a", "s", "z"], "f"),
        node("Relu", ["f"], "g"),
        node("QuantizeLinear", ["g", "s", "z"], "y"),
        node("Mul", ["anchors", "two"], "twice"),
        node("DequantizeLinear", ["weights", "s", "z"], "real"),
        node("QuantizeLinear", ["anchors", "s", "z"], "steps"),
    ]
    kinds = {
        "y": "INT8",
        "anchors": "FLOAT",
        "counts": "INT64",
        "twice": "FLOAT",
        "real": "FLOAT",
        "steps": "INT8",
    }
    outputs = [
        helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), None)
        for name, kind in kinds.items()
    ]
    given = [helper.make_tensor_value_info("a", onnx.TensorProto.INT8, [4])]
    held = [onnx.numpy_helper.from_array(v, k) for k, v in constants.items()]
    proto = helper.make_model(
        helper.make_graph(nodes, "net", given, outputs, held),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    path = models.saved(proto, tmp_path)
    program = tinyet.from_onnx(path, exact=True)
    a = np.array([-9, 2, 3, 100], np.int8)
    wanted = run_onnxruntime(path, {"a": a})
    for found, expected in zip(program.outputs_for([a]), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)

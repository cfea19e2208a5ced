# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN in quantized ONNX models: in float32 between what is quantized, as ONNX Runtime has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.onnx_models import Float32, helper, model, node, onnx, quantized, saved
from tinyet.errors import UnsupportedShape
from tinyet.importers.onnx.oracle import run_onnxruntime
from tinyet.ir import Array, DType
from tinyet.opening.files import from_onnx

pytest.importorskip("onnxruntime")

STEPS, INPUTS, UNITS = 7, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def normal(rng: np.random.Generator, *shape: int) -> Float32:
    return (rng.standard_normal(shape) * 0.5).astype(np.float32)


def net(op: str, direction: str, outputs: tuple[str, ...], first: bool = False, **attributes: Any) -> Any:
    """The layer, and a fully connected one behind the first of its outputs."""
    rng, directions = np.random.default_rng(4), 1 + (direction == "bidirectional")
    rows = GATES[op] * UNITS
    constants: dict[str, Array] = {
        "w": normal(rng, directions, rows, INPUTS),
        "r": normal(rng, directions, rows, UNITS),
        "b": normal(rng, directions, 2 * rows),
        "v": normal(rng, UNITS, 4),
    }
    reads = ["x", "w", "r", "b"]
    if first:
        constants["h0"] = normal(rng, directions, 1, UNITS)
        reads += ["", "h0"]
    if op == "GRU":
        attributes.setdefault("linear_before_reset", 1)
    made = helper.make_node(
        op, reads, outputs, name="net/rnn", hidden_size=UNITS, direction=direction, **attributes
    )
    last = next(name for name in outputs if name)
    return model([made, node("MatMul", [last, "v"], "out")], {"x": (STEPS, 1, INPUTS)}, constants, ("out",))


CASES = {
    "LSTM": ("LSTM", "forward", ("y", "h", "c"), False, {}),
    "LSTM both ways": ("LSTM", "bidirectional", ("y",), False, {}),
    "LSTM's last cell": ("LSTM", "reverse", ("", "", "c"), True, {}),
    "GRU": ("GRU", "forward", ("", "h"), True, {}),
    "GRU both ways": ("GRU", "bidirectional", ("y", "h"), False, {}),
    "RNN backwards": ("RNN", "reverse", ("y",), False, {}),
    "RNN of relu": ("RNN", "forward", ("", "h"), False, {"activations": ["Relu"]}),
}


@pytest.mark.parametrize("name", CASES)
def test_beside_onnxruntime(name: str, tmp_path: Path) -> None:
    """Of floats, last bits are others: what is quantized behind them can differ by a step."""
    op, direction, outputs, first, attributes = CASES[name]
    rng = np.random.default_rng(6)
    samples = [{"x": normal(rng, STEPS, 1, INPUTS)} for _ in range(4)]
    proto = quantized(net(op, direction, outputs, first, **attributes), samples)
    program = from_onnx(saved(proto, tmp_path), float_io=True)
    layers = [n for n in program.graph.nodes if n.op == op.lower()]
    assert len(layers) == 1 + (direction == "bidirectional")
    assert {n.origins[0].place for n in layers} == {"net.rnn (net.onnx:1)"}
    assert any(f"{op} is computed in float32" in note.text for note in program.notes)
    (behind,) = [n for n in program.graph.nodes if n.op == "linear"]
    assert behind.output.dtype is DType.INT8
    for sample in samples:
        (wanted,) = run_onnxruntime(proto.SerializeToString(), sample)
        found = np.asarray(program.run(sample["x"]), np.float32)
        assert found.shape == wanted.shape
        assert np.abs(found - np.asarray(wanted, np.float32)).max() <= 1.01 * behind.output.type.scale
        assert np.abs(wanted).max() > 20 * behind.output.type.scale


def test_what_is_exact_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    proto = quantized(net("LSTM", "forward", ("y",)), [{"x": normal(rng, STEPS, 1, INPUTS)}])
    with pytest.raises(UnsupportedShape, match="LSTM is computed in float32") as refused:
        from_onnx(saved(proto, tmp_path), exact=True)
    assert "calibration" in str(refused.value)


@pytest.mark.parametrize(
    ("op", "attributes", "said"),
    [
        ("GRU", {"linear_before_reset": 0}, "resets before its matrix"),
        ("LSTM", {"clip": 1.0}, "clips"),
        ("LSTM", {"activations": ["Sigmoid", "Relu", "Tanh"]}, "activations sigmoid, relu, tanh"),
        ("RNN", {"layout": 1}, "layout 1"),
    ],
)
def test_what_the_layers_have_not(op: str, attributes: dict[str, Any], said: str, tmp_path: Path) -> None:
    proto = net(op, "forward", ("y",), **attributes)
    held = [("s", np.array(0.1, np.float32)), ("z", np.array(0, np.int8))]
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in held)
    proto.graph.node.extend([node("QuantizeLinear", ["out", "s", "z"], "q")])
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("q", onnx.TensorProto.INT8, None))
    with pytest.raises(UnsupportedShape, match=said):
        from_onnx(saved(proto, tmp_path))

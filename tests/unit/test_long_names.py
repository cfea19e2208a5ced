# SPDX-License-Identifier: Apache-2.0
"""Names of files and modules, however long and whatever is in them: what is imported can be loaded again, and an error
has no lines but its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests.tflite_files import Writer
from tinyet.errors import Complaints, ModelError, RefusedError, UnsupportedOp
from tinyet.ir import Note, Origin
from tinyet.ir.limits import MAX_TEXT
from tinyet.program import Program, from_bytes
from tinyet.tflite.options import AddOptions

LONG = "a b\n  at: /etc/passwd:1 \ud800/" * 300


def again(program: Program) -> Program:
    loaded = from_bytes(program.data, "net.tet")
    assert loaded.data == program.data
    return loaded


def test_texts_are_cut_and_stay_apart() -> None:
    one, other = Origin(key=LONG + "1", text="x = 1"), Origin(key=LONG + "2")
    assert one.key != other.key
    assert len(one.key) == MAX_TEXT
    assert "\ud800" not in one.key + Note(LONG).text
    assert one.text == "x = 1"
    assert Origin(key=one.key).key == one.key


def test_of_tflite(tmp_path: Path) -> None:
    w = Writer()
    x, y = w.value((1, 4)), w.value((1, 4))
    w.call("ADD", (x, x), (y,), AddOptions())
    name = LONG.replace("\ud800", "")
    w.tensors = [replace(t, name=name + str(i)) for i, t in enumerate(w.tensors)]
    path = tmp_path / "net.tflite"
    path.write_bytes(w.file((x,), (y,)))
    again(tinyet.from_tflite(path))
    w.call("LSTM", (y,), (w.value((1, 4)),))
    path.write_bytes(w.file((x,), (y,)))
    with pytest.raises(UnsupportedOp) as caught:
        tinyet.from_tflite(path)
    assert "\n  at: /etc" not in str(caught.value)


def test_of_onnx(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    name = LONG.replace("\ud800", "")

    def given(dtype: int) -> bytes:
        x = onnx.helper.make_tensor_value_info(name, dtype, [4])
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT8, [4])
        held = [
            onnx.numpy_helper.from_array(np.array(0.5, np.float32), "s"),
            onnx.numpy_helper.from_array(np.array(3, np.int8), "z"),
        ]
        nodes = [
            onnx.helper.make_node("DequantizeLinear", [name, "s", "z"], [name + "f"], name=name),
            onnx.helper.make_node("Relu", [name + "f"], [name + "r"], name=name),
            onnx.helper.make_node("QuantizeLinear", [name + "r", "s", "z"], ["y"], name=name),
        ]
        graph = onnx.helper.make_graph(nodes, "net", [x], [y], held)
        opset = [onnx.helper.make_opsetid("", 17)]
        return bytes(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())

    path = tmp_path / "net.onnx"
    path.write_bytes(given(onnx.TensorProto.INT8))
    again(tinyet.from_onnx(path))
    path.write_bytes(given(onnx.TensorProto.STRING))
    with pytest.raises(ModelError) as caught:
        tinyet.from_onnx(path)
    assert "\n  at: /etc" not in str(caught.value)


def test_of_torch() -> None:
    torch = pytest.importorskip("torch")
    name = "layer" * 1000
    net = torch.nn.Sequential()
    net.add_module(name, torch.nn.Linear(4, 4))
    net.add_module("at\n  at: /etc/passwd:1", torch.nn.ReLU())
    again(tinyet.compile(net.eval(), (torch.zeros(1, 4),)))


def test_complaints_are_lines_of_their_own() -> None:
    complaints = Complaints("net.tflite")
    complaints.add("node\n  at: here", RefusedError("reads 'x\n  at: there'"))
    with pytest.raises(ModelError) as caught:
        complaints.raise_any()
    assert [line for line in str(caught.value).split("\n") if "at:" in line][-1] == "  at: net.tflite"
    assert len(str(caught.value).split("\n")) == 3

# SPDX-License-Identifier: Apache-2.0
"""Float .tflite files, quantized here: with calibration data, with exceptions, by training; files of int8 and float16
weights become int8 as a whole."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tinyet
from tests.importers.tflite.test_state import add_lstm, add_svdf
from tests.tflite_files import Writer, small_cnn
from tests.to_module.float_files import Weights, network
from tinyet import TinyetQuantizer, int16_config
from tinyet.errors import UnsupportedShape, UsageError
from tinyet.importers.tflite.floats import with_float_weights
from tinyet.ir import DType
from tinyet.ir.budget import MAX_MADE_BYTES
from tinyet.opening.float_models import float_model
from tinyet.oracles.tflite import run_litert
from tinyet.tflite import Model, Quantization, TensorInfo
from tinyet.tflite.options import FullyConnectedOptions
from tinyet.tflite.write import write_model

torch = pytest.importorskip("torch")

IMAGES = np.random.default_rng(1).normal(0, 1, (48, 16, 16, 3)).astype(np.float32)
BATCHES = list(torch.from_numpy(IMAGES).split(1))


def written(folder: Path, model: Model, name: str = "net") -> Path:
    path = folder / f"{name}.tflite"
    path.write_bytes(write_model(model))
    return path


@pytest.mark.parametrize("weights", ["float32", "int8", "float16"])
def test_a_float_file_becomes_integers(weights: Weights, tmp_path: Path) -> None:
    """No image is turned around, no padding stays, and every layer has the file's name."""
    path = written(tmp_path, network(weights))
    program = tinyet.from_tflite(path, BATCHES)
    layers = ["conv2d", "conv2d", "conv2d", "add", "max_pool2d", "mean", "linear", "softmax"]
    assert [node.op for node in program.graph.nodes] == layers
    assert {tensor.dtype for node in program.graph.nodes for tensor in node.outputs} == {DType.INT8}
    places = [node.origin.place for node in program.graph.nodes if node.origin is not None]
    names = ["stem", "block.depthwise", "block.pointwise", "skip", "pool", "mean", "head", "classes"]
    first = 0 if weights != "float16" else 1
    assert [place.partition(" ")[0] for place in places] == names
    assert places[0] == f"stem (net.tflite:{first})"
    assert [tensor.name for tensor in program.inputs] == ["image"]
    plain = tinyet.from_tflite(path)
    floats, integers = (
        each.evaluate(IMAGES, as_float=True).outputs[0].astype(np.float32) for each in (plain, program)
    )
    assert np.abs(floats - integers).max() < 0.05
    assert (floats.argmax(-1) == integers.argmax(-1)).mean() > 0.85


def test_all_entrances_give_the_same_program(tmp_path: Path) -> None:
    path = written(tmp_path, network())
    np.savez(tmp_path / "calib.npz", image=IMAGES)
    programs = [
        tinyet.from_tflite(path, BATCHES),
        tinyet.from_tflite(str(path), tmp_path / "calib.npz"),
        tinyet.open(path, calibration=BATCHES),
        tinyet.open(path, calibration=str(tmp_path / "calib.npz")),
    ]
    for number, program in enumerate(programs):
        assert isinstance(program, tinyet.Program)
        program.save(tmp_path / f"{number}.tet")
    assert len({(tmp_path / f"{number}.tet").read_bytes() for number in range(len(programs))}) == 1


def test_a_report_of_a_file_names_its_layers(tmp_path: Path) -> None:
    """The same findings as of the module that the file becomes."""
    path = written(tmp_path, network())
    np.savez(tmp_path / "calib.npz", image=IMAGES)
    found = tinyet.diagnose(path, calibration=tmp_path / "calib.npz", worst=1)
    made = float_model(path)
    again = tinyet.diagnose(made.module, made.examples, calibration=BATCHES, worst=1)
    layers = [layer.module for layer in found.sensitivity.worst]
    assert {"stem", "block.depthwise", "head"} <= set(layers)
    assert layers == [layer.module for layer in again.sensitivity.worst]
    assert found.quality.healthy is again.quality.healthy
    with pytest.raises(UsageError, match="its own example inputs"):
        tinyet.diagnose(path, made.examples, calibration=BATCHES)


def test_options_of_compile(tmp_path: Path) -> None:
    """A layer of another type by the file's name, and float inputs and outputs."""
    path = written(tmp_path, network())
    quantizer = TinyetQuantizer().set_module_name("block.pointwise", int16_config())
    program = tinyet.from_tflite(path, BATCHES, quantizer=quantizer, float_io=True, equalize=True)
    layers = {
        node.origin.module: node.output.dtype
        for node in program.graph.nodes
        if node.op == "conv2d" and node.origin is not None
    }
    kinds = {"stem": DType.INT8, "block.depthwise": DType.INT8, "block.pointwise": DType.INT16}
    assert layers == kinds
    assert program.inputs[0].dtype is program.outputs[0].dtype is DType.FLOAT32


def test_training(tmp_path: Path) -> None:
    """The weights are the file's layers', in batches of any size, and the program has the file's names."""
    path = written(tmp_path, network())
    np.savez(tmp_path / "calib.npz", image=IMAGES)
    session = tinyet.prepare_training(path, batch_size=4, calibration=tmp_path / "calib.npz")
    names = {name.removeprefix("network.") for name, _ in session.named_parameters()}
    assert {"stem.weight", "block.depthwise.bias", "head.weight"} <= names
    optimizer = torch.optim.SGD(session.parameters(), lr=0.5)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = -session(torch.from_numpy(IMAGES[:4]))[:, 2].log().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    program = tinyet.compile(session.convert())
    assert str(program.graph.nodes[0].origin).startswith("stem (net.tflite:0)")
    assert [tensor.name for tensor in program.inputs] == ["image"]


def test_states_are_carried(tmp_path: Path) -> None:
    """Of an SVDF and an LSTM; the module's answers are compared with the graph's, run after run, when it is made."""
    rng, w = np.random.default_rng(3), Writer()
    ends = [add_svdf(w, rng, "float32", 2, 1), add_lstm(w, rng, "float32", inner=False)]
    inputs, outputs = zip(*ends, strict=True)
    path = written(tmp_path, w.model(inputs, outputs))
    model = float_model(path)
    assert len(list(model.module.named_buffers())) >= 3
    batches = [tuple(torch.randn(x.shape) for x in model.examples) for _ in range(30)]
    program = tinyet.from_tflite(path, batches)
    assert len(program.states) == len(tinyet.from_tflite(path).states)
    assert "lstm" in {node.op for node in program.graph.nodes}
    assert program.answers is not None
    assert program.answers.healthy


def test_beside_the_original(tmp_path: Path) -> None:
    """LiteRT's own answers."""
    pytest.importorskip("ai_edge_litert")
    path = written(tmp_path, network())
    module, image = float_model(path).module, IMAGES[:1]
    (wanted,) = run_litert(path, [[image]])[0]
    with torch.no_grad():
        found = module(torch.from_numpy(image)).numpy()
    np.testing.assert_allclose(found, wanted.astype(np.float32), rtol=1e-4, atol=1e-6)


def test_a_float_onnx_file_is_as_the_module_that_it_came_from(tmp_path: Path) -> None:
    """The same integers as of the PyTorch module; and it is trained under the file's names."""
    pytest.importorskip("onnx")
    nn = torch.nn
    with torch.random.fork_rng():
        torch.manual_seed(5)
        layers = nn.Conv2d(3, 6, 3, 2, 1), nn.ReLU(), nn.Conv2d(6, 6, 3, 1, 1, groups=6), nn.ReLU6()
        net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)).eval()
    images = [batch.permute(0, 3, 1, 2).contiguous() for batch in BATCHES]
    path = tmp_path / "net.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, (images[0],), str(path), dynamo=False, opset_version=17)
    ours = tinyet.from_onnx(path, images)
    wanted = tinyet.compile(net, (images[0],), calibration=images)
    assert [node.op for node in ours.graph.nodes] == [node.op for node in wanted.graph.nodes]
    stacked = torch.cat(images).numpy()
    assert np.array_equal(ours.evaluate(stacked).outputs[0], wanted.evaluate(stacked).outputs[0])
    session = tinyet.prepare_training(path, batch_size=4)
    session(torch.cat(images[:4])).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in session.parameters())
    places = [node.origin.file for node in tinyet.compile(session.convert()).graph.nodes if node.origin]
    assert set(places) == {"net.onnx"}


def test_integers_of_its_own_are_not_quantized_again(tmp_path: Path) -> None:
    path = written(tmp_path, small_cnn(), "small")
    with pytest.raises(UsageError, match="calibration: the model is quantized already"):
        tinyet.from_tflite(path, BATCHES)
    with pytest.raises(UsageError, match="quantized already"):
        tinyet.open(path, calibration=BATCHES)
    with pytest.raises(UsageError, match="quantized already"):
        tinyet.prepare_training(path)
    with pytest.raises(UsageError, match="prune, float_io: the model is quantized"):
        tinyet.from_tflite(path, float_io=True, prune=False)


def test_no_runtime_decides_integers_that_are_made_here(tmp_path: Path) -> None:
    path = written(tmp_path, network())
    with pytest.raises(UsageError, match="runtime"):
        tinyet.from_tflite(path, BATCHES, runtime="litert")
    with pytest.raises(UsageError, match="runtime"):
        tinyet.open(path, calibration=BATCHES, runtime="litert")
    with pytest.raises(UsageError, match="its own example inputs"):
        tinyet.prepare_training(path, (BATCHES[0],))


def test_weights_that_share_their_bytes_are_bounded() -> None:
    """A small file asks for as many floats as it likes."""
    data, quant = bytes(1 << 20), Quantization((0.1,), (0,))
    count = MAX_MADE_BYTES // (4 << 20) + 12
    shared = tuple(TensorInfo(f"w{i}", (1, 1 << 20), "int8", data, quant) for i in range(count))
    w = Writer(list(shared))
    x = w.value((1, 1 << 20), "float32", None)
    outputs = [
        w.call("FULLY_CONNECTED", (x, i, -1), (w.value((1, 1), "float32", None),), FullyConnectedOptions())
        for i in range(count)
    ]
    with pytest.raises(UnsupportedShape, match="bytes of constants"):
        with_float_weights(w.model((x,), tuple(outputs)), "a.tflite")

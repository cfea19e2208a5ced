# SPDX-License-Identifier: Apache-2.0
"""Activations that are quantized at run time, from torch to the board."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx, nn
from torch.export import ExportedProgram

import tinyet
from tests.ops.emulated import require_emulator
from tests.torch_helpers import find, pieces
from tinyet.compiler import float_layers
from tinyet.errors import UnsupportedOp, UnsupportedShape
from tinyet.fx.capture import capture
from tinyet.fx.exact import Exact
from tinyet.importers.torch.importer import import_program
from tinyet.ir import DType, Graph
from tinyet.opening import warnings_of
from tinyet.ops.dynamic_conv2d import DynamicConv2d
from tinyet.ops.dynamic_linear import DynamicLinear
from tinyet.program import Program, load
from tinyet.quantization.config import QuantConfig, int8_config
from tinyet.quantization.quantize import quantize
from tinyet.quantization.quantizer import TinyetQuantizer

pytest.importorskip("torchao")
from torchao.quantization.pt2e.observer import PerChannelMinMaxObserver, PlaceholderObserver
from torchao.quantization.pt2e.quantizer.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
)

aten = torch.ops.aten
ACTIVATION = QuantizationSpec(
    dtype=torch.int8,
    observer_or_fake_quant_ctr=PlaceholderObserver.with_args(eps=2**-12),
    quant_min=-128,
    quant_max=127,
    qscheme=torch.per_tensor_affine,
    is_dynamic=True,
)
WEIGHT = QuantizationSpec(torch.int8, PerChannelMinMaxObserver, -127, 127, torch.per_channel_symmetric, 0)
DYNAMIC = QuantConfig(ACTIVATION, WEIGHT)
DATA = torch.randn(24, 3, 10, 10, generator=torch.Generator().manual_seed(3))


class Network(nn.Module):
    """Images, sequences, a flattened image, a value that two layers read, clamps and borders."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.stem = nn.Conv2d(3, 10, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(10)
        self.depthwise = nn.Conv2d(10, 10, 3, padding=1, groups=10)
        self.grouped = nn.Conv2d(10, 6, 3, groups=2)
        self.sequence = nn.Conv1d(6, 5, 3, padding=1)
        self.dense = nn.Linear(45, 7)
        self.first = nn.Linear(7, 4)
        self.second = nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.norm(self.stem(self.pad(x))))
        x = torch.relu(self.grouped(nn.functional.relu6(self.depthwise(x)))).flatten(2)
        x = torch.relu(self.dense(self.sequence(x).flatten(1)))
        return self.first(x), torch.sigmoid(self.second(x))


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Network().eval()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture(scope="module")
def converted() -> ExportedProgram:
    return quantize(capture(network(), DATA[:1]), pieces(DATA[:2]), TinyetQuantizer(DYNAMIC))


@pytest.fixture(scope="module")
def program(converted: ExportedProgram) -> Program:
    return tinyet.compile(converted, name="net")


def ops_of(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_one_operator_a_layer(converted: ExportedProgram) -> None:
    """Range, quantize, dequantize and the layer are one node, with int8 weights and the eps of the observer."""
    assert len(find(converted, "choose_qparams")) == 6
    graph = import_program(converted, name="net")
    layers = [n for n in graph.nodes if isinstance(n.attrs, DynamicConv2d | DynamicLinear)]
    assert [n.op for n in layers] == ["dynamic_conv2d"] * 4 + ["dynamic_linear"] * 3
    assert all(n.input(1).dtype is DType.INT8 and n.input(0).dtype is DType.FLOAT32 for n in layers)
    eps = {n.attrs.eps for n in layers if isinstance(n.attrs, DynamicConv2d | DynamicLinear)}
    assert eps == {2.0**-12}
    assert not {"quantize", "dequantize", "conv2d", "linear"} & set(ops_of(graph))
    assert layers[-1].input(0) is layers[-2].input(0)


def test_passes(program: Program) -> None:
    """Clamps are fused, padding is folded, and the flattened image needs no transpose."""
    others = [op for op in ops_of(program.graph) if not op.startswith("dynamic_")]
    assert sorted(others) == ["permute", "reshape", "reshape", "unary"]
    layers = [n.attrs for n in program.graph.nodes if isinstance(n.attrs, DynamicConv2d | DynamicLinear)]
    assert [attrs.clamp for attrs in layers[:3]] == [(0.0, np.inf), (0.0, 6.0), (0.0, np.inf)]
    stem = layers[0]
    assert isinstance(stem, DynamicConv2d)
    assert (stem.pad_bottom, stem.pad_right, stem.pad_top) == (1, 1, 0)
    assert all(t.dtype is DType.FLOAT32 for t in (*program.graph.inputs, *program.graph.outputs))


def test_saved_and_loaded(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / "net.tet")
    again = load(tmp_path / "net.tet")
    assert ops_of(again.graph) == ops_of(program.graph)
    assert again.hash == program.hash


class NearestTie(Exact):
    """Computes a program, and tells how near to a half, in steps, a value came that was quantized."""

    distance: float

    def run_node(self, n: fx.Node) -> Any:
        if str(n.target).endswith("quantized_decomposed.quantize_per_tensor.tensor"):
            x, scale = self.fetch_args_kwargs_from_env(n)[0][:2]
            steps = x / scale
            self.distance = min(self.distance, float((steps - steps.floor() - 0.5).abs().min()))
        return super().run_node(n)

    def near(self, x: torch.Tensor) -> tuple[float, list[torch.Tensor]]:
        """The distance and the outputs."""
        self.distance = 0.5
        with torch.no_grad():
            outputs = list(self.run(x))
        return self.distance, outputs


def test_as_torch_computes_it(program: Program, converted: ExportedProgram) -> None:
    """Within 1e-6 of the outputs' range. torch computes in float64; we add up integers, exactly, but round scales and
    products to float32: some 2**-22 of a value of at most 255 steps. A value that is nearer than that to a half may get
    another number, so samples with such a value do not count."""
    torchs, compared = NearestTie(converted.module(check_guards=False)), 0
    for x in pieces(DATA):
        distance, outputs = torchs.near(x)
        if distance > 1e-4:
            compared += 1
            for ours, theirs in zip(program.run(x.numpy()), outputs, strict=True):
                assert np.abs(ours - theirs.numpy()).max() <= 1e-6 * np.ptp(theirs.numpy())
    assert compared >= len(DATA) // 2


@pytest.mark.emulated
@pytest.mark.parametrize("on", ["host", "qemu"])
def test_bit_exact(program: Program, on: str, tmp_path: Path) -> None:
    require_emulator()
    project = tinyet.generate(program, "mps2_an386", tmp_path / "net")
    if on != "host":
        project.build()
    result = project.validate(DATA[:4].numpy(), on=on)
    assert result.bit_exact
    assert {layer.kernel for layer in result.layers} >= {
        "tinyet_dynamic_conv2d_f32",
        "tinyet_dynamic_depthwise_f32",
        "tinyet_dynamic_linear_f32",
    }


def test_error_against_the_float_model(tmp_path: Path) -> None:
    """The whole road from the module, with its float graph: every layer is told how good its numbers are."""
    program = tinyet.compile(
        network(), (DATA[:1],), calibration=pieces(DATA[:1]), quantizer=TinyetQuantizer(DYNAMIC), name="net"
    )
    result = tinyet.generate(program, "mps2_an386", tmp_path / "net").validate(DATA[:4].numpy(), on="host")
    assert result.bit_exact
    layers = [layer for layer in result.layers if layer.kernel.startswith("tinyet_dynamic")]
    ratios = [layer.sqnr_db for layer in layers if layer.sqnr_db is not None]
    assert len(layers) == 7
    assert len(ratios) >= 6  # the reshapes around a conv1d are taken for its partner
    assert min(ratios) > 30


def test_static_layers_in_front_and_behind() -> None:
    """An int8 layer's value becomes float, is quantized by its own range; what comes out is quantized statically."""
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 8), nn.Linear(8, 3)
    ).eval()
    quantizer = TinyetQuantizer(int8_config("minmax")).set_module_name("3", DYNAMIC)
    program = tinyet.compile(model, (DATA[:1],), calibration=pieces(DATA, 8), quantizer=quantizer, name="net")
    assert [op for op in ops_of(program.graph) if op not in ("permute", "reshape")] == [
        "conv2d", "dequantize", "dynamic_linear", "quantize", "linear",
    ]  # fmt: skip
    (got,) = program.run(DATA[:1].numpy())
    wanted = model(DATA[:1]).detach().numpy()
    assert np.abs(got - wanted).max() <= 0.05 * np.ptp(wanted)


def test_int4_weights_are_widened_and_say_so() -> None:
    weight = QuantizationSpec(torch.int8, PerChannelMinMaxObserver, -7, 7, torch.per_channel_symmetric, 0)
    quantizer = TinyetQuantizer(QuantConfig(ACTIVATION, weight))
    model = nn.Sequential(nn.Flatten(), nn.Linear(300, 4)).eval()
    program = tinyet.compile(
        model, (DATA[:1],), calibration=pieces(DATA[:1]), quantizer=quantizer, name="net"
    )
    (layer,) = (n for n in program.graph.nodes if isinstance(n.attrs, DynamicLinear))
    assert layer.input(1).dtype is DType.INT8
    assert any("dynamic_linear has no kernel for int4 weights" in note.text for note in program.notes)


# ---- what is refused ----


class Other(Quantizer):  # type: ignore[misc]
    """Another quantizer: one spec for the input of every call of some operators, int8 weights where there are some."""

    def __init__(self, activation: QuantizationSpec, *targets: object, weights: bool = True) -> None:
        super().__init__()
        self.activation, self.targets, self.weights = activation, targets, weights

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        for node in model.graph.nodes:
            if node.target in self.targets:
                edges: dict[Any, Any] = {node.args[0]: self.activation}
                if self.weights and len(node.args) > 1 and getattr(node.args[1], "op", "") == "get_attr":
                    edges[node.args[1]] = WEIGHT
                node.meta["quantization_annotation"] = QuantizationAnnotation(edges, None, _annotated=True)
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        pass


def changed(**fields: Any) -> QuantizationSpec:
    return dataclasses.replace(ACTIVATION, **fields)


LINEAR = aten.linear.default


@pytest.mark.parametrize(
    ("quantizer", "words"),
    [
        (
            lambda: Other(ACTIVATION, LINEAR, aten.tanh.default),
            r"aten.tanh.default: reads a value that is quantized(.|\n)*torch.tanh\(x\)(.|\n)*only linear layers",
        ),
        (
            lambda: Other(ACTIVATION, LINEAR, weights=False),
            "weights are float(.|\n)*quantize the weights to int8",
        ),
        (lambda: Other(changed(quant_min=-64, quant_max=63), LINEAR), r"torch.int8 in -64..63 at run time"),
        (
            lambda: Other(changed(qscheme=torch.per_tensor_symmetric), LINEAR),
            r"choose_qparams_symmetric.tensor: is not supported(.|\n)*torch.per_tensor_affine",
        ),
    ],
)
def test_refusals(quantizer: Callable[[], Quantizer], words: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(10, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.dense(x)
            return torch.tanh(x)

    quantized = quantize(capture(Model().eval(), DATA[:1]), pieces(DATA[:1]), quantizer())
    with pytest.raises((UnsupportedOp, UnsupportedShape), match=words):
        import_program(quantized, name="net")


def test_unsigned_numbers_are_the_same() -> None:
    """uint8 in 0..255 is int8 less 128: the same operator."""
    unsigned = changed(dtype=torch.uint8, quant_min=0, quant_max=255)
    captured = capture(nn.Linear(10, 4).eval(), DATA[:1])
    graphs = [
        import_program(quantize(captured, pieces(DATA[:1]), Other(spec, LINEAR)), name="net")
        for spec in (ACTIVATION, unsigned)
    ]
    assert ops_of(graphs[0]) == ops_of(graphs[1]) == ["dynamic_linear"]
    assert graphs[0].nodes[0].attrs == graphs[1].nodes[0].attrs


def test_reports(program: Program) -> None:
    """Dynamic layers are no float layers: only the sigmoid behind them is."""
    assert [node.op for node in float_layers(program.graph)] == ["unary"]
    (warning,) = warnings_of(program)
    assert "unary computes in float32" in warning

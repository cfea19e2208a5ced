# SPDX-License-Identifier: Apache-2.0
"""int4 weights from torch to the board: which layers keep them, and what becomes of those that cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import tinyet
from tests.ops.emulated import require_emulator
from tests.torch_helpers import pieces
from tinyet.deployment import deploy
from tinyet.fx.capture import capture
from tinyet.importers.torch.importer import import_program
from tinyet.ir import DType, Graph, Node
from tinyet.program import Program, load
from tinyet.quantization.config import QuantConfig, int8_config
from tinyet.quantization.quantize import quantize
from tinyet.quantization.quantizer import TinyetQuantizer

pytest.importorskip("torchao")
from torchao.quantization.pt2e.observer import PerChannelMinMaxObserver
from torchao.quantization.pt2e.quantizer.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
)

INT4 = QuantConfig(
    activation=int8_config("minmax").activation,
    weight=QuantizationSpec(torch.int8, PerChannelMinMaxObserver, -7, 7, torch.per_channel_symmetric, 0),
)
DATA = torch.randn(24, 3, 10, 10, generator=torch.Generator().manual_seed(3))


class Network(nn.Module):
    """Each kind of convolution that has a kernel of its own, a batch norm, a padded border, a flattened image."""

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.stem = nn.Conv2d(3, 10, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(10)
        self.depthwise = nn.Conv2d(10, 10, 3, padding=1, groups=10)
        self.point = nn.Conv2d(10, 12, 1)
        self.grouped = nn.Conv2d(12, 6, 3, groups=3)
        self.sequence = nn.Conv1d(6, 5, 3, padding=1)
        self.dense = nn.Linear(45, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(self.pad(x))))
        x = torch.relu(self.point(torch.relu(self.depthwise(x))))
        x = torch.relu(self.grouped(x)).flatten(2)
        x = self.sequence(x).flatten(1)
        out: torch.Tensor = self.dense(x)
        return out


class Unusual(nn.Module):
    """Weights of operators that have no kernel for int4."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 4, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.up(x)
        return out


def compiled(model: nn.Module, config: QuantConfig, name: str = "net") -> Program:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.3)
    quantizer = TinyetQuantizer(config)
    return tinyet.compile(
        model.eval(), (DATA[:1],), calibration=pieces(DATA, 8), quantizer=quantizer, name=name
    )


@pytest.fixture(scope="module")
def program() -> Program:
    return compiled(Network(), INT4)


def weights_of(graph: Graph) -> dict[str, DType]:
    """Operator and kernel shape → type of the weights, for all layers that have some."""
    layers: list[Node] = [
        n for n in graph.nodes if n.optional_input(1) is not None and n.input(1).is_constant
    ]
    return {f"{n.op} {'x'.join(map(str, n.input(1).shape))}": n.input(1).dtype for n in layers}


def test_imported_as_int4() -> None:
    """Already before any pass, behind Dequantize; biases and activations are not touched."""
    captured = capture(Network().eval(), DATA[:1])
    graph = import_program(quantize(captured, pieces(DATA, 8), TinyetQuantizer(INT4)), name="net")
    narrow = [t for t in graph.constants if t.dtype is DType.INT4]
    assert len(narrow) == 6
    assert all(t.type.quant is not None and t.type.quant.axis == 0 for t in narrow)
    assert all(t.array.min() >= -7 and t.array.max() <= 7 for t in narrow)


def test_passes_keep_int4(program: Program) -> None:
    """Batch norm and padding folded, a flattened image's columns reordered: the weights are int4 ones still."""
    assert weights_of(program.graph) == {
        "conv2d 10x3x3x3": DType.INT4,
        "conv2d 10x3x3x1": DType.INT4,
        "conv2d 12x1x1x10": DType.INT4,
        "conv2d 6x3x3x4": DType.INT4,
        "conv2d 5x1x3x6": DType.INT4,
        "linear 7x45": DType.INT4,
    }
    others = [n for n in program.graph.nodes if n.op not in ("conv2d", "linear", "reshape")]
    assert [(n.op, n.input(0)) for n in others] == [("permute", program.graph.inputs[0])]


def test_saved_and_loaded(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / "net.tet")
    again = load(tmp_path / "net.tet")
    assert weights_of(again.graph) == weights_of(program.graph)
    assert again.hash == program.hash


def test_half_the_flash(program: Program) -> None:
    """Against the same network in int8: what is printed is smaller by about half of the weights."""
    wide = compiled(Network(), int8_config("minmax"))
    target = tinyet.load_board("mps2_an386").target
    narrow_bytes, wide_bytes = (deploy(p.graph, target, ()).constant_bytes for p in (program, wide))
    weights = sum(t.type.bytes for t in wide.graph.constants if t.dtype is DType.INT8)
    assert wide_bytes - narrow_bytes > 0.45 * weights


# What takes flash for speed has int4 weights as it has int8 ones: these keep them as they are.
NARROW = {
    "stem": "tinyet_conv2d_s8_w4_2x4_dsp",
    "point": "tinyet_conv2d_s8_w4_2x4_dsp",
    "depthwise": "tinyet_depthwise_s8_chw_3x3_dsp",
    "dense": "tinyet_linear_s8_w4_1x4_dsp",
}
PORTABLE = {"tinyet_conv2d_s8_w4", "tinyet_conv2d_1x1_s8_w4", "tinyet_depthwise_s8_w4", "tinyet_linear_s8_w4"}


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("on", "delegates", "pins", "expected"),
    [
        ("host", "portable", {}, PORTABLE),
        ("qemu", None, NARROW, set(NARROW.values())),
        (
            "qemu",
            None,
            {"dense": "tinyet_linear_s8_w16_1x4_dsp"},
            {"tinyet_conv2d_s8_w16_im2col_2x2_dsp", "tinyet_linear_s8_w16_1x4_dsp"},
        ),
    ],
    ids=["portable-host", "narrow-qemu", "speed-qemu"],
)
def test_bit_exact(
    program: Program,
    on: str,
    delegates: str | None,
    pins: dict[str, str],
    expected: set[str],
    tmp_path: Path,
) -> None:
    require_emulator()
    project = tinyet.generate(
        program, "mps2_an386", tmp_path / "net", delegates=delegates, optimize="speed", pins=pins
    )
    if on != "host":
        project.build()
    result = project.validate(DATA[:4].numpy(), on=on)
    assert result.bit_exact
    assert {layer.kernel for layer in result.layers} >= expected


class Other(Quantizer):  # type: ignore[misc]
    """Another quantizer: int4 weights for every call of one operator, whether or not tinyet has a kernel for it."""

    def __init__(self, target: object, axis: int, *, quantize_output: bool) -> None:
        super().__init__()
        self.target, self.axis, self.quantize_output = target, axis, quantize_output

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        for node in model.graph.nodes:
            if node.target is self.target:
                node.meta["quantization_annotation"] = QuantizationAnnotation(
                    {node.args[0]: INT4.activation, node.args[1]: replace(INT4.weight, ch_axis=self.axis)},
                    INT4.activation if self.quantize_output else None,
                    _annotated=True,
                )
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        pass


def test_transposed_convolutions_are_widened_and_say_so() -> None:
    """TinyetQuantizer gives them int8; another quantizer may not."""
    captured = capture(Unusual().eval(), DATA[:1])
    other = Other(torch.ops.aten.conv_transpose2d.input, 1, quantize_output=True)
    program = tinyet.compile(quantize(captured, pieces(DATA, 8), other), name="net")
    assert weights_of(program.graph) == {"conv_transpose2d 4x2x2x3": DType.INT8}
    (note,) = [n for n in program.notes if "int4" in n.text]
    assert note.text == "conv_transpose2d has no kernel for int4 weights: up_weight is held in int8, 48 bytes"
    assert note.origin is not None
    assert "self.up(x)" in note.origin.text


def test_int16_activations_widen_int4_weights() -> None:
    spec = QuantizationSpec(
        torch.int16,
        int8_config("minmax").activation.observer_or_fake_quant_ctr,
        -32768,
        32767,
        torch.per_tensor_symmetric,
    )
    program = compiled(Network(), QuantConfig(spec, INT4.weight))
    assert set(weights_of(program.graph).values()) == {DType.INT8}
    notes = [n.text for n in program.notes if "no kernel for int4 weights" in n.text]
    assert len(notes) == 6


def test_floats_fold_their_int4_weights() -> None:
    """A layer whose output nobody quantized stays float, and so do its weights: no Dequantize is left at run time."""
    captured = capture(nn.Sequential(nn.Flatten(), nn.Linear(300, 60)).eval(), DATA[:1])
    other = Other(torch.ops.aten.linear.default, 0, quantize_output=False)
    program = tinyet.compile(quantize(captured, pieces(DATA, 8), other), name="net")
    assert weights_of(program.graph) == {"linear 60x300": DType.FLOAT32}
    assert not any(t.dtype is DType.INT4 for t in program.graph.constants)

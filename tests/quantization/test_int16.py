# SPDX-License-Identifier: Apache-2.0
"""int16 activations from torch to the board: everything in integers, bit for bit, and far less noise than int8."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import tinyet
from tests.ops.emulated import require_emulator
from tests.torch_helpers import pieces
from tinyet.ir import DType, QuantParams
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.quantize import Quantize
from tinyet.ops.requantize import Requantize
from tinyet.program import Program, load
from tinyet.quantization.config import QuantConfig, int8_config
from tinyet.quantization.quantizer import TinyetQuantizer

pytest.importorskip("torchao")
from torchao.quantization.pt2e.observer import MinMaxObserver
from torchao.quantization.pt2e.quantizer.quantizer import QuantizationSpec

INT16 = QuantConfig(
    activation=QuantizationSpec(torch.int16, MinMaxObserver, -32768, 32767, torch.per_tensor_symmetric),
    weight=int8_config("minmax").weight,
)
DATA = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(4))


class Network(nn.Module):
    """The operators of small networks: two kinds of convolution, a residual, pools, activations, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.slope = nn.PReLU()
        self.dense = nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        y = self.point(functional.relu6(self.depthwise(x)))
        x = functional.max_pool2d(x + y, 2)
        y = self.slope(functional.avg_pool2d(self.up(x), 2))
        z = torch.cat([torch.tanh(y), x[:, :4] * torch.sigmoid(y), functional.gelu(y) - 0.5], 1)
        return torch.softmax(self.dense(z.mean((2, 3))), 1)


def compiled(config: QuantConfig, **options: Any) -> Program:
    model = Network().eval()
    with torch.random.fork_rng():
        torch.manual_seed(6)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.3)
    quantizer = TinyetQuantizer(config)
    batches = pieces(DATA)
    return tinyet.compile(
        model, (batches[0],), calibration=batches, quantizer=quantizer, name="net", **options
    )


@pytest.fixture(scope="module")
def program() -> Program:
    return compiled(INT16)


def test_everything_is_in_integers(program: Program, tmp_path: Path) -> None:
    assert not [str(note) for note in program.notes]
    kinds = {t.dtype for node in program.graph.nodes for t in node.outputs}
    assert kinds == {DType.INT16}
    biases = {c.dtype for c in program.graph.constants if c.name.endswith("bias_q")}
    assert biases == {DType.INT64}
    assert not any(isinstance(n.attrs, Quantize | Dequantize) for n in program.graph.nodes)
    for tensor in (*program.inputs, *program.graph.outputs):
        assert isinstance(tensor.type.quant, QuantParams)
        assert tensor.type.quant.one_zero_point == 0
    # The file holds 64-bit biases, too.
    program.save(tmp_path / "net.tet")
    assert load(tmp_path / "net.tet").hash == program.hash


def test_bit_for_bit_on_the_host(program: Program, tmp_path: Path) -> None:
    project = tinyet.generate(program, "mps2_an386", tmp_path / "net")
    result = project.validate(DATA.numpy(), on="host")
    assert result.bit_exact
    types = {
        t for layer in result.layers for t in re.findall("_([sx][0-9]+|concat|copy)(?=_|$)", layer.kernel)
    }
    assert types <= {"s16", "x16", "concat", "copy"}
    assert project.validate(on="host").bit_exact
    noise = [layer.sqnr_db for layer in result.layers if layer.sqnr_db is not None]
    eight = tinyet.generate(compiled(int8_config("minmax")), "mps2_an386", tmp_path / "eight")
    coarse = [x.sqnr_db for x in eight.validate(DATA.numpy(), on="host").layers if x.sqnr_db is not None]
    assert noise
    assert coarse
    # Weights have eight bits in both; what activations lose is what differs.
    assert noise[-1] > coarse[-1] + 6


@pytest.mark.emulated
@pytest.mark.parametrize("board", ["mps2_an386", "nrf51_dk"])
def test_bit_for_bit_on_boards(program: Program, board: str, tmp_path: Path) -> None:
    require_emulator()
    project = tinyet.generate(program, board, tmp_path / "net")
    project.build()
    assert project.validate(DATA.numpy(), max_samples=3).bit_exact


def test_layers_of_both_kinds() -> None:
    """int16 in the depthwise layer only: values are requantized on the way in and out, nothing becomes float."""
    model = Network().eval()
    quantizer = TinyetQuantizer(int8_config("minmax")).set_module_name("depthwise", INT16)
    batches = pieces(DATA)
    mixed = tinyet.compile(model, (batches[0],), calibration=batches, quantizer=quantizer, name="mixed")
    kinds = {t.dtype for node in mixed.graph.nodes for t in node.outputs}
    assert kinds == {DType.INT8, DType.INT16}
    assert not any(isinstance(n.attrs, Quantize | Dequantize) for n in mixed.graph.nodes)
    assert any(isinstance(n.attrs, Requantize) for n in mixed.graph.nodes)


def test_float_inputs_and_outputs() -> None:
    program = compiled(INT16, float_io=True)
    assert {t.dtype for t in (*program.inputs, *program.graph.outputs)} == {DType.FLOAT32}
    exact = Network().eval()
    assert np.isfinite(DATA.numpy()).all()
    assert sum(isinstance(n.attrs, Quantize) for n in program.graph.nodes) == 1
    assert exact(DATA[:1]).shape == program.graph.outputs[0].shape

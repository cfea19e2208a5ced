# SPDX-License-Identifier: Apache-2.0
"""Models with layers of several types, from the module to generated C: bit for bit the host reference, and near the
float model; and the examples of docs/quantization.md, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_helpers import pieces
from tinyet import TinyetQuantizer, dynamic_config, generate, int4_config, int8_config, int16_config
from tinyet import compile as compile_model
from tinyet.ir import DType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quantization.md"
IMAGES = torch.rand(40, 2, 8, 8, generator=torch.Generator().manual_seed(51))


class Net(nn.Module):
    """A stem, two branches that are joined, a sum over a skip, pooling, and a head behind softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.left = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.right = nn.Conv2d(6, 4, 1)
        self.skip = nn.Conv2d(10, 10, 1)
        self.head = nn.Linear(10 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = torch.cat([F.relu(self.left(x)), self.right(x)], 1)
        x = F.relu(x + self.skip(x))
        x = F.avg_pool2d(F.max_pool2d(x, 2), 2).flatten(1)
        return F.softmax(self.head(x), -1)


def network() -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(6)
        return Net().eval()


HYBRIDS = {
    "int16 head": TinyetQuantizer().set_module_name("head", int16_config()),
    "int16 left branch": TinyetQuantizer().set_module_name("left", int16_config()),
    "int8 right branch in int16": TinyetQuantizer(int16_config()).set_module_name("right", int8_config()),
    "int4 but for the ends": TinyetQuantizer(int4_config())
    .set_module_name("features", int8_config())
    .set_module_name("head", int8_config()),
    "all of them": TinyetQuantizer()
    .set_module_name("features", int16_config())
    .set_module_name("left", int4_config())
    .set_module_name("right", None)
    .set_module_name("skip", int16_config())
    .set_module_name("head", dynamic_config()),
    "int16 products only": TinyetQuantizer().set_op("conv2d", int16_config()),
    "int16 sum": TinyetQuantizer().set_op("add", int16_config()),
}


@pytest.mark.parametrize("quantizer", HYBRIDS.values(), ids=HYBRIDS.keys())
def test_hybrid_models_are_exact_on_the_host(quantizer: TinyetQuantizer, tmp_path: Path) -> None:
    model = network()
    program = compile_model(model, (IMAGES[:1],), calibration=[IMAGES], quantizer=quantizer, name="net")
    project = generate(program, "mps2_an386", tmp_path / "net")
    result = project.validate(IMAGES[:6].numpy(), on="host")
    assert result.bit_exact, result.first_mismatch
    exact = torch.cat([model(x).detach() for x in pieces(IMAGES[:6])])
    for image, wanted in zip(IMAGES[:6], exact, strict=True):
        found = torch.from_numpy(program.run(image.numpy()))
        torch.testing.assert_close(found.reshape(-1), wanted, atol=0.06, rtol=0)


def test_no_conversion_stands_between_layers_of_one_type() -> None:
    """One requantize into the int16 head, one out of it to the int8 softmax, and none elsewhere."""
    program = compile_model(
        network(), (IMAGES[:1],), calibration=[IMAGES], quantizer=HYBRIDS["int16 head"], name="net"
    )
    changes = [
        n
        for n in program.graph.nodes
        if n.op == "requantize" and n.inputs[0] is not None and n.inputs[0].dtype is not n.outputs[0].dtype
    ]
    assert [(n.inputs[0].dtype, n.outputs[0].dtype) for n in changes if n.inputs[0] is not None] == [
        (DType.INT8, DType.INT16),
        (DType.INT16, DType.INT8),
    ]
    assert not [n for n in program.graph.nodes if n.op == "dequantize"]


def test_equalized_and_corrected_model_is_exact_on_the_host(tmp_path: Path) -> None:
    program = compile_model(
        network(), (IMAGES[:1],), calibration=[IMAGES], name="net", equalize=True, correct_bias=True
    )
    result = generate(program, "mps2_an386", tmp_path / "net").validate(IMAGES[:4].numpy(), on="host")
    assert result.bit_exact
    # The float graph is the equalized model, so every layer's error is that of quantization alone.
    figures = [layer.sqnr_db for layer in result.layers if layer.op in ("conv2d", "linear")]
    assert len(figures) == 5
    assert all(db is not None and db > 20 for db in figures)


def test_examples_of_the_page_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 6
    images = torch.rand(128, 2, 8, 8)

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
            self.head = nn.Linear(64, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.features(x).flatten(1))  # type: ignore[no-any-return]

    names = {
        "torch": torch,
        "model": Small().eval(),
        "example_inputs": (images[:1],),
        "batches": [images[:16]],
        "epochs": 3,
        "loader": [(x, torch.zeros(64, dtype=torch.long)) for x in images.split(64)],
        "loss_function": F.cross_entropy,
    }
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)

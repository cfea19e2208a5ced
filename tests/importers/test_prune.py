# SPDX-License-Identifier: Apache-2.0
"""Models pruned with torch.nn.utils.prune: masks become weights, and pruned channels cost nothing on the device."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

import tinyet
from tests.torch_helpers import mlperf_models, run
from tests.torch_helpers import ops as ops_in
from tinyet.data import prepare_inputs
from tinyet.fx.capture import capture
from tinyet.fx.prune import with_plain_weights
from tinyet.passes.prune_channels import macs_of, prune_channels, weight_bytes
from tinyet.program import Program
from tinyet.reference import run_graph

IMAGE = torch.randn(1, 3, 12, 12, generator=torch.Generator().manual_seed(3))


class Block(nn.Module):
    """A residual block; a projection in the shortcut where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.project: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.project = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.project(x) + self.bn2(self.conv2(y)))


class ResNet(nn.Module):
    """Three stages of 8, 16 and 32 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.stages = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.stages(self.stem(x)).mean((2, 3)))
        return out


def trained_resnet() -> ResNet:
    """Batch norms with statistics and offsets, as training leaves them."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = ResNet()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                assert module.running_mean is not None
                assert module.running_var is not None
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 2)
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.2)
    return model.eval()


def pruned_resnet() -> ResNet:
    """Half the channels of each layer, by their filters' L1 norm; layers whose results are added lose the same.

    The batch norms of a pruned channel are pruned too: so it is 0, not an offset that the next layer's padding sees.
    """
    model = trained_resnet()
    streams: list[list[tuple[nn.Module, nn.Module]]] = []
    first, second, third = (model.stages[i] for i in range(3))
    assert isinstance(first, Block)
    assert isinstance(second, Block)
    assert isinstance(third, Block)
    streams.append([(model.stem[0], model.stem[1]), (first.conv2, first.bn2)])
    streams += [[(block.conv1, block.bn1)] for block in (first, second, third)]
    for block in (second, third):
        assert isinstance(block.project, nn.Sequential)
        streams.append([(block.conv2, block.bn2), (block.project[0], block.project[1])])
    for (conv, norm), *others in streams:
        prune.ln_structured(conv, "weight", 0.5, n=1, dim=0)
        mask = conv.weight_mask
        assert isinstance(mask, torch.Tensor)
        alive = mask.amax((1, 2, 3))
        for other, _ in others:
            prune.custom_from_mask(other, "weight", alive.reshape(-1, 1, 1, 1).expand_as(other.weight))  # type: ignore[arg-type]
        for batch_norm in (norm, *(n for _, n in others)):
            for name in ("weight", "bias"):
                prune.custom_from_mask(batch_norm, name, alive)
            # A mean left over would be an offset again.
            assert isinstance(batch_norm.running_mean, torch.Tensor)
            batch_norm.running_mean.mul_(alive)
    return model


@pytest.fixture
def masked() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 4)).eval()
    prune.ln_structured(model[0], "weight", 0.5, n=1, dim=0)
    prune.l1_unstructured(model[0], "weight", 0.2)
    prune.l1_unstructured(model[0], "bias", 0.5)
    parametrizations.weight_norm(model[3])
    return model


def test_masks_and_parametrizations_are_not_in_the_graph(masked: nn.Sequential) -> None:
    program = capture(masked, IMAGE)
    assert ops_in(program) == ["conv2d", "relu", "view", "linear"]
    torch.testing.assert_close(run(program, IMAGE), masked(IMAGE))


def test_the_users_module_is_left_as_it_was(masked: nn.Sequential) -> None:
    names, before = list(masked.state_dict()), masked(IMAGE)
    copied = with_plain_weights(masked)
    assert sorted(copied.state_dict()) == ["0.bias", "0.weight", "3.bias", "3.weight"]
    assert type(copied[3]) is nn.Linear  # type: ignore[index]
    assert list(masked.state_dict()) == names
    assert parametrize.is_parametrized(masked[3], "weight")
    assert prune.is_pruned(masked)
    assert torch.equal(masked(IMAGE), before)
    assert torch.equal(copied[0].weight, masked[0].weight)  # type: ignore[index,arg-type]
    # The norm of a weight is computed in float64 for the copy.
    torch.testing.assert_close(copied(IMAGE), before, rtol=1e-5, atol=1e-6)


def test_masks_count_that_no_forward_has_applied_yet(masked: nn.Sequential) -> None:
    with torch.no_grad():
        masked[0].weight_orig.mul_(2)  # type: ignore[operator]
    copied = with_plain_weights(masked)
    assert torch.equal(copied[0].weight, masked[0].weight_orig * masked[0].weight_mask)  # type: ignore[index,operator]
    torch.testing.assert_close(copied(IMAGE), masked(IMAGE), rtol=1e-5, atol=1e-6)


def test_a_module_without_either_is_not_copied() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    assert with_plain_weights(model) is model


def compiled(model: nn.Module, integer: bool, *, pruned: bool) -> Program:
    batches = [torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(seed)) for seed in range(8)]
    return tinyet.compile(
        model, (batches[0][:1],), calibration=batches if integer else None, name="resnet", prune=pruned
    )


@pytest.fixture(scope="module")
def resnet() -> Program:
    return compiled(pruned_resnet(), True, pruned=True)


@pytest.mark.parametrize("integer", [True, False])
def test_resnet(integer: bool, resnet: Program) -> None:
    model = pruned_resnet()
    small = resnet if integer else compiled(model, False, pruned=True)
    whole = compiled(model, integer, pruned=False)
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.normal(0, 2, (1, 3, 16, 16)).astype(np.float32)
        one, other = small.run(x), whole.run(x)
        assert isinstance(one, np.ndarray)
        assert isinstance(other, np.ndarray)
        assert one.tobytes() == other.tobytes()
    shapes = [n.output.shape[-1] for n in small.graph.nodes if n.op == "conv2d"]
    assert sorted(shapes) == [4, 4, 4, 8, 8, 8, 16, 16, 16]
    # Filters and inputs are halved, but for the input of the stem and the head's outputs.
    assert macs_of(small.graph.nodes) < 0.3 * macs_of(whole.graph.nodes)
    assert weight_bytes(small.graph) < 0.35 * weight_bytes(whole.graph)
    notes = [str(note) for note in small.notes]
    assert any("pruned channels are removed" in note for note in notes)
    assert any(
        "test_prune.py" in note and "pruned: 8 of 16 filters and 4 of 8 inputs removed" in note
        for note in notes
    )
    assert not any("pruned" in str(note) for note in whole.notes)


@pytest.mark.parametrize("config", ["int16_config", "int4_config", "dynamic_config"])
def test_other_types(config: str) -> None:
    """The pass by itself, on a graph that was compiled without it."""
    batches = list(torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(7)).split(1))
    whole = tinyet.compile(
        pruned_resnet(),
        (batches[0],),
        calibration=None if config == "dynamic_config" else batches,
        quantizer=tinyet.TinyetQuantizer(getattr(tinyet, config)()),
        name="resnet",
        prune=False,
    )
    small, _ = prune_channels(whole.graph)
    assert macs_of(small.nodes) < 0.3 * macs_of(whole.graph.nodes)
    inputs = prepare_inputs(whole.inputs, [batches[1].numpy()])
    (one,), (other,) = (run_graph(graph, inputs) for graph in (small, whole.graph))
    assert one.tobytes() == other.tobytes()


@pytest.mark.emulated
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
def test_resnet_on_a_board(tmp_path: Path, resnet: Program) -> None:
    project = tinyet.generate(resnet, "mps2_an386", tmp_path / "resnet")
    project.build()
    x = np.random.default_rng(1).normal(0, 2, (3, 3, 16, 16)).astype(np.float32)
    assert project.validate(x, on="qemu").bit_exact


def test_resnet8() -> None:
    """The trained ResNet8 of MLPerf Tiny: pruning its weights keeps every bit, whatever can be removed."""
    model = mlperf_models().resnet8()
    for conv in (m for m in model.modules() if isinstance(m, nn.Conv2d)):
        prune.ln_structured(conv, "weight", 0.5, n=1, dim=0)
    images, _ = mlperf_models().cifar10("calibration")
    programs = [
        tinyet.compile(model, (images[:1],), calibration=images[:20].split(1), name="resnet8", prune=p)
        for p in (True, False)
    ]
    assert macs_of(programs[0].graph.nodes) < macs_of(programs[1].graph.nodes)
    for image in images[20:23]:
        small, whole = (program.run(image[None].numpy()) for program in programs)
        assert np.array_equal(np.asarray(small), np.asarray(whole))

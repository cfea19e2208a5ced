# SPDX-License-Identifier: Apache-2.0
"""Networks whose layers are computed by rows, compiled for the host: less memory, and the reference's bits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinyet
from benchmarks.nets import NETWORKS, UNet
from benchmarks.sequences import accelerometer, ecg, raw_audio
from tests.custom.operators import halve
from tests.ops.cases import run_on_host
from tinyet.boards.cpus import HOST
from tinyet.deployment import Deployment, deploy
from tinyet.ir import Array
from tinyet.planning.objective import Objective
from tinyet.program import Program
from tinyet.reference import run_graph

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


class Bigger(nn.Module):
    """Convolutions with an enlargement between them."""

    def __init__(self, mode: str, factor: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 4, 3, padding=1)
        self.mode, self.factor = mode, factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = F.relu(self.second(F.relu(self.first(x))))
        large = F.interpolate(small, scale_factor=self.factor, mode=self.mode)
        found: torch.Tensor = self.last(large)
        return found


class Attention(nn.Module):
    """One head: queries go by rows, keys and values are whole, scores never are."""

    def __init__(self, wide: int = 16) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(8, wide) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(wide), nn.Linear(wide, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        found: torch.Tensor = self.out(self.norm(torch.softmax(scores / 4, -1) @ self.value(x)))
        return x + found


class Heads(nn.Module):
    """Two layers of a transformer's encoder: of four heads, no queries, scores and results are whole."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(x)
        return found


class Labels(nn.Module):
    """A class for each pixel, of an image whose edge is repeated around it, but for its first and last row."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(4, 12, 3), nn.Conv2d(12, 6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = F.relu(self.first(F.pad(x, (1, 1, 1, 1), mode="replicate")))
        return torch.softmax(self.last(wide)[:, :, 1:-1], 1)


@dataclass(frozen=True)
class Drawn:
    """by_rows: some operators that are computed by rows where the arena is as small as it can be."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    by_rows: tuple[str, ...]
    ratio: float


NETS = {
    "U-Net": Drawn(UNet, (1, 32, 32), ("conv2d", "max_pool2d", "conv_transpose2d", "concat"), 0.5),
    "nearest": Drawn(lambda: Bigger("nearest", 2), (3, 16, 16), ("resize", "conv2d"), 0.75),
    "bilinear": Drawn(lambda: Bigger("bilinear", 2), (3, 16, 16), ("resize", "conv2d"), 0.75),
    "bilinear, four times": Drawn(lambda: Bigger("bilinear", 4), (3, 16, 16), ("resize", "conv2d"), 0.7),
    "attention": Drawn(Attention, (48, 8), ("matmul", "div", "softmax"), 0.7),
    "heads": Drawn(Heads, (48, 16), ("permute", "matmul", "softmax", "slice"), 0.4),
    "ECG": Drawn(ecg, (1, 501), ("conv2d", "add", "mean"), 0.75),
    "raw audio": Drawn(raw_audio, (1, 2000), ("conv2d", "max_pool2d"), 0.4),
    "accelerometer": Drawn(accelerometer, (250, 6), ("conv2d", "max_pool2d"), 0.5),
    "labels": Drawn(Labels, (4, 20, 16), ("pad", "conv2d", "slice", "softmax"), 0.75),
}


def program_of(module: nn.Module, shape: tuple[int, ...]) -> Program:
    images: Any = torch.randn(8, *shape, generator=torch.Generator().manual_seed(0))
    return tinyet.compile(
        module.eval(),
        (images[:1],),
        calibration=images.split(1),
        channels_last=len(shape) == 3,
        name="net",
    )


def run(deployment: Deployment) -> tuple[bytes, bytes]:
    """The firmware's outputs, and the reference's."""
    random = np.random.default_rng(0)
    given: list[Array] = [
        random.integers(*t.dtype.range, t.shape, t.dtype.numpy.type, endpoint=True)
        for t in deployment.graph.inputs
    ]
    wanted = run_graph(deployment.graph, given)
    return (
        run_on_host(deployment, b"".join(array.tobytes() for array in given)),
        b"".join(np.ascontiguousarray(array).tobytes() for array in wanted),
    )


class Tokens(nn.Module):
    """A score of each of twelve classes for each token, of layers that work along channels, in four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm = nn.Embedding(60, 16), nn.LayerNorm(16)
        self.wide, self.narrow = nn.Linear(16, 64), nn.Linear(64, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = F.relu(self.wide(self.norm(self.table(x)))).reshape(1, x.shape[1], 4, 16)
        return torch.log_softmax(self.narrow(F.normalize(heads, dim=-1).flatten(2)), -1)


def test_tokens() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(0, 60, (8, 1, 40), generator=torch.Generator().manual_seed(0))
    graph = tinyet.compile(Tokens().eval(), (tokens[0],), calibration=list(tokens), name="net").graph
    whole = deploy(graph, HOST, objective=Objective(ram=1, untiled=True))
    rows = deploy(graph, HOST, objective=Objective(ram=1))
    inside = {node.op for found in rows.plan.fusion_groups for node in found.nodes}
    assert inside >= {"embedding", "layer_norm", "linear", "reshape", "sum", "quantize", "expand", "div"}
    assert rows.plan.arena_bytes < 0.5 * whole.plan.arena_bytes
    given = tokens[1].numpy().astype(graph.inputs[0].dtype.numpy)
    (wanted,) = run_graph(graph, [given])
    assert run_on_host(rows, given.tobytes()) == wanted.tobytes()


class Halved(nn.Module):
    """An operator of the user's between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 12, 3), nn.Conv2d(12, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(halve(self.first(x)))
        return found


def test_an_operator_of_the_users() -> None:
    torch.manual_seed(0)
    image = torch.randn(1, 3, 16, 16)
    graph = tinyet.compile(Halved().eval(), (image,), channels_last=True, name="net").graph
    whole = deploy(graph, HOST, objective=Objective(ram=1, untiled=True))
    rows = deploy(graph, HOST, objective=Objective(ram=1))
    assert {node.op for found in rows.plan.fusion_groups for node in found.nodes} >= {"conv2d", "halve"}
    assert rows.plan.arena_bytes < 0.6 * whole.plan.arena_bytes
    given = np.ascontiguousarray(image.permute(0, 2, 3, 1).numpy())
    (wanted,) = run_graph(graph, [given])
    assert run_on_host(rows, given.tobytes()) == wanted.tobytes()


@pytest.mark.parametrize("name", NETS)
def test_networks(name: str) -> None:
    drawn = NETS[name]
    torch.manual_seed(0)
    graph = program_of(drawn.make(), drawn.shape).graph
    whole = deploy(graph, HOST, objective=Objective(ram=1, untiled=True))
    rows = deploy(graph, HOST, objective=Objective(ram=1))
    inside = {node.op for found in rows.plan.fusion_groups for node in found.nodes}
    assert inside >= {*drawn.by_rows}
    assert rows.plan.arena_bytes <= drawn.ratio * whole.plan.arena_bytes
    got, wanted = run(rows)
    assert got == wanted


def test_a_unet_in_less_than_half_of_its_memory() -> None:
    """Of 64x64 pixels: its layers one after another take 131,072 bytes, with outputs over inputs 98,304."""
    network = NETWORKS["unet_64"]
    graph = program_of(network.built(), network.shape).graph
    whole = deploy(graph, HOST, objective=Objective(ram=1, untiled=True))
    assert whole.plan.arena_bytes == 98_304
    rows = deploy(graph, HOST, objective=Objective(ram=30_000))
    assert rows.plan.arena_bytes <= 30_000
    got, wanted = run(rows)
    assert got == wanted

# SPDX-License-Identifier: Apache-2.0
"""Images as a camera gives them: bytes in, an exact scale where there is one, one table for what is made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tinyet.errors import DataError, ModelError, QuantizationError, UnsupportedOp
from tinyet.ir import DType
from tinyet.ops.lookup import is_flip
from tinyet.program import Program
from tinyet.quantization.config import QuantConfig, dynamic_config, int16_config
from tinyet.quantization.pixels import Pixels, parameters_of

_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
_SIZE = 10

Front = Callable[[torch.Tensor], torch.Tensor]


class Net(nn.Module):
    """A front that makes numbers of bytes, and a convolution with padding behind it."""

    def __init__(self, front: Front) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.front = front
        self.conv = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(self.front(x))).mean((2, 3)))  # type: ignore[no-any-return]


def _frames(count: int = 8, *, last: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    frames = torch.randint(0, 256, (count, 3, _SIZE, _SIZE), dtype=torch.uint8, generator=generator)
    return frames.permute(0, 2, 3, 1).contiguous() if last else frames


def _compiled(
    front: Front, *, last: bool = False, channels_last: bool = False, config: QuantConfig | None = None
) -> Program:
    frames = _frames(last=last)
    quantizer = None if config is None else tinyet.TinyetQuantizer(config)
    return tinyet.compile(
        Net(front).eval(),
        (frames[:1],),
        calibration=frames.split(4),
        channels_last=channels_last,
        quantizer=quantizer,
    )


# What is made of bytes, as people write it → the exact scale and zero point, or None where there are none.
FRONTS: dict[str, tuple[Front, tuple[float, int] | None]] = {
    "float": (lambda x: x.float() / 255, (1 / 255, -128)),
    "divided": (lambda x: x / 255, (1 / 255, -128)),
    "multiplied": (lambda x: x.to(torch.float32) * (1 / 255), (1 / 255, -128)),
    "centred": (lambda x: (x.float() - 128) / 128, (1 / 128, 0)),
    "raw": (lambda x: x.float(), (1.0, -128)),
    "inverted": (lambda x: 1 - x / 255, (1 / 255, -128)),
    "symmetric": (lambda x: (x.float() - 127.5) / 127.5, None),
    "normalised": (lambda x: (x.float() / 255 - _MEAN) / _DEVIATION, None),
    "cropped": (lambda x: x[:, :, 1:-1, 1:-1] / 255, (1 / 255, -128)),
}  # fmt: skip


@pytest.mark.parametrize("name", FRONTS)
def test_bytes_come_in_as_they_are(name: str) -> None:
    front, exact = FRONTS[name]
    program = _compiled(front, channels_last=True)
    (image,) = program.inputs
    assert (image.dtype, image.type.quant, image.shape) == (DType.UINT8, None, (1, _SIZE, _SIZE, 3))
    ops = [node.op for node in program.graph.nodes]
    assert [op for op in ops if op != "slice"] == ["lookup", "conv2d", "mean", "linear"]
    (lookup,) = [node for node in program.graph.nodes if node.op == "lookup"]
    assert lookup.input(1).shape == ((3 if name == "normalised" else 1), 256)
    made = front(torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(1, 3, 16, 16))
    if exact is not None:
        scale, zero_point = exact
        assert lookup.output.type.scale == np.float32(scale)
        assert lookup.output.type.zero_point == zero_point
        assert is_flip(lookup) == (name != "inverted")
    if name != "cropped":
        # Of each byte the nearest integer, and nothing is lost where the scale is exact.
        table = lookup.input(1).array.astype(np.float64)
        real = (table - lookup.output.type.zero_point) * lookup.output.type.scale
        wanted = made[0].reshape(3, 256)[: len(table)].double().numpy()
        step = (wanted.max() - wanted.min()) / 255
        assert (
            np.abs(real - wanted).max() <= (1e-4 if exact else 0.52 * lookup.output.type.scale / step) * step
        )
    # The whole model beside torch's own floats.
    frames, net = _frames(), Net(front).eval()
    got = np.stack([program.run(x.permute(1, 2, 0).numpy(), as_float=True)[0] for x in frames])
    want = net(frames).detach().numpy()
    assert 10 * np.log10((want**2).sum() / ((got - want) ** 2).sum()) > 30


def test_frames_in_a_cameras_order_need_no_turning() -> None:
    """forward() takes (N, H, W, C), as the driver fills its buffer."""
    program = _compiled(lambda x: (x.permute(0, 3, 1, 2) / 255 - _MEAN) / _DEVIATION, last=True)
    assert program.inputs[0].shape == (1, _SIZE, _SIZE, 3)
    assert [node.op for node in program.graph.nodes] == ["lookup", "conv2d", "mean", "linear"]
    other = _compiled(lambda x: (x / 255 - _MEAN) / _DEVIATION, channels_last=True)
    frame = _frames(1, last=True)[0].numpy()
    assert np.array_equal(program.run(frame), other.run(frame))


@pytest.mark.parametrize(
    ("config", "first"),
    [(int16_config(), "lookup"), (dynamic_config(), "cast")],
    ids=["int16", "dynamic"],
)
def test_other_configurations(config: QuantConfig, first: str) -> None:
    for front in (FRONTS["symmetric"][0], FRONTS["normalised"][0]):
        program = _compiled(front, channels_last=True, config=config)
        assert program.graph.nodes[0].op == first
        frame = _frames(1)
        want = Net(front).eval()(frame)[0].detach().numpy()
        got = program.run(frame[0].permute(1, 2, 0).numpy(), as_float=True)
        assert np.allclose(got, want, atol=0.02 * np.abs(want).max())


def test_in_float_bytes_are_cast() -> None:
    frames = _frames(1)
    front = FRONTS["normalised"][0]
    program = tinyet.compile(Net(front).eval(), (frames,))
    assert "cast" in [node.op for node in program.graph.nodes[:2]]
    want = Net(front).eval()(frames).detach().numpy()
    assert np.allclose(program.run(frames[0].numpy()), want, rtol=1e-4, atol=1e-5)


def test_half_steps_are_exact_in_int16() -> None:
    one = torch.ones(1, dtype=torch.float64)
    assert parameters_of(Pixels(one / 127.5, -one), -32767, 32767, symmetric=True) == (1 / 255, 0)
    assert parameters_of(Pixels(one / 255, one * 0), -32767, 32767, symmetric=True) == (1 / 255, 0)


def test_zero_is_an_integer_where_bytes_are_far_from_it() -> None:
    """A convolution pads with zero, also where no byte means it."""
    one = torch.ones(1, dtype=torch.float64)
    scale, zero_point = parameters_of(Pixels(one / 255, one * 3), -128, 127, symmetric=False)
    assert zero_point == -128
    assert scale == pytest.approx(4 / 255)


def test_data_for_bytes() -> None:
    program = _compiled(FRONTS["divided"][0])
    with pytest.raises(DataError, match="bytes as they come from the camera"):
        program.run(np.zeros((3, _SIZE, _SIZE), np.float32))
    with pytest.raises(DataError, match="leave uint8"):
        program.run(np.full((3, _SIZE, _SIZE), 256))
    with pytest.raises(QuantizationError, match=r"is torch.float32, the model takes torch.uint8"):
        tinyet.compile(Net(FRONTS["raw"][0]).eval(), (_frames(1),), calibration=[_frames(1).float()])


class Wrapping(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - 3).float()  # of uint8: 0 - 3 is 253


class ToBytes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.float() + 1).to(torch.uint8)


def test_what_bytes_cannot_do() -> None:
    for model, words in (
        (Wrapping(), "computes with uint8 values"),
        (ToBytes(), "converts float32 to torch.uint8"),
    ):
        with pytest.raises((UnsupportedOp, ModelError), match=words):
            tinyet.compile(model, (_frames(1),))

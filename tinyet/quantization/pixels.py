# SPDX-License-Identifier: Apache-2.0
"""The preprocessing of bytes (a camera's pixels) before a model's first layer, and the scale that holds it exactly.

factor * byte + offset, whatever additions and multiplications that takes, has 256 values, known before any data is
seen. So it is not observed: where its zero is one of the bytes, the integers are byte - 128, and nothing is rounded at
all; else (a mean and a deviation for each channel) the parameters are those with the least error over all bytes. What
lies in between stays float in the graph, and becomes one table (passes/tabulate_bytes.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import fx

from tinyet.fx.edit import get_constant

aten = torch.ops.aten

_BINARY = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor)
_TURNS = (aten.permute.default, aten.transpose.int, aten.clone.default)
_BYTES = torch.arange(256, dtype=torch.float64)
# Of a step: float32 factors and offsets are not what the user wrote to the last bit.
_EXACT = 1e-3


@dataclass(frozen=True, eq=False)
class Pixels:
    """factor * byte + offset: float64, of one element, or of as many as there are channels."""

    factor: torch.Tensor
    offset: torch.Tensor

    @property
    def values(self) -> torch.Tensor:
        """All its possible values, float64 (channels, 256)."""
        factor, offset = torch.broadcast_tensors(self.factor, self.offset)
        values: torch.Tensor = factor.reshape(-1, 1) * _BYTES + offset.reshape(-1, 1)
        return values


def pixels_of(module: fx.GraphModule) -> Mapping[fx.Node, Pixels]:
    """The float values of a graph that are such functions of single bytes."""
    found: dict[fx.Node, Pixels] = {}
    for node in module.graph.nodes:
        if node.op == "call_function":
            pixels = _pixels(module, node, found)
            if (
                pixels is not None
                and bool(torch.isfinite(pixels.values).all())
                and bool((pixels.factor != 0).all())
            ):
                found[node] = pixels
    return found


def _pixels(module: fx.GraphModule, node: fx.Node, found: Mapping[fx.Node, Pixels]) -> Pixels | None:
    if node.target is aten._to_copy.default:
        source = node.args[0]
        is_cast = isinstance(source, fx.Node) and source.meta["val"].dtype is torch.uint8
        one = torch.ones(1, dtype=torch.float64)
        return Pixels(one, one - one) if is_cast and node.meta["val"].dtype is torch.float32 else None
    if node.target in _TURNS:
        inner = found.get(node.args[0])  # type: ignore[arg-type]
        return inner if inner is not None and inner.values.shape[0] == 1 else None
    if node.target not in _BINARY or set(node.kwargs) - {"alpha"}:
        return None
    left, right = (_operand(module, arg, found) for arg in node.args[:2])
    alpha = float(node.kwargs.get("alpha") or 1)  # type: ignore[arg-type]
    if left is None or right is None or isinstance(left, Pixels) is isinstance(right, Pixels):
        return None
    if node.meta["val"].shape != _image(node, found).meta["val"].shape:
        return None
    return _combined(node.target, left, right, alpha)


def _image(node: fx.Node, found: Mapping[fx.Node, Pixels]) -> fx.Node:
    """The operand that is made of bytes."""
    return next(arg for arg in node.args[:2] if isinstance(arg, fx.Node) and arg in found)


def _operand(
    module: fx.GraphModule, argument: object, found: Mapping[fx.Node, Pixels]
) -> Pixels | torch.Tensor | None:
    """Pixels, or a constant of at most one dimension that is not of size 1; None for what is neither."""
    if isinstance(argument, (int, float)):
        return torch.tensor([float(argument)], dtype=torch.float64)
    if argument in found:
        return found[argument]  # type: ignore[index]
    constant = get_constant(module, argument)
    if constant is None or constant.is_complex() or sum(size > 1 for size in constant.shape) > 1:
        return None
    return constant.detach().double()


def _combined(
    target: object, left: Pixels | torch.Tensor, right: Pixels | torch.Tensor, alpha: float
) -> Pixels | None:
    """One operation of pixels and a constant."""
    if target is aten.mul.Tensor:
        pixels, constant = (left, right) if isinstance(left, Pixels) else (right, left)
        assert isinstance(pixels, Pixels)
        assert isinstance(constant, torch.Tensor)
        return Pixels(pixels.factor * constant, pixels.offset * constant)
    if target is aten.div.Tensor:
        if isinstance(left, Pixels) and isinstance(right, torch.Tensor):
            return Pixels(left.factor / right, left.offset / right)
        return None
    sign = alpha if target is aten.add.Tensor else -alpha
    if isinstance(left, Pixels) and isinstance(right, torch.Tensor):
        return Pixels(left.factor, left.offset + sign * right)
    assert isinstance(right, Pixels)
    assert isinstance(left, torch.Tensor)
    return Pixels(sign * right.factor, left + sign * right.offset)


def parameters_of(pixels: Pixels, low: int, high: int, *, symmetric: bool) -> tuple[float, int]:
    """Scale and zero point for integers from `low` to `high`: exact where there are such, else with the least mean
    square error over all bytes. Zero, with which convolutions pad, is always one of the integers.

    symmetric: the zero point is 0, as int16 wants it.
    """
    values = pixels.values
    step = float(pixels.factor.abs().reshape(-1)[0])
    least, most = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    candidates = [(max(-least, most) / high, 0)]
    if symmetric:
        # Bytes whose zero is at a half, (byte - 127.5) / 127.5, are whole numbers of half steps.
        candidates += [(step / part, 0) for part in (1, 2)]
    else:
        span = (most - least) / (high - low)
        for scale in (step, span):
            exact = low - least / scale
            candidates += [
                (scale, min(max(zero, low), high)) for zero in {int(exact // 1), int(-(-exact // 1))}
            ]
            candidates.append((scale, min(max(round(exact), low), high)))
    errors = [(_error(values, scale, zero, low, high), i) for i, (scale, zero) in enumerate(candidates)]
    return candidates[min(errors)[1]]


def _error(values: torch.Tensor, scale: float, zero_point: int, low: int, high: int) -> float:
    """Mean square error of the integers, in steps of the pixels; 0 where there is none but float32's."""
    integers = torch.clamp(torch.round(values / scale) + zero_point, low, high)
    wrong = ((integers - zero_point) * scale - values).abs()
    step = (values.max() - values.min()) / 255
    return 0.0 if bool(wrong.max() < _EXACT * step) else float((wrong / step).square().mean())

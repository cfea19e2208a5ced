# SPDX-License-Identifier: Apache-2.0
"""`torchaudio.functional.lfilter`, and the filters that call it (`biquad`, `lowpass_biquad`, `filtfilt`, …), as
second-order sections.

torchaudio computes them by a loop over samples, in C++ that tracing does not see through or in Python of which it would
make several nodes a sample. While a model is captured one operator stands for it, `tinyet::lfilter`: x (N, C, T) and
the coefficients a and b (C, K) of each channel, lower delays first, give y (N, C, T):

    a[0] y[t] = b[0] x[t] + … + b[K-1] x[t-K+1] - a[1] y[t-1] - … - a[K-1] y[t-K+1]

It is traced only and never runs. When its coefficients are constants, `split_lfilter` makes `tinyet::biquads` of it: a
filter of up to second order is one section, its coefficients divided by a[0]; one of a higher order is the product of
its factors; one without feedback that is longer is a convolution.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx

from tinyet.errors import ModelError
from tinyet.fx.biquad_ops import BIQUADS
from tinyet.fx.edit import add_call, add_constant, bind, drop_unused, get_constant
from tinyet.fx.origins import origin_of, stamp_node

aten = torch.ops.aten

Reals = npt.NDArray[np.float64]

torch.library.define("tinyet::lfilter", "(Tensor x, Tensor a, Tensor b) -> Tensor")
torch.library.register_fake("tinyet::lfilter", lambda x, _a, _b: torch.empty_like(x))

LFILTER = torch.ops.tinyet.lfilter.default

_MODULE, _FUNCTION = "torchaudio.functional.filtering", "_lfilter"

_HIGHEST_ORDER = 64
"""Of what is taken apart into factors; float64 seldom has accurate ones beyond."""

_LARGEST_RESIDUE = 1e-6
"""Of the product of a polynomial's factors, relative to the greatest coefficient; float32 rounds each to 6e-8."""


@contextmanager
def torchaudio_taken_whole() -> Iterator[None]:
    """While this lasts, torchaudio's filters call `tinyet::lfilter`; nothing happens where it is not imported."""
    filtering = sys.modules.get(_MODULE)
    original = getattr(filtering, _FUNCTION, None)
    if original is None:
        yield
        return

    def whole(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor) -> Tensor:
        y: Tensor = LFILTER(waveform, a_coeffs, b_coeffs)
        return y

    setattr(filtering, _FUNCTION, whole)
    try:
        yield
    finally:
        setattr(filtering, _FUNCTION, original)


def _factors(polynomial: Reals) -> list[Reals]:
    """Factors (3,) of b[0] + b[1] z^-1 + …, of which the first coefficient that is not 0 is 1, real roots two by two.
    Raises ValueError where they do not give it when multiplied."""
    delays = int(np.flatnonzero(polynomial)[0])
    roots = np.roots(polynomial[delays:])
    found = [np.array([1.0, -2 * root.real, abs(root) ** 2]) for root in roots[roots.imag > 0]]
    single = [np.array([1.0, -root]) for root in np.sort(roots[roots.imag == 0].real)]
    single += [np.array([0.0, 1.0])] * delays
    if len(single) % 2:
        single.append(np.ones(1))
    found += [np.convolve(*both) for both in zip(single[::2], single[1::2], strict=True)]
    product = reduce(np.convolve, found, polynomial[delays : delays + 1])
    product = np.pad(product, (0, max(len(polynomial) - len(product), 0)))
    residue = np.abs(product - np.pad(polynomial, (0, len(product) - len(polynomial)))).max()
    if not residue <= _LARGEST_RESIDUE * np.abs(polynomial).max():
        raise ValueError(f"factors of order {len(polynomial) - 1} miss its coefficients by {residue:.2g}")
    return [np.pad(factor, (0, 3 - len(factor))) for factor in found]


def sections_of(a: Reals, b: Reals) -> Reals:
    """(S, 5), b0, b1, b2, a1, a2 of the filter; a[0] is 1. The poles nearest to the unit circle come last, and each
    pair of poles has the zeros next to it. Raises ValueError for an order that has no accurate factors."""
    a, b = np.trim_zeros(a, "b"), np.trim_zeros(b, "b")
    if max(len(a), len(b)) <= 3:
        return np.concatenate([np.pad(b, (0, 3 - len(b))), np.pad(a, (0, 3 - len(a)))[1:]])[None]
    if not len(b):
        return np.zeros((1, 5))
    if max(len(a), len(b)) > _HIGHEST_ORDER + 1:
        raise ValueError(f"order {max(len(a), len(b)) - 1} is above {_HIGHEST_ORDER}")
    denominators, numerators = _factors(a), _factors(b)
    count = max(len(denominators), len(numerators))
    denominators += [np.array([1.0, 0.0, 0.0])] * (count - len(denominators))
    numerators += [np.array([1.0, 0.0, 0.0])] * (count - len(numerators))
    rows = []
    for poles in sorted(denominators, key=lambda factor: -np.abs(np.roots(factor)).max(initial=0.0)):
        nearest = min(
            range(len(numerators)), key=lambda index: float(np.abs(numerators[index] - poles).sum())
        )
        rows.append(np.concatenate([numerators.pop(nearest), poles[1:]]))
    sections = np.stack(rows[::-1])
    sections[0, :3] *= b[np.flatnonzero(b)[0]]
    return sections


def split_lfilter(module: fx.GraphModule) -> None:
    """In place, when constants are folded."""
    nodes = [node for node in module.graph.nodes if node.target is LFILTER]
    for node in nodes:
        _Split(module, node).replace()
    if nodes:
        drop_unused(module)


class _Split:
    def __init__(self, module: fx.GraphModule, node: fx.Node) -> None:
        self.module, self.node = module, node
        bound = bind(node)
        self.x: fx.Node = bound["x"]
        values = [get_constant(module, bound[name]) for name in "ab"]
        if values[0] is None or values[1] is None:
            raise ModelError(
                "the coefficients of a recursive filter are computed from the model's inputs",
                str(origin_of(node)),
                "make them of numbers, parameters or buffers",
            )
        a, b = (value.detach().double().numpy() for value in values if value is not None)
        if not (np.isfinite(a).all() and np.isfinite(b).all() and a[:, 0].all()):
            raise ModelError(
                "a recursive filter has coefficients that are not finite, or a first one in a_coeffs that is 0",
                str(origin_of(node)),
            )
        self.a, self.b = a / a[:, :1], b / a[:, :1]

    def replace(self) -> None:
        rows, channels, steps = self.x.meta["val"].shape
        if all((part == part[:1]).all() for part in (self.a, self.b)):
            flat = self._call("rows", aten.reshape.default, self.x, [rows * channels, steps])
            y = self._call("back", aten.reshape.default, self._filtered(flat, 0), [rows, channels, steps])
        else:
            found = [
                self._filtered(self._call(f"channel_{c}", aten.select.int, self.x, 1, c), c)
                for c in range(channels)
            ]
            y = self._call("channels", aten.stack.default, found, 1)
        self.node.replace_all_uses_with(y)
        stamp_node(y, origin_of(self.node))
        self.module.graph.erase_node(self.node)

    def _filtered(self, x: fx.Node, channel: int) -> fx.Node:
        """(N, T) to the same, by the coefficients of the channel."""
        a, b = self.a[channel], self.b[channel]
        if not a[1:].any() and b[3:].any():
            return self._convolved(x, np.trim_zeros(b, "b"), channel)
        try:
            sections = sections_of(a, b)
        except ValueError as error:
            raise ModelError(
                f"a recursive filter has no accurate second-order sections: {error}",
                str(origin_of(self.node)),
                'design it as such: scipy.signal.butter(…, output="sos") and tinyet.features.Biquads',
            ) from error
        held = self._hold("sections", torch.from_numpy(sections).float())
        rest = self._hold("rest", torch.zeros(x.meta["val"].shape[0], len(sections), 2))
        both = self._call(f"sections_{channel}", BIQUADS, x, rest, held)
        return self._call(f"filtered_{channel}", operator.getitem, both, 0)

    def _convolved(self, x: fx.Node, taps: Reals, channel: int) -> fx.Node:
        rows, steps = x.meta["val"].shape
        weight = self._hold("taps", torch.from_numpy(taps[::-1].copy()).float().reshape(1, 1, -1))
        images = self._call(f"images_{channel}", aten.reshape.default, x, [rows, 1, steps])
        padded = self._call(
            f"padded_{channel}", aten.constant_pad_nd.default, images, [len(taps) - 1, 0], 0.0
        )
        y = self._call(f"convolved_{channel}", aten.conv1d.default, padded, weight)
        return self._call(f"filtered_{channel}", aten.reshape.default, y, [rows, steps])

    def _hold(self, role: str, value: Tensor) -> fx.Node:
        return add_constant(self.module, self.node, f"{self.node.name}_{role}", value)

    def _call(self, role: str, target: object, *args: object) -> fx.Node:
        made = add_call(self.module.graph, self.node, target, args, self.node)  # type: ignore[arg-type]
        origin = origin_of(self.node)
        stamp_node(made, replace(origin, key=f"{origin.key}_{role}"))
        return made

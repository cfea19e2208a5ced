# SPDX-License-Identifier: Apache-2.0
"""Complex values of a captured graph become pairs of floats: (…) complex64 → (…, 2) float32, real part first.

Fourier transforms become calls of `spectrum_ops`, of real values along the last axis, and what is made of their results
becomes arithmetic of floats. So the order of operations is that of the operators that are written here:

- |z| is the root of re * re + im * im, and |z| ** 2 that sum itself;
- a product is (a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
- of real values that are transformed whole, the second half is the conjugate of the first;
- the transform of complex values is that of their real parts plus i times that of their imaginary parts.

What has no form here keeps reading complex values, by a `view_as_complex` that the importer refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tinyet.errors import ModelError, bullet_list
from tinyet.fx.edit import add_call, add_constant, bind, drop_unused, get_constant
from tinyet.fx.origins import origin_of
from tinyet.fx.spectrum_ops import IRFFT, RFFT, bins_of

aten = torch.ops.aten

_CONJUGATE = torch.tensor([1.0, -1.0])
_EXPONENTS = (0.0, -0.5, -1.0)
"""By torch's numbers for how a transform of n values is scaled: by n to this power."""


def split_complex(module: fx.GraphModule) -> None:
    """In place. Node `val` metadata must be there. Raises ModelError for outputs that are complex."""
    if any(_is_complex(node) for node in module.graph.nodes):
        _Split(module).run()


def _is_complex(value: object) -> bool:
    tensor = value.meta.get("val") if isinstance(value, fx.Node) else None
    return isinstance(tensor, torch.Tensor) and tensor.is_complex()


def _rank(node: fx.Node) -> int:
    return int(node.meta["val"].ndim)


def _axis(node: fx.Node, dim: int, more: int = 0) -> int:
    """An axis of a complex value, counted from the front, where the pairs have it, too."""
    return dim % (_rank(node) + more) if _rank(node) + more else 0


@dataclass(eq=False)
class _Split:
    """pairs: of each complex node."""

    module: fx.GraphModule
    pairs: dict[fx.Node, fx.Node] = field(default_factory=dict)
    node: fx.Node = field(init=False)

    def run(self) -> None:
        graph = self.module.graph
        for node in list(graph.nodes):
            if node.op == "output":
                self._refuse_outputs(node)
            if not any(_is_complex(n) for n in (node, *node.all_input_nodes)):
                continue
            self.node = node
            if node.op == "get_attr":
                constant = get_constant(self.module, node)
                assert constant is not None
                self.pairs[node] = self._constant("pairs", torch.view_as_real(constant.to(torch.complex64)))
            elif node.op == "call_function":
                self._rewrite(node)
        graph.eliminate_dead_code()
        drop_unused(self.module)

    def _refuse_outputs(self, output: fx.Node) -> None:
        wrong = [f"{n.name}\n    at: {origin_of(n)}" for n in output.all_input_nodes if n in self.pairs]
        if wrong:
            raise ModelError(
                f"outputs of the model are complex:\n{bullet_list(wrong)}",
                hint="return torch.view_as_real(z), or z.real and z.imag, or z.abs()",
            )

    def _rewrite(self, node: fx.Node) -> None:
        rule = _RULES.get(node.target)
        known = all(source in self.pairs for source in node.all_input_nodes if _is_complex(source))
        if known and not any(_is_complex(source) for source in node.all_input_nodes) and rule is None:
            constant = self._computed(node)
            made = None if constant is None else self._constant("pairs", constant)
        else:
            made = rule(self, bind(node)) if rule is not None and known else None
        if made is None:
            for source in list(node.all_input_nodes):
                if source in self.pairs:
                    whole = self.make(aten.view_as_complex.default, self.pairs[source])
                    node.replace_input_with(source, whole)
        elif _is_complex(node):
            self.pairs[node] = made
        else:
            node.replace_all_uses_with(made)

    @staticmethod
    def _computed(node: fx.Node) -> torch.Tensor | None:
        """The pairs of a complex value that is made of nothing: zeros, a full tensor."""
        if node.all_input_nodes or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return None
        value: torch.Tensor = node.target(*node.args, **node.kwargs)  # type: ignore[operator]
        return torch.view_as_real(value.to(torch.complex64))

    # ------------------------------------------------------------ making nodes

    def make(self, target: Any, *args: Any, **options: Any) -> fx.Node:
        return add_call(self.module.graph, self.node, target, args, self.node, **options)

    def _constant(self, role: str, value: torch.Tensor) -> fx.Node:
        return add_constant(self.module, self.node, f"{self.node.name}_{role}", value.contiguous())

    def of(self, value: Any) -> fx.Node:
        """The pairs of a complex operand; a real one gets imaginary parts of 0."""
        if value in self.pairs:
            return self.pairs[value]
        if isinstance(value, fx.Node):
            zeros = self._constant("zeros", torch.zeros(tuple(value.meta["val"].shape)))
            return self.join(value, zeros)
        number = complex(value)
        return self._constant("number", torch.tensor([number.real, number.imag]))

    def part(self, pairs: fx.Node, index: int) -> fx.Node:
        """All real parts (0), or all imaginary ones (1)."""
        return self.make(aten.select.int, pairs, _rank(pairs) - 1, index)

    def parts(self, pairs: fx.Node) -> tuple[fx.Node, fx.Node]:
        return self.part(pairs, 0), self.part(pairs, 1)

    def join(self, real: fx.Node, imaginary: fx.Node) -> fx.Node:
        return self.make(aten.stack.default, [real, imaginary], _rank(real))

    def conjugate(self, pairs: fx.Node) -> fx.Node:
        return self.make(aten.mul.Tensor, pairs, self._constant("signs", _CONJUGATE))

    def times_i(self, pairs: fx.Node) -> fx.Node:
        real, imaginary = self.parts(pairs)
        return self.join(self.make(aten.neg.default, imaginary), real)

    def scaled(self, x: fx.Node, factor: float) -> fx.Node:
        return x if factor == 1.0 else self.make(aten.mul.Tensor, x, factor)

    def power(self, pairs: fx.Node) -> fx.Node:
        """re * re + im * im."""
        square = self.make(aten.mul.Tensor, pairs, pairs)
        return self.make(aten.sum.dim_IntList, square, [_rank(pairs) - 1])

    def product(self, a: fx.Node, b: fx.Node) -> fx.Node:
        (ar, ai), (br, bi) = self.parts(a), self.parts(b)
        crossed = [self.make(aten.mul.Tensor, *two) for two in ((ar, br), (ai, bi), (ar, bi), (ai, br))]
        real = self.make(aten.sub.Tensor, crossed[0], crossed[1])
        return self.join(real, self.make(aten.add.Tensor, crossed[2], crossed[3]))

    def moved(self, x: fx.Node, source: int, goal: int) -> fx.Node:
        """An axis of x in another place."""
        order = [axis for axis in range(_rank(x)) if axis != source]
        order.insert(goal, source)
        return x if order == list(range(_rank(x))) else self.make(aten.permute.default, x, order)

    def shaped(self, x: fx.Node, shape: Sequence[int]) -> fx.Node:
        return self.make(aten.reshape.default, x, list(shape))

    # ------------------------------------------------------------ transforms

    def real_transform(self, x: fx.Node, axis: int) -> fx.Node:
        """Real values → the pairs of the first half and the number in the middle."""
        shape = list(x.meta["val"].shape)
        last = self.moved(x, axis, len(shape) - 1)
        rows = list(last.meta["val"].shape)[:-1]
        found = self.make(RFFT, last, shape[axis])
        return self.moved(self.shaped(found, [*rows, bins_of(shape[axis]), 2]), len(rows), axis)

    def mirrored(self, pairs: fx.Node, axis: int, n: int) -> fx.Node | None:
        """Numbers n // 2 + 1 … n - 1, which are the conjugates of those opposite; None where there are none."""
        opposite = torch.arange((n - 1) // 2, 0, -1)
        if not len(opposite):
            return None
        found = self.make(aten.index_select.default, pairs, axis, self._constant("opposite", opposite))
        return self.conjugate(found)

    def whole(self, pairs: fx.Node, axis: int, n: int) -> fx.Node:
        rest = self.mirrored(pairs, axis, n)
        return pairs if rest is None else self.make(aten.cat.default, [pairs, rest], axis)

    def transform(self, pairs: fx.Node, axis: int, *, forward: bool) -> fx.Node:
        """Complex values along one axis, not scaled."""
        n = int(pairs.meta["val"].shape[axis])
        if not forward:
            pairs = self.conjugate(pairs)
        both = self.real_transform(self.moved(pairs, _rank(pairs) - 1, 0), axis + 1)
        real, imaginary = (self.make(aten.select.int, both, 0, index) for index in (0, 1))
        turned = self.times_i(imaginary)
        found = self.make(aten.add.Tensor, real, turned)
        rest = self.mirrored(self.make(aten.sub.Tensor, real, turned), axis, n)
        if rest is not None:
            found = self.make(aten.cat.default, [found, rest], axis)
        return found if forward else self.conjugate(found)


# ---------------------------------------------------------------- rules

_Rule = Callable[[_Split, dict[str, Any]], fx.Node | None]


def _sizes(x: fx.Node, axes: Sequence[int]) -> int:
    return math.prod(int(x.meta["val"].shape[axis]) for axis in axes)


def _norm(a: dict[str, Any], count: int) -> float:
    return float(count ** _EXPONENTS[a["normalization"]])


def _r2c(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    x = a["self"]
    axes = [_axis(x, dim) for dim in a["dim"]]
    n = int(x.meta["val"].shape[axes[-1]])
    pairs = s.real_transform(x, axes[-1])
    if not a["onesided"]:
        pairs = s.whole(pairs, axes[-1], n)
    for axis in reversed(axes[:-1]):
        pairs = s.transform(pairs, axis, forward=True)
    return s.scaled(pairs, _norm(a, _sizes(x, axes)))


def _c2c(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    x, pairs = a["self"], s.of(a["self"])
    axes = [_axis(x, dim) for dim in a["dim"]]
    for axis in reversed(axes):
        pairs = s.transform(pairs, axis, forward=a["forward"])
    return s.scaled(pairs, _norm(a, _sizes(x, axes)))


def _c2r(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    x, pairs, n = a["self"], s.of(a["self"]), int(a["last_dim_size"])
    axes = [_axis(x, dim) for dim in a["dim"]]
    for axis in axes[:-1]:
        pairs = s.transform(pairs, axis, forward=False)
    axis, rank = axes[-1], _rank(x)
    pairs = s.moved(pairs, axis, rank - 1)
    *rows, given, _ = pairs.meta["val"].shape
    if given != bins_of(n):
        return None
    made = s.moved(s.make(IRFFT, s.shaped(pairs, [*rows, 2 * given]), n), rank - 1, axis)
    # The operator divides by n.
    factor = _norm(a, _sizes(x, axes[:-1]) * n) * n
    return s.scaled(made, 1.0 if a["normalization"] == 2 and len(axes) == 1 else factor)


def _magnitude(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    root = s.make(aten.sqrt.default, s.power(s.of(a["self"])))
    for reader in list(s.node.users):
        power = reader.target is aten.pow.Tensor_Scalar and reader.args[1] == 2
        if power or (reader.target is aten.mul.Tensor and reader.args[0] is reader.args[1]):
            reader.replace_all_uses_with(root.args[0])  # type: ignore[arg-type]
    return root


def _pairs_of(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    return s.of(a["self"])


def _as_complex(_s: _Split, a: dict[str, Any]) -> fx.Node | None:
    pairs: fx.Node = a["self"]
    return pairs


def _conjugated(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    return s.conjugate(s.of(a["self"]))


def _part(index: int) -> _Rule:
    return lambda s, a: s.part(s.of(a["self"]), index)


def _joined(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    return s.join(a["real"], a["imag"])


def _multiplied(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    left, right = a["self"], a["other"]
    if not _is_complex(left) and isinstance(left, fx.Node) and _is_complex(right):
        left, right = right, left
    if isinstance(right, (bool, int, float)):
        return s.make(aten.mul.Tensor, s.of(left), right)
    if isinstance(right, fx.Node) and not _is_complex(right):
        return s.make(aten.mul.Tensor, s.of(left), s.make(aten.unsqueeze.default, right, _rank(right)))
    return s.product(s.of(left), s.of(right))


def _divided(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    left, right = a["self"], a["other"]
    if isinstance(right, (bool, int, float)):
        return s.make(aten.div.Tensor, s.of(left), right)
    if isinstance(right, fx.Node) and not _is_complex(right):
        return s.make(aten.div.Tensor, s.of(left), s.make(aten.unsqueeze.default, right, _rank(right)))
    divisor = s.of(right)
    power = s.power(divisor)
    above = s.product(s.of(left), s.conjugate(divisor))
    return s.make(aten.div.Tensor, above, s.make(aten.unsqueeze.default, power, _rank(power)))


def _summed(target: Any) -> _Rule:
    def rule(s: _Split, a: dict[str, Any]) -> fx.Node | None:
        if a.get("alpha", 1) != 1:
            return None
        return s.make(target, s.of(a["self"]), s.of(a["other"]))

    return rule


def _converted(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    """A copy; of real values as complex ones, too. Complex ones as real lose a part, at which torch warns."""
    wanted = s.node.meta["val"].dtype
    return s.of(a["self"]) if wanted is torch.complex64 else None


def _same(target: Any) -> _Rule:
    return lambda s, a: s.make(target, s.of(a["self"]))


def _resized(target: Any, last: int) -> _Rule:
    """The shape is an argument, `size` or `repeats`."""

    def rule(s: _Split, a: dict[str, Any]) -> fx.Node | None:
        size = a["size"] if "size" in a else a["repeats"]
        return s.make(target, s.of(a["self"]), [*size, last])

    return rule


def _along(target: Any, *names: str, more: int = 0) -> _Rule:
    """names: the other arguments, `dim`, one or several, first of them. more: axes that the result has more."""

    def rule(s: _Split, a: dict[str, Any]) -> fx.Node | None:
        x, dim = a["self"], a["dim" if "dim" in a else "dims"]
        if dim is None:
            dim = list(range(_rank(x)))
        axes = _axis(x, dim, more) if isinstance(dim, int) else [_axis(x, d, more) for d in dim]
        return s.make(target, s.of(x), axes, *(a[name] for name in names))

    return rule


def _permuted(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    x = a["self"]
    return s.make(aten.permute.default, s.of(x), [*(_axis(x, d) for d in a["dims"]), _rank(x)])


def _swapped(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    x = a["self"]
    return s.make(aten.transpose.int, s.of(x), _axis(x, a["dim0"]), _axis(x, a["dim1"]))


def _together(target: Any, more: int) -> _Rule:
    def rule(s: _Split, a: dict[str, Any]) -> fx.Node | None:
        tensors = a["tensors"]
        return s.make(target, [s.of(x) for x in tensors], _axis(tensors[0], a["dim"], more))

    return rule


def _padded(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    """With zeros."""
    if a.get("value") or a.get("mode", "constant") != "constant":
        return None
    return s.make(aten.constant_pad_nd.default, s.of(a["self"]), [0, 0, *a["pad"]], 0.0)


def _indexed(s: _Split, a: dict[str, Any]) -> fx.Node | None:
    if any(index is not None and index.meta["val"].dtype is torch.bool for index in a["indices"]):
        return None
    return s.make(aten.index.Tensor, s.of(a["self"]), a["indices"])


_RULES: dict[object, _Rule] = {
    aten._fft_r2c.default: _r2c,
    aten._fft_c2c.default: _c2c,
    aten._fft_c2r.default: _c2r,
    aten.abs.default: _magnitude,
    aten.view_as_real.default: _pairs_of,
    aten.view_as_complex.default: _as_complex,
    aten.real.default: _part(0),
    aten.imag.default: _part(1),
    aten.complex.default: _joined,
    **dict.fromkeys(
        (aten._conj.default, aten._conj_physical.default, aten.conj_physical.default), _conjugated
    ),
    aten.resolve_conj.default: _pairs_of,
    **dict.fromkeys((aten.mul.Tensor, aten.mul.Scalar), _multiplied),
    **dict.fromkeys((aten.div.Tensor, aten.div.Scalar), _divided),
    **dict.fromkeys((aten.add.Tensor, aten.add.Scalar), _summed(aten.add.Tensor)),
    **dict.fromkeys((aten.sub.Tensor, aten.sub.Scalar), _summed(aten.sub.Tensor)),
    aten.neg.default: _same(aten.neg.default),
    **dict.fromkeys((aten.clone.default, aten.alias.default, aten.detach.default), _pairs_of),
    aten._to_copy.default: _converted,
    **dict.fromkeys(
        (aten.view.default, aten.reshape.default, aten._unsafe_view.default),
        _resized(aten.reshape.default, 2),
    ),
    aten.expand.default: _resized(aten.expand.default, 2),
    aten.repeat.default: _resized(aten.repeat.default, 1),
    aten.permute.default: _permuted,
    aten.transpose.int: _swapped,
    aten.unsqueeze.default: _along(aten.unsqueeze.default, more=1),
    aten.squeeze.dim: _along(aten.squeeze.dim),
    aten.squeeze.dims: _along(aten.squeeze.dims),
    aten.select.int: _along(aten.select.int, "index"),
    aten.slice.Tensor: _along(aten.slice.Tensor, "start", "end", "step"),
    aten.index_select.default: _along(aten.index_select.default, "index"),
    aten.flip.default: _along(aten.flip.default),
    aten.sum.dim_IntList: _along(aten.sum.dim_IntList, "keepdim"),
    aten.mean.dim: _along(aten.mean.dim, "keepdim"),
    aten.cat.default: _together(aten.cat.default, 0),
    aten.stack.default: _together(aten.stack.default, 1),
    **dict.fromkeys((aten.constant_pad_nd.default, aten.pad.default), _padded),
    aten.index.Tensor: _indexed,
}
"""Operators on complex values → what they are on pairs; None where that is not all that they can do."""

# SPDX-License-Identifier: Apache-2.0
"""Which channels of a graph can go without changing a bit of its outputs.

Three steps. *Follow*: each value's channel axis, and the groups of channels that stay or go together, through the whole
graph. *Know*: channels that hold one value everywhere, for all inputs; the operators' own references compute it.
*Decide*: a group goes if every layer that sums one of its channels does so with weights of zero, or knows the
channel's value and can add its share to the bias instead.

Floats: a share must be zero, of either sign. Sums start from the bias, never from -0, so they never become -0, and
adding a zero of either sign to them changes no bit. (A float value that is infinite or NaN times a weight of 0 is NaN:
that is not kept. Inputs are finite; only a model that overflows computes such values.)
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tinyet.ir import Array, DType, Graph, Node, Tensor
from tinyet.ops import evaluate, op_of
from tinyet.ops.batch_norm import BatchNorm, channels
from tinyet.ops.conv_transpose2d import ConvTranspose2d, reach
from tinyet.ops.mul import Mul
from tinyet.opset import Index as LoopIndex
from tinyet.opset import described
from tinyet.opset.iteration import contractions
from tinyet.passes.prune_rules import Cut, Flow, Index, Product, Unions, Weights, flow_of, narrow

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Known:
    """Channels of a value that are constant: which, and their values (anything elsewhere)."""

    mask: Mask
    values: Array


class Channels:
    """The channels of a graph: axes, flows, and the groups that stay or go together."""

    def __init__(self, graph: Graph) -> None:
        self.axes: dict[Tensor, int] = {}
        self.flows: dict[Node, Flow] = {}
        for node in graph.nodes:
            flow = flow_of(node, self.axes)
            if flow is not None:
                self.flows[node] = flow
                if flow.axis is not None:
                    self.axes[node.output] = flow.axis
        self._start: dict[Tensor, int] = {}
        count = 0
        for tensor, axis in self.axes.items():
            self._start[tensor] = count
            count += tensor.shape[axis]
        unions = Unions(count)
        for node, flow in self.flows.items():
            for link in flow.links:
                source = self._start[node.input(link.index)] + link.source
                unions.join(source, self._start[node.output] + link.target)
            for product in flow.products:
                x, other = node.input(product.index), node.input(product.other)
                if not other.is_constant:
                    every = np.arange(x.shape[product.axis], dtype=np.intp)
                    unions.join(self._start[x] + every, self._start[other] + every)
        self._roots = unions.roots()

    def groups(self, tensor: Tensor) -> Index:
        """The group of each channel of a value that has an axis."""
        start = self._start[tensor]
        return self._roots[start : start + tensor.shape[self.axes[tensor]]]

    def kept_by(self, groups: set[int], *tensors: Tensor | None) -> dict[Tensor, Index]:
        """Of these tensors, the channels that belong to one of the groups; tensors that keep all left out."""
        kept = {}
        for tensor in tensors:
            if tensor is not None and tensor in self.axes:
                mask = np.isin(self.groups(tensor), list(groups))
                if not mask.all():
                    kept[tensor] = np.flatnonzero(mask)
        return kept


# ---------------------------------------------------------------- constant channels


def known_channels(found: Channels) -> dict[Tensor, Known]:
    """For each value that has some, the channels that are the same number at every position for every input."""
    known: dict[Tensor, Known] = {}
    for node, flow in found.flows.items():
        if flow.axis is None:
            continue
        mask = _candidates(node, flow, flow.axis, known)
        if mask.any():
            values = _evaluated(node, flow.axis, found, mask, known)
            first = values[:, :1]
            same = (values == first).all(axis=1) & np.isfinite(first[:, 0])
            if (mask & same).any():
                known[node.output] = Known(mask & same, first[:, 0])
    return known


def _candidates(node: Node, flow: Flow, axis: int, known: Mapping[Tensor, Known]) -> Mask:
    """Channels of the output that depend on known channels only; padding may still disturb them."""
    weights = flow.weights
    if weights is not None:
        used, x = weights.read(node), node.input(0)
        if x in known and (flow.products or flow.links):
            unknown = ~known[x].mask
            if weights.whole:
                unknown |= known[x].values != 0
            ins, outs = used.shape[1], used.shape[0] // weights.groups
            for group in range(weights.groups):
                used[group * outs : (group + 1) * outs] &= unknown[group * ins : (group + 1) * ins]
        return np.asarray(~used.any(axis=1))
    mask = np.ones(node.output.shape[axis], np.bool_)
    if not (flow.links or flow.bounded):
        return ~mask
    linked = {*(link.index for link in flow.links), *flow.bounded}
    if any(t is not None and not t.is_constant and i not in linked for i, t in enumerate(node.inputs)):
        mask[:] = False
    for link in flow.links:
        source = known.get(node.input(link.index))
        mask[link.target[~source.mask[link.source]] if source is not None else link.target] = False
    mask[flow.fixed] = False
    return mask | _absorbed(node, flow, axis, known)


def _absorbed(node: Node, flow: Flow, axis: int, known: Mapping[Tensor, Known]) -> Mask:
    """Channels multiplied by 0, which is constant for any other factor."""
    result = np.zeros(node.output.shape[axis], np.bool_)
    space = described(op_of(node), node)
    if space is not None and len(flow.links) == 1 and contractions(space):
        # One matrix by another: what a channel of the one is multiplied with makes no difference.
        (link,) = flow.links
        x = node.input(link.index)
        if x in known and len(link.source) == len(result) and node.inputs.count(x) == 1:
            result[link.target] |= _zeros(x, known)[link.source]
        return result
    if isinstance(node.attrs, BatchNorm) and node.attrs.axis == axis:
        if node.output.dtype is not DType.FLOAT32:
            return np.asarray(channels(node).weight == 0)
        # 0 * x is a zero of either sign; only an offset of -0 would show which.
        offset = node.input(2).array
        return np.asarray(
            (node.input(1).array == 0) & ~((offset == 0) & np.signbit(offset.astype(np.float32)))
        )
    if isinstance(node.attrs, Mul) and node.output.dtype is not DType.FLOAT32:
        for tensor in (node.input(0), node.input(1)):
            zero = tensor.type.zero_point
            if tensor.is_constant:
                spread = np.broadcast_to(tensor.array == zero, node.output.shape)
                others = tuple(a for a in range(spread.ndim) if a != axis)
                result |= spread.all(axis=others)
            elif tensor in known and len(known[tensor].mask) == len(result):
                result |= known[tensor].mask & (known[tensor].values == zero)
    return result


def _zeros(tensor: Tensor, known: Mapping[Tensor, Known]) -> Mask:
    """The channels of a value of which some are known that stand for 0."""
    quant, of = tensor.type.quant, known[tensor]
    return np.asarray(of.mask & (of.values == (0 if quant is None else quant.one_zero_point)))


def _evaluated(node: Node, axis: int, found: Channels, wanted: Mask, known: Mapping[Tensor, Known]) -> Array:
    """The output by the node's reference, (channels, positions): right for the wanted channels. Unknown inputs, which
    these do not depend on, are 0."""
    x, weights = node.input(0), found.flows[node].weights
    kept: dict[Tensor, Index] = {}
    if weights is not None:
        groups = set(found.groups(node.output)[wanted].tolist())
        kept = found.kept_by(groups, *node.outputs)
        if weights.groups > 1:
            kept |= found.kept_by(groups, x)
        elif found.flows[node].products:
            read = np.flatnonzero(weights.read(node)[wanted].any(axis=0))
            kept[x] = read if len(read) else np.zeros(1, np.intp)
    small = narrow(node, Cut(found.axes, kept))
    arrays: list[Array | None] = []
    for whole, part in itertools.zip_longest(node.inputs, small.inputs):
        if whole is None or part is None or part.is_constant:
            arrays.append(None if part is None else part.data)
        else:
            arrays.append(_filled(whole, part, found, kept, known))
    (result,) = evaluate(small, arrays)
    flat = np.moveaxis(result, axis, 0).reshape(result.shape[axis], -1)
    values = np.zeros((len(wanted), flat.shape[1]), flat.dtype)
    values[kept.get(node.output, np.arange(len(wanted)))] = flat
    return values


def _filled(
    tensor: Tensor, cut: Tensor, found: Channels, kept: Mapping[Tensor, Index], known: Mapping[Tensor, Known]
) -> Array:
    """The known channels of a value that a node reads, as far as they are kept; the real number 0 elsewhere."""
    quant = tensor.type.quant
    zero = 0 if quant is None or tensor.dtype is DType.FLOAT32 else quant.one_zero_point
    result = np.full(cut.shape, zero, cut.dtype.numpy)
    if tensor in known:
        axis = found.axes[tensor]
        values = np.where(known[tensor].mask, known[tensor].values, zero)
        across = [1] * len(cut.shape)
        across[axis] = -1
        result[...] = values[kept.get(tensor, np.arange(len(values)))].reshape(across)
    return result


# ---------------------------------------------------------------- removable channels


def removable(
    graph: Graph, found: Channels, known: Mapping[Tensor, Known]
) -> tuple[dict[Tensor, Index], dict[Node, Array]]:
    """(remaining channels, of each value that loses some; terms added to biases, for each node that sums)."""
    stay: set[int] = set()
    for tensor in graph.outputs:
        if tensor in found.axes:
            stay.update(found.groups(tensor).tolist())
    shares: dict[Node, Array] = {}
    for node in graph.nodes:
        flow = found.flows.get(node)
        linked = set() if flow is None else {link.index for link in flow.links}
        if flow is not None and flow.axis is not None:
            stay.update(found.groups(node.output)[flow.fixed].tolist())
        for index, read in enumerate(node.inputs):
            if read is None or read not in found.axes or index in linked:
                continue
            products = () if flow is None else flow.products
            product = next((p for p in products if p.index == index), None)
            if flow is None or product is None:
                stay.update(found.groups(read).tolist())
                continue
            needed = np.ones(read.shape[product.axis], np.bool_)
            for factor in (read, node.input(product.other)):
                if factor in known:
                    needed &= ~_zeros(factor, known)
            if flow.weights is not None:
                shares[node], needed = _shares(node, flow.weights, known.get(read))
            elif node.input(product.other).is_constant:
                needed &= _used(node, product)
            stay.update(found.groups(read)[needed].tolist())
    for tensor in found.axes:
        groups = found.groups(tensor).tolist()
        if not stay.intersection(groups):
            stay.add(groups[0])
    kept = found.kept_by(stay, *found.axes)
    folds = {}
    for node, share in shares.items():
        if node.input(0) in kept and share.any():
            gone = np.ones(share.shape[1], np.bool_)
            gone[kept[node.input(0)]] = False
            folds[node] = share[:, gone].sum(axis=1)
    return kept, folds


def _used(node: Node, product: Product) -> Mask:
    """Which channels a constant multiplies with anything but zeros."""
    constant = node.input(product.other)
    zero = (
        0 if constant.type.quant is None or constant.type.quant.axis is not None else constant.type.zero_point
    )
    others = tuple(a for a in range(len(constant.shape)) if a != product.other_axis)
    return np.asarray((constant.array != zero).any(axis=others))


def _shares(node: Node, weights: Weights, known: Known | None) -> tuple[Array, Mask]:
    """(share of each input channel in each output's sum, int64 (outputs, inputs); which inputs must stay).

    A share is the same at every position, or the channel must stay: padding makes it differ where a window reads a
    value other than the zero point. Where the input is quantized at run time, its range always includes 0, so that a
    channel of zeros is not missed; any other is.
    """
    flat = weights.by_channel(node)
    used = (flat != 0).any(axis=(0, 1))
    shares = np.zeros((len(flat), len(used)), np.int64)
    if known is None:
        return shares, np.ones_like(used) if weights.whole else used
    if weights.whole:
        return shares, np.asarray(~(known.mask & (known.values == 0)))
    if node.input(0).dtype is DType.FLOAT32:
        finite = np.isfinite(flat).all(axis=(0, 1))
        return shares, np.asarray(used & ~(known.mask & (known.values == 0) & finite))
    at = np.flatnonzero(used & known.mask)
    levels = known.values[at].astype(np.int64) - node.input(0).type.zero_point
    if op_of(node).bias is None:
        used[at[levels == 0]] = False
        return shares, used
    # (patterns of taps inside the image, outputs, channels)
    sums = (
        np.einsum("pt,otk->pok", _coverage(node, weights).astype(np.int64), flat[:, :, at].astype(np.int64))
        * levels
    )
    constant = (sums == sums[:1]).all(axis=(0, 1))
    shares[:, at[constant]] = sums[0][:, constant]
    used[at[constant]] = False
    return shares, used


def _coverage(node: Node, weights: Weights) -> Mask:
    """Which taps of the kernel read the image, for each output position that differs in it: (patterns, taps)."""
    patterns = np.ones((1, 1), np.bool_)
    for axis in range(len(node.input(weights.index).shape)):
        if axis not in (weights.out_axis, weights.in_axis):
            inside = _inside(node, weights, axis)
            both = patterns[:, None, :, None] & inside[None, :, None, :]
            patterns = both.reshape(len(patterns) * len(inside), -1)
    return np.unique(patterns, axis=0)


def _inside(node: Node, weights: Weights, axis: int) -> Mask:
    """(output positions along the image's axis, taps along this axis of the weights): whether a tap reads a pixel."""
    size, count, taps = node.input(0).shape[axis], node.output.shape[axis], node.input(1).shape[axis]
    a = node.attrs
    if isinstance(a, ConvTranspose2d):
        # Which tap it is that reads a pixel, its iteration leaves open.
        stride, dilation = ((a.stride_h, a.dilation_h), (a.stride_w, a.dilation_w))[axis - 1]
        before = (a.pad_top, a.pad_left)[axis - 1]
        return np.stack([reach(count, size, tap, stride, dilation, before)[1] for tap in range(taps)], axis=1)
    space = described(op_of(node), node)
    assert space is not None
    made, read = space.inputs[weights.index], space.inputs[0]
    assert made is not None
    assert read is not None
    (tap,) = made.axes[axis].dims
    place = next(place for place in read.axes if tap in place.dims)
    assert isinstance(place, LoopIndex)
    dims = (*(dim for dim in place.dims if dim != tap), tap)
    factor = dict(place.terms)
    at = np.indices([space.dims[dim].size for dim in dims])
    found = sum((factor[dim] * each for dim, each in zip(dims, at, strict=True)), np.intp(place.offset))
    return np.asarray((found >= 0) & (found < size)).reshape(-1, taps)

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
from tinyet.ops import evaluate
from tinyet.ops.batch_norm import BatchNorm, channels
from tinyet.ops.conv2d import Conv2d
from tinyet.ops.conv_transpose2d import ConvTranspose2d, reach
from tinyet.ops.mul import Mul
from tinyet.ops.shared.window import pad_image, taps
from tinyet.passes.prune_rules import DYNAMIC, WEIGHTED, Cut, Flow, Index, Unions, flow_of, groups_of, narrow

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
        mask = _candidates(node, flow, known)
        if mask.any():
            values = _evaluated(node, found, mask, known)
            first = values[:, :1]
            same = (values == first).all(axis=1) & np.isfinite(first[:, 0])
            if (mask & same).any():
                known[node.output] = Known(mask & same, first[:, 0])
    return known


def _candidates(node: Node, flow: Flow, known: Mapping[Tensor, Known]) -> Mask:
    """Channels of the output that depend on known channels only; padding may still disturb them."""
    if isinstance(node.attrs, WEIGHTED):
        used = read_inputs(node)
        if node.input(0) in known and (flow.sums or flow.links):
            unknown = ~known[node.input(0)].mask
            if isinstance(node.attrs, DYNAMIC):
                unknown |= known[node.input(0)].values != 0
            ins, outs = used.shape[1], used.shape[0] // groups_of(node)
            for group in range(groups_of(node)):
                used[group * outs : (group + 1) * outs] &= unknown[group * ins : (group + 1) * ins]
        return np.asarray(~used.any(axis=1))
    mask = np.ones(node.output.shape[flow.axis], np.bool_)
    if not flow.links:
        return ~mask
    linked = {link.index for link in flow.links}
    if any(t is not None and not t.is_constant and i not in linked for i, t in enumerate(node.inputs)):
        mask[:] = False
    for link in flow.links:
        source = known.get(node.input(link.index))
        mask[link.target[~source.mask[link.source]] if source is not None else link.target] = False
    mask[flow.fixed] = False
    return mask | _absorbed(node, flow, known)


def read_inputs(node: Node) -> Mask:
    """(outputs, inputs of its group): whether the one reads the other at all."""
    weights = node.input(1).array
    return np.asarray((weights.reshape(len(weights), -1, weights.shape[-1]) != 0).any(axis=1))


def _absorbed(node: Node, flow: Flow, known: Mapping[Tensor, Known]) -> Mask:
    """Channels multiplied by 0, which is constant for any other factor."""
    result = np.zeros(node.output.shape[flow.axis], np.bool_)
    if isinstance(node.attrs, BatchNorm):
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
                others = tuple(a for a in range(spread.ndim) if a != flow.axis)
                result |= spread.all(axis=others)
            elif tensor in known and len(known[tensor].mask) == len(result):
                result |= known[tensor].mask & (known[tensor].values == zero)
    return result


def _evaluated(node: Node, found: Channels, wanted: Mask, known: Mapping[Tensor, Known]) -> Array:
    """The output by the node's reference, (channels, positions): right for the wanted channels. Unknown inputs, which
    these do not depend on, are 0."""
    x, axis = node.input(0), found.flows[node].axis
    kept: dict[Tensor, Index] = {}
    if isinstance(node.attrs, WEIGHTED):
        groups = set(found.groups(node.output)[wanted].tolist())
        kept = found.kept_by(groups, *node.outputs)
        if groups_of(node) > 1:
            kept |= found.kept_by(groups, x)
        elif found.flows[node].sums:
            read = np.flatnonzero(read_inputs(node)[wanted].any(axis=0))
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
        if flow is not None:
            stay.update(found.groups(node.output)[flow.fixed].tolist())
        for index, read in enumerate(node.inputs):
            if read is None or read not in found.axes or index in linked:
                continue
            if flow is not None and flow.sums and index == 0:
                shares[node], needed = _shares(node, known.get(read))
                stay.update(found.groups(read)[needed].tolist())
            else:
                stay.update(found.groups(read).tolist())
    for tensor in found.axes:
        groups = found.groups(tensor).tolist()
        if not stay.intersection(groups):
            stay.add(groups[0])
    kept = found.kept_by(stay, *found.axes)
    folds = {}
    for node, share in shares.items():
        if node.input(0) in kept:
            gone = np.ones(share.shape[1], np.bool_)
            gone[kept[node.input(0)]] = False
            folds[node] = share[:, gone].sum(axis=1)
    return kept, folds


def _shares(node: Node, known: Known | None) -> tuple[Array, Mask]:
    """(share of each input channel in each output's sum, int64 (outputs, inputs); which inputs must stay).

    A share is the same at every position, or the channel must stay: padding makes it differ where a window reads a
    value other than the zero point. Where the input is quantized at run time, its range always includes 0, so that a
    channel of zeros is not missed; any other is.
    """
    weights = node.input(1).array
    flat = weights.reshape(len(weights), -1, weights.shape[-1])
    used = (flat != 0).any(axis=(0, 1))
    shares = np.zeros((len(weights), len(used)), np.int64)
    if known is None:
        return shares, np.ones_like(used) if isinstance(node.attrs, DYNAMIC) else used
    if isinstance(node.attrs, DYNAMIC):
        return shares, np.asarray(~(known.mask & (known.values == 0)))
    if node.input(0).dtype is DType.FLOAT32:
        finite = np.isfinite(flat).all(axis=(0, 1))
        return shares, np.asarray(used & ~(known.mask & (known.values == 0) & finite))
    at = np.flatnonzero(used & known.mask)
    levels = known.values[at].astype(np.int64) - node.input(0).type.zero_point
    # (patterns of taps inside the image, outputs, channels)
    sums = (
        np.einsum("pt,otk->pok", _coverage(node).astype(np.int64), flat[:, :, at].astype(np.int64)) * levels
    )
    constant = (sums == sums[:1]).all(axis=(0, 1))
    shares[:, at[constant]] = sums[0][:, constant]
    used[at[constant]] = False
    return shares, used


def _coverage(node: Node) -> Mask:
    """Which taps of the kernel read the image, for each output position that differs in it: (patterns, taps)."""
    a = node.attrs
    if isinstance(a, Conv2d):
        _, in_h, in_w, _ = node.input(0).shape
        _, out_h, out_w, _ = node.output.shape
        _, kernel_h, kernel_w, _ = node.input(1).shape
        inside = pad_image(np.ones((1, in_h, in_w, 1), np.bool_), a, 0)
        views = [v.ravel() for v in taps(inside, a, kernel_h, kernel_w, out_h, out_w)]
        return np.unique(np.stack(views, axis=1), axis=0)
    if isinstance(a, ConvTranspose2d):
        _, in_h, in_w, _ = node.input(0).shape
        _, out_h, out_w, _ = node.output.shape
        _, kernel_h, kernel_w, _ = node.input(1).shape
        rows = [reach(out_h, in_h, i, a.stride_h, a.dilation_h, a.pad_top)[1] for i in range(kernel_h)]
        columns = [reach(out_w, in_w, j, a.stride_w, a.dilation_w, a.pad_left)[1] for j in range(kernel_w)]
        return np.unique(np.stack([(r[:, None] & c).ravel() for r in rows for c in columns], axis=1), axis=0)
    return np.ones((1, 1), np.bool_)

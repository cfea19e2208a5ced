# SPDX-License-Identifier: Apache-2.0
"""A graph and the module that was made of it, run on the same drawn inputs and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tinyet.errors import InternalError, UnsupportedShape
from tinyet.ir import Array, DType, Graph, Tensor
from tinyet.messages.text import shown
from tinyet.reference.nearly import NearSession
from tinyet.to_module.network import Network

_DRAWS = 3
"""Answers of one draw are enough: a step such as round() or argmax gives two runs, one bit apart, quite other values,
but not of each draw."""

_RUNS = 2
"""One behind another of a graph with states, from the first ones."""

_TOLERANCE = 1e-4
"""Of the largest value of an output: both add up float32, in other orders."""


def drawn(graph: Graph, seed: int) -> list[Array]:
    """An array for each input. int32 are indices, which any table has at 0 and 1."""
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    for tensor in graph.user_inputs:
        if tensor.dtype is DType.FLOAT32:
            found.append(rng.normal(0.0, 1.0, tensor.shape).astype(np.float32))
        else:
            most = 2 if tensor.dtype is DType.INT32 else 128
            found.append(rng.integers(0, most, tensor.shape).astype(tensor.dtype.numpy))
    return found


def prove(graph: Graph, network: Network, file: str) -> None:
    """Raise InternalError, with the output, where the module's answers are not the graph's. Its states are put back."""
    first = {name: buffer.clone() for name, buffer in network.named_buffers()}
    worst = ""
    try:
        for seed in range(_DRAWS):
            worst = _difference(graph, network, seed, file)
            if not worst:
                return
            _put_back(network, first)
    finally:
        _put_back(network, first)
    raise InternalError(
        f"as a torch module, which calibration and training need, the model computes otherwise: {worst}", file
    )


def _put_back(network: Network, first: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for path, _, _ in network.states:
            network.get_buffer(path).copy_(first[path])


def _run(network: Network, arrays: Sequence[Array], file: str) -> Any:
    """The module's results. Raises UnsupportedShape where torch has none: it lacks a type, or a shape."""
    try:
        with torch.no_grad():
            return network(*(torch.from_numpy(array.copy()) for array in arrays))
    # What torch raises for these has no common base.
    except Exception as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnsupportedShape(f"torch cannot compute the model: {shown(text, 160)}", file) from error


def _difference(graph: Graph, network: Network, seed: int, file: str) -> str:
    """The first output that differs, and by how much; empty where none does."""
    session = NearSession(graph)
    for run in range(_RUNS if graph.initial else 1):
        arrays = drawn(graph, seed * _RUNS + run)
        with np.errstate(all="ignore"):
            values = session.values(arrays)
        results = _run(network, arrays, file)
        found = results if isinstance(results, tuple) else (results,)
        for tensor, result in zip(graph.user_outputs, found, strict=True):
            text = differs(tensor, values[tensor], result.numpy())
            if text:
                return text
        kept = [network.get_buffer(path).numpy() for path, _, _ in network.states]
        for state, array in zip(graph.states, kept, strict=True):
            text = differs(state.value, values[state.next], array)
            if text:
                return text
    return ""


def differs(tensor: Tensor, wanted: Array, found: Array) -> str:
    """How a value differs from what is wanted; empty where it does not, by more than rounding."""
    if tuple(found.shape) != tensor.shape:
        return f"{tensor.name} has shape {list(found.shape)}, not {list(tensor.shape)}"
    if tensor.dtype is not DType.FLOAT32:
        count = int((found.astype(np.int64) != wanted.astype(np.int64)).sum())
        return f"{count} of {wanted.size} elements of {tensor.name} differ" if count else ""
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    finite = np.isfinite(wanted) & np.isfinite(found)
    if not (same | finite).all():
        return f"{tensor.name} is not finite in the same places"
    scale = float(np.abs(wanted[finite]).max(initial=0.0))
    apart = float(np.abs(wanted[finite].astype(np.float64) - found[finite].astype(np.float64)).max(initial=0))
    if apart > _TOLERANCE * scale + 1e-30:
        return f"{tensor.name} by {apart:.3g}, where its largest value is {scale:.3g}"
    return ""

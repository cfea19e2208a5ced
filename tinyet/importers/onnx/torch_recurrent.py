# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN of ONNX as torch's: the gates in torch's order, the results in ONNX's layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from tinyet.errors import RefusedError
from tinyet.importers.onnx.torch_steps import Build, Function, Step

# torch's gates by their places in ONNX's: i o f c → i f c o; z r h → r z h.
_LSTM, _GRU, _RNN = (0, 2, 3, 1), (1, 0, 2), (0,)


def lstm(b: Build) -> Function:
    if b.has(7) and np.any(b.constant(7, "peepholes")):
        raise RefusedError("has peepholes", "leave them away")
    if b.attribute("input_forget", 0):
        raise RefusedError("couples its input and forget gates")
    return _layer(b, nn.LSTM, _LSTM, ("Sigmoid", "Tanh", "Tanh"), (5, 6))


def gru(b: Build) -> Function:
    if not b.attribute("linear_before_reset", 0):
        raise RefusedError(
            "resets before its matrix (linear_before_reset 0)", "export torch's own, which resets after"
        )
    return _layer(b, nn.GRU, _GRU, ("Sigmoid", "Tanh"), (5,))


def rnn(b: Build) -> Function:
    return _layer(b, nn.RNN, _RNN, ("Tanh",), (5,))


def _layer(
    b: Build,
    kind: type[nn.LSTM | nn.GRU | nn.RNN],
    gates: Sequence[int],
    activations: Sequence[str],
    states: Sequence[int],
) -> Function:
    direction = b.attribute("direction", "forward")
    if direction not in ("forward", "bidirectional"):
        raise RefusedError(f"goes {direction[:40]!r}", "forward, or both ways")
    directions = 1 + (direction == "bidirectional")
    given = b.attribute("activations", list(activations) * directions)
    if [str(a).lower() for a in given] != [a.lower() for a in activations] * directions or b.has(4):
        raise RefusedError("has other activations, or lengths of sequences", "the usual ones")
    if b.attribute("layout", 0) or b.node.attributes.get("clip"):
        raise RefusedError("has layout 1, or clips", "layout 0")
    for position in states:
        if b.has(position) and np.any(b.constant(position, "first state")):
            raise RefusedError("begins with a state other than zero")
    w, r = b.constant(1, "weights"), b.constant(2, "recurrent weights")
    size, count = b.attribute("hidden_size", 0), len(gates)
    if w.shape[:2] != (directions, count * size) or r.shape != (directions, count * size, size):
        raise RefusedError(f"has weights {w.shape} and {r.shape} for {size} units")
    biases = b.constant(3, "bias") if b.has(3) else np.zeros((directions, 2 * count * size), np.float32)
    if biases.shape != (directions, 2 * count * size):
        raise RefusedError(f"has a bias {biases.shape}")
    layer = kind(w.shape[2], size, bidirectional=directions == 2)
    parameters = dict(layer.named_parameters())
    for place in range(directions):
        behind = "_reverse" if place else ""
        halves = np.split(biases[place], 2)
        for name, data in (
            ("weight_ih", w[place]),
            ("weight_hh", r[place]),
            ("bias_ih", halves[0]),
            ("bias_hh", halves[1]),
        ):
            parts = np.split(np.asarray(data, np.float32), count)
            ordered = np.concatenate([parts[g] for g in gates])
            parameters[f"{name}_l0{behind}"].data.copy_(torch.from_numpy(ordered))
    b.step.add_module("layer", layer)

    def run(step: Step, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, last = step.layer(x)  # type: ignore[operator]
        time, batch = x.shape[:2]
        y = out.reshape(time, batch, directions, size).permute(0, 2, 1, 3)
        return (y, *last) if isinstance(last, tuple) else (y, last)

    return run

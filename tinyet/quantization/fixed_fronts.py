# SPDX-License-Identifier: Apache-2.0
"""Which spectra are computed in fixed point: those that are told to, and of the others those that lose nothing by it.

A module whose arithmetic is "auto" is in fixed point where on some of the calibration data what it gives is as near to
real numbers as ENOUGH; without calibration data it is in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet import ops
from tinyet.fx.edit import bind
from tinyet.fx.exact import call, narrow, widen
from tinyet.fx.examples import Inputs
from tinyet.fx.fixed_point import has_log_bands, in_float
from tinyet.fx.log_bands_ops import AUTO, FLOAT, LOG_BANDS
from tinyet.fx.log_filter import quiet
from tinyet.fx.origins import origin_of
from tinyet.ir import ITSELF, DType, Node, Note, QuantParams, Tensor, TensorType, constant
from tinyet.ops.log_bands import SCALE, LogBands

ENOUGH = 30.0
"""dB between what a spectrum's logarithms move by and their error: what fronts in integers aim at (`fronts.AIM`)."""
MOST_SAMPLES = 8


def node_of(name: str, shape: Sequence[int], attrs: LogBands, window: Any, filters: Any) -> Node:
    """The operator on frames of this shape. window, filters: arrays of float32."""
    x = Tensor(f"{name}_x", TensorType(tuple(shape), DType.INT16, ITSELF))
    rows = (*shape[:-1], filters.shape[0])
    y = Tensor(name, TensorType(rows, DType.INT16, QuantParams.per_tensor(SCALE, 0)))
    held = (constant(f"{name}_window", window), constant(f"{name}_filters", filters))
    return Node(attrs, (x, *held), (y,))


def choose(program: ExportedProgram, samples: Sequence[Inputs]) -> tuple[ExportedProgram, tuple[Note, ...]]:
    """The program with each spectrum in float32 spelled out, and the others in fixed point; and why.

    samples: inputs of the program's shapes, of which MOST_SAMPLES are looked at; none where there is no data.
    """
    if not has_log_bands(program):
        return program, ()
    step = max(len(samples) / MOST_SAMPLES, 1)
    chosen = [samples[int(i * step)] for i in range(min(len(samples), MOST_SAMPLES))]
    with quiet():
        seen = _Seen(program.module(check_guards=False))
        for inputs in chosen:
            seen.run(*inputs)
    floats, notes = set(), []
    for node, trials in seen.trials.items():
        origin, arithmetic = origin_of(node), bind(node)["arithmetic"]
        if arithmetic == FLOAT:
            floats.add(origin.key)
            continue
        quality, why = _quality(node, trials)
        if arithmetic != AUTO:
            if quality < ENOUGH and trials:
                notes.append(Note(f"a spectrum is computed in fixed point, as told: {why}", origin))
        elif quality >= ENOUGH:
            notes.append(
                Note(
                    f"a spectrum is computed in fixed point: {quality:.1f} dB of its logarithms are left",
                    origin,
                )
            )
        else:
            floats.add(origin.key)
            notes.append(Note(f"a spectrum stays in float32: in fixed point, {why}", origin))
    return in_float(program, floats), tuple(notes)


class _Seen(fx.Interpreter):
    """trials: of each of the operators, what it took and gave (in float64) on each sample."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.trials: dict[fx.Node, list[tuple[tuple[Any, ...], torch.Tensor]]] = {
            node: [] for node in module.graph.nodes if node.target is LOG_BANDS
        }

    def run_node(self, n: fx.Node) -> Any:
        if n.op != "call_function":
            return super().run_node(n)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        found = call(n.target, widen(args), widen(kwargs))
        if n in self.trials:
            self.trials[n].append((args, found))
        return narrow(found)


def _quality(node: fx.Node, trials: Sequence[tuple[tuple[Any, ...], torch.Tensor]]) -> tuple[float, str]:
    """dB, and the reason where it is not enough."""
    if not trials:
        return -math.inf, "it is measured on calibration data, and there is none"
    noise = 0.0
    wanted = []
    for (x, window, filters, n, floor, *_), real in trials:
        attrs = LogBands(int(n), float(floor))
        made = node_of(node.name, x.shape, attrs, window.numpy(), filters.numpy())
        if complaint := ops.op_of(made).check(made):
            return -math.inf, complaint
        (found,) = ops.op_of(made).reference(made, (x.numpy(), *(t.array for t in made.inputs[1:] if t)))
        noise += float(np.square(found.astype(np.float64) * SCALE - real.numpy()).sum())
        wanted.append(real.numpy().reshape(-1, real.shape[-1]))
    values = np.concatenate(wanted)
    signal = float(np.square(values - values.mean(0)).sum())
    quality = 10 * math.log10(max(signal, 1e-30) / max(noise, 1e-30))
    return quality, f"{quality:.1f} dB of its logarithms are left, {ENOUGH:.0f} are enough"

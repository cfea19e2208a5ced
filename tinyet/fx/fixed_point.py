# SPDX-License-Identifier: Apache-2.0
"""Spectra that a program computes in fixed point, or spelled out in operators of float32."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import torch
from torch import fx
from torch.export import ExportedProgram

from tinyet.fx.capture import example_inputs_of, re_export
from tinyet.fx.edit import add_call, add_constant, bind, drop_unused
from tinyet.fx.log_bands_ops import FIXED, LOG_BANDS
from tinyet.fx.log_filter import quiet
from tinyet.fx.mutable_buffers import put_back, take_out
from tinyet.fx.origins import origin_of, stamp_node
from tinyet.fx.spectrum_ops import RFFT, bins_of

aten = torch.ops.aten


def has_log_bands(program: ExportedProgram) -> bool:
    return any(node.target is LOG_BANDS for node in program.graph.nodes)


def in_float(program: ExportedProgram, keys: Container[str] | None = None) -> ExportedProgram:
    """The program with these operators (all by default), by the keys of their origins, spelled out in float32 and the
    others told to be in fixed point; the very program where there are none."""
    if not has_log_bands(program):
        return program
    with quiet():
        module = program.module(check_guards=False)
        kept = take_out(module)
    for node in list(module.graph.nodes):
        if node.target is LOG_BANDS:
            if keys is None or origin_of(node).key in keys:
                _spell_out(module, node)
            else:
                node.args = (*node.args[:5], FIXED)
    drop_unused(module)
    put_back(module, kept)
    return re_export(module, example_inputs_of(program))


def _spell_out(module: fx.GraphModule, node: fx.Node) -> None:
    a = bind(node)
    x, window, n = a["x"], a["window"], int(a["n"])
    custom = dict(node.meta.get("custom") or {})

    def call(role: str, target: object, *args: object) -> fx.Node:
        made = add_call(module.graph, node, target, args, node)  # type: ignore[arg-type]
        made.meta["custom"] = dict(custom)
        stamp_node(made, replace(origin_of(node), key=f"{origin_of(node).key}_{role}"))
        return made

    values = call("float", aten._to_copy.default, x)
    values.kwargs = {"dtype": torch.float32}
    values.meta["val"] = x.meta["val"].float()
    windowed = call("windowed", aten.mul.Tensor, values, window)
    *rows, size = windowed.meta["val"].shape
    if size < n:
        windowed = call("padded", aten.constant_pad_nd.default, windowed, [0, n - size], 0.0)
    spectrum = call("spectrum", RFFT, windowed, n)
    pairs = call("pairs", aten.reshape.default, spectrum, [*rows, bins_of(n), 2])
    square = call("square", aten.mul.Tensor, pairs, pairs)
    power = call("power", aten.sum.dim_IntList, square, [len(rows) + 1])
    bands = call("bands", aten.linear.default, power, a["filters"])
    floor = add_constant(module, node, f"{node.name}_floor", torch.tensor(float(a["floor"])))
    found = call("floored", aten.add.Tensor, bands, floor)
    made = call("log", aten.log.default, found)
    stamp_node(made, origin_of(node))
    node.replace_all_uses_with(made)
    module.graph.erase_node(node)

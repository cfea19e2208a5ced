# SPDX-License-Identifier: Apache-2.0
"""What of a graph computes features of signals in front of its first learned layer: that stays float32.

Powers of a spectrum, statistics, what filters give: their sizes differ by orders of magnitude, and one scale for a
tensor of eight bits leaves nothing of the smaller ones. So where a Fourier transform, a recursive filter or a module of
`tinyet.features` stands before all learned layers, all that leads to it and all that is made of it up to these layers
is marked, for a quantizer to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import fx, nn

from tinyet.fx.biquad_ops import BIQUADS
from tinyet.fx.edit import get_constant
from tinyet.fx.log_bands_ops import LOG_BANDS
from tinyet.fx.origins import module_stack
from tinyet.fx.recurrent_ops import RECURRENT
from tinyet.fx.spectrum_ops import SPECTRA

FEATURES = "tinyet.features."
"""Where the modules are whose operators are features."""

DECISIONS = "tinyet.features.decisions."
"""Of these, those that stay float32 wherever they stand: counters and votes have no scale."""

_KEY = "tinyet_signal"


def mark_signals(module: fx.GraphModule) -> None:
    """In place. Decisions are marked, too. A learned layer is one that reads a parameter, directly or by way of what is
    computed of constants."""
    ahead: set[fx.Node] = set()
    parameters: set[fx.Node] = set()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            ahead.add(node)
        elif node.op == "get_attr":
            if isinstance(get_constant(module, node), nn.Parameter):
                parameters.add(node)
        elif node.op == "call_function":
            learned = node.target in RECURRENT or any(source in parameters for source in node.all_input_nodes)
            moving = [source for source in node.all_input_nodes if source.op != "get_attr"]
            if learned and not moving:
                parameters.add(node)
            elif not learned and all(source in ahead for source in moving):
                ahead.add(node)
    begin = {node for node in ahead if _is_source(node)}
    found = _reached(begin, lambda n: n.users, ahead) | _reached(begin, lambda n: n.all_input_nodes, ahead)
    found |= {node for node in module.graph.nodes if _is_in(node, DECISIONS)}
    for node in found:
        if node.op == "call_function":
            node.meta["custom"] = {**(node.meta.get("custom") or {}), _KEY: True}


def is_signal(node: fx.Node) -> bool:
    """Whether `mark_signals` has marked the node."""
    return bool((node.meta.get("custom") or {}).get(_KEY))


def _is_source(node: fx.Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target in SPECTRA or node.target in (BIQUADS, LOG_BANDS):
        return True
    return _is_in(node, FEATURES) and not _is_in(node, DECISIONS)


def _is_in(node: fx.Node, path: str) -> bool:
    return any(kind.startswith(path) for _, kind in module_stack(node))


def _reached(
    begin: set[fx.Node], step: Callable[[fx.Node], Iterable[fx.Node]], within: set[fx.Node]
) -> set[fx.Node]:
    found, waiting = set(begin), list(begin)
    while waiting:
        for other in step(waiting.pop()):
            if other in within and other not in found:
                found.add(other)
                waiting.append(other)
    return found

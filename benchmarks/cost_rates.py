# SPDX-License-Identifier: Apache-2.0
"""Rates of costs: what is measured of nodes, the fit to it, and the file of a core."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyet.ir import Node
from tinyet.opset import DENSE, cost
from tinyet.opset.cost import Features
from tinyet.tiles.core import ARMV7E_M

LEAST_CASES = 8
"""Fewer are not fitted to."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """instructions, code in bytes, and time where the core has a model: of each node. functions: all of the firmware,
    and their bytes. own: names in the generated model that are no functions of a library."""

    instructions: Sequence[int]
    code: Sequence[float]
    functions: Mapping[str, int]
    own: Sequence[str]
    time: Sequence[Mapping[str, Any]]

    @property
    def cores(self) -> tuple[str, ...]:
        """Those whose cycles were estimated."""
        return tuple(sorted(self.time[0]["cycles"])) if self.time else ()


def joined(samples: Sequence[Sample]) -> Sample:
    """The nodes of several firmwares, one after another."""
    return Sample(
        [n for one in samples for n in one.instructions],
        [n for one in samples for n in one.code],
        {name: size for one in samples for name, size in one.functions.items()},
        sorted({name for one in samples for name in one.own}),
        [time for one in samples for time in one.time],
    )


def some_of(found: Sample, which: Sequence[int]) -> Sample:
    """What was measured of the nodes with these numbers."""
    return dataclasses.replace(
        found,
        instructions=[found.instructions[i] for i in which],
        code=[found.code[i] for i in which],
        time=[found.time[i] for i in which] if found.time else (),
    )


def nonnegative(matrix: Floats, wanted: Floats) -> Floats:
    """The non-negative x of the least squares of matrix @ x - wanted (Lawson and Hanson)."""
    n = matrix.shape[1]
    x, used = np.zeros(n), np.zeros(n, np.bool_)
    for _ in range(6 * n):
        gradient = matrix.T @ (wanted - matrix @ x)
        gradient[used] = 0
        best = int(np.argmax(gradient))
        if gradient[best] < 1e-9:
            break
        used[best] = True
        while True:
            step = np.zeros(n)
            step[used] = np.linalg.lstsq(matrix[:, used], wanted, rcond=None)[0]
            if not np.any(step[used] <= 0):
                x = step
                break
            falling = used & (step <= 0)
            share = float(np.min(x[falling] / np.maximum(x[falling] - step[falling], 1e-12)))
            x = x + share * (step - x)
            used &= x > 1e-12
            x[~used] = 0
    return x


def fitted(
    nodes: Sequence[Node], terms: Features, wanted: Sequence[float], scale: Sequence[float] | None = None
) -> dict[str, float]:
    """Rates of the parts, for the least sum of squares of errors in proportion to `scale`, by default `wanted`."""
    counted = [terms(node) for node in nodes]
    names = sorted({name for parts in counted for name, count in parts.items() if count})
    matrix = np.array([[parts.get(name, 0) for name in names] for parts in counted], np.float64)
    target, whole = (np.array(values, np.float64) for values in (wanted, scale or wanted))
    scaled = matrix / whole[:, None]
    norm = np.linalg.norm(scaled, axis=0)
    x = nonnegative(scaled / norm, target / whole) / norm
    return {name: float(f"{value:.5g}") for name, value in zip(names, x, strict=True) if value > 1e-9}


def rates_of(cost_model: cost.CostModel, nodes: Sequence[Node], found: Sample) -> cost.Rates:
    """Of some nodes."""
    time = time_of(cost_model, nodes, found)
    printed = [exactly(cost_model, node).instructions for node in nodes]
    instructions = beside(nodes, cost_model.work, found.instructions, printed)
    return dataclasses.replace(
        time, instructions=instructions, code=fitted(nodes, cost_model.code, found.code)
    )


def time_of(cost_model: cost.CostModel, nodes: Sequence[Node], found: Sample) -> cost.Rates:
    """What is of time, alone. Lines are fitted so that their part of the time is near."""
    work = cost_model.work
    if not found.cores:
        return cost.Rates({}, {}, {}, {}, {}, {})
    printed = [exactly(cost_model, node) for node in nodes]

    def every(node: Node) -> Mapping[str, int]:
        return every_part(cost_model, node)

    def cycles_on(core: str) -> dict[str, float]:
        estimated = [time["cycles"][core] for time in found.time]
        known = [exact.cycles.get(core, 0) for exact in printed]
        # Where the cycles of known code are not known, they are so many for each of its bytes.
        return beside(nodes, work if all(known) else every, estimated, known)

    scale = [time["cycles"][found.cores[0]] for time in found.time]
    read = (
        [time["jumped_lines"] + time["data_lines"] for time in found.time],
        [time["next_lines"] for time in found.time],
    )
    lines, next_lines = (fitted(nodes, every, each, scale) for each in read)
    known = [exact.reads.get("printed code", 0) for exact in printed]
    # Not counted of a core whose flash never waits.
    read_bytes = [time["bytes"] for time in found.time]
    executed = beside(nodes, work, read_bytes, known) if any(read_bytes) else {}
    cycles = {core: cycles_on(core) for core in found.cores}
    return cost.Rates({}, cycles, lines, next_lines, {}, executed)


def beside(
    nodes: Sequence[Node], terms: Features, measured: Sequence[float], known: Sequence[float]
) -> dict[str, float]:
    """Rates of what is not known of what was measured."""
    left = [whole - part for whole, part in zip(measured, known, strict=True)]
    return fitted(nodes, terms, left, measured)


def exactly(cost_model: cost.CostModel, node: Node) -> cost.Exact:
    """What is known of a call without measuring, as it is printed for the cores that are measured."""
    return cost.NOTHING if cost_model.exact is None else cost_model.exact(node, DENSE, ARMV7E_M.cores[0])


def every_part(cost_model: cost.CostModel, node: Node) -> Mapping[str, int]:
    """Those of the work, and those of the lines of the flash that known code reads."""
    return {**cost_model.work(node), **exactly(cost_model, node).reads}


def coefficients_of(
    cost_model: cost.CostModel, nodes: Sequence[Node], found: Sample, shared: Mapping[str, int]
) -> cost.Coefficients:
    """Of all nodes, and of those of each kind of which there are enough."""
    own = {
        kind: rates_of(cost_model, [nodes[i] for i in which], some_of(found, which))
        for kind, which in of_kinds(cost_model, nodes).items()
        if len(which) >= LEAST_CASES
    }
    return cost.Coefficients(rates_of(cost_model, nodes, found), bytes_each(found), shared, own)


def of_kinds(cost_model: cost.CostModel, nodes: Sequence[Node]) -> dict[str, list[int]]:
    """The numbers of the nodes of each kind."""
    kinds: dict[str, list[int]] = {}
    for i, node in enumerate(nodes):
        if cost_model.kind is not None:
            kinds.setdefault(cost_model.kind(node), []).append(i)
    return dict(sorted(kinds.items()))


def bytes_each(found: Sample) -> float:
    """Of an executed instruction."""
    executed = sum(found.instructions)
    return round(sum(time["bytes"] for time in found.time) / executed if found.cores else 0.0, 3)


def cores_without(entry: Mapping[str, Any], cores: Sequence[str]) -> list[str]:
    """Those whose cycles some of an entry's rates do not have."""
    every = (entry, *entry["kinds"].values())
    return [core for core in cores if any(core not in rates["cycles"] for rates in every)]


def add_time(entry: dict[str, Any], cost_model: cost.CostModel, nodes: Sequence[Node], found: Sample) -> None:
    """Put what an entry lacks of time into it: cycles of cores, and lines and bytes where it has none. A kind of which
    there are too few nodes takes the rates of all."""
    new = cores_without(entry, found.cores)
    every = time_of(cost_model, nodes, found)
    kinds = of_kinds(cost_model, nodes)
    times = {"": every}
    for kind in entry["kinds"]:
        which = kinds.get(kind, [])
        enough = len(which) >= LEAST_CASES
        some = time_of(cost_model, [nodes[i] for i in which], some_of(found, which)) if enough else every
        times[kind] = some
    added = [
        part
        for time in times.values()
        for each in (*time.cycles.values(), time.lines, time.next_lines, time.bytes)
        for part in each
    ]
    before, work = entry["work"], sorted({*entry["work"], *added})

    def laid_out(values: Sequence[float]) -> list[float]:
        known = dict(zip(before, values, strict=True)) if values else {}
        return [known.get(part, 0) for part in work] if known else []

    def listed(by_part: Mapping[str, float]) -> list[float]:
        return [by_part.get(part, 0) for part in work] if by_part else []

    for kind, rates in (("", entry), *entry["kinds"].items()):
        time = times[kind]
        for name, mine in (("lines", time.lines), ("next_lines", time.next_lines), ("bytes", time.bytes)):
            if not rates["cycles"]:
                rates[name] = listed(mine)
            elif name in rates:
                rates[name] = laid_out(rates[name])
        rates["instructions"] = laid_out(rates["instructions"])
        old = {core: laid_out(values) for core, values in rates["cycles"].items()}
        rates["cycles"] = dict(sorted((old | {core: listed(time.cycles[core]) for core in new}).items()))
    entry["work"] = work
    entry["bytes_each"] = entry["bytes_each"] or bytes_each(found)


def leave_known_cores(entry: dict[str, Any], others: Sequence[Mapping[str, Any]]) -> None:
    """Take away the cycles of cores that the other kernels of a table state none for: plans are compared by a core's
    cycles only where all have them. Where no core is left, so are no lines and bytes that are executed."""
    if not others:
        return
    known = set.intersection(*(set(other["cycles"]) for other in others))
    for rates in (entry, *entry["kinds"].values()):
        rates["cycles"] = {core: each for core, each in rates["cycles"].items() if core in known}
        if not known:
            rates |= {"lines": [], "next_lines": [], "bytes": []}
    if not known:
        entry["bytes_each"] = 0.0


def entry_of(found: cost.Coefficients) -> dict[str, Any]:
    """A kernel's, for a file: the parts once, and lists of what each of them comes to."""

    def of(rates: cost.Rates) -> dict[str, Any]:
        def listed(by_part: Mapping[str, float]) -> list[float]:
            return [by_part.get(part, 0) for part in work] if by_part else []

        return {
            "instructions": listed(rates.instructions),
            "cycles": {core: listed(each) for core, each in rates.cycles.items()},
            "lines": listed(rates.lines),
            "next_lines": listed(rates.next_lines),
            "code": dict(rates.code),
            "bytes": listed(rates.bytes),
        }

    every = (found.rates, *found.kinds.values())
    work = sorted(
        {
            part
            for rates in every
            for each in (
                rates.instructions,
                rates.lines,
                rates.next_lines,
                rates.bytes,
                *rates.cycles.values(),
            )
            for part in each
        }
    )
    kinds = {kind: of(rates) for kind, rates in found.kinds.items()}
    return {
        "work": work,
        **of(found.rates),
        "bytes_each": found.bytes_each,
        "shared": dict(found.shared),
        "kinds": kinds,
        **(
            {"shared_of": {kind: dict(code) for kind, code in found.shared_of.items()}}
            if found.shared_of
            else {}
        ),
    }


def store(path: Path, table: Mapping[str, Any]) -> None:
    """A line for each list of a kernel, and for each of its kinds."""

    def rows(of: Mapping[str, str], indent: str) -> str:
        lines = (f"{indent} {json.dumps(name)}: {text}" for name, text in of.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if of else "{}"

    def written(of: Mapping[str, Any]) -> dict[str, str]:
        return {name: json.dumps(value) for name, value in of.items()}

    kernels = {
        name: rows({**written(entry), "kinds": rows(written(entry["kinds"]), "   ")}, "  ")
        for name, entry in sorted(table["kernels"].items())
    }
    head = {name: table[name] for name in sorted(table) if name != "kernels"}
    path.write_text(rows({**written(head), "kernels": rows(kernels, " ")}, "") + "\n", encoding="utf-8")


def fit_said(
    cost_model: cost.CostModel, coefficients: cost.Coefficients, nodes: Sequence[Node], found: Sample
) -> str:
    """How far rates are from what they were fitted to: at most, and on average."""
    rates = [coefficients.of(cost_model, node) for node in nodes]
    printed = [exactly(cost_model, node) for node in nodes]
    work, code = ([terms(node) for node in nodes] for terms in (cost_model.work, cost_model.code))
    said = [
        _off(
            "instructions",
            [
                cost.total(r.instructions, w) + e.instructions
                for r, w, e in zip(rates, work, printed, strict=True)
            ],
            found.instructions,
        ),
        _off("code", [cost.total(r.code, c) for r, c in zip(rates, code, strict=True)], found.code),
    ]
    return ", ".join((*said, cycles_said(cost_model, coefficients, nodes, found)))


def cycles_said(
    cost_model: cost.CostModel, coefficients: cost.Coefficients, nodes: Sequence[Node], found: Sample
) -> str:
    """The same of the cycles of each core."""
    rates = [coefficients.of(cost_model, node) for node in nodes]
    said = []
    for core in found.cores:
        stated = [
            cost.total(r.cycles[core], every_part(cost_model, node))
            + exactly(cost_model, node).cycles.get(core, 0)
            for r, node in zip(rates, nodes, strict=True)
        ]
        said.append(_off(core, stated, [time["cycles"][core] for time in found.time]))
    return ", ".join(said)


def _off(what: str, stated: Sequence[float], true: Sequence[float]) -> str:
    errors = [abs(a / b - 1) for a, b in zip(stated, true, strict=True)]
    return f"{what} {max(errors):6.1%} {np.mean(errors):6.2%}"

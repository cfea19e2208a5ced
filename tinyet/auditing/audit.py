# SPDX-License-Identifier: Apache-2.0
"""The proof that a firmware holds a program's constants: packed again from the program and compared with the ELF file
byte by byte, the weights read back out of it one by one, and every other byte of flash assigned to somebody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tinyet.auditing.flash import Flash, Symbol
from tinyet.auditing.layout import InputLayout, layouts_of
from tinyet.auditing.link_map import LinkMap
from tinyet.auditing.owners import Owner, Span, owners
from tinyet.auditing.parameters import wrong_fields
from tinyet.deployment import Deployment, Step, StoredArray
from tinyet.emit.constants import NONE_COMMON
from tinyet.emit.symbols import Symbols, symbols_of
from tinyet.errors import ProjectError, UsageError
from tinyet.errors.arguments import path_given
from tinyet.ir import DType, Tensor
from tinyet.messages.stages import stage
from tinyet.numerics import Int64
from tinyet.program import Program, load
from tinyet.project import Project
from tinyet.projects import open_project
from tinyet.projects.together import TogetherProject

MOST_NAMED = 8
"""Of wrong bytes of one array, that are named one by one."""


@dataclass(frozen=True)
class FoundArray:
    """A constant array of the model in the firmware. address: None where it is not there."""

    name: str
    layer: str
    bytes: int
    address: int | None


@dataclass(frozen=True)
class FoundWeights:
    """A constant of the program. count: of its values. read_back: of those that were read out of the firmware one by
    one; the others are there as their kernel has packed them, together with others."""

    layer: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    read_back: int


@dataclass(frozen=True)
class Audit:
    """What a firmware's flash holds. faults: what is not the program's, each with layer and place. spans: all bytes
    with their owners, by address. parameters: (kernels' parameter structs checked field by field, all of them)."""

    elf: Path
    program_hash: str
    arrays: tuple[FoundArray, ...]
    weights: tuple[FoundWeights, ...]
    parameters: tuple[int, int]
    spans: tuple[Span, ...]
    faults: tuple[str, ...]

    @property
    def unexplained(self) -> tuple[Span, ...]:
        """The places without an owner."""
        return tuple(span for span in self.spans if span.owner is Owner.UNEXPLAINED)

    @property
    def ok(self) -> bool:
        """Whether all constants are the program's, and no byte is without an owner."""
        return not self.faults and not self.unexplained

    def bytes_of(self, owner: Owner) -> int:
        """How many bytes an owner has."""
        return sum(span.bytes for span in self.spans if span.owner is owner)

    def __repr__(self) -> str:
        said = (
            "ok" if self.ok else f"{len(self.faults)} faults, {len(self.unexplained)} places without an owner"
        )
        return f"<audit of {self.elf.name}: {said}>"

    def to_json(self) -> dict[str, object]:
        """The documented, stable form of `--json` (docs/json.md)."""
        return {
            "version": 1,
            "elf": str(self.elf),
            "hash": self.program_hash,
            "ok": self.ok,
            "faults": list(self.faults),
            "weights": [vars(each) | {"shape": list(each.shape)} for each in self.weights],
            "arrays": [vars(each) for each in self.arrays],
            "parameters": {"checked": self.parameters[0], "all": self.parameters[1]},
            "flash": {owner.value: self.bytes_of(owner) for owner in Owner},
            "unexplained": [{"address": span.start, "bytes": span.bytes} for span in self.unexplained],
        }


def audit(
    project: Project | str | Path,
    elf: str | Path | None = None,
    *,
    program: Program | str | Path | None = None,
    link_map: str | Path | None = None,
) -> Audit:
    """Prove that a firmware holds the constants of a project's program.

    project: a Project, or its directory. elf: the firmware, by default the project's application as it was built; any
    ELF file with symbols that the project's C files are linked into will do. program: a Program or the path of a .tet
    file, where it is not the one that the project has kept: a project of the C files alone keeps none. link_map: the
    linker's map of the firmware, which tells whose bytes without a symbol are: libraries have some.
    Raises ProjectError: the project is not built, or the program is not the one that it was generated from;
    ToolchainError: the ELF file cannot be read.
    """
    made = project if isinstance(project, Project) else open_project(project)
    if isinstance(made, TogetherProject):
        if program is not None:
            raise UsageError(
                "a project of several models has kept its programs", str(made.path), "leave the program away"
            )
        parts, common = made.shared.deployments, made.common
    else:
        parts, common = {made.name: _deployment(made, program)}, NONE_COMMON
    place = path_given(elf, "elf is the path of a firmware") if elf is not None else made.application
    if place is None:
        raise ProjectError(
            "there is no firmware to audit", str(made.path), f"tinyet build {made.path}, or name an ELF file"
        )
    stage("reading the firmware")
    flash = Flash(place)
    stage("packing the weights again")
    known = LinkMap(path_given(link_map, "link_map is the path of a linker's map")) if link_map else None
    models = [
        _Model(
            name,
            f"{name}: " if len(parts) > 1 else "",
            deployment,
            symbols_of(deployment, name, common),
            flash,
        )
        for name, deployment in parts.items()
    ]
    for model in models:
        model.check()
    hash_ = str(made.manifest["hash"])
    owned = list(dict.fromkeys(span for model in models for span in model.owned))
    checked = [done for model in models for done in model.checked]
    return Audit(
        place,
        hash_,
        tuple(
            {
                (array.name, array.address): array for model in reversed(models) for array in model.arrays
            }.values()
        ),
        tuple(each for model in models for each in model.weights),
        (sum(checked), len(checked)),
        owners(flash, made, list(parts), common.file, owned, known),
        tuple(dict.fromkeys(fault for model in models for fault in model.faults)),
    )


def _deployment(project: Project, program: Program | str | Path | None) -> Deployment:
    if program is None:
        return project.deployment
    given = program if isinstance(program, Program) else load(program)
    if given.hash != project.manifest["hash"]:
        raise UsageError(
            f"this program is not the one that the project was generated from: its hash is {given.hash[:16]}…, the "
            f"project's {str(project.manifest['hash'])[:16]}…",
            str(project.path),
            "audit with the program that was generated from, or generate the project again",
        )
    return project.deployment_of(given)


@dataclass(eq=False)
class _Model:
    """The constants of one model of a firmware. prefix: of its layers, where there are several models. faults, owned,
    arrays, weights, checked: what `check` has found; the latter, of each kernel with parameters, whether these have
    been.
    """

    name: str
    prefix: str
    deployment: Deployment
    names: Symbols
    flash: Flash
    faults: list[str] = field(default_factory=list)
    owned: list[Span] = field(default_factory=list)
    arrays: list[FoundArray] = field(default_factory=list)
    weights: list[FoundWeights] = field(default_factory=list)
    checked: list[bool] = field(default_factory=list)

    def check(self) -> None:
        stored = {use: name for name, array in self.names.arrays.items() for use in array.uses}
        found = {name: self._find(name, array) for name, array in self.names.arrays.items()}
        target = self.deployment.target
        calls = self.deployment.calls
        layouts = {step: layouts_of(step, self.deployment.plan, target) for step in calls}
        self.arrays += [self._array(n, a, found[n], layouts) for n, a in self.names.arrays.items()]
        constants = {
            (step.index, tensor): step
            for step in reversed(calls)
            for tensor in reversed(step.node.inputs)
            if tensor is not None and tensor.is_constant
        }
        self.weights += [
            self._weights(step, tensor, layouts[step], stored, found)
            for (_, tensor), step in reversed(constants.items())
        ]
        self.checked += [self._parameters(step, found) for step in calls if step.call.params]

    def _find(self, name: str, array: StoredArray) -> int | None:
        """The address of an array: where its symbol is; else, if the linker or the compiler has made one of equal
        ones, where its bytes are."""
        own = f"{self.name}.c"
        known = sorted(self.flash.objects(name), key=lambda s: s.file != own)
        sized = [s for s in known if s.end - s.start == array.bytes]
        if sized:
            return sized[0].start
        data = _bytes(array)
        for part in self.flash.parts:
            at = part.data.find(data)
            while at >= 0:
                if (part.start + at) % min(array.align, 4) == 0:
                    return part.start + at
                at = part.data.find(data, at + 1)
        return None

    def _array(
        self,
        name: str,
        array: StoredArray,
        address: int | None,
        layouts: Mapping[Step, Sequence[InputLayout]],
    ) -> FoundArray:
        step = array.uses[0][0]
        wanted = _bytes(array)
        if address is None:
            self.faults.append(f"{self.prefix}{step}: {name} is not in the firmware: {array.bytes} bytes")
            return FoundArray(name, f"{self.prefix}{step}", array.bytes, None)
        there = self.flash.bytes_at(address, address + array.bytes)
        self.owned.append(Span(address, address + array.bytes, Owner.WEIGHTS, name))
        wrong = np.flatnonzero(np.frombuffer(there, np.uint8) != np.frombuffer(wanted, np.uint8)).tolist()
        for at in wrong[:MOST_NAMED]:
            of = _named(array, at, layouts)
            bytes_ = f"{there[at]:#04x}, should be {wanted[at]:#04x}"
            self.faults.append(f"{self.prefix}{step}: {name} + {at} ({address + at:#x}): {bytes_}: {of}")
        if len(wrong) > MOST_NAMED:
            self.faults.append(f"{self.prefix}{step}: {name}: {len(wrong)} bytes of {array.bytes} are others")
        return FoundArray(name, f"{self.prefix}{step}", array.bytes, address)

    def _weights(
        self,
        step: Step,
        tensor: Tensor,
        layouts: Sequence[InputLayout],
        stored: Mapping[tuple[Step, str | int], str],
        found: Mapping[str, int | None],
    ) -> FoundWeights:
        """Reads the values of a constant back out of the firmware."""
        right, readable = np.zeros(tensor.type.count, bool), np.zeros(tensor.type.count, bool)
        wanted = _integers(tensor)
        index = next(i for i, t in enumerate(step.node.inputs) if t is tensor)
        if (step, index) in stored:  # as it is: it has been compared
            readable[:] = right[:] = True
        for layout in layouts:
            for places in layout.places if layout.tensor is tensor else ():
                name = stored[step, places.constant]
                readable[places.weight] = True
                if (address := found[name]) is not None:
                    data = self.flash.bytes_at(address, address + self.names.arrays[name].bytes)
                    right[places.weight] |= places.holds(data, wanted)
        for at in np.flatnonzero(readable & ~right)[:MOST_NAMED].tolist():
            self.faults.append(
                f"{self.prefix}{step}: {_coordinates(tensor, at)} is not {wanted[at]} in the firmware"
            )
        return FoundWeights(
            f"{self.prefix}{step}",
            tensor.name,
            tensor.dtype.value,
            tensor.shape,
            tensor.type.count,
            int(right.sum()),
        )

    def _parameters(self, step: Step, found: Mapping[str, int | None]) -> bool:
        """Whether the parameters of a step's kernel have been checked: they are in the firmware, and their layout is
        known."""
        name, roles = self.names.parameters[step]
        own = f"{self.name}.c"
        known = sorted(self.flash.objects(name), key=lambda s: s.file != own)
        if not known:
            return False
        symbol: Symbol = known[0]
        self.owned.append(Span(symbol.start, symbol.end, Owner.PARAMETERS, name))
        kind = self.flash.variable_type(own, name)
        if kind is None or step.call.params is None:
            return False
        data = self.flash.bytes_at(symbol.start, symbol.end)
        wrong = wrong_fields(data, kind, step.call.params, lambda role: found.get(roles[role]))
        self.faults += [f"{self.prefix}{step}: {name}.{text}" for text in wrong]
        return True


def _bytes(array: StoredArray) -> bytes:
    """As the compiler writes the array: one zero for an empty one."""
    return np.ascontiguousarray(array.data).tobytes() or bytes(array.bytes)


def _integers(tensor: Tensor) -> Int64:
    """The values, or the bits of floats, int64."""
    values = np.ascontiguousarray(tensor.array).ravel()
    return (values.view(np.int32) if tensor.dtype is DType.FLOAT32 else values).astype(np.int64)


def _named(array: StoredArray, at: int, layouts: Mapping[Step, Sequence[InputLayout]]) -> str:
    """The value of the program that a byte of an array belongs to."""
    for step, role in array.uses:
        if isinstance(role, int):
            return _coordinates(step.node.input(role), at // array.data.itemsize)
        for layout in layouts[step]:
            for places in layout.places:
                if places.constant != role:
                    continue
                inside, size = places.at * places.width // 8, max(places.width // 8, 1)
                hit = np.flatnonzero((inside <= at) & (at < inside + size))
                if len(hit):
                    return _coordinates(layout.tensor, int(places.weight[hit[0]]))
        for layout in layouts[step]:
            for place in (at, at & ~1, at & ~3):
                if (role, place) in layout.depends:
                    return f"with {_coordinates(layout.tensor, layout.depends[role, place])}"
    return f"{array.role}, which no single value of the program decides"


def _coordinates(tensor: Tensor, index: int) -> str:
    """A value of a constant, and its channel."""
    place = [int(i) for i in np.unravel_index(index, tensor.shape)] if tensor.shape else []
    quant = tensor.type.quant
    channel = (
        f", channel {place[quant.axis]}" if quant is not None and quant.axis is not None and place else ""
    )
    return f"{tensor.name}{place}{channel}"

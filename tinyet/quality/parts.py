# SPDX-License-Identifier: Apache-2.0
"""The parts of a network that may be quantized in another way: each operator, and groups of them; what they are called,
and how an exception for one is said on the command line.

A group matters where no operator does alone: a value has more bits only if whoever makes it and whoever reads it have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import fx
from torch.export import ExportedProgram

from tinyet.errors import QuantizationError
from tinyet.fx.origins import origin_of
from tinyet.quality.simulation import Operator, Simulation
from tinyet.quantization.annotate import KNOWN, op_names
from tinyet.quantization.config import QuantConfig
from tinyet.quantization.quantizer import TinyetQuantizer

Kind = Literal["module", "operator", "value", "run", "kind", "set"]
"""Of a part: a module and all in it; one operator; who makes a value and who reads it; operators of one module that
follow each other; all of one kind; any others."""


@dataclass(frozen=True, eq=False)
class Part:
    """Operators that may be quantized in another way together.

    name: a module's path; else the operators' names: `log`, `matmul..log` for all from one to another in the captured
    graph's order, `aten.log` for all of a kind, several of these with commas between. source: the line of the user's
    that asked for the first one. made: gives other parts of the same program.
    """

    kind: Kind
    name: str
    operators: tuple[Operator, ...]
    source: str
    made: Callable[[Iterable[Operator]], Part]

    def without(self, operators: Iterable[Operator]) -> Part:
        """The part that is left when these operators are left away: not all."""
        gone = {operator.name for operator in operators}
        return self.made(operator for operator in self.operators if operator.name not in gone)

    @property
    def nodes(self) -> frozenset[fx.Node]:
        """Of the quantized graph."""
        return frozenset(node for operator in self.operators for node in operator.nodes)

    @property
    def module(self) -> str:
        """Path of the module, "" for other parts."""
        return self.name if self.kind == "module" else ""

    def flags(self, config: str) -> tuple[str, str]:
        """The option of `tinyet quantize` that gives it another configuration."""
        return ("--layer" if self.kind == "module" else "--op"), f"{self.name}={config}"

    def set_in(self, quantizer: TinyetQuantizer, config: QuantConfig | None) -> TinyetQuantizer:
        """Give it another configuration."""
        if self.kind == "module":
            return quantizer.set_module_name(self.name, config)
        for operator in self.operators:
            quantizer.set_operator(operator.name, config)
        return quantizer


def operator_names(program: ExportedProgram) -> list[str]:
    """The names of a captured program's operators, in its order."""
    nodes = (node for node in program.graph.nodes if node.op == "call_function")
    return list(dict.fromkeys(origin_of(node).key for node in nodes))


def operators_named(program: ExportedProgram, text: str) -> list[str]:
    """The names of the operators that `text` means, as `Part.name` has it. Raises QuantizationError for a name that the
    captured program does not have, with those that it has."""
    names = operator_names(program)
    found: dict[str, None] = {}
    for word in text.split(","):
        first, dots, last = word.strip().partition("..")
        if first.startswith("aten."):
            kind = [
                origin_of(node).key
                for node in program.graph.nodes
                if node.op == "call_function" and first in op_names(node)
            ]
            unknown = [] if kind else [first]
            found.update(dict.fromkeys(kind))
        else:
            unknown = [name for name in ((first, last) if dots else (first,)) if name not in names]
            if not unknown:
                end = names.index(last if dots else first) + 1
                found.update(dict.fromkeys(names[names.index(first) : end]))
        if unknown:
            raise QuantizationError(
                f"no operator is called {', '.join(unknown)}", hint="operators: " + ", ".join(names)
            )
    return list(found)


class Parts:
    """The parts of one program, each set of operators once."""

    def __init__(self, simulation: Simulation, program: ExportedProgram) -> None:
        """program: as the user's model was captured; operators that quantizing has put into its image have no name
        there, and are in no group."""
        self._simulation = simulation
        self._order = operator_names(program)
        self._kinds: dict[str, set[str]] = {}
        for node in program.graph.nodes:
            if node.op == "call_function" and node.target in KNOWN:
                self._kinds.setdefault(origin_of(node).key, set()).update(op_names(node))
        self._modules: dict[frozenset[str], str] = {}
        named = set(self._order)
        self._named = [operator for operator in simulation.operators if operator.name in named]
        self.paths: dict[str, list[Operator]] = {}
        for operator in self._named:
            for path in operator.modules:
                self.paths.setdefault(path, []).append(operator)
        for path, members in self.paths.items():
            self._modules.setdefault(frozenset(o.name for o in members), path)

    def part(self, operators: Iterable[Operator], kind: Kind = "set") -> Part:
        """A part of these operators, by the shortest name that it can be addressed with."""
        chosen = {operator.name for operator in operators}
        members = tuple(o for o in self._simulation.operators if o.name in chosen)
        path = self._modules.get(frozenset(chosen))
        if path is not None:
            return Part("module", path, members, members[0].source, self.part)
        alike = {o.op for o in members}
        if len(members) > 1 and len(alike) == 1:
            (op,) = alike
            kind_name = op.rsplit(".", 1)[0]
            if all(name in chosen for name, names in self._kinds.items() if kind_name in names):
                return Part("kind", kind_name, members, members[0].source, self.part)
        return Part(
            "operator" if len(members) == 1 else kind,
            self._spans(chosen) or members[0].name,
            members,
            members[0].source,
            self.part,
        )

    def _spans(self, chosen: set[str]) -> str:
        """The names, with runs of them shortened; what cannot be quantized may lie between."""
        settable = {operator.name for operator in self._named} | self._kinds.keys()
        spans: list[list[str]] = [[]]
        for name in self._order:
            if name in chosen:
                spans[-1].append(name)
            elif name in settable and spans[-1]:
                spans.append([])
        said = [span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans if span]
        return ",".join(said)

    @property
    def operators(self) -> list[Part]:
        """Each operator that makes values of its own."""
        return [
            self.part([operator], "operator") for operator in self._simulation.operators if operator.makes
        ]

    @property
    def addressed(self) -> list[Part]:
        """Those of them that have a name in the user's model."""
        named = {operator.name for operator in self._named}
        return [part for part in self.operators if part.operators[0].name in named]

    @property
    def groups(self) -> list[Part]:
        """Modules, runs, kinds and values, the same operators once."""
        operators = self._named
        found: dict[frozenset[str], Part] = {}

        def add(members: Sequence[Operator], kind: Kind) -> None:
            names = frozenset(o.name for o in members)
            if len(names) > 1 and names not in found:
                found[names] = self.part(members, kind)

        for members in self.paths.values():
            add(members, "module")
        for run in _runs(operators, lambda o: o.module):
            add(run, "run")
        for op in dict.fromkeys(o.op for o in operators):
            add([o for o in operators if o.op == op], "kind")
        for operator in operators:
            if operator.makes:
                add([o for o in self.around(operator) if o in operators], "value")
        return list(found.values())

    def around(self, operator: Operator) -> list[Operator]:
        """The operator and all that read its value, through what only moves it."""
        owner = {node: o for o in self._simulation.operators for node in o.nodes}
        found = {operator.name: operator}
        queue = [operator]
        while queue:
            for reader in self._simulation.readers(queue.pop().nodes[-1]):
                beside = owner.get(reader)
                if beside is not None and beside.name not in found:
                    found[beside.name] = beside
                    if not beside.makes:
                        queue.append(beside)
        return list(found.values())


def _runs(operators: Sequence[Operator], key: Callable[[Operator], str]) -> list[list[Operator]]:
    runs: list[list[Operator]] = []
    for operator in operators:
        if runs and key(runs[-1][-1]) == key(operator):
            runs[-1].append(operator)
        else:
            runs.append([operator])
    return runs

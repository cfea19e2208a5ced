# SPDX-License-Identifier: Apache-2.0
"""What generated code computes of a size that a run is told: kernels' parameters, counts of inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tinyet.deployment import Deployment, Sized, Step
from tinyet.emit.literals import integer, packed, real
from tinyet.emit.names import Names
from tinyet.errors import InternalError
from tinyet.ir import Size
from tinyet.opset import Struct
from tinyet.opset.call import Varying, VaryingReal
from tinyet.sizes.extents import formula
from tinyet.sizes.merge import SIZE, varying

_STRUCT = re.compile(r"typedef struct \w*\s*\{(?P<body>[^{}]*)\}\s*(?P<name>\w+);")
_FIELD = re.compile(r"(?:const )?(?P<type>\w+) (?P<names>[a-z_][\w\[\], ]*)$")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class TableView:
    """Values of a parameter at each size, where no formula gives them."""

    name: str
    ctype: str
    count: int
    comment: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CountView:
    """The elements of an input or output at a size, as C computes them. used: whether the size is in it."""

    kind: str
    index: int
    text: str
    used: bool


@dataclass(frozen=True)
class SizeView:
    """A size as the templates print it."""

    text: str
    axes: str
    least: int
    most: int
    step: int
    counts: tuple[CountView, ...]
    tables: tuple[TableView, ...]


class SizeCode:
    """The parts of a model's C that depend on the size. tables: those that it has asked for."""

    def __init__(self, size: Size, names: Names, headers: Iterable[str]) -> None:
        self.size = size
        self.names = names
        self.tables: list[TableView] = []
        self.types = field_types(headers)

    def sets(self, step: Step, name: str, params: Struct | None) -> tuple[str, ...]:
        """Statements that make a copy of parameters, called `params`, those of the size. name: of what they are
        copies of."""
        lines = []
        for path, number in () if params is None else varying(params):
            text = None
            ctype = "float" if isinstance(number, VaryingReal) else self._type(params, path)
            if isinstance(number, Varying):
                text = formula(number.numbers, self.size.values, SIZE)
            if text is None:
                text = self._table(step, name, path, ctype, number.numbers)
            elif ctype != "int32_t":
                text = f"({ctype}){text}"
            lines.append(f"params.{path} = {text};")
        return tuple(lines)

    def _table(self, step: Step, name: str, path: str, ctype: str, numbers: Sequence[float]) -> str:
        label = self.names.unique(
            f"{name}_{path.rsplit('.', maxsplit=1)[-1].replace('[', '_').replace(']', '')}"
        )
        unsigned = "u" if ctype.startswith("u") else ""
        lines = packed([f"{integer(n)}{unsigned}," if isinstance(n, int) else f"{real(n)}," for n in numbers])
        self.tables.append(
            TableView(label, ctype, len(numbers), f"{path} of {step}, at each size", tuple(lines))
        )
        first, apart = self.size.values[0], self.size.values.step
        index = f"{SIZE} - {first}" if apart == 1 else f"({SIZE} - {first}) / {apart}"
        return f"{label}[{index}]"

    def _type(self, params: Struct | None, path: str) -> str:
        """Of a field, as its header declares it."""
        *outer, last = path.split(".")
        for inner in outer:
            found = params.fields[inner] if params is not None else None
            params = found if isinstance(found, Struct) else None
        known = self.types.get(params.ctype, {}) if params is not None else {}
        return known.get(last.partition("[")[0], "int32_t")


def field_types(headers: Iterable[str]) -> dict[str, dict[str, str]]:
    """The integer types of the fields of each struct of C headers."""
    found: dict[str, dict[str, str]] = {}
    for text in headers:
        for struct in _STRUCT.finditer(_COMMENT.sub("", text)):
            fields = found.setdefault(struct["name"], {})
            for line in struct["body"].split(";"):
                field = _FIELD.fullmatch(" ".join(line.split()))
                if field is not None:
                    for name in field["names"].split(","):
                        fields[name.partition("[")[0].strip()] = field["type"]
    return found


def size_view(deployment: Deployment, code: SizeCode) -> SizeView:
    """Of a deployment with a size."""
    sized = deployment.sized
    assert sized is not None
    size, graph = sized.size, deployment.graph
    sides = (("input", graph.user_inputs), ("output", graph.user_outputs))
    axes = [
        f"{axis} of {tensor.name}"
        for tensor, axis in zip(graph.user_inputs, size.axes, strict=True)
        if axis is not None
    ]
    return SizeView(
        text=str(size),
        axes=" and ".join(axes),
        least=size.values[0],
        most=size.most,
        step=size.values.step,
        counts=tuple(_count(kind, index, sized) for kind, tensors in sides for index in range(len(tensors))),
        tables=tuple(code.tables),
    )


def _count(kind: str, index: int, sized: Sized) -> CountView:
    graphs = [each.graph for each in sized.at.values()]
    tensors = [(g.user_inputs if kind == "input" else g.user_outputs)[index] for g in graphs]
    numbers = [t.type.count for t in tensors]
    text = formula(numbers, sized.size.values, f"(int32_t){SIZE}")
    if text is None:
        raise InternalError(f"the elements of {tensors[-1].name} are no simple function of the size")
    return CountView(kind, index, f"(uint32_t){text}", len(set(numbers)) > 1)

# SPDX-License-Identifier: Apache-2.0
"""A call server of functions that are made for single calls: compiled for a batch of them, each distinct one once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.calls import board, host
from tests.calls.board import Image
from tests.calls.process import Process
from tests.calls.table import Function, FunctionTable, StructType, function_of
from tests.ops.cases import HOST_FLAGS, SANITIZERS, THIRD_PARTY, WARNINGS, write_files
from tests.ops.objects import compiled_object
from tinyet.delegates import DELEGATES
from tinyet.emit.kernels import shareable
from tinyet.opset import Call, Definition, FieldValue, Kernel, Struct, wrapped


@dataclass(frozen=True)
class OwnFunctions(FunctionTable):
    """A table of such functions; lines: their C. files: C files that their calls bring.

    These are compiled with the table, which takes a twentieth of the time: each has a few lines of its own, includes
    what the others include, and defines functions of its own name. That each stands alone is tested in tests/tiles, and
    with models.
    """

    lines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def declarations(self) -> list[str]:
        return [*super().declarations, *self.lines, *(f'#include "{name}"' for name in self.files)]


def named(calls: Sequence[Call]) -> dict[Definition, str]:
    """A name for each distinct function."""
    found = dict.fromkeys(call.symbol for call in calls if isinstance(call.symbol, Definition))
    return {definition: f"own_{number}" for number, definition in enumerate(found)}


def table_of(
    names: dict[Definition, str],
    kernels: Sequence[Kernel],
    brought: Mapping[str, str],
    params: Sequence[Struct] = (),
) -> OwnFunctions:
    """The functions, and the headers of the kernels that they call. brought: files of the calls. params:
    their parameters."""
    functions: list[Function] = []
    lines: list[str] = []
    for definition, name in names.items():
        lines += wrapped(f"{definition.returns} {name}({', '.join(definition.parameters)}) {{")
        lines += [*definition.body, "}"]
        status = definition.returns.split()[-1] == "tinyet_status"
        made = function_of(name, status, definition.parameters)
        assert made is not None, f"a parameter of {definition.kernel} is no pointer and no number of 32 bits"
        functions.append(made)
    headers = tuple(dict.fromkeys(header for kernel in kernels for header in kernel.headers))
    headers += tuple(name for name in brought if name.endswith(".h"))
    files = tuple(name for name in brought if name.endswith(".c"))
    return OwnFunctions(headers, tuple(functions), structs_of(params), tuple(lines), files)


def structs_of(values: Sequence[FieldValue]) -> tuple[StructType, ...]:
    """The types of all structs among the values, and of their fields."""
    found: dict[str, StructType] = {}
    for value in values:
        if isinstance(value, Struct) and value.ctype not in found:
            inner = structs_of(tuple(value.fields.values()))
            arrays = tuple(name for name, field in value.fields.items() if isinstance(field, tuple))
            found |= {each.ctype: each for each in inner}
            found[value.ctype] = StructType(value.ctype, tuple(value.fields), arrays)
    return tuple(found.values())


def kernel_files(kernels: Sequence[Kernel]) -> dict[str, str]:
    """The C files of kernels, and of what they include."""
    found: dict[str, str] = {}
    for kernel in {id(kernel): kernel for kernel in kernels}.values():
        delegate = next(d for d in DELEGATES if d.name == kernel.delegate)
        found |= delegate.files(kernel.headers, kernel.sources)
    return found


def renamed(calls: Sequence[Call], names: dict[Definition, str]) -> list[Call]:
    """The calls by their functions' names in the server."""
    return [
        replace(call, symbol=names[call.symbol]) if isinstance(call.symbol, Definition) else call
        for call in calls
    ]


@contextmanager
def served(
    calls: Sequence[tuple[Kernel, Call]], image: Image | None = None
) -> Iterator[tuple[Process, list[Call]]]:
    """Within, a server of the calls' own functions runs; the calls by their names there.

    image: the board that it runs on, with its compiler; None for this machine, under sanitizers.
    """
    kernels = [kernel for kernel, _ in calls]
    names = named([call for _, call in calls])
    brought = {name: text for _, call in calls for name, text in call.files.items()}
    params = [call.params for _, call in calls if call.params is not None]
    table = table_of(names, kernels, brought, params)
    with tempfile.TemporaryDirectory(prefix="tinyet-calls-") as where:
        folder = Path(where)
        files, symbols = shareable(kernel_files(kernels) | brought)
        write_files(folder, files)
        sources = [folder / name for name in files if name.endswith(".c") and name not in table.files]
        if image is None:
            process = host.process(_built_here(folder, sources, symbols, table), table)
        else:
            elf = board.build(image, folder, sources, symbols, table, folder)
            process = board.process(image, elf, table)
        try:
            yield process, renamed([call for _, call in calls], names)
        finally:
            process.close()


def _built_here(
    folder: Path, sources: Sequence[Path], symbols: Mapping[str, str], table: FunctionTable
) -> Path:
    compiler = ["gcc", "-std=c11", *HOST_FLAGS, *WARNINGS, *SANITIZERS, f"-I{folder}"]
    objects = [
        compiled_object([*compiler, *(THIRD_PARTY if source.parent != folder else ())], source)
        for source in sources
    ]
    return host.linked(folder, objects, symbols, table, compiler)

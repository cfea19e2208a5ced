# SPDX-License-Identifier: Apache-2.0
"""A compiled model: what `tinyet.compile` returns, `.tet` files hold, and everything after needs, without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tinyet.data import prepare_inputs
from tinyet.errors import ProgramError
from tinyet.ir import Array, Graph, Note, Tensor
from tinyet.numerics import dequantize
from tinyet.reference import evaluate, run_graph
from tinyet.tet.format import Contents, decode, encode
from tinyet.version import __version__


@dataclass(frozen=True, eq=False)
class Program:
    """A lowered graph with its weights; the same for every board.

    graph:       integer where quantized, float32 elsewhere.
    float_graph: the model before quantization, or None when there was none.
    notes:       what the compiler thought worth telling: layers that stayed float, and why.
    """

    name: str
    graph: Graph
    float_graph: Graph | None = None
    notes: tuple[Note, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self.graph.outputs

    @cached_property
    def data(self) -> bytes:
        """The program as the bytes of a .tet file."""
        return encode(Contents(__version__, self.name, self.graph, self.float_graph, self.notes))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the program as 64 hex digits: firmware tells by it which program it holds."""
        return hashlib.sha256(self.data).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write a .tet file; an existing one is replaced whole or not at all."""
        target = Path(path)
        temporary = target.with_name(target.name + ".part")
        try:
            temporary.write_bytes(self.data)
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise ProgramError(f"the program cannot be saved: {error.strerror}", str(target)) from error

    def run(self, *inputs: Array, as_float: bool | None = None) -> Array | list[Array]:
        """The host reference: one sample in, its outputs out.

        inputs: one array per input, of the input's shape; float32 data for a quantized input is quantized
        first, integers are taken as they are. as_float: outputs as real numbers (float32) instead of the
        program's own integers; by default, when every input was given as float. Returns one array, or a list
        when the model has several outputs. Raises DataError when number, shape or dtype do not fit.
        """
        given = [np.asarray(x) for x in inputs]
        prepared = prepare_inputs(self.inputs, given)
        values = evaluate(self.graph, prepared)
        if as_float is None:
            as_float = all(x.dtype.kind == "f" for x in given)
        results = [_finish(t, values[t], as_float) for t in self.outputs]
        return results[0] if len(results) == 1 else results

    def values(self, inputs: Sequence[Array]) -> Mapping[Tensor, Array]:
        """Every value of the graph for inputs already in the program's own dtypes."""
        return evaluate(self.graph, inputs)

    def outputs_for(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for inputs already in the program's own dtypes, in the outputs' own."""
        return run_graph(self.graph, inputs)


def _finish(tensor: Tensor, value: Array, as_float: bool) -> Array:
    if as_float and tensor.type.quant is not None:
        return dequantize(value, tensor.type.quant)
    return value


def load(path: str | Path) -> Program:
    """Read a .tet file. Raises ProgramError for one that is missing, truncated, damaged or of a newer format."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"the program cannot be read: {error.strerror}", str(path)) from error
    contents = decode(data, str(path))
    return Program(contents.name, contents.graph, contents.float_graph, contents.notes)

# SPDX-License-Identifier: Apache-2.0
"""The facts about a model that its generated project states."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.deployment import Deployment
from tinyet.emit.instance import End, Instance, ends_of
from tinyet.errors import InternalError
from tinyet.ir import Array, DType, Size, Tensor
from tinyet.messages.text import markdown_code

DEFAULT_LIBRARY_VERSION = "1.0.0"


@dataclass(frozen=True)
class TensorFacts:
    """One input or output of the model, as it lies in the arena.

    shape:      in elements, as the user's PyTorch code sees it or as the layout says; for documentation.
    offset:     bytes from the start of the arena.
    rows:       given one by one; 0 where all of it lies in the arena.
    scale:      real = scale * (value - zero_point); None, with zero_point None, when it is not quantized.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    bytes: int
    offset: int
    scale: float | None
    zero_point: int | None
    rows: int = 0

    def __post_init__(self) -> None:
        if self.bytes != math.prod(self.shape) * self.dtype.bytes:
            raise InternalError(f"tensor {self.name!r}: {self.bytes} bytes do not hold {list(self.shape)}")
        if (self.scale is None) != (self.zero_point is None):
            raise InternalError(f"tensor {self.name!r} has only one of scale and zero point")

    @property
    def is_float(self) -> bool:
        return self.dtype is DType.FLOAT32

    @property
    def row_bytes(self) -> int:
        """Of an input that is given by rows."""
        return self.bytes // self.rows

    @property
    def is_quantized(self) -> bool:
        return self.scale is not None

    @property
    def description(self) -> str:
        """The tensor in one line of Markdown."""
        text = f"`{markdown_code(self.name)}` {self.dtype.value} {list(self.shape)}"
        return f"{text}, scale {self.scale:.9g}, zero point {self.zero_point}" if self.is_quantized else text


@dataclass(frozen=True)
class ModelFacts:
    """The facts about a model that a project states.

    name:    a C identifier: prefix of the functions; `macro` is the prefix of the macros.
    hash:    64 hexadecimal digits, of the program.
    layers:  number of calls in `<name>_run`; events: of parts of calls that a trace tells apart.
    has_init: whether there is a `<name>_init`.
    states: values that survive from run to run, with their places in the arena. samples: one for each input, as its
    bytes lie in the arena; the application runs on them. expected: the reference's outputs for them, likewise; empty
    if it was not asked. library_version, homepage: of the model's library; they are its owner's, not tinyet's.
    context: whether callers give the memory of each instance. selftest: whether the model tests itself.
    slices: of a run that can be left between them; 0 for a run as a whole. shared: the name of the arena that it has
    with others; takes: its input is what the model before it has left. models: of a project of several; these facts
    are then what they have in common. ends: inputs and outputs in the caller's buffers, if they are there; their
    offsets are then from `buffers_from` on, behind the arena, `buffers_bytes` in all. size: of the inputs, which a run
    is told; their shapes are for the largest. stack: bytes of it that an inference takes at most; 0 where that is not
    known.
    """

    name: str
    macro: str
    hash: str
    arena_bytes: int
    layers: int
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    samples: tuple[bytes, ...]
    events: int = 0
    has_init: bool = False
    expected: tuple[bytes, ...] = ()
    states: tuple[TensorFacts, ...] = ()
    library_version: str = DEFAULT_LIBRARY_VERSION
    homepage: str | None = None
    context: bool = False
    selftest: bool = False
    slices: int = 0
    shared: str = ""
    takes: bool = False
    models: tuple[ModelFacts, ...] = ()
    size: Size | None = None
    ends: tuple[End, ...] = ()
    buffers_from: int = 0
    buffers_bytes: int = 0
    second_from: int | None = None
    stack: int = 0

    @property
    def suffix(self) -> str:
        """Of an application's names, where it has several models."""
        return f"_{self.name}" if self.shared else ""

    @property
    def instance(self) -> Instance:
        """How applications and the harness hand an instance on."""
        return Instance(
            self.name,
            self.context,
            self.shared,
            self.suffix,
            self.size is not None,
            self.ends,
            self.second_from,
        )

    @property
    def parts(self) -> tuple[ModelFacts, ...]:
        """The models of a project."""
        return self.models or (self,)

    @property
    def tiled_input(self) -> TensorFacts | None:
        """The input, where it is given row by row; there is one alone then."""
        return next((tensor for tensor in self.inputs if tensor.rows), None)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", self.name, re.ASCII):
            raise InternalError(f"the model's name {self.name!r} is not a C identifier")
        if not re.fullmatch(r"[0-9a-f]{64}", self.hash):
            raise InternalError(f"the program's hash {self.hash!r} is not 64 hexadecimal digits")
        if [len(sample) for sample in self.samples] != [tensor.bytes for tensor in self.inputs]:
            raise InternalError("the samples do not have the sizes of the inputs")
        if self.expected and [len(data) for data in self.expected] != [t.bytes for t in self.outputs]:
            raise InternalError("what is expected does not have the sizes of the outputs")
        if not self.inputs or not self.outputs:
            raise InternalError("a model without inputs or without outputs")


def facts_of(
    deployment: Deployment, name: str, program_hash: str, inputs: Sequence[Array], expected: Sequence[Array]
) -> ModelFacts:
    """The facts of a deployed model.

    name: a C identifier. inputs: one sample, an array an input in its own dtype; expected: the reference's result, an
    array an output, or none.
    """
    return ModelFacts(
        name=name,
        macro=name.upper(),
        hash=program_hash,
        arena_bytes=deployment.plan.arena_bytes,
        layers=len(deployment.steps),
        inputs=tuple(_tensor_facts(t, deployment) for t in deployment.graph.user_inputs),
        outputs=tuple(_tensor_facts(t, deployment) for t in deployment.graph.user_outputs),
        samples=tuple(np.ascontiguousarray(a).tobytes() for a in inputs),
        events=len(deployment.events),
        has_init=any(step.call.init for step in deployment.steps)
        or deployment.places.copies
        or deployment.places.state is not None,
        expected=tuple(np.ascontiguousarray(a).tobytes() for a in expected),
        states=tuple(_tensor_facts(state.value, deployment) for state in deployment.graph.states),
        size=None if deployment.sized is None else deployment.sized.size,
        ends=ends_of(deployment),
        buffers_from=deployment.plan.buffers_from or 0,
        second_from=deployment.plan.second_from,
        buffers_bytes=deployment.plan.end - (deployment.plan.buffers_from or deployment.plan.end),
    )


def _tensor_facts(tensor: Tensor, deployment: Deployment) -> TensorFacts:
    quant = tensor.type.quant
    return TensorFacts(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        bytes=tensor.type.bytes,
        offset=deployment.plan.offset(tensor),
        scale=None if quant is None else quant.one_scale,
        zero_point=None if quant is None else quant.one_zero_point,
        rows=rows.height if (rows := deployment.plan.input_line_buffer(tensor)) is not None else 0,
    )

# SPDX-License-Identifier: Apache-2.0
"""The contents of a .tflite file, as plain records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tinyet.tflite.options import Options

Runtime = Literal["tflm", "litert"]
"""Whose kernels give a model its integers: TensorFlow Lite Micro's, or LiteRT's reference kernels."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = scale * (q - zero_point); of several scales, one for each index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor. type: one of enumerations.TYPES. data: its bytes, little endian, row-major; None where it is computed
    or given. quantization: None without scales. signature: the shape with -1 for what may vary, or empty. variable: it
    keeps its value from run to run. unusual: what else it is that changes its meaning (sparse, blockwise scales), or
    empty."""

    name: str
    shape: tuple[int, ...]
    type: str
    data: bytes | None = None
    quantization: Quantization | None = None
    signature: tuple[int, ...] = ()
    variable: bool = False
    unusual: str = ""


@dataclass(frozen=True, slots=True)
class Operator:
    """A call. code: one of enumerations.BUILTINS; of CUSTOM, `custom` is the name. inputs, outputs, intermediates:
    indices of the subgraph's tensors, -1 for an absent input. options: None where the file has none, or none with
    fields. custom_options: bytes of a custom operator's own (a flexbuffer as a rule)."""

    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Options | None = None
    custom: str = ""
    custom_options: bytes = b""
    intermediates: tuple[int, ...] = ()
    version: int = 1


@dataclass(frozen=True, slots=True)
class Subgraph:
    name: str
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """A named way to call a subgraph: (name, index of the tensor) of each input and output."""

    key: str
    subgraph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Model:
    subgraphs: tuple[Subgraph, ...]
    signatures: tuple[Signature, ...] = ()
    description: str = ""

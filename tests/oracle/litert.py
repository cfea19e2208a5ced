# SPDX-License-Identifier: Apache-2.0
"""LiteRT's reference kernels as an oracle: one operator in, its exact output back.

`run` writes a TensorFlow Lite model that holds a single operator, with the `flatbuffers` builder and the
slot numbers of the public schema (`schema.fbs`, fields counted from 0, a union taking two slots), gives it to
the LiteRT interpreter with the *reference* op resolver, and returns the outputs as numpy arrays. LiteRT's
optimised kernels differ from its reference in the last bit, so they are not what we compare with.

    x = TensorSpec((1, 4), np.int8, 0.5, 0, data=[[1, 2, 3, 4]])
    y = TensorSpec((1, 4), np.int8, 0.25, 0)
    (out,) = run("RELU", [x], [y])

Options are keyword arguments named as in `_OPS`, enums as strings: `padding="VALID"`, `activation="RELU6"`.
TFLite knows only SAME and VALID padding; for explicit pads, run a PAD (with the zero point) first.

The package `ai-edge-litert` is optional: `available()` tells whether it is there; without it `run` raises
ImportError.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import flatbuffers
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Option = int | float | bool | str

_SCHEMA_VERSION: Final = 3
_BUFFER_ALIGNMENT: Final = 16  # the schema's force_align on Buffer.data

_DTYPES: Final[dict[str, int]] = {
    "float32": 0,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "int8": 9,
}
_ENUMS: Final[dict[str, dict[str, int]]] = {
    "padding": {"SAME": 0, "VALID": 1},
    "activation": {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4},
    "mode": {"REFLECT": 0, "SYMMETRIC": 1},
    "output_type": {"int32": 2, "int64": 4},
}


@dataclass(frozen=True, eq=False)
class TensorSpec:
    """One tensor of the one-operator model.

    shape: dimensions, outermost first (NHWC for images). dtype: any of `_DTYPES`.
    scale: None for a tensor without quantization, a float for a per-tensor scale, a sequence for one scale a
    channel along `axis`. zero_point: an int, shared by all channels, or one a channel.
    data: the values of an input, broadcast to nothing: its size must be that of `shape`. None for an output.
    role: of an input, "state": the operator reads and writes it. Of an output, "within": a value of which only the
    quantization counts.
    """

    shape: tuple[int, ...]
    dtype: DTypeLike
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    data: ArrayLike | None = None
    role: Literal["", "state", "within"] = ""

    @property
    def scales(self) -> NDArray[np.float32]:
        """All scales, float32; empty when the tensor is not quantized."""
        return np.asarray([] if self.scale is None else self.scale, np.float32).reshape(-1)

    @property
    def zero_points(self) -> NDArray[np.int64]:
        """As many zero points as `scales`, int64."""
        return np.array(np.broadcast_to(np.asarray(self.zero_point, np.int64), self.scales.shape))

    def array(self) -> NDArray[Any]:
        """`data` as a C-ordered array of `dtype` and `shape`; ValueError when values or size do not fit."""
        if self.data is None:
            raise ValueError("an input tensor needs data")
        given = np.asarray(self.data)
        array = np.ascontiguousarray(given, self.dtype).reshape(self.shape)
        if np.issubdtype(array.dtype, np.integer) and not np.array_equal(array, given.reshape(self.shape)):
            raise ValueError(f"the data does not fit {array.dtype}")
        return array


@dataclass(frozen=True)
class _Op:
    """How the schema writes an operator: its code, its member of the BuiltinOptions union, (name, slot, kind)
    of each option in that table, which inputs are fed at run time (all others are constants in the model),
    and which of LiteRT's op resolvers has the kernel."""

    code: int
    options: int = 0
    slots: tuple[tuple[str, int, str], ...] = ()
    fed: tuple[int, ...] = (0,)
    resolver: str = "BUILTIN_REF"


_CONV: Final = (("padding", 0, "int8"), ("stride_w", 1, "int32"), ("stride_h", 2, "int32"))
_ACTIVATION_0: Final = (("activation", 0, "int8"),)
# Left out, it stands for true: sums of int16 with scales that are powers of two are then another operator.
_SUM: Final = (*_ACTIVATION_0, ("pot_scale_int16", 1, "bool"))
_POOL: Final = (*_CONV, ("filter_w", 3, "int32"), ("filter_h", 4, "int32"), ("activation", 5, "int8"))
_RESIZE_NEAREST: Final = (("align_corners", 0, "bool"), ("half_pixel_centers", 1, "bool"))
_RESIZE_BILINEAR: Final = (("align_corners", 2, "bool"), ("half_pixel_centers", 3, "bool"))
_REDUCE: Final = (("keep_dims", 0, "bool"),)
_ALL_FED: Final = (-1,)

_OPS: Final[dict[str, _Op]] = {
    "ABS": _Op(101, 78),
    "ADD": _Op(0, 11, _SUM, (0, 1)),
    "ARG_MAX": _Op(56, 40, (("output_type", 0, "int8"),)),
    "ARG_MIN": _Op(79, 57, (("output_type", 0, "int8"),)),
    "AVERAGE_POOL_2D": _Op(1, 5, _POOL),
    "BATCH_MATMUL": _Op(126, 101, (("adj_x", 0, "bool"), ("adj_y", 1, "bool")), (0, 1)),
    "CONCATENATION": _Op(2, 10, (("axis", 0, "int32"), ("activation", 1, "int8")), _ALL_FED),
    "CONV_2D": _Op(
        3, 1, (*_CONV, ("activation", 3, "int8"), ("dilation_w", 4, "int32"), ("dilation_h", 5, "int32"))
    ),
    "DEPTHWISE_CONV_2D": _Op(
        4,
        2,
        (
            *_CONV,
            ("depth_multiplier", 3, "int32"),
            ("activation", 4, "int8"),
            ("dilation_w", 5, "int32"),
            ("dilation_h", 6, "int32"),
        ),
    ),
    "DEQUANTIZE": _Op(6, 38),
    "DIV": _Op(42, 29, _ACTIVATION_0, (0, 1)),
    # Absent from the reference resolver; the ordinary kernel is a table, so it has nothing to optimise.
    "ELU": _Op(111, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    "EXP": _Op(47, 33),
    "FULLY_CONNECTED": _Op(9, 8, (("activation", 0, "int8"), ("keep_num_dims", 2, "bool"))),
    "GATHER": _Op(36, 23, (("axis", 0, "int32"), ("batch_dims", 1, "int32"))),
    "GELU": _Op(150, 116, (("approximate", 0, "bool"),)),
    "HARD_SWISH": _Op(117, 91),
    "LEAKY_RELU": _Op(98, 75, (("alpha", 0, "float32"),)),
    "LOG": _Op(73),
    "LOGISTIC": _Op(14),
    "LOG_SOFTMAX": _Op(50, 36),
    "MAXIMUM": _Op(55, 39, (), (0, 1)),
    "MAX_POOL_2D": _Op(17, 5, _POOL),
    "MEAN": _Op(40, 27, _REDUCE),
    "MINIMUM": _Op(57, 39, (), (0, 1)),
    "MIRROR_PAD": _Op(100, 77, (("mode", 0, "int8"),)),
    "MUL": _Op(18, 21, _ACTIVATION_0, (0, 1)),
    "NEG": _Op(59, 42),
    "PAD": _Op(34, 22),
    "PADV2": _Op(60, 43),
    "PRELU": _Op(54),
    "QUANTIZE": _Op(114, 89),
    "REDUCE_MAX": _Op(82, 27, _REDUCE),
    "REDUCE_MIN": _Op(89, 27, _REDUCE),
    "RELU": _Op(19),
    "RELU6": _Op(21),
    "RESIZE_BILINEAR": _Op(23, 15, _RESIZE_BILINEAR),
    "RESIZE_NEAREST_NEIGHBOR": _Op(97, 74, _RESIZE_NEAREST),
    "RSQRT": _Op(76),
    "SOFTMAX": _Op(25, 9, (("beta", 0, "float32"),)),
    "SQRT": _Op(75),
    "STRIDED_SLICE": _Op(
        45,
        32,
        (
            ("begin_mask", 0, "int32"),
            ("end_mask", 1, "int32"),
            ("ellipsis_mask", 2, "int32"),
            ("new_axis_mask", 3, "int32"),
            ("shrink_axis_mask", 4, "int32"),
        ),
    ),
    "SUB": _Op(41, 28, _SUM, (0, 1)),
    "SUM": _Op(74, 27, _REDUCE),
    "TANH": _Op(28),
    "TRANSPOSE": _Op(39, 26),
    "TRANSPOSE_CONV": _Op(67, 49, (*_CONV, ("activation", 3, "int8")), (2,)),
    "SVDF": _Op(27, 6, (("rank", 0, "int32"), ("activation", 1, "int8"))),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _Op(44, 71, (*_ACTIVATION_0, ("cell_clip", 1, "float32"))),
}

OPS: Final = tuple(sorted(_OPS))
"""The operators that `run` knows."""


def available() -> bool:
    """Whether the package `ai-edge-litert` is installed."""
    return importlib.util.find_spec("ai_edge_litert") is not None


def run(
    op: str, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec], **options: Option
) -> list[NDArray[Any]]:
    """Run one operator in LiteRT's reference kernels.

    inputs: in the order of TFLite's operator, each with data; None for an optional input that is absent.
    outputs: shape, dtype and quantization of each output. options: see `_OPS`; an option left out has the
    schema's default (strides and dilations 1, beta 1).
    Returns the outputs as arrays, then the inputs that are states as the run leaves them. Raises ValueError when
    LiteRT refuses the operator (with its own words), when it would end the process instead of refusing, or when it
    answers with another shape or dtype than `outputs` says.
    """
    _refuse_what_aborts(op, inputs, outputs, options)
    model = build(op, inputs, outputs, states_outside=False, **options)
    try:
        interpreter = _interpreter(_OPS[op].resolver)(model)
        interpreter.allocate_tensors()
        fed = [spec for spec in (inputs[i] for i in _fed(op, inputs)) if spec is not None]
        for spec, detail in zip(fed, interpreter.get_input_details(), strict=True):
            interpreter.set_tensor(detail["index"], spec.array())
        states = [n for n, spec in enumerate(_there(inputs)) if spec.role == "state"]
        for number in states:
            interpreter.set_tensor(number, _there(inputs)[number].array())
        interpreter.invoke()
    except RuntimeError as error:
        raise ValueError(f"LiteRT refuses {op}: {error}") from error
    results = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    for spec, result in zip((spec for spec in outputs if not spec.role), results, strict=True):
        if result.shape != tuple(spec.shape) or result.dtype != np.dtype(spec.dtype):
            raise ValueError(f"{op} gave {result.dtype}{result.shape}, expected {spec.dtype}{spec.shape}")
    return results + [interpreter.get_tensor(number) for number in states]


def build(
    op: str,
    inputs: Sequence[TensorSpec | None],
    outputs: Sequence[TensorSpec],
    *,
    states_outside: bool = False,
    **options: Option,
) -> bytes:
    """The `.tflite` bytes of the one-operator model that `run` runs; arguments as there. states_outside: states are
    among the model's inputs and its outputs, behind the others."""
    if op not in _OPS:
        raise ValueError(f"the oracle does not know {op}; it knows {', '.join(OPS)}")
    description = _OPS[op]
    fed = _fed(op, inputs)
    builder = flatbuffers.Builder(1024)
    buffers = [_table(builder, [])]  # buffer 0 means "no data", by convention
    tensors: list[int] = []
    numbers: list[int] = []
    for position, spec in enumerate(inputs):
        constant = position not in fed and (spec is None or not spec.role)
        if spec is None:
            if not constant:
                raise ValueError(f"input {position} of {op} may not be absent")
            numbers.append(-1)
            continue
        if constant:
            buffers.append(_table(builder, [(0, "offset", _bytes(builder, spec.array().tobytes()))]))
        numbers.append(len(tensors))
        tensors.append(_tensor(builder, spec, f"input{position}", len(buffers) - 1 if constant else 0))
    results: list[int] = []
    within: list[int] = []
    for position, spec in enumerate(outputs):
        (within if spec.role else results).append(len(tensors))
        tensors.append(_tensor(builder, spec, f"output{position}", 0))

    node: list[tuple[int, str, Any]] = [
        (1, "offset", _numbers(builder, np.array(numbers, np.int32))),
        (2, "offset", _numbers(builder, np.array(results, np.int32))),
    ]
    values = _options(op, description, options)
    if description.options:
        node += [(3, "uint8", description.options), (4, "offset", _table(builder, values))]
    if within:
        node.append((8, "offset", _numbers(builder, np.array(within, np.int32))))
    operator = _table(builder, node)
    states = [n for n, spec in enumerate(_there(inputs)) if spec.role == "state" and states_outside]
    graph_inputs = _numbers(builder, np.array([numbers[i] for i in fed] + states, np.int32))
    graph_outputs = _numbers(builder, np.array(results + states, np.int32))
    subgraph = _table(
        builder,
        [
            (0, "offset", _offsets(builder, tensors)),
            (1, "offset", graph_inputs),
            (2, "offset", graph_outputs),
            (3, "offset", _offsets(builder, [operator])),
        ],
    )
    # Codes above 127 live in the newer slot 3 alone; the older byte then holds the placeholder 127.
    code = _table(
        builder, [(0, "int8", min(description.code, 127)), (2, "int32", 1), (3, "int32", description.code)]
    )
    model = _table(
        builder,
        [
            (0, "uint32", _SCHEMA_VERSION),
            (1, "offset", _offsets(builder, [code])),
            (2, "offset", _offsets(builder, [subgraph])),
            (4, "offset", _offsets(builder, buffers)),
        ],
    )
    builder.Finish(model, b"TFL3")
    return bytes(builder.Output())


def _refuse_what_aborts(
    op: str, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec], options: dict[str, Option]
) -> None:
    """ValueError where LiteRT's own checks call abort(), which would take the test run along."""
    specs = [
        spec for spec in inputs if spec is not None and spec.scales.size and np.dtype(spec.dtype) == np.int8
    ]
    if not specs:
        return
    largest = max(float(spec.scales.max()) for spec in specs)
    if op == "ADD" and 2 * largest >= 2**20 * float(outputs[0].scales[0]):
        raise ValueError(
            "LiteRT aborts in ADD when the output scale is below 2**-19 of the larger input scale"
        )
    if op in ("SOFTMAX", "LOG_SOFTMAX"):
        beta = float(options.get("beta", 1.0))
        if beta * largest * 2**26 <= 1:
            raise ValueError(f"LiteRT aborts in {op} when beta * scale is 2**-26 or less")
        if op == "SOFTMAX" and specs[0].shape[-1] >= 512:
            raise ValueError(
                "LiteRT aborts in SOFTMAX when 512 elements share the maximum; keep the row shorter"
            )


def _there(inputs: Sequence[TensorSpec | None]) -> list[TensorSpec]:
    """Without those that are absent: an input's place is its tensor's number."""
    return [spec for spec in inputs if spec is not None]


def _fed(op: str, inputs: Sequence[TensorSpec | None]) -> tuple[int, ...]:
    fed = _OPS[op].fed
    return tuple(range(len(inputs))) if fed == _ALL_FED else fed


def _options(op: str, description: _Op, options: dict[str, Option]) -> list[tuple[int, str, Any]]:
    unknown = set(options) - {name for name, _, _ in description.slots}
    if unknown:
        raise ValueError(f"{op} has no option {', '.join(sorted(unknown))}")
    fields: list[tuple[int, str, Any]] = []
    for name, slot, kind in description.slots:
        ones = ("stride_w", "stride_h", "dilation_w", "dilation_h", "depth_multiplier", "beta")
        value = options.get(name, 1 if name in ones else 0)
        if isinstance(value, str):
            value = _ENUMS[name][value]
        fields.append((slot, kind, value))
    return fields


def _tensor(builder: Any, spec: TensorSpec, name: str, buffer: int) -> int:
    fields: list[tuple[int, str, Any]] = [
        (0, "offset", _numbers(builder, np.array(spec.shape, np.int32))),
        (1, "int8", _DTYPES[np.dtype(spec.dtype).name]),
        (2, "uint32", buffer),
        (3, "offset", builder.CreateString(name)),
    ]
    if spec.scales.size:
        scales, zero_points = _numbers(builder, spec.scales), _numbers(builder, spec.zero_points)
        quantization = [(2, "offset", scales), (3, "offset", zero_points), (6, "int32", spec.axis)]
        fields.append((4, "offset", _table(builder, quantization)))
    fields.append((5, "bool", spec.role == "state"))
    fields.append((8, "bool", True))  # has_rank: an empty shape is a scalar, not an unknown shape
    return _table(builder, fields)


def _table(builder: Any, fields: list[tuple[int, str, Any]]) -> int:
    """Write a table from (slot, kind, value); every value is written, so a default is never relied upon."""
    builder.ForceDefaults(True)
    builder.StartObject(max((slot for slot, _, _ in fields), default=-1) + 1)
    put: dict[str, Callable[..., None]] = {
        "bool": builder.PrependBoolSlot,
        "int8": builder.PrependInt8Slot,
        "uint8": builder.PrependUint8Slot,
        "int32": builder.PrependInt32Slot,
        "uint32": builder.PrependUint32Slot,
        "float32": builder.PrependFloat32Slot,
        "offset": builder.PrependUOffsetTRelativeSlot,
    }
    for slot, kind, value in fields:
        put[kind](slot, value, 0)
    return int(builder.EndObject())


def _offsets(builder: Any, tables: list[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for offset in reversed(tables):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _numbers(builder: Any, values: NDArray[Any]) -> int:
    return int(builder.CreateNumpyVector(values))


def _bytes(builder: Any, data: bytes) -> int:
    """A [ubyte] vector aligned as the schema asks for; the builder's own byte vectors are not."""
    builder.StartVector(1, len(data), _BUFFER_ALIGNMENT)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())


@functools.cache
def _interpreter(resolver: str) -> Callable[[bytes], Any]:
    """LiteRT's interpreter, bound to a set of kernels; imported late, because it is an optional package."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = OpResolverType[resolver]
    return lambda model: Interpreter(
        model_content=model, experimental_op_resolver_type=kernels, num_threads=1
    )

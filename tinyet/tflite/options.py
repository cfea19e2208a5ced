# SPDX-License-Identifier: Apache-2.0
"""The options of builtin operators as a .tflite file has them.

Names, order and defaults are those of the published schema (tensorflow/compiler/mlir/lite/schema/schema.fbs): a field's
place in its class is its slot in the file's table. Options without fields have no class. Fields called padding, type or
activation hold the numbers of enumerations.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from tinyet.files.flatbuffer import Table


@dataclass(frozen=True)
class Options:
    """Base of all; `kind` in the metadata of a field says how it is stored, in struct's letters."""


def byte(default: int = 0) -> Any:
    """An int8, of most enumerations."""
    return field(default=default, metadata={"kind": "b"})


def int32(default: int = 0) -> Any:
    return field(default=default, metadata={"kind": "i"})


def uint32(default: int = 0) -> Any:
    return field(default=default, metadata={"kind": "I"})


def boolean(default: bool = False) -> Any:
    return field(default=default, metadata={"kind": "?"})


def real(default: float = 0.0) -> Any:
    """A float32."""
    return field(default=default, metadata={"kind": "f"})


def text() -> Any:
    return field(default="", metadata={"kind": "text"})


def int32s() -> Any:
    """A vector of int32."""
    return field(default=(), metadata={"kind": "[i]"})


@dataclass(frozen=True)
class Conv2DOptions(Options):
    padding: int = byte()
    stride_w: int = int32()
    stride_h: int = int32()
    fused_activation_function: int = byte()
    dilation_w_factor: int = int32(1)
    dilation_h_factor: int = int32(1)
    quantized_bias_type: int = byte()


@dataclass(frozen=True)
class DepthwiseConv2DOptions(Options):
    padding: int = byte()
    stride_w: int = int32()
    stride_h: int = int32()
    depth_multiplier: int = int32()
    fused_activation_function: int = byte()
    dilation_w_factor: int = int32(1)
    dilation_h_factor: int = int32(1)


@dataclass(frozen=True)
class Pool2DOptions(Options):
    padding: int = byte()
    stride_w: int = int32()
    stride_h: int = int32()
    filter_width: int = int32()
    filter_height: int = int32()
    fused_activation_function: int = byte()


@dataclass(frozen=True)
class SVDFOptions(Options):
    rank: int = int32()
    fused_activation_function: int = byte()
    asymmetric_quantize_inputs: bool = boolean()


@dataclass(frozen=True)
class FullyConnectedOptions(Options):
    fused_activation_function: int = byte()
    weights_format: int = byte()
    keep_num_dims: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    quantized_bias_type: int = byte()


@dataclass(frozen=True)
class SoftmaxOptions(Options):
    beta: float = real()


@dataclass(frozen=True)
class ConcatenationOptions(Options):
    axis: int = int32()
    fused_activation_function: int = byte()


@dataclass(frozen=True)
class AddOptions(Options):
    fused_activation_function: int = byte()
    pot_scale_int16: bool = boolean(True)


@dataclass(frozen=True)
class MulOptions(Options):
    fused_activation_function: int = byte()


@dataclass(frozen=True)
class SubOptions(Options):
    fused_activation_function: int = byte()
    pot_scale_int16: bool = boolean(True)


@dataclass(frozen=True)
class DivOptions(Options):
    fused_activation_function: int = byte()


@dataclass(frozen=True)
class L2NormOptions(Options):
    fused_activation_function: int = byte()


@dataclass(frozen=True)
class ResizeBilinearOptions(Options):
    new_height: int = int32()
    new_width: int = int32()
    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


@dataclass(frozen=True)
class ResizeNearestNeighborOptions(Options):
    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


@dataclass(frozen=True)
class ReshapeOptions(Options):
    new_shape: tuple[int, ...] = int32s()


@dataclass(frozen=True)
class SpaceToDepthOptions(Options):
    block_size: int = int32()


@dataclass(frozen=True)
class DepthToSpaceOptions(Options):
    block_size: int = int32()


@dataclass(frozen=True)
class GatherOptions(Options):
    axis: int = int32()
    batch_dims: int = int32()


@dataclass(frozen=True)
class ReducerOptions(Options):
    keep_dims: bool = boolean()


@dataclass(frozen=True)
class SqueezeOptions(Options):
    squeeze_dims: tuple[int, ...] = int32s()


@dataclass(frozen=True)
class UnidirectionalSequenceLSTMOptions(Options):
    fused_activation_function: int = byte()
    cell_clip: float = real()
    proj_clip: float = real()
    time_major: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    diagonal_recurrent_tensors: bool = boolean()


@dataclass(frozen=True)
class BidirectionalSequenceLSTMOptions(Options):
    fused_activation_function: int = byte()
    cell_clip: float = real()
    proj_clip: float = real()
    merge_outputs: bool = boolean()
    time_major: bool = boolean(True)
    asymmetric_quantize_inputs: bool = boolean()


@dataclass(frozen=True)
class StridedSliceOptions(Options):
    begin_mask: int = int32()
    end_mask: int = int32()
    ellipsis_mask: int = int32()
    new_axis_mask: int = int32()
    shrink_axis_mask: int = int32()
    offset: bool = boolean()


@dataclass(frozen=True)
class SplitOptions(Options):
    num_splits: int = int32()


@dataclass(frozen=True)
class SplitVOptions(Options):
    num_splits: int = int32()


@dataclass(frozen=True)
class CastOptions(Options):
    in_data_type: int = byte()
    out_data_type: int = byte()


@dataclass(frozen=True)
class ArgMaxOptions(Options):
    output_type: int = byte()


@dataclass(frozen=True)
class ArgMinOptions(Options):
    output_type: int = byte()


@dataclass(frozen=True)
class TransposeConvOptions(Options):
    padding: int = byte()
    stride_w: int = int32()
    stride_h: int = int32()
    fused_activation_function: int = byte()
    quantized_bias_type: int = byte()


@dataclass(frozen=True)
class ShapeOptions(Options):
    out_type: int = byte()


@dataclass(frozen=True)
class PackOptions(Options):
    values_count: int = int32()
    axis: int = int32()


@dataclass(frozen=True)
class UnpackOptions(Options):
    num: int = int32()
    axis: int = int32()


@dataclass(frozen=True)
class OneHotOptions(Options):
    axis: int = int32()


@dataclass(frozen=True)
class LeakyReluOptions(Options):
    alpha: float = real()


@dataclass(frozen=True)
class MirrorPadOptions(Options):
    mode: int = byte()


@dataclass(frozen=True)
class BatchMatMulOptions(Options):
    adj_x: bool = boolean()
    adj_y: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()


@dataclass(frozen=True)
class CumsumOptions(Options):
    exclusive: bool = boolean()
    reverse: bool = boolean()


@dataclass(frozen=True)
class IfOptions(Options):
    then_subgraph_index: int = int32()
    else_subgraph_index: int = int32()


@dataclass(frozen=True)
class WhileOptions(Options):
    cond_subgraph_index: int = int32()
    body_subgraph_index: int = int32()


@dataclass(frozen=True)
class CallOnceOptions(Options):
    init_subgraph_index: int = int32()


@dataclass(frozen=True)
class CallOptions(Options):
    subgraph: int = uint32()


@dataclass(frozen=True)
class VarHandleOptions(Options):
    container: str = text()
    shared_name: str = text()


@dataclass(frozen=True)
class GeluOptions(Options):
    approximate: bool = boolean()


@dataclass(frozen=True)
class LocalResponseNormalizationOptions(Options):
    radius: int = int32()
    bias: float = real()
    alpha: float = real()
    beta: float = real()


@dataclass(frozen=True)
class FakeQuantOptions(Options):
    min: float = real()
    max: float = real()
    num_bits: int = int32()
    narrow_range: bool = boolean()


@dataclass(frozen=True)
class SequenceRNNOptions(Options):
    time_major: bool = boolean()
    fused_activation_function: int = byte()
    asymmetric_quantize_inputs: bool = boolean()


@dataclass(frozen=True)
class ReverseSequenceOptions(Options):
    seq_dim: int = int32()
    batch_dim: int = int32()


TYPES: tuple[str, ...] = tuple(
    """
    Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions
    SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions
    L2NormOptions LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions CallOptions
    ReshapeOptions SkipGramOptions SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions
    PadOptions GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions TransposeOptions ReducerOptions
    SubOptions DivOptions SqueezeOptions SequenceRNNOptions StridedSliceOptions ExpOptions TopKV2Options
    SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions MaximumMinimumOptions ArgMaxOptions
    LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions LessEqualOptions
    SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions
    EqualOptions NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions
    LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions
    SquareOptions ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions
    BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions
    ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions AbsOptions
    SplitVOptions UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions WhereOptions
    RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions
    HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options
    NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions
    BatchMatMulOptions CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions
    HashtableOptions HashtableFindOptions HashtableImportOptions HashtableSizeOptions VarHandleOptions
    ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions GeluOptions
    DynamicUpdateSliceOptions UnsortedSegmentProdOptions UnsortedSegmentMaxOptions
    UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions
    BitwiseXorOptions RightShiftOptions
    """.split()  # noqa: SIM905
)
"""The members of the union of options, in its order; the first has the number 1."""

CLASSES: dict[str, type[Options]] = {kind.__name__: kind for kind in Options.__subclasses__()}


def read_options(number: int, table: Table | None) -> Options | None:
    """The options of a union's member; None for one that has no fields, or that is not known here."""
    kind = CLASSES.get(TYPES[number - 1]) if 1 <= number <= len(TYPES) else None
    if kind is None or table is None:
        return None
    return kind(
        **{f.name: _value(table, slot, f.metadata["kind"], f.default) for slot, f in enumerate(fields(kind))}
    )


def _value(table: Table, slot: int, kind: str, default: Any) -> Any:
    if kind == "text":
        return table.text(slot)
    if kind == "[i]":
        return table.numbers(slot)
    return type(default)(table.scalar(slot, kind, default))

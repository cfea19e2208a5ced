# SPDX-License-Identifier: Apache-2.0
"""Every handler of the ATen table computes what torch computes, by the operators' references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.torch_helpers import FLOAT32_STEPS, Lambda, line_of, mlperf_models, pieces, rounding_excess
from tinyet import ops as operators
from tinyet.errors import ModelError, UnsupportedOp, UnsupportedShape
from tinyet.fx.capture import capture
from tinyet.importers.torch.importer import import_program
from tinyet.ir import Array, DType, Graph
from tinyet.ops.dequantize import Dequantize
from tinyet.ops.permute import Permute
from tinyet.ops.quantize import Quantize
from tinyet.quantization.lowering import Lowered, lower_model, lower_program
from tinyet.quantization.quantize import quantize
from tinyet.reference import run_graph

SEED = torch.Generator().manual_seed(7)


def tensor(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=SEED)


def arrays(inputs: Sequence[torch.Tensor]) -> list[Array]:
    return [np.asarray(x.to(torch.int32) if not x.is_floating_point() else x) for x in inputs]


def flat(outputs: Any) -> list[torch.Tensor]:
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def check_same(model: nn.Module, *inputs: torch.Tensor, atol: float = 1e-5) -> Graph:
    """Import the model and compare its graph's outputs with the module's."""
    model.eval()
    graph = import_program(capture(model, inputs), name="m")
    operators.check(graph, "import")
    with torch.no_grad():
        expected = flat(model(*(x.clone() for x in inputs)))
    results = run_graph(graph, arrays(inputs))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == tuple(wanted.shape)
        np.testing.assert_allclose(np.asarray(result, np.float64), wanted.numpy(), rtol=1e-4, atol=atol)
    return graph


IMAGE = tensor(2, 4, 9, 8)
ROW = tensor(2, 4, 11)
FLAT = tensor(3, 6)
POSITIVE = FLAT.abs() + 0.1

MODULES: dict[str, tuple[nn.Module, torch.Tensor]] = {
    "conv2d": (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), IMAGE),
    "conv2d unbatched": (nn.Conv2d(4, 6, 3, bias=False), IMAGE[0]),
    "conv2d groups": (nn.Conv2d(4, 8, 3, groups=2, padding="same"), IMAGE),
    "conv2d depthwise": (nn.Conv2d(4, 4, 3, groups=4), IMAGE),
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2), ROW),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), IMAGE),
    "transposed groups": (nn.ConvTranspose2d(4, 6, (2, 3), groups=2, dilation=2), IMAGE),
    "transposed depthwise": (nn.ConvTranspose2d(4, 4, 3, groups=4, bias=False), IMAGE),
    "transposed 1d": (nn.ConvTranspose1d(4, 6, 3, stride=2), ROW),
    "linear": (nn.Linear(6, 5), FLAT),
    "linear on images": (nn.Linear(8, 5, bias=False), IMAGE),
    "max pool": (nn.MaxPool2d(3, stride=2, padding=1), IMAGE),
    "max pool ceil": (nn.MaxPool2d((2, 3), stride=(2, 3), ceil_mode=True), IMAGE),
    "max pool dilated": (nn.MaxPool2d(2, dilation=2, stride=1), IMAGE),
    "max pool 1d": (nn.MaxPool1d(3, padding=1), ROW),
    "average pool": (nn.AvgPool2d(3, stride=2, padding=1), IMAGE),
    "average pool uncounted": (nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), IMAGE),
    "average pool ceil": (nn.AvgPool2d(2, ceil_mode=True), IMAGE),
    "average pool divisor": (nn.AvgPool2d(2, divisor_override=3), IMAGE),
    "average pool 1d": (nn.AvgPool1d(3, padding=1), ROW),
    "adaptive pool": (nn.AdaptiveAvgPool2d((3, 4)), IMAGE),
    "adaptive pool uneven": (nn.AdaptiveAvgPool2d((4, 3)), IMAGE),
    "adaptive pool global": (nn.AdaptiveAvgPool2d(1), IMAGE),
    "adaptive pool 1d": (nn.AdaptiveAvgPool1d(4), ROW),
    "adaptive max pool": (nn.AdaptiveMaxPool2d((3, 2)), IMAGE),
    "nearest": (nn.Upsample(scale_factor=2), IMAGE),
    "nearest by size": (nn.Upsample(size=(7, 13)), IMAGE),
    "nearest exact": (nn.Upsample(size=(7, 13), mode="nearest-exact"), IMAGE),
    "nearest 1d": (nn.Upsample(scale_factor=3), ROW),
    "bilinear": (nn.Upsample(scale_factor=(1.5, 2), mode="bilinear"), IMAGE),
    "bilinear corners": (nn.Upsample(size=(5, 11), mode="bilinear", align_corners=True), IMAGE),
    "batch norm": (nn.BatchNorm2d(4), IMAGE),
    "layer norm": (nn.LayerNorm([9, 8]), IMAGE),
    "layer norm plain": (nn.LayerNorm(8, elementwise_affine=False), IMAGE),
    "group norm": (nn.GroupNorm(2, 4), IMAGE),
    "instance norm": (nn.InstanceNorm2d(4, affine=True), IMAGE),
    "prelu": (nn.PReLU(4, 0.2), IMAGE),
    "prelu one": (nn.PReLU(), FLAT),
    "pixel shuffle": (nn.PixelShuffle(2), IMAGE),
    "pixel unshuffle": (nn.PixelUnshuffle(2), tensor(1, 3, 4, 6)),
    "channel shuffle": (nn.ChannelShuffle(2), IMAGE),
    "reflection pad": (nn.ReflectionPad2d((1, 2, 3, 0)), IMAGE),
    "replication pad": (nn.ReplicationPad2d((1, 0, 0, 2)), IMAGE),
    "replication pad 1d": (nn.ReplicationPad1d(2), ROW),
    "zero pad": (nn.ZeroPad2d((1, -2, 0, 3)), IMAGE),
    "dropout": (nn.Dropout(), FLAT),
    "embedding": (nn.Embedding(10, 4), torch.tensor([[1, 9], [0, 3]])),
}


@pytest.mark.parametrize("case", MODULES.values(), ids=MODULES.keys())
def test_modules(case: tuple[nn.Module, torch.Tensor]) -> None:
    model, x = case
    for name, value in model.state_dict().items():
        if name.endswith("running_var"):
            value.copy_(torch.linspace(0.5, 2, value.numel()))
        elif name.endswith(("running_mean", "weight", "bias")):
            value.copy_(tensor(*value.shape) * 0.5)
    check_same(model, x)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "add": (lambda a, b: a + b, (FLAT, tensor(6))),
    "add alpha": (lambda a, b: torch.add(a, b, alpha=2.5), (FLAT, tensor(3, 1))),
    "add number": (lambda a: a + 1, (FLAT,)),
    "sub": (lambda a, b: a - b, (FLAT, tensor(3, 6))),
    "number minus": (lambda a: 2 - a, (FLAT,)),
    "mul": (lambda a, b: a * b * 0.5, (FLAT, tensor(3, 6))),
    "div": (lambda a, b: a / b / 4, (FLAT, POSITIVE)),
    "reciprocal": (lambda a: 3 / a, (POSITIVE,)),
    "minimum": (torch.minimum, (FLAT, tensor(3, 6))),
    "maximum": (torch.maximum, (FLAT, tensor(1, 6))),
    "matmul": (lambda a, b: a @ b, (tensor(2, 3, 4), tensor(4, 5))),
    "matmul batched": (lambda a, b: a @ b, (tensor(2, 1, 3, 4), tensor(5, 4, 2))),
    "matmul vectors": (lambda a, b: a @ b, (tensor(4), tensor(4))),
    "matmul row": (lambda a, b: a @ b, (tensor(4), tensor(3, 4, 2))),
    "matmul column": (lambda a, b: a @ b, (tensor(3, 2, 4), tensor(4))),
    "mm constant": (lambda a: a @ torch.linspace(-1, 1, 12).reshape(6, 2), (FLAT,)),
    "addmm": (lambda a, b: torch.addmm(a, b, torch.linspace(-1, 1, 12).reshape(6, 2)), (tensor(3, 2), FLAT)),
    "addmm linear": (lambda b: torch.addmm(torch.ones(2), b, torch.ones(6, 2)), (FLAT,)),
    "addmm scaled": (
        lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=0.5),
        (tensor(2), FLAT, tensor(6, 2)),
    ),
    "baddbmm": (torch.baddbmm, (tensor(2, 3, 5), tensor(2, 3, 4), tensor(2, 4, 5))),
    "linear computed": (lambda a, b: F.linear(a, b, torch.ones(5)), (FLAT, tensor(5, 6))),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), (tensor(2, 3, 4), tensor(2, 5, 4))),
    "attention": (
        F.scaled_dot_product_attention,
        (tensor(1, 2, 5, 4), tensor(1, 2, 5, 4), tensor(1, 2, 5, 4)),
    ),
    "relu": (F.relu, (FLAT,)),
    "relu6": (lambda a: F.relu6(a * 5), (FLAT,)),
    "hardtanh": (lambda a: F.hardtanh(a, -0.3, 0.4), (FLAT,)),
    "clamp": (lambda a: a.clamp(-0.5, 0.25).clamp(min=-0.4).clamp(max=0.2), (FLAT,)),
    "clamp_min": (lambda a: torch.clamp_max(torch.clamp_min(a, -0.5), 0.75), (FLAT,)),
    **{
        name: (getattr(F, name), (FLAT * 3,))
        for name in (
            "sigmoid",
            "hardsigmoid",
            "tanh",
            "silu",
            "hardswish",
            "mish",
            "selu",
            "celu",
            "softplus",
            "elu",
            "gelu",
            "logsigmoid",
            "leaky_relu",
        )
    },
    "gelu tanh": (lambda a: F.gelu(a, approximate="tanh"), (FLAT,)),
    "elu alpha": (lambda a: F.elu(a, 0.7), (FLAT,)),
    "leaky slope": (lambda a: F.leaky_relu(a, 0.3), (FLAT,)),
    "softplus beta": (lambda a: F.softplus(a, 2.0, 3.0), (FLAT,)),
    "threshold": (lambda a: F.threshold(a, 0.1, -2.0), (FLAT,)),
    **{
        name: (getattr(torch, name), (POSITIVE,))
        for name in ("exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "square")
    },
    **{
        name: (getattr(torch, name), (FLAT,))
        for name in ("abs", "neg", "sin", "cos", "erf", "sign", "floor", "ceil")
    },
    "round": (lambda a: torch.round(a * 3), (FLAT,)),
    "pow": (lambda a: a**3 + a**2 + a**0.5 + a**-1 + a**-0.5 + a**1, (POSITIVE,)),
    "comparisons": (
        lambda a, b: tuple(
            c.float() for c in (a > b, a >= b, a < b, a <= b, a == b.round(), a != 0, a > 0.5)
        ),
        (FLAT.round(), tensor(3, 6).round()),
    ),
    "comparison broadcast": (lambda a, b: (a > b).float(), (FLAT, tensor(3, 1))),
    "comparison of integers": (
        lambda i: ((i == torch.arange(4)).float(), (i > 1).float(), (i < 2.5).float(), i.bool().float()),
        (torch.tensor([[0], [3], [1]]),),
    ),
    "choice": (lambda a, b: torch.where(a > 0, a, b * 2), (FLAT, tensor(1, 6))),
    "choice of a number": (lambda a: torch.where(a > 0, a.log(), -1.0), (FLAT,)),
    "choice of integers": (lambda a: torch.where(a.sum() > 0, a.argmax(1), a.argmin(1)).float(), (FLAT,)),
    "choice by a constant, of integers": (
        lambda i: torch.where(torch.tensor([True, False]), i, 7).float(),
        (torch.tensor([[1, 2]]),),
    ),
    "masked fill": (lambda a: a.masked_fill(a < 0, 0.25), (FLAT,)),
    "logic": (
        lambda a, b: (((a > 0) & (b > 0)) | ((a > 1) ^ ~(b > 1)) | torch.logical_not(a)).float(),
        (FLAT, tensor(3, 6)),
    ),
    "any and all": (
        lambda a: tuple(c.float() for c in ((a > 0).any(), (a > 0).all(1), (a > 1).any(0, keepdim=True))),
        (FLAT,),
    ),
    "truth value as a factor": (lambda a: a * (a > 0), (FLAT,)),
    "isnan": (lambda a: torch.where(torch.isnan(a.log()), 0.5, a), (FLAT,)),
    "logsumexp": (lambda a: a.logsumexp(1), (FLAT,)),
    "integers as float": (lambda i: i.float() / 3 + i, (torch.tensor([[5, 16777217]]),)),
    "constant integers as float": (lambda a: a + torch.arange(6), (FLAT,)),
    "mean": (lambda a: a.mean((2, 3)), (IMAGE,)),
    "mean kept": (lambda a: a.mean(-1, keepdim=True), (IMAGE,)),
    "mean of all": (lambda a: a.mean(), (IMAGE,)),
    "sum": (lambda a: (a.sum((1, 3)), a.sum(), a.sum(0, keepdim=True)), (IMAGE,)),
    "amax": (lambda a: (a.amax((2, 3)), a.amin(1, keepdim=True), a.max(), a.min()), (IMAGE,)),
    "max dim": (lambda a: (*a.max(1), *a.min(2, keepdim=True)), (IMAGE,)),
    "argmax": (lambda a: (a.argmax(1), a.argmax(), a.argmin(-1, keepdim=True)), (IMAGE,)),
    "variance": (
        lambda a: (a.var(1), a.std((2, 3), correction=0, keepdim=True), a.var((1, 2), unbiased=False)),
        (IMAGE,),
    ),
    "softmax": (lambda a: (F.softmax(a, 1), F.softmax(a, -1), F.log_softmax(a, 2)), (IMAGE,)),
    "views": (
        lambda a: (a.view(2, -1), a.flatten(2), a.unsqueeze(1), a.unsqueeze(1).squeeze(1), a[:1].squeeze()),
        (IMAGE,),
    ),
    "unflatten": (lambda a: a.unflatten(1, (2, 2)), (IMAGE,)),
    "permute": (lambda a: (a.permute(3, 0, -2, 1), a.transpose(1, -1), a[0, 0].t()), (IMAGE,)),
    "reshape of permuted": (lambda a: a.permute(0, 2, 3, 1).reshape(2, -1), (IMAGE,)),
    "expand": (lambda a: (a.unsqueeze(1).expand(3, 2, 6), a.repeat(2, 3), a.repeat(2, 1, 2)), (FLAT,)),
    "slice": (lambda a: (a[:, 1:-1, ::2], a[:, -3:], a[1], a[..., 2], a.narrow(2, 1, 3)), (IMAGE,)),
    "split": (lambda a: (*a.split(3, 2), *a.chunk(2, 1), *a.split([1, 3], 1), *a.unbind(1)), (IMAGE,)),
    "split in part": (lambda a: a.split(2, 1)[1] + a.chunk(2, 1)[0], (IMAGE,)),
    "cat": (lambda a, b: (torch.cat([a, b, a], -1), torch.stack([a, a + 1], 1)), (FLAT, tensor(3, 2))),
    "flip": (lambda a: (a.flip(-1), torch.fliplr(a), a.flip(0, 1), a.flip(0)), (FLAT,)),
    "unfold": (lambda a: (a.unfold(1, 3, 2), a.unfold(-1, 6, 1)), (FLAT,)),
    "im2col": (lambda a: F.unfold(a, (2, 3), dilation=(2, 1), padding=(1, 2), stride=(1, 2)), (IMAGE,)),
    "cumsum": (lambda a: (a.cumsum(1), a.cumsum(-1) / torch.arange(1, a.shape[-1] + 1)), (FLAT,)),
    "roll": (lambda a: (a.roll(2, 1), a.roll((1, -1), (0, 1)), a.roll(5)), (FLAT,)),
    "index select": (lambda a: a.index_select(1, torch.tensor([1, 2, 3, 0, 5])), (FLAT,)),
    "scatter": (
        lambda a, b: (torch.select_scatter(a, b, 1, 2), torch.slice_scatter(a, a[:, :2], 1, 3, 5)),
        (FLAT, tensor(3)),
    ),
    "fill": (lambda a: torch.cat([torch.zeros_like(a), torch.full((3, 1), 2.5), a], 1), (FLAT,)),
    "pad value": (lambda a: F.pad(a, (1, 2), value=-1.5), (FLAT,)),
    "pad modes": (
        lambda a: F.pad(F.pad(a, (1, 1, 2, 0), mode="reflect"), (0, 1, 1, 1), mode="replicate"),
        (IMAGE,),
    ),
    "circular pad": (lambda a: F.pad(a, (1, 2), mode="circular"), (ROW,)),
    "constant": (lambda a: (a, a, torch.ones(2)), (FLAT,)),
    "arange": (lambda a: a + torch.arange(6, dtype=torch.float32), (FLAT,)),
    "where as mask": (lambda a: a * torch.tril(torch.ones(3, 6)), (FLAT,)),
    "glu": (lambda a: F.glu(a, 1), (FLAT,)),
    "normalize": (lambda a: F.normalize(a, dim=1), (FLAT,)),
    "cosine": (F.cosine_similarity, (FLAT, tensor(3, 6))),
}


@pytest.mark.parametrize("case", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions(case: tuple[Callable[..., Any], tuple[torch.Tensor, ...]]) -> None:
    function, inputs = case
    check_same(Lambda(function), *inputs, atol=2e-5)


def test_what_computes_nothing_is_not_there() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for align in (False, True):
                x = F.interpolate(x, size=(8, 6), mode="bilinear", align_corners=align)
            for mode in ("nearest", "nearest-exact", "bilinear"):
                x = F.interpolate(x, scale_factor=1, mode=mode)
            x = F.adaptive_avg_pool2d(F.adaptive_max_pool2d(x, (8, 6)), (8, 6))
            return F.max_pool2d(F.avg_pool2d(x, 1), 1) + 1.0

    graph = check_same(Net(), tensor(1, 2, 8, 6))
    assert {node.op for node in graph.nodes} <= {"permute", "add"}


def test_integer_inputs_and_outputs_are_int32() -> None:
    graph = check_same(Lambda(lambda i: F.embedding(i, torch.eye(4))), torch.tensor([[3, 0]]))
    assert [t.dtype for t in graph.inputs] == [DType.INT32]
    graph = check_same(Lambda(lambda x: x.argmax(1)), FLAT)
    assert [t.dtype for t in graph.outputs] == [DType.INT32]


def test_channels_last_boundary() -> None:
    model = nn.Conv2d(4, 6, 3).eval()
    graph = import_program(capture(model, IMAGE), name="m", channels_last=True)
    assert [t.shape for t in (*graph.inputs, *graph.outputs)] == [(2, 9, 8, 4), (2, 7, 6, 6)]
    (result,) = run_graph(graph, [np.ascontiguousarray(IMAGE.permute(0, 2, 3, 1).numpy())])
    expected = model(IMAGE).detach().permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(np.asarray(result, np.float64), expected, rtol=1e-4, atol=1e-5)


def test_names_are_c_identifiers_and_say_what_they_are() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Linear(6, 4))

        def forward(self, register: torch.Tensor) -> torch.Tensor:
            return self.stem(register)  # type: ignore[no-any-return]

    graph = check_same(Words(), FLAT)
    assert [t.name for t in graph.inputs] == ["register_"]
    assert [t.name for t in graph.constants] == ["stem_0_weight", "stem_0_bias"]


# ---------------------------------------------------------------- whole numbers


def whole_results(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        *(a + b, a - b, a * b, a // b, a % b, torch.fmod(a, b), a / b),
        *(a + 3, 3 - a, a * -3, a // 3, a % -5, torch.add(a, b, alpha=-2)),
        *(torch.div(a, b, rounding_mode="trunc"), torch.div(a, 3, rounding_mode="floor")),
        *(torch.maximum(a, b), torch.minimum(a, b), a.clamp(-3, 3), a.clamp(min=b), a.relu()),
        *(-a, a.abs(), a.sign(), a.square(), a**3, a.clamp_max(2)),
        *(a & b, a | b, a ^ b, ~a, a << 2, a >> 1, a & 6, a << b, a >> b),
        *(torch.where(a > b, a, b), a == b, (a > 0) + (b > 3), (a > 0) * (b > 3), (a > 0) & (b > 3)),
        *(a.sum(), a.sum(1), (a > b).sum(0, keepdim=True), b.prod(1), a.amax((0, 1)), a.min()),
        *(a.cumsum(1), b.cumsum(0), torch.count_nonzero(a, 1), a.amin(1, keepdim=True)),
    )


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_whole_numbers(dtype: torch.dtype) -> None:
    """Bit for bit what torch computes."""
    drawn = torch.Generator().manual_seed(5)
    a = torch.randint(-20, 20, (3, 7), generator=drawn).to(dtype)
    b = torch.randint(1, 9, (3, 7), generator=drawn).to(dtype)
    graph = import_program(capture(Lambda(whole_results), (a, b)), name="m")
    operators.check(graph, "import")
    results = run_graph(graph, arrays((a, b)))
    for number, (result, wanted) in enumerate(zip(results, whole_results(a, b), strict=True)):
        np.testing.assert_array_equal(result, wanted.numpy(), err_msg=str(number))


def test_whole_numbers_wrap() -> None:
    """int64 is int32 in firmware: sums and products keep their lowest 32 bits."""
    a = torch.tensor([2**31 - 1, -(2**31), 65536])
    graph = import_program(capture(Lambda(lambda x: (x + 1, x * x, x.sum(), x << 1)), (a,)), name="m")
    for result, wanted in zip(run_graph(graph, arrays((a,))), (a + 1, a * a, a.sum(), a << 1), strict=True):
        np.testing.assert_array_equal(result, wanted.to(torch.int32).numpy())


# ---------------------------------------------------------------- what cannot be lowered


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.cumprod(1)  # first
        y, _ = torch.cummax(y, 1)  # second
        return F.relu(y) + torch.rand(6)  # third


def test_all_unsupported_operators_in_one_error() -> None:
    with pytest.raises(UnsupportedOp) as caught:
        import_program(capture(Unknown(), FLAT), name="m")
    text = str(caught.value)
    assert "3 operators" in text
    for op, mark in (("cumprod", "# first"), ("cummax", "# second"), ("rand", "# third")):
        assert f"aten.{op}" in text
        assert f"test_importer.py:{line_of(Unknown, mark)}" in text
    assert text.count("do: ") == 3


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        (lambda a: F.adaptive_max_pool2d(a, (4, 3)), (IMAGE,), "windows of several sizes"),
        (lambda a: F.avg_pool2d(a, 3, stride=2, padding=1, ceil_mode=True), (IMAGE,), "ceil_mode"),
        (lambda a, w: F.conv2d(a, w, None), (IMAGE, tensor(2, 4, 3, 3)), "weight is computed"),
        (lambda a: torch.div(a, 2, rounding_mode="floor"), (FLAT,), "rounding_mode"),
        (lambda i: i**17, (torch.tensor([1, 2]),), "to the power 17"),
        (lambda i: i.argmin(0), (torch.tensor([1, 2]),), "int32 values"),
    ],
)
def test_unsupported_arguments(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], message: str
) -> None:
    with pytest.raises(UnsupportedShape, match=message) as caught:
        import_program(capture(Lambda(function), inputs), name="m")
    assert "test_importer.py:" in str(caught.value)


def test_input_of_another_type() -> None:
    with pytest.raises(ModelError, match="input 0, inputs_0: it is complex64"):
        import_program(capture(Lambda(lambda x: x.real), torch.tensor([1j])), name="m")


# ---------------------------------------------------------------- quantized programs


def quantized_case(model: nn.Module, data: torch.Tensor) -> Lowered:
    return lower_model(model.eval(), data[:1], name="m", calibration=[data])


def test_quantized_weights_are_turned_with_their_scales() -> None:
    data = tensor(16, 4, 6, 6)
    for layer, axis_size in ((nn.Conv2d(4, 6, 3), 6), (nn.ConvTranspose2d(4, 6, 2, groups=2), 6)):
        result = quantized_case(nn.Sequential(layer), data)
        (weights,) = [t for t in result.graph.constants if t.dtype is DType.INT8]
        assert weights.type.quant is not None
        assert (weights.type.quant.axis, len(weights.type.quant.scale), weights.shape[0]) == (0, axis_size, 6)
        operators.check(result.graph, "import")
        compare_quantized(result.graph, nn.Sequential(layer), data)


def compare_quantized(graph: Graph, model: nn.Module, data: torch.Tensor) -> None:
    """The graph with quantize and dequantize in it is near the float model."""
    with torch.no_grad():
        for x in pieces(data[:4]):
            (result,) = run_graph(graph, arrays([x]))
            wanted = model(x).numpy()
            assert np.abs(result - wanted).max() <= 0.04 * max(1.0, float(np.abs(wanted).max()))


def test_graph_follows_the_quantized_program() -> None:
    data = tensor(24, 3, 8, 8)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).eval()
    program = quantize(capture(model, data[:1]), [data])
    graph = import_program(program, name="m")
    assert isinstance(graph.nodes[0].attrs, Quantize)
    assert isinstance(graph.nodes[-1].attrs, Dequantize)
    for x in pieces(data[:8]):
        assert rounding_excess(program, graph, x) <= FLOAT32_STEPS


def test_float_graph_has_the_same_keys() -> None:
    result = quantized_case(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), tensor(8, 3, 8, 8)
    )
    assert result.float_graph is not None

    def keys(graph: Graph) -> set[str]:
        moves = (Quantize, Dequantize, Permute)
        return {o.key for n in graph.nodes for o in n.origins if not isinstance(n.attrs, moves)}

    assert keys(result.float_graph) == keys(result.graph) == {"conv2d", "relu"}


def test_program_that_comes_quantized() -> None:
    data = tensor(8, 6)
    program = quantize(capture(nn.Linear(6, 3).eval(), data[:1]), [data])
    result = lower_program(program, name="m")
    assert result.float_graph is None
    assert any(isinstance(n.attrs, Quantize) for n in result.graph.nodes)


_quant = torch.ops.quantized_decomposed


class Foreign(nn.Module):
    """As other quantizers make it: uint8 activations, narrow ranges, int32 biases, weights quantized here."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor(3, 6))
        self.register_buffer("bias", torch.tensor([100, -50, 7], dtype=torch.int32))

    def forward(self, x: torch.Tensor) -> Any:
        q = _quant.quantize_per_tensor(x, 0.02, 120, 0, 255, torch.uint8)
        x = _quant.dequantize_per_tensor(q, 0.02, 120, 0, 255, torch.uint8)
        scales, zeros = torch.full((3,), 0.02), torch.zeros(3, dtype=torch.int64)
        w = _quant.quantize_per_channel(self.weight, scales, zeros, 0, -127, 127, torch.int8)
        w = _quant.dequantize_per_channel(w, scales, zeros, 0, -127, 127, torch.int8)
        b = _quant.dequantize_per_tensor(self.bias, 0.01, 0, -(2**31), 2**31 - 1, torch.int32)
        y = _quant.quantize_per_tensor(F.linear(x, w, b), 0.02, 60, 0, 127, torch.uint8)
        return _quant.dequantize_per_tensor(y, 0.02, 60, 0, 127, torch.uint8)


def test_other_quantizers_programs() -> None:
    model, x = Foreign().eval(), FLAT * 2
    graph = import_program(capture(model, x), name="m")
    operators.check(graph, "import")
    kinds = [t.type.quant for n in graph.nodes for t in n.outputs if t.dtype is DType.INT8]
    assert [k.zero_point for k in kinds if k is not None] == [(-8,), (-68,)]
    (result,) = run_graph(graph, arrays([x]))
    with torch.no_grad():
        wanted = model(x).numpy()
    assert np.abs(result - wanted).max() <= 0.0201
    assert wanted.max() == pytest.approx(67 * 0.02), "the narrow range must saturate in this test"
    assert result.max() == pytest.approx(67 * 0.02)


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8"])
def test_trained_networks(name: str) -> None:
    models = mlperf_models()
    network = getattr(models, name)()
    data = models.keyword_test()[0] if name == "ds_cnn" else models.cifar10("calibration")[0]
    program = capture(network, data[:1])
    graph = operators.check(import_program(program, name=name), "import")
    integer = quantize(program, [data[::10]])
    quantized = operators.check(import_program(integer, name=name), "import")
    for x in pieces(data[5:15]):
        with torch.no_grad():
            wanted = network(x).numpy()
        np.testing.assert_allclose(
            np.asarray(run_graph(graph, arrays([x]))[0], np.float64), wanted, rtol=0, atol=1e-4
        )
        assert rounding_excess(integer, quantized, x) <= FLOAT32_STEPS

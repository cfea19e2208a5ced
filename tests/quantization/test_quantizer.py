# SPDX-License-Identifier: Apache-2.0
"""Which values the quantizer quantizes, with which parameters, and which it leaves in float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import ExportedProgram

from tests.torch_helpers import Lambda, find, input_params, ops, output_params, run
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quantization.config import int8_config
from tinyet.quantization.quantize import quantize
from tinyet.quantization.quantizer import TinyetQuantizer

GENERATOR = torch.Generator().manual_seed(3)
IMAGES = torch.randn(24, 3, 8, 8, generator=GENERATOR)


def quantized(
    model: nn.Module, data: torch.Tensor = IMAGES, quantizer: TinyetQuantizer | None = None
) -> ExportedProgram:
    return quantize(capture(model, data[:1]), [data], quantizer)


def conv(inputs: int = 3, outputs: int = 4) -> nn.Conv2d:
    with torch.random.fork_rng():
        torch.manual_seed(inputs + 10 * outputs)
        return nn.Conv2d(inputs, outputs, 3, padding=1)


def test_weights_are_symmetric_per_channel() -> None:
    model = nn.Sequential(conv())
    program = quantized(model)
    (node,) = find(program, "dequantize_per_channel")
    assert node.args[3:6] == (0, -127, 127)
    values = program.state_dict[str(program.graph_signature.inputs_to_buffers[node.args[0].name])]  # type: ignore[union-attr]
    assert values.dtype is torch.int8
    assert values.amin(dim=(1, 2, 3)).min() >= -127
    assert torch.equal(values.abs().amax(dim=(1, 2, 3)), torch.full((4,), 127))


def test_channel_of_zeros_takes_a_usual_scale() -> None:
    layer = conv()
    layer.weight.data[1] = 0
    program = quantized(nn.Sequential(layer))
    (node,) = find(program, "dequantize_per_channel")
    scales = program.state_dict[program.graph_signature.inputs_to_buffers[node.args[1].name]]  # type: ignore[union-attr]
    assert scales[1] == scales.max()


@pytest.mark.parametrize(
    "act", [nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-0.5, 0.5), Lambda(lambda x: x.clamp(-1, 1))]
)
@pytest.mark.parametrize("norm", [nn.Identity(), nn.BatchNorm2d(4)])
def test_activation_is_fused(act: nn.Module, norm: nn.Module) -> None:
    program = quantized(nn.Sequential(conv(), norm, act).eval())
    names = ops(program)
    at = names.index("conv2d")
    assert "quantize" not in names[at + 1]
    assert names[at + 2] == "quantize_per_tensor"
    assert names.count("quantize_per_tensor") == 2


def test_activation_is_not_fused_when_the_sum_is_read_twice() -> None:
    layer = conv()
    program = quantized(Lambda(lambda x: layer(x) + F.relu(layer(x))))
    assert names_after(program, "relu") == ["quantize_per_tensor"]

    def twice(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = layer(x)
        return y + F.relu(y)

    program = quantized(Lambda(twice))
    (node,) = find(program, "conv2d")
    (relu,) = find(program, "relu")
    assert output_params(node) is not None
    assert output_params(relu) == output_params(node) == input_params(relu)


def names_after(program: ExportedProgram, name: str) -> list[str]:
    return [str(user.target).split(".")[1] for node in find(program, name) for user in node.users]


SAME: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "max pool": (lambda x: F.max_pool2d(x, 2), "max_pool2d"),
    "flatten": (lambda x: x.flatten(1), "view"),
    "permute": (lambda x: x.permute(0, 2, 3, 1), "permute"),
    "slice": (lambda x: x[:, 1:], "slice"),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1)), "pad"),
    "upsample": (lambda x: F.interpolate(x, scale_factor=2), "upsample_nearest2d"),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), "upsample_bilinear2d"),
    "amax": (lambda x: x.amax((2, 3)), "amax"),
    "pixel shuffle": (lambda x: F.pixel_shuffle(x, 2), "pixel_shuffle"),
}


@pytest.mark.parametrize("case", SAME.values(), ids=SAME.keys())
def test_movers_keep_their_inputs_parameters(case: tuple[Callable[[torch.Tensor], Any], str]) -> None:
    function, name = case
    layer = conv()
    program = quantized(Lambda(lambda x: function(layer(x))))
    (node,) = find(program, name)
    (source,) = find(program, "conv2d")
    assert output_params(node) == input_params(node) == output_params(source) is not None


def test_concat_shares_one_set_of_parameters_with_those_that_it_alone_reads() -> None:
    left, right = conv(), conv(3, 5)
    program = quantized(Lambda(lambda x: torch.cat([left(x), 9 * right(x), x], 1)))
    (node,) = find(program, "cat")
    (first, second) = find(program, "conv2d")
    assert input_params(node, 0) == input_params(node, 1) == output_params(node)
    assert input_params(node, 2) == input_params(first) == input_params(second) != output_params(node)


def test_fixed_input_does_not_impose_itself_on_a_concat() -> None:
    program = quantized(Lambda(lambda x: torch.cat([torch.sigmoid(x), 4 * x], 1)))
    (node,) = find(program, "cat")
    assert input_params(node, 0) == (1 / 256, -128)
    assert input_params(node, 1) == output_params(node)
    assert output_params(node)[0] > 4 / 256  # type: ignore[index]
    together = quantized(Lambda(lambda x: torch.cat([torch.sigmoid(x), torch.sigmoid(-x)], 1)))
    (node,) = find(together, "cat")
    assert output_params(node) == (1 / 256, -128)


@pytest.mark.parametrize(
    ("function", "name", "params"),
    [
        (lambda x: F.softmax(x, -1), "softmax", (1 / 256, -128)),
        (torch.sigmoid, "sigmoid", (1 / 256, -128)),
        (lambda x: F.hardsigmoid(x / 2), "hardsigmoid", (1 / 256, -128)),
        (lambda x: torch.tanh(x / 2), "tanh", (1 / 128, 0)),
        (lambda x: F.log_softmax(x / 0.38, -1), "log_softmax", (16 / 256, 127)),
    ],
)
def test_known_ranges_are_taken_where_they_fit(
    function: Callable[[torch.Tensor], torch.Tensor], name: str, params: tuple[float, int]
) -> None:
    program = quantized(Lambda(lambda x: function(x).flatten(1) * 2))
    (node,) = find(program, name)
    (view,) = find(program, "view")
    assert output_params(node) == output_params(view) == params
    (product,) = find(program, "mul")
    assert input_params(product) == params, "the value must not be quantized a second time for its reader"


def test_binary_operators_observe_each_operand() -> None:
    weight = torch.linspace(-2, 2, 8)
    program = quantized(Lambda(lambda x: F.relu(x + 5 * torch.sigmoid(x)) * weight))
    (add,) = find(program, "add")
    assert input_params(add, 0) != input_params(add, 1)
    last = find(program, "mul")[-1]
    assert input_params(last, 1) is not None, "a constant operand is quantized too"
    assert output_params(last) is not None


def test_index_outputs_stay_integers() -> None:
    program = quantized(Lambda(lambda x: x.flatten(1).argmax(1)))
    (node,) = find(program, "argmax")
    assert input_params(node) is not None
    assert output_params(node) is None


def test_depthwise_transposed_weights_have_a_scale_a_channel() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.ConvTranspose2d(3, 3, 2, stride=2, groups=3)
    program = quantized(nn.Sequential(layer))
    (node,) = find(program, "dequantize_per_channel")
    assert node.args[3] == 0
    grouped = quantized(nn.Sequential(nn.ConvTranspose2d(3, 4, 2, stride=2)))
    (node,) = find(grouped, "dequantize_per_channel")
    assert node.args[3] == 1


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(), nn.ReLU(), conv(4, 4))
        self.head = nn.Linear(4 * 64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softmax(self.head(self.body(x).flatten(1)), -1)


def is_integer(node: torch.fx.Node) -> bool:
    """Weighted: the weights are quantized. Others: the result is, and the input is, or is fused to such."""
    if "conv" in str(node.target) or "linear" in str(node.target):
        return "dequantize" in str(node.args[1].target)  # type: ignore[union-attr]
    source = node.all_input_nodes[0]
    reads = "dequantize" in str(source.target) or ("conv" in str(source.target) and is_integer(source))
    return reads and output_params(node) is not None


def float_ops(program: ExportedProgram) -> list[str]:
    """Operators that compute in float."""
    calls = [n for n in program.graph.nodes if n.op == "call_function" and str(n.target).startswith("aten.")]
    return [str(n.target).split(".")[1] for n in calls if not is_integer(n)]


def test_settings_leave_parts_in_float() -> None:
    assert float_ops(quantized(Net())) == []
    settings: list[tuple[TinyetQuantizer, list[str]]] = [
        (TinyetQuantizer().set_module_name("head", None), ["linear"]),
        (TinyetQuantizer().set_module_name("body.2", None), ["conv2d", "view"]),
        (TinyetQuantizer().set_module_name("body", None), ["conv2d", "relu", "conv2d", "view"]),
        (
            TinyetQuantizer().set_module_name("body", None).set_module_name("body.2", int8_config()),
            ["conv2d", "relu"],
        ),
        (TinyetQuantizer().set_module_type(nn.Linear, None), ["linear"]),
        (TinyetQuantizer().set_op("softmax", None), ["softmax"]),
        (TinyetQuantizer().set_op(torch.ops.aten.conv2d.default, None), ["conv2d", "relu", "conv2d", "view"]),
        (
            TinyetQuantizer().set_global(None).set_module_type(nn.Linear, int8_config()),
            ["conv2d", "relu", "conv2d", "view", "softmax"],
        ),
    ]
    for quantizer, left in settings:
        assert float_ops(quantized(Net(), IMAGES, quantizer)) == left, quantizer.__dict__


def test_unknown_module_is_an_error() -> None:
    with pytest.raises(QuantizationError, match=r"no module is called heed") as caught:
        quantized(Net(), IMAGES, TinyetQuantizer().set_module_name("heed", None))
    assert "body.2, head" in str(caught.value)


def test_unknown_observer_is_an_error() -> None:
    with pytest.raises(QuantizationError, match="'entropy'"):
        int8_config("entropy")


def test_input_moved_to_float_operators_is_not_quantized() -> None:
    model = Lambda(lambda x: F.softmax(x.permute(0, 2, 3, 1).flatten(1), -1))
    program = quantized(model, IMAGES, TinyetQuantizer().set_op("softmax", None))
    assert ops(program) == ["permute", "clone", "view", "softmax"]


def test_embedding_table_is_quantized() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    data = torch.arange(10).reshape(5, 2)
    program = quantize(capture(model, data[:1]), [data])
    (node,) = find(program, "embedding")
    assert input_params(node) == output_params(node) is not None
    torch.testing.assert_close(run(program, data[:1]), model(data[:1]).detach(), atol=0.05, rtol=0)

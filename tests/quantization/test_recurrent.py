# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers in integers: which scales they have, how near they are to float, and what stays float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tinyet
from tests.networks.measure import sqnr_db
from tests.networks.plain import PlainQuantizer
from tests.torch_helpers import pieces
from tinyet.fx.capture import capture
from tinyet.ir import DType, Graph, Node
from tinyet.ops.shared.recurrent import Recurrent
from tinyet.program import Program
from tinyet.quality.sensitivity import measure
from tinyet.quantization.config import int4_config, int8_config, int16_config
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.recurrent import CellObserver
from tinyet.quantization.training import prepare_training

STEPS = 12


class Classifier(nn.Module):
    """A recurrent layer, whose last step is classified."""

    def __init__(self, layer: nn.Module, outputs: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(outputs, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.layer(x)[0][:, -1])
        return logits


class Sequence(nn.Module):
    """A recurrent layer's outputs."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)[0]
        return y


def classifier(kind: Callable[..., nn.Module] = nn.LSTM, **options: Any) -> Classifier:
    torch.manual_seed(3)
    directions = 2 if options.get("bidirectional") else 1
    layer = kind(4, 8, batch_first=True, **options)
    return Classifier(layer, directions * int(options.get("proj_size", 8))).eval()


def data(count: int = 64, steps: int = STEPS) -> torch.Tensor:
    return torch.randn(count, steps, 4, generator=torch.Generator().manual_seed(5))


def layers(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node.attrs, Recurrent)]


def compiled(model: nn.Module, **options: Any) -> Program:
    return tinyet.compile(model, (data(1),), calibration=pieces(data()), **options)


def gates(node: Node, index: int, count: int) -> list[float]:
    """The scale of each gate of a weight, whose rows all have it."""
    quant = node.input(index).type.quant
    assert quant is not None
    assert quant.axis == 0
    rows = np.array(quant.scale).reshape(count, -1)
    assert (rows == rows[:, :1]).all()
    return rows[:, 0].tolist()  # type: ignore[no-any-return]


def test_an_lstm_is_quantized_as_litert_does() -> None:
    model = classifier(num_layers=2, bidirectional=True, proj_size=4)
    with torch.no_grad():
        named = dict(model.layer.named_parameters())
        named["weight_ih_l0"][8:16] *= 4  # the forget gate
        named["bias_ih_l0"][:] = torch.linspace(-3, 3, 32)
    program = compiled(model)
    assert not program.notes
    for node in layers(program.graph):
        x, h, c = (node.input(i).type for i in range(3))
        assert (x.dtype, h.dtype, c.dtype) == (DType.INT8, DType.INT8, DType.INT16)
        assert c.zero_point == 0
        assert np.frexp(c.scale)[0] == 0.5
        assert all(t.type.quant in (h.quant, c.quant) for t in node.outputs)
        scales = gates(node, 3, 4)
        assert len(set(scales)) == 4
        assert len(set(gates(node, 4, 4))) == 4
        assert node.input(5).dtype is DType.INT32
        gates(node, 6, 1)
    first = layers(program.graph)[0]
    assert max(gates(first, 3, 4)) == gates(first, 3, 4)[1]


def test_the_cell_is_seen_at_all_steps() -> None:
    """Its scale holds what is greatest on the way, not only at the end, and is the least power of two that does."""
    observer = CellObserver(
        dtype=torch.int16, qscheme=torch.per_tensor_symmetric, quant_min=-32768, quant_max=32767
    )
    for largest, power in ((0.0, -15), (0.3, -15), (32767 / 32768, -15), (1.0, -14), (3.9, -13), (1e6, -9)):
        observer.reset_min_max_vals()
        observer(torch.tensor([0.0, -largest]))
        assert float(observer.calculate_qparams()[0]) == 2.0**power
    model = nn.LSTM(1, 1, batch_first=True).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        # Counts while x is there, forgets all at the last step.
        dict(model.named_parameters())["weight_ih_l0"][:, 0] = torch.tensor([20.0, 20.0, 20.0, 0.0])
    x = torch.ones(1, 6, 1)
    x[:, -1] = -1
    program = tinyet.compile(model, (x,), calibration=[x] * 4)
    (node,) = layers(program.graph)
    assert node.input(2).type.scale == 2.0**-12  # up to 5, of 8


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_near_to_float_at_any_number_of_steps(kind: Callable[..., nn.Module]) -> None:
    model = classifier(kind, bidirectional=True)
    for steps in (STEPS, 100):
        quantizer = TinyetQuantizer(int8_config("minmax"))
        program = tinyet.compile(
            model, (data(1, steps),), calibration=pieces(data(48, steps)), quantizer=quantizer
        )
        assert len(layers(program.graph)) == 2
        assert program.float_graph is not None
        x = data(48, steps)[32:]
        with torch.no_grad():
            exact = model(x).numpy()
        found = np.concatenate([program.run(one.numpy(), as_float=True) for one in pieces(x)])
        assert sqnr_db(exact, found.reshape(exact.shape)) > 26


def test_other_types() -> None:
    """int4 layers have int8 gates; in int16 there is no form with a projection, and that layer stays float."""
    (node,) = layers(compiled(classifier(nn.GRU), quantizer=TinyetQuantizer(int4_config())).graph)
    assert node.input(2).dtype is DType.INT8
    program = compiled(classifier(proj_size=4), quantizer=TinyetQuantizer(int16_config()))
    (node,) = layers(program.graph)
    assert node.input(0).dtype is DType.FLOAT32


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_int16_has_less_noise(kind: Callable[..., nn.Module]) -> None:
    """With the same weights of int8 in the float model, what is left is the rounding of values and gates."""
    model = classifier(kind, bidirectional=True)
    with torch.no_grad():
        for name, parameter in model.layer.named_parameters():
            if name.startswith("weight"):
                gates = parameter.view(len(parameter) // 8, -1)
                step = gates.abs().amax(1, keepdim=True) / 127
                gates.copy_((gates / step).round() * step)
    x, noise = data(32), []
    with torch.no_grad():
        exact = model.layer(x)[0].numpy()
    for config in (int8_config("minmax"), int16_config()):
        program = tinyet.compile(
            Sequence(model.layer), (data(1),), calibration=pieces(data()), quantizer=TinyetQuantizer(config)
        )
        assert {node.input(0).dtype for node in layers(program.graph)} == {
            DType(str(config.activation.dtype).removeprefix("torch."))
        }
        found = np.concatenate([program.run(one.numpy(), as_float=True) for one in pieces(x)])
        noise.append(sqnr_db(exact, found.reshape(exact.shape)))
    assert noise[1] > max(55, noise[0] + 15), noise


def test_another_quantizer_leaves_the_layer_in_float() -> None:
    program = compiled(classifier(), quantizer=PlainQuantizer())
    assert layers(program.graph)[0].input(0).dtype is DType.FLOAT32
    excepted = compiled(classifier(), quantizer=TinyetQuantizer().set_module_name("layer", None))
    assert layers(excepted.graph)[0].input(0).dtype is DType.FLOAT32


def test_states_in_and_out_keep_their_types() -> None:
    """A state that comes in and goes out is int8, the cell int16, of the same scale on both sides."""

    class Stateful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(4, 8, 2)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y, (h, c) = self.layer(x[0], (h[0], c[0]))
            return y[-1], h.unsqueeze(0), c.unsqueeze(0)

    generator = torch.Generator().manual_seed(1)
    states = [torch.rand(64, 2, 8, generator=generator) * size - size / 2 for size in (1, 3)]
    batches = list(zip(pieces(data()), *map(pieces, states), strict=True))
    program = tinyet.compile(Stateful().eval(), batches[0], calibration=batches)
    _, h, c = program.inputs
    _, _, c_n = program.outputs
    assert h.dtype is DType.INT8
    assert c.dtype is c_n.dtype is DType.INT16
    assert c.type.quant == c_n.type.quant
    assert all(node.input(0).dtype is DType.INT8 for node in layers(program.graph))


def test_training_goes_through_the_layer() -> None:
    """All its weights learn; ranges are of what is seen, not of the zeros before the first step."""
    model, x = classifier(), data(16)
    session = prepare_training(model, (x[:1],), batch_size=16)
    target = (x[:, -1, 0] > 0).long()
    optimizer = torch.optim.Adam(session.parameters(), lr=2e-2)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        found = session(x)
        assert isinstance(found, torch.Tensor)
        loss = nn.functional.cross_entropy(found, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.85 * losses[0]
    assert all(p.grad is not None and bool(p.grad.any()) for p in session.parameters())
    program = tinyet.compile(session.convert())
    (node,) = layers(program.graph)
    assert node.input(0).dtype is DType.INT8
    with torch.no_grad():
        simulated = session(x)
    assert isinstance(simulated, torch.Tensor)
    shipped = np.concatenate([program.run(one.numpy(), as_float=True) for one in pieces(x)])
    assert sqnr_db(simulated.numpy(), shipped.reshape(simulated.shape)) > 20


def test_steps_around_quantization_take_the_layer() -> None:
    model = classifier(nn.GRU, num_layers=2)
    program = compiled(model, equalize=True, correct_bias=True)
    assert len(layers(program.graph)) == 2
    found = measure(capture(model, (data(1),)), pieces(data(8)), worst=1)
    assert [layer.module for layer in found.layers] == ["layer", "head"]
    assert found.exceptions
    for entry in found.exceptions:
        assert entry.part is not None
        assert {operator.module for operator in entry.part.operators} <= {"layer", "head"}
    by_name = TinyetQuantizer().set_op(torch.ops.aten.gru.input, None)
    assert layers(compiled(model, quantizer=by_name).graph)[0].input(0).dtype is DType.FLOAT32

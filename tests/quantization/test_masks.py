# SPDX-License-Identifier: Apache-2.0
"""Masks in front of softmax cost the other values no precision, however they are written."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tinyet
from tests.torch_helpers import Lambda, line_of
from tinyet.compiler import float_layers
from tinyet.errors import QuantizationError
from tinyet.fx.capture import capture
from tinyet.quantization.config import QuantConfig, int8_config, int16_config
from tinyet.quantization.observers import MASKED
from tinyet.quantization.quantize import calibrate, prepare
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.saturation import BEYOND, log_softmax_sight, seen_by, softmax_sight
from tinyet.quantization.training import prepare_training

SIZE = 6
CAUSAL = nn.Transformer.generate_square_subsequent_mask(SIZE)
LATER = torch.triu(torch.ones(SIZE, SIZE), 1).bool()
BIAS = torch.linspace(-1, 1, SIZE)
X = torch.randn(24, SIZE, 8, generator=torch.Generator().manual_seed(3))
LAST_TWO = torch.tensor([[1.0, 1, 1, 1, 0, 0]])

Masking = Callable[..., torch.Tensor]


class Attention(nn.Module):
    """Scores of one head, masked, and what softmax makes of them; `masked` takes them and, where there is one, a
    second input."""

    def __init__(self, masked: Masking) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.masked = masked

    def forward(self, x: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
        scores = 2 * self.q(x) @ self.k(x).transpose(-1, -2) / math.sqrt(8)
        result: torch.Tensor = self.masked(scores, *mask).softmax(-1) @ self.v(x)
        return result


def sqnr(model: nn.Module, config: QuantConfig | None, *rest: torch.Tensor) -> tuple[float, tinyet.Program]:
    """In dB against torch, of the integers (or, without a configuration, of the float program), and the program."""
    samples = [(x[None], *rest) for x in X]
    quantizer = None if config is None else TinyetQuantizer(config)
    calibration = None if config is None else samples[:16]
    program = tinyet.compile(model.eval(), samples[0], calibration=calibration, quantizer=quantizer)
    with torch.no_grad():
        want = np.concatenate([model(*sample).numpy().ravel() for sample in samples[16:]])
    got = np.concatenate(
        [np.ravel(program.run(*[x.numpy() for x in s], as_float=True)) for s in samples[16:]]
    )
    noise = float(((got - want) ** 2).sum())
    return (10 * math.log10(float((want**2).sum()) / noise) if noise else math.inf), program


ENOUGH_DB = 21.0
"""With a mask this attention has 23 to 24 dB, 28.6 without: the least integer has to lie far below all scores."""

CONSTANT: dict[str, Masking] = {
    "masked_fill -1e4": lambda s: s.masked_fill(LATER, -1e4),
    "masked_fill -inf": lambda s: s.masked_fill(LATER, -math.inf),
    "the least float": lambda s: s.masked_fill(LATER, torch.finfo(torch.float32).min),
    "where": lambda s: torch.where(~LATER, s, -1e9),
    "a sum of -inf": lambda s: s + torch.zeros(SIZE, SIZE).masked_fill(LATER, -math.inf),
    "a difference, scaled, moved, with a bias": lambda s: ((s - LATER.float() * 1e9).view(SIZE, SIZE) * 1.5 + BIAS),
    "two masks": lambda s: s.masked_fill(LATER, -1e4) + torch.tensor([0, 0, 0, 0, 0, -1e4]) + BIAS,
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_masks_cost_nothing(name: str) -> None:
    got, program = sqnr(Attention(CONSTANT[name]), int8_config())
    assert got > ENOUGH_DB
    assert not program.notes
    # no mask is left but the one minimum of saturating integers
    assert [n.op for n in program.graph.nodes].count("minimum") == 1


COMPUTED: dict[str, Masking] = {
    "(1 - m) * -1e4": lambda s, m: s + (1 - m).unsqueeze(1) * -1e4,
    "(1 - m) * the least float, scaled, with a bias": lambda s, m: (s + (1 - m).unsqueeze(1) * -3.4e38) * 1.5 + BIAS,
    "m itself": lambda s, m: s + m.unsqueeze(1),
    "log(m)": lambda s, m: s + torch.log(m).unsqueeze(1),
    "chosen": lambda s, m: s.masked_fill((m < 0.5).unsqueeze(1), -math.inf),
    "chosen and added": lambda s, m: s + torch.where(m < 0.5, -1e9, 0.0).unsqueeze(1),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_masks_cost_nothing(name: str) -> None:
    mask = torch.log(LAST_TWO).clamp(min=-1e4) if name == "m itself" else LAST_TWO
    got, program = sqnr(Attention(COMPUTED[name]), int8_config(), mask)
    assert got > ENOUGH_DB
    assert not any("stays float" in note.text for note in program.notes)


def test_attention_of_torch() -> None:
    """Causal and boolean masks; a row that is masked wholly gives 0, as torch's does, in float, too."""
    wholly = ~LATER
    wholly[3] = False
    for options in ({"is_causal": True}, {"attn_mask": ~LATER}, {"attn_mask": wholly}):
        model = Lambda(lambda v, options=options: F.scaled_dot_product_attention(v, 2 * v, v, **options))
        assert sqnr(model, None)[0] > 100
        assert sqnr(model, int8_config())[0] > 25
        assert sqnr(model, int16_config())[0] > 33


def test_multihead_attention() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng():
                torch.manual_seed(2)
                self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            last = torch.tensor([[False] * 5 + [True]])
            return self.heads(x, x, x, attn_mask=LATER, key_padding_mask=last)[0]  # type: ignore[no-any-return]

    assert sqnr(Heads(), int8_config())[0] > 18


def test_attention_to_another_sequence() -> None:
    """Wholly in integers, as attention to itself is: packed weights that are split for queries, keys and values, masks
    of both kinds in one sum, and a decoder that looks whether its mask is the causal one."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with torch.random.fork_rng():
                torch.manual_seed(2)
                self.itself = nn.MultiheadAttention(8, 2, batch_first=True)
                self.cross = nn.MultiheadAttention(8, 2, kdim=12, vdim=12, batch_first=True)
                self.masked = nn.MultiheadAttention(8, 2, batch_first=True)
                layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
                self.decoder = nn.TransformerDecoder(layer, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor, padded: torch.Tensor) -> tuple[torch.Tensor, ...]:
            itself, _ = self.itself(x, x, x, need_weights=False)
            cross, _ = self.cross(x, y, y, need_weights=False)
            near, mask = y[:, :, :8], padded != 0
            masked, _ = self.masked(x, near, near, key_padding_mask=mask, attn_mask=LATER[:, :4])
            decoded = self.decoder(x, near, tgt_mask=CAUSAL, memory_key_padding_mask=mask)
            return itself, cross, masked, decoded

    generator = torch.Generator().manual_seed(5)

    def drawn() -> tuple[torch.Tensor, ...]:
        padded = torch.rand(1, 4, generator=generator) < 0.3
        padded[:, 0] = False
        others = torch.randn(1, 4, 12, generator=generator)
        return torch.randn(1, SIZE, 8, generator=generator), others, padded.int()

    model = Heads().eval()
    data = [drawn() for _ in range(24)]
    program = tinyet.compile(model, data[0], calibration=data)
    assert float_layers(program.graph) == []
    signal, noise = np.zeros(4), np.zeros(4)
    for sample in data:
        wanted = [v.detach().double().numpy() for v in model(*sample)]
        got = program.run(*(v.numpy() for v in sample))
        signal += [np.sum(w**2) for w in wanted]
        noise += [np.sum((g - w) ** 2) for g, w in zip(got, wanted, strict=True)]
    decibels = 10 * np.log10(signal / noise)
    assert (decibels[1:] > min(decibels[0], 30) - 3).all(), decibels


def test_a_row_that_sums_mask_wholly_is_the_row_without_the_mask() -> None:
    """softmax(x - 1e4) is softmax(x), but for float32's rounding."""
    mask = torch.zeros(SIZE, SIZE)
    mask[2] = -1e4
    got, program = sqnr(Attention(lambda s: s + mask + LATER * -2e4), int8_config())
    assert got > ENOUGH_DB
    bounds = next(n for n in program.graph.nodes if n.op == "minimum").input(1).array
    assert bounds.shape[-2:] == (SIZE, SIZE)
    assert (bounds[..., 2, :3] == 127).all()


def test_the_greatest_of_masked_rows() -> None:
    masked = Lambda(lambda x: (x[..., :SIZE] * 3).masked_fill(LATER, -math.inf).amax(-1))
    assert sqnr(masked, int8_config())[0] > 30
    index = Lambda(lambda x: (x[..., :SIZE] * 3).masked_fill(LATER, -math.inf).argmax(-1))
    _, program = sqnr(index, int8_config())
    same = [np.array_equal(program.run(x[None].numpy()), index(x[None]).numpy()) for x in X]
    assert sum(same) >= len(same) - 2  # but for ties among integers


def test_log_softmax_shows_the_least_it_can() -> None:
    model = Lambda(lambda x: (x[..., :SIZE] * 3).masked_fill(LATER, -math.inf).log_softmax(-1))
    program = tinyet.compile(model, (X[:1],), calibration=[X])
    got, want = np.asarray(program.run(X[:1].numpy())), model(X[:1]).numpy()
    assert (got[~np.isfinite(want)] <= -15.9).all()
    assert np.abs(got - want)[np.isfinite(want)].max() < 0.2


def test_infinity_elsewhere_is_refused_with_its_line() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x[..., :SIZE].masked_fill(LATER, -math.inf)  # wrong
        return y.exp()

    with pytest.raises(QuantizationError, match="hold no infinity") as caught:
        tinyet.compile(Lambda(forward), (X[:1],), calibration=[X])
    assert f"test_masks.py:{line_of(forward, '# wrong')}" in str(caught.value)
    # what the hint says works: left in float, and with a finite number
    quantizer = TinyetQuantizer().set_op("aten.where.self", None)
    tinyet.compile(Lambda(forward), (X[:1],), calibration=[X], quantizer=quantizer)
    tinyet.compile(Lambda(lambda x: x[..., :SIZE].masked_fill(LATER, -4.0).exp()), (X[:1],), calibration=[X])


def test_infinities_that_are_computed_are_told() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.relu(x)) + 1  # here

    program = tinyet.compile(Lambda(forward), (X[:1],), calibration=[X])
    (note,) = [n for n in program.notes if "infinity" in n.text]
    assert str(line_of(forward, "# here")) in str(note)
    low = float(note.text.split("stand for ")[1].split(" ")[0])
    quant = next(n for n in program.graph.nodes if n.op == "unary").output.type.quant
    assert quant is not None
    assert low == pytest.approx((-128 - quant.one_zero_point) * quant.one_scale, rel=1e-3)


def test_masks_in_training() -> None:
    model = Attention(lambda s: s.masked_fill(LATER, -math.inf) + BIAS)
    session = prepare_training(model, X[:1], batch_size=8)
    for start in (0, 8):
        out = session(X[start : start + 8])
        assert isinstance(out, torch.Tensor)
        out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in session.parameters() if p.grad is not None)
    program = tinyet.compile(session.convert())
    want = model.eval()(X[:1]).detach().numpy()
    assert np.abs(np.asarray(program.run(X[:1].numpy())) - want).max() < 0.2 * np.abs(want).max()


def test_what_softmax_sees() -> None:
    sight = softmax_sight(-1, 4, 8)
    x = torch.tensor([[1.0, 0, -math.inf, -1e4], [-5, -30, -2 * BEYOND, 7], [-math.inf] * 4])
    seen = seen_by(x, sight)
    assert sorted(seen.tolist()) == pytest.approx(
        sorted([1, 0, 1 - sight.margin, 1 - sight.margin, -5, 7 - sight.margin, 7 - sight.margin, 7])
    )
    assert 4 * math.exp(-sight.margin) <= 1 / 512 + 1e-9
    # log_softmax tells what is far below from what is farther
    assert -30 in seen_by(x, log_softmax_sight(-1, 4))
    assert MASKED < -32  # what counts as a mask before any data is seen is one for the observers, too


def test_values_that_others_read_keep_their_range() -> None:
    """A softmax beside other readers takes nothing from these."""

    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x[..., :SIZE] * 60
        return y, y.softmax(-1)

    prepared = prepare(capture(Lambda(forward), X[:1]))
    calibrate(prepared, [X])
    names = [type(m).__name__ for m in prepared.module.modules()]
    assert not any(name.startswith("Saturating") for name in names)

# SPDX-License-Identifier: Apache-2.0
"""The session of a training is a module as any other: batches of all sizes, modes, checkpoints, copies, Lightning."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tinyet
from tests.quantization.kept_models import MovingAverage
from tests.quantization.test_training import IMAGES, network, scores_of
from tests.torch_helpers import Lambda, run
from tinyet.errors import QuantizationError, UsageError
from tinyet.quantization.config import int4_config
from tinyet.quantization.quantizer import TinyetQuantizer
from tinyet.quantization.training import Training, prepare_training

LABELS = torch.arange(32) % 4


def prepared() -> Training:
    return prepare_training(network(), IMAGES[:1], quantizer=TinyetQuantizer(int4_config()))


def step(session: Training, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss = F.cross_entropy(scores_of(session, x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_loader_with_a_smaller_last_batch() -> None:
    session = prepared()
    optimizer = torch.optim.Adam(session.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(IMAGES[:30], LABELS[:30]), batch_size=12)
    losses, ranges = [], []
    for _ in range(6):
        total = 0.0
        for x, y in loader:
            total += step(session, optimizer, x, y) * len(x)
            ranges.append(session.network.activation_post_process_0.scale.item())  # type: ignore[union-attr, operator]
        losses.append(total)
    assert [len(x) for x, _ in loader] == [12, 12, 6]
    assert losses[-1] < 0.7 * losses[0]
    assert len(set(ranges[:3])) == 3, "the smaller batch moves ranges, too"
    session.eval()
    with torch.no_grad():
        whole, part = scores_of(session, IMAGES[:12]), scores_of(session, IMAGES[:6])
    torch.testing.assert_close(whole[:6], part, atol=1e-5, rtol=0)
    # A sum may fall on the other side of a tie: a step of the output.
    torch.testing.assert_close(run(session.convert(), IMAGES[:1]), part[:1], atol=0.05, rtol=0)


def test_resuming_from_a_checkpoint_takes_the_same_steps() -> None:
    session = prepared()
    optimizer = torch.optim.Adam(session.parameters(), lr=1e-2)
    batches = [(IMAGES[:8], LABELS[:8]), (IMAGES[8:13], LABELS[8:13])]
    for x, y in batches:
        step(session, optimizer, x, y)
    session.freeze_ranges()
    file = io.BytesIO()
    torch.save({"session": session.eval().state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)

    resumed = prepared()
    # The optimizer is made of the loaded session's own parameters: loading does not replace them.
    again = torch.optim.Adam(resumed.parameters(), lr=1e-2)
    resumed.load_state_dict(loaded["session"])
    again.load_state_dict(loaded["optimizer"])
    assert same(session.state_dict(), resumed.state_dict())
    for frozen in (True, False):
        for each in (session, resumed):
            each.train()
            if not frozen:
                each.freeze_ranges(False)
        losses = [[step(s, o, x, y) for x, y in batches] for s, o in ((session, optimizer), (resumed, again))]
        assert losses[0] == losses[1]
        assert same(session.state_dict(), resumed.state_dict())
    assert torch.equal(run(session.convert(), IMAGES[:1]), run(resumed.convert(), IMAGES[:1]))


def test_names_are_the_models() -> None:
    names = [name for name, _ in prepared().named_parameters()]
    assert names == ["network.0_folded_weight", "network.0_folded_bias", "network.5.weight", "network.5.bias"]


def test_eval_moves_no_range_and_train_does() -> None:
    session = prepared()
    with torch.no_grad():
        # No range is known yet: only weights are rounded.
        torch.testing.assert_close(
            scores_of(session.eval(), IMAGES[:4]), network()(IMAGES[:4]), atol=0.5, rtol=0
        )
        scores_of(session.train(), IMAGES[:4])
        before = copy.deepcopy(session.state_dict())
        rounded = scores_of(session.eval(), IMAGES[:4])
    with torch.inference_mode():
        scores_of(session, 9 * IMAGES[:7])
    assert same(before, session.state_dict())
    # What was captured under inference mode trains all the same.
    F.cross_entropy(scores_of(session.train(), 9 * IMAGES[:7]), LABELS[:7]).backward()
    assert all(p.grad is not None for p in session.parameters())
    assert not same(before, session.state_dict())
    with torch.no_grad():
        assert not torch.equal(scores_of(session.eval(), IMAGES[:4]), rounded)


def test_a_session_is_a_part_of_a_module() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = prepared()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return scores_of(self.inner, x).softmax(1)

    outer = Outer()
    assert {name.split(".")[0] for name in outer.state_dict()} == {"inner"}
    outer(IMAGES[:3]).sum().backward()
    assert not outer.eval().inner.training
    assert outer.train().inner.training


def test_copies() -> None:
    session = prepared()
    scores_of(session, IMAGES[:8])
    twin = copy.deepcopy(session)
    before = copy.deepcopy(session.state_dict())
    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for count in (8, 5):
        step(twin, optimizer, IMAGES[:count], LABELS[:count])
    assert same(before, session.state_dict())
    trained = dict(twin.named_parameters())
    assert all(not torch.equal(value, trained[name]) for name, value in session.named_parameters()), (
        "all sizes' graphs of the copy are of its own parameters"
    )
    for pickled in (pickle.dumps, lambda s: torch.save(s, io.BytesIO())):
        with pytest.raises(UsageError, match="cannot be pickled") as caught:
            pickled(session)
        assert "state_dict" in str(caught.value.hint)


def test_where_and_in_what_it_computes() -> None:
    session = prepared()
    assert session.to("cpu") is session
    assert session.float() is session
    moves: tuple[Callable[[], object], ...] = (lambda: session.to("meta"), session.half, session.double)
    for move in moves:
        with pytest.raises(UsageError, match="computes on the CPU, in float32"):
            move()
    scores_of(session, IMAGES[:2]).sum().backward()


def test_what_the_model_keeps_is_in_the_checkpoint() -> None:
    x = torch.rand(1, 4, generator=torch.Generator().manual_seed(3))
    session, resumed = (prepare_training(MovingAverage().eval(), x) for _ in range(2))
    for factor in (1.0, 3.0, 2.0):
        session(factor * x)
    resumed.load_state_dict(session.state_dict())
    kept = [name for name in session.state_dict() if name.startswith("kept_")]
    assert kept
    with torch.inference_mode():
        validated = session.eval()(x)
        assert torch.equal(validated, resumed.eval()(x))
    assert torch.equal(session.train()(x), resumed.train()(x))
    session.reset()
    assert not same(
        {name: session.state_dict()[name] for name in kept},
        {name: resumed.state_dict()[name] for name in kept},
    )


def test_another_graph_for_another_size_is_refused() -> None:
    layer = nn.Linear(6, 3)
    model = Lambda(lambda x: layer(x) if len(x) == 1 else torch.sigmoid(layer(x)))
    session = prepare_training(model, torch.rand(1, 6))
    with pytest.raises(QuantizationError, match="other layers"):
        session(torch.rand(4, 6))


def test_lightning() -> None:
    lightning = pytest.importorskip("lightning", reason="needs lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.session = prepared()

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            assert self.session.training
            return F.cross_entropy(scores_of(self.session, batch[0]), batch[1])

        def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
            assert not self.session.training
            self.log("loss", F.cross_entropy(scores_of(self.session, batch[0]), batch[1]))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    def loader(count: int) -> DataLoader[Any]:
        return DataLoader(TensorDataset(IMAGES[:count], LABELS[:count]), batch_size=12)

    module = Module()
    before = copy.deepcopy(module.state_dict())
    trainer = lightning.Trainer(
        max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=True,
    )  # fmt: skip
    trainer.fit(module, loader(30), loader(17))
    assert not same(before, module.state_dict())
    program = tinyet.compile(module.session.convert(), name="net")
    scores = program.run(IMAGES[:1].numpy())
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (1, 4)

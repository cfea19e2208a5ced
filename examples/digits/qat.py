# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training: fine-tune the digits CNN with its rounding in the loop, and see what that recovers.

    python examples/digits/qat.py

Quantizes the network of `model.py` after training (PTQ) and in training (QAT), first to int4 weights and then to
weights of -1, 0 and 1, at which rounding alone ruins it.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch.export import ExportedProgram
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).parent))

import model as digits

import tinyet
from tinyet import QuantConfig, TinyetQuantizer, int4_config
from tinyet.fx.capture import capture
from tinyet.quantization.quantize import quantize
from tinyet.quantization.training import prepare_training

torch.set_num_threads(1)  # a network this small is slower on more

EASY = int4_config()
HARD = int4_config(bits=2)
BATCH, EPOCHS, FROZEN, RATE = 64, 6, 2, 3e-3


@dataclass(frozen=True)
class Result:
    """Accuracies on the held-out images, 0...1, and the program that was trained."""

    exact: float
    ptq: float
    qat: float
    program: ExportedProgram


def accuracy(exported: ExportedProgram) -> float:
    """Of the compiled program, on this machine: what every device computes."""
    images, labels = digits.evaluation()
    found = tinyet.compile(exported, name="digits").evaluate(images.numpy(), labels=labels.numpy())
    assert found.accuracy is not None
    return found.accuracy


def train(config: QuantConfig) -> ExportedProgram:
    """Fine-tune the trained network for a few epochs."""
    torch.manual_seed(0)
    images, labels, _, _ = digits.data()
    loader = DataLoader(TensorDataset(images, labels), batch_size=BATCH, shuffle=True)
    session = prepare_training(digits.model(), digits.example_inputs(), quantizer=TinyetQuantizer(config))
    optimizer = torch.optim.Adam(session.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        if epoch == EPOCHS - FROZEN:
            session.freeze_ranges()
        for x, y in loader:
            optimizer.zero_grad()
            # The network ends in softmax, so its logarithm is what the likelihood wants.
            F.nll_loss(torch.log(session(x) + 1e-9), y).backward()
            optimizer.step()
        schedule.step()
    return session.convert()


def compare(config: QuantConfig) -> Result:
    captured = capture(digits.model(), digits.example_inputs())
    after = quantize(captured, digits.calibration(), TinyetQuantizer(config))
    trained = train(config)
    return Result(accuracy(captured), accuracy(after), accuracy(trained), trained)


def main() -> int:
    table = Table(title="digits, accuracy on held-out images")
    for title in ("weights", "float", "PTQ", "QAT"):
        table.add_column(title, justify="left" if title == "weights" else "right")
    for title, config in (("int4, -7..7", EASY), ("ternary, -1..1", HARD)):
        result = compare(config)
        table.add_row(title, f"{result.exact:.2%}", f"{result.ptq:.2%}", f"{result.qat:.2%}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())

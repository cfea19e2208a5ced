# SPDX-License-Identifier: Apache-2.0
"""The networks that benchmarks compile, as programs, and the tables that they print."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table

import tinyet
from benchmarks.mlperf_tiny import data_of, load_models
from benchmarks.nets import NETWORKS
from benchmarks.sequences import SEQUENCES
from tinyet.program import Program

TRAINED = ("ds_cnn", "resnet8")


def program_of(name: str, samples: int, *, channels_last: bool = False) -> tuple[Program, torch.Tensor]:
    """A network of benchmarks/nets.py or benchmarks/sequences.py with random weights, or a trained one, quantized; and
    samples for it, as PyTorch takes them: where images have their channels last in the program, they have them first
    here."""
    if name in TRAINED:
        models = load_models()
        calibration, data, _, _ = data_of(models, name)
        network = getattr(models, name)()
    else:
        untrained = (NETWORKS | SEQUENCES)[name]
        calibration, data = untrained.data(32), untrained.data(samples)
        network = untrained.built()
    program = tinyet.compile(
        network, (data[:1],), calibration=calibration.split(8), name=name, channels_last=channels_last
    )
    return program, data[:samples]


def show(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int
) -> None:
    """A table whose first `left` columns are text, the others numbers."""
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)

# SPDX-License-Identifier: Apache-2.0
"""What pruning is worth on a board: the same pruned network, compiled with and without removing its channels.

    python benchmarks/pruning.py [--share 0.5] [--board mps2_an386] [--samples N] [--results NAME]

The network is ResNet8 (CIFAR-10) of MLPerf Tiny with a share of the filters of each layer set to zero by their L1 norm,
with their biases; layers whose results are added lose the same filters. It is not trained again, so its accuracy
says nothing: what is measured is that both programs give the same bits, and what they cost. Needs the trained model:
TINYET_MLPERF_DIR (default ../shared/mlperf_tiny). Counts are executed instructions, not cycles.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import torch
from mlperf_tiny import load_models
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn.utils import prune

import tinyet
from benchmarks import record
from tinyet.passes.prune_channels import macs_of, weight_bytes
from tinyet.validate import ValidationResult


def pruned_resnet8(network: nn.Module, share: float) -> nn.Module:
    """The layers of each group write to the same sum, or stand alone."""
    groups = [
        ["conv", "stack1.conv2"],
        ["stack1.conv1"],
        ["stack2.conv1"],
        ["stack3.conv1"],
        ["stack2.conv2", "stack2.shortcut"],
        ["stack3.conv2", "stack3.shortcut"],
    ]
    for names in groups:
        first, *others = (network.get_submodule(name) for name in names)
        prune.ln_structured(first, "weight", share, n=1, dim=0)
        alive = first.weight_mask.amax((1, 2, 3))
        for layer in others:
            prune.custom_from_mask(layer, "weight", alive.reshape(-1, 1, 1, 1).expand_as(layer.weight))
        for layer in (first, *others):
            prune.custom_from_mask(layer, "bias", alive)
    return network


def run(program: tinyet.Program, board: str, x: torch.Tensor) -> ValidationResult:
    with tempfile.TemporaryDirectory(prefix="tinyet-bench-") as where:
        project = tinyet.generate(program, board, Path(where) / program.name)
        project.build()
        return project.validate(x.numpy(), on="qemu")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--samples", type=int, default=3)
    record.add_option(parser)
    options = parser.parse_args()
    models = load_models()
    network = pruned_resnet8(models.resnet8(), options.share)
    calibration, _ = models.cifar10("calibration")
    x, _ = models.cifar10("test")
    console = Console(width=120)
    table = Table(
        title=f"ResNet8, {options.share:.0%} of the filters of each layer pruned, on {options.board}"
    )
    for title in ("channels", "MACs", "weight bytes", "flash", "arena", "instructions", "bit-exact"):
        table.add_column(title, justify="left" if title == "channels" else "right")
    outputs, rows = [], []
    for title, removed in (("kept as zeros", False), ("removed", True)):
        program = tinyet.compile(
            network, (x[:1],), calibration=calibration[:100].split(1), name="resnet8", prune=removed
        )
        result = run(program, options.board, x[: options.samples])
        outputs.append([output[0].tobytes() for output in result.outputs])
        graph = program.graph
        row = {
            "channels": title,
            "macs": macs_of(graph.nodes),
            "weight_bytes": weight_bytes(graph),
            "flash_bytes": result.flash_bytes,
            "arena_bytes": result.arena_bytes,
            "instructions": result.instructions,
            "bit_exact": result.bit_exact,
        }
        rows.append(row)
        numbers = list(row.values())[1:-1]
        table.add_row(title, *(f"{number:,}" for number in numbers), str(result.bit_exact))
    console.print(table)
    for note in program.notes:
        console.print(str(note), soft_wrap=True)
    record.write(options.results, rows)
    same = outputs[0] == outputs[1]
    console.print(f"both programs give the same bits: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

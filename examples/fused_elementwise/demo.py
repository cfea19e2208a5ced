# SPDX-License-Identifier: Apache-2.0
"""The same network with and without the delegate of fuser.py, in an emulated board, bit for bit.

python examples/fused_elementwise/demo.py [--board mps2_an386] [--out build/fused]
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from fuser import FUSER

import tinyet
from tinyet.delegates import PORTABLE, register_delegate


class Gate(nn.Module):
    """A gated residual over two (N, 8, 16, 16) maps: seven elementwise operators in a row, behind a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        gate = torch.sigmoid(x + y)
        z = gate * x
        z = z + (1.0 - gate) * y
        return torch.tanh(z)


def inputs(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, 8, 16, 16, generator=generator), torch.randn(1, 8, 16, 16, generator=generator)


def compiled() -> tinyet.Program:
    torch.manual_seed(0)
    return tinyet.compile(
        Gate().eval(), inputs(0), calibration=[inputs(i) for i in range(1, 17)], name="gate"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="mps2_an386")
    parser.add_argument("--out", default="build/fused")
    options = parser.parse_args()
    # A package would declare it as an entry point of the group tinyet.delegates.
    register_delegate(FUSER)
    program = compiled()
    samples = [
        torch.cat(tensors).numpy() for tensors in zip(*(inputs(i) for i in range(20, 24)), strict=True)
    ]
    exact = True
    for name, delegates in (("portable", (PORTABLE,)), ("fuser", (FUSER, PORTABLE))):
        project = tinyet.generate(program, options.board, f"{options.out}/{name}", delegates=delegates)
        project.build()
        result = project.validate(*samples)
        exact = exact and result.bit_exact
        rest = sum(layer.count or 0 for layer in result.layers if layer.op not in ("conv2d", "permute"))
        print(
            f"{name:8}  bit exact: {result.bit_exact}  layers: {len(result.layers):2}  "
            f"instructions: {result.instructions:,}, of the elementwise operators: {rest:,}"
        )
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())

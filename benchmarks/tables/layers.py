# SPDX-License-Identifier: Apache-2.0
"""Tables of single layers: kernels beside each other."""

from __future__ import annotations

import math
import re
from typing import Any

from benchmarks.tables.form import result, table

# ---------------------------------------------------------------- single layers


ELEMENTWISE = (
    "a + b, of one shape",
    "a + b, b of each channel",
    "a + b, b of each pixel",
    "a * b, of one shape",
    "a * b, b of each channel (squeeze and excite)",
    "a * b, b of each pixel",
    "maximum, minimum",
    "clamp in one scale, maximum with a scalar",
    "requantization; sum and product with a scalar (portable: a table of 256 bytes besides)",
    "a lone batch norm",
    "bilinear, twice as large",
    "bilinear, twice as large, aligned corners",
    "mean of an image",
    "softmax of rows of 32",
)
"""What documents call the nodes of benchmarks/kernels.py elementwise, in its order."""


def elementwise() -> str:
    """Instructions a value, by the kernels for DSP and by the portable ones."""
    rows = [
        (
            label,
            f"`{row['kernel']}`",
            f"{row['instructions'] / row['times']:.1f}",
            f"{row['portable'] / row['times']:.1f}",
        )
        for label, row in zip(ELEMENTWISE, result("elementwise")["elementwise"], strict=True)
    ]
    return table(("operator", "kernel", "now", "portable"), 2, rows)


OTHERS = (
    "1×1, 16×16×64 → 64, int4 weights",
    "depthwise 3×3, 16×16×64, int4 weights",
    "transposed 2×2, stride 2, 8×8×32 → 16",
    "transposed 3×3, stride 2, 8×8×32 → 16",
    "largest of 2×2, 16×16×32",
    "largest of 3×3, stride 1, padded",
    "average of 2×2, 16×16×32",
    "average of 3×3, stride 1, padded",
)
"""What documents call the nodes of benchmarks/kernels.py others, in its order."""


def others() -> str:
    """Instructions a product, of pools an output, by the kernels for DSP and by the portable ones."""
    rows = []
    for label, row in zip(OTHERS, result("others")["others"], strict=True):
        outputs = math.prod(map(int, row["sizes"].partition("->")[2].split("x")))
        of = outputs if row["op"].endswith("pool2d") else row["times"]
        rows.append(
            (label, f"`{row['kernel']}`", *(f"{row[way] / of:.2f}" for way in ("instructions", "portable")))
        )
    return table(("layer", "kernel", "now", "portable"), 2, rows)


def recurrent_cores() -> str:
    """Instructions of recurrent layers on each core, and a multiply-accumulate."""
    found = result("recurrent_cores")
    rows = [
        (
            f"{row['layer']}, {row['macs']:,} MACs",
            *(f"{count:,} ({count / row['macs']:.1f})" for count in row["instructions"].values()),
        )
        for row in found
    ]
    return table(("", *found[0]["instructions"]), 1, rows)


def widths() -> str:
    """int16 activations and int4 weights beside int8: instructions a product, and how many times int8's."""
    rows = []
    for name, found in result("widths")["weights as they are"].items():
        (_, base), *others = found
        label = (
            re.sub(r"(?<=\d)x(?=\d)", "×", name).replace("->", "→").replace("linear ", "fully connected, ")
        )
        cells = [cell for _, count in others for cell in (f"{count:.2f}", f"{count / base:.2f}")]
        rows.append((label, f"{base:.2f}", *cells))
    return table(("layer", "int8", "int16 activations", "", "int4 weights", ""), 1, rows)


def linear_packed() -> str:
    """Instructions a product of 640 → 128, of two weights in an int16; within a cell."""
    symbol = "tinyet_linear_s8_packed_1x4_k160_dsp"
    counts = result("widths")["weights as they are"]["linear 640 -> 128"]
    (count,) = {count for kernel, count in counts if kernel == symbol}
    return f"{count:.2f}"


# ---------------------------------------------------------------- convolutions that take flash or RAM for speed

CONVOLUTIONS = {
    ("resnet8", "y1"): "32×32×16 → 16, ReLU",
    ("resnet8", "y2"): "32×32×16 → 16",
    ("resnet8", "y5"): "16×16×32 → 32",
    ("resnet8", "y9"): "8×8×64 → 64",
    ("ds_cnn", "y2"): "25×5×64 → 64, 1×1, ReLU",
}
"""Layers of benchmarks/kernels.py, by network and output."""


def _convolution(network: str, name: str, method: str) -> dict[str, Any] | None:
    """The layer by one kernel; None where that does not take it."""
    symbol = f"tinyet_conv2d_s8_{method}_dsp"
    (row,) = [row for row in result("convolutions")[network][symbol] if row["name"] == name]
    return row if row["kernel"] == symbol else None


def convolutions_widened() -> str:
    """Instructions; in brackets kilobytes of constants and bytes of scratch memory."""
    methods = ("packed_4x2", "w16_im2col_2x2", "w16_winograd_f2x2", "w16_winograd_f4x4")
    rows = []
    for (network, name), label in CONVOLUTIONS.items():
        found = [_convolution(network, name, method) for method in methods]
        if all(found):
            said = [
                f"{row['instructions']:,} ({row['constant_bytes'] / 1000:.1f}, {row['scratch_bytes']:,})"
                for row in found
                if row
            ]
            rows.append((label, *said))
    heads = ("layer", *(f"`{method}`" for method in methods))
    return table(heads, 1, rows)


def convolutions_others() -> str:
    """Instructions by the other kernels, and scratch bytes of the last one."""
    methods = ("packed_4x2", "packed_3x2", "w16_im2col_2x2", "winograd_f2x2")
    rows = []
    for (network, name), label in CONVOLUTIONS.items():
        found = [_convolution(network, name, method) for method in methods]
        counts = ["refused" if row is None else row["instructions"] for row in found]
        rows.append((label, *counts, found[-1]["scratch_bytes"] if found[-1] else ""))
    return table(("layer", *(f"`{method}`" for method in methods), "scratch bytes"), 1, rows)


def slothy_loops() -> str:
    """Cycles of a turn of inner loops for Helium, beside those of SLOTHY's best order."""
    heads = ("core", "loop", "instructions", "est. cycles", "SLOTHY: as printed", "best found", "above")
    rows = []
    for row in result("slothy_loops"):
        kept, best = row.get("in_order"), row.get("best")
        above = f"{100 * (kept / best - 1):.1f} %" if kept and best else "–"
        found = (row["core"], row["loop"], row["instructions"], row["cycles"])
        rows.append((*found, kept or "–", best or "–", above))
    return table(heads, 2, rows)

# SPDX-License-Identifier: Apache-2.0
"""The buffer that a converter or its DMA fills, as it is, becomes a signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given
from tinyet.fx.samples_ops import samples

Kind = Literal["int16", "uint16", "int24", "int32"]


@dataclass(frozen=True)
class _Form:
    """dtype: of the tensor, and of the C buffer but for its sign. shift, offset: by default. shifts: that there are."""

    dtype: torch.dtype
    shift: int
    offset: int
    shifts: range


_FORMS: dict[str, _Form] = {
    "int16": _Form(torch.int16, 0, 0, range(16)),
    "uint16": _Form(torch.int16, 0, 32768, range(16)),
    "int24": _Form(torch.int32, 16, 0, range(8, 32)),
    "int32": _Form(torch.int32, 16, 0, range(1, 32)),
}


class Samples(nn.Module):
    """A converter's buffer to samples, int16: (x >> shift) - offset, saturated.

    (..., samples) to the same; of several channels, which lie interleaved in the buffer, (..., samples, channels) to
    (..., channels, samples). `.float()` of it is what float32 features take.

    kind: what lies in the buffer.
      "int16"; "uint16", which torch and the C program take as int16 of the same bits (`x.view(torch.int16)`, a cast of
      the pointer), and of which `offset`, half of 65536 by default, is subtracted: 2048 for a converter of 12 bits;
      "int24", in the upper 24 bits of int32, as I2S gives it, the lowest 8 whatever they may be; "int32".
    shift: bits that are left away at the bottom; 16 of words. Fewer keep more of a quiet signal, and cut a loud one.
    channel: only this one of several, without that axis.
    """

    def __init__(
        self,
        kind: Kind = "int16",
        *,
        offset: int | None = None,
        shift: int | None = None,
        interleaved: bool = False,
        channel: int | None = None,
    ) -> None:
        super().__init__()
        if kind not in _FORMS:
            raise UsageError(f"no samples are called {kind!r}", hint=", ".join(_FORMS))
        form = _FORMS[kind]
        self.kind, self.dtype = kind, form.dtype
        self.shift = form.shift if shift is None else shift
        self.offset = form.offset if offset is None else offset
        if self.shift not in form.shifts:
            shifts = f"{form.shifts[0]} to {form.shifts[-1]}"
            raise UsageError(f"a shift of {self.shift} bits, and {kind} takes {shifts}")
        if not -32768 <= self.offset <= 65535:
            raise UsageError(f"an offset of {self.offset} is none of 16 bits")
        if channel is not None and whole_given(channel + 1, "channel", "of several") and not interleaved:
            raise UsageError("one channel has no others beside it", hint="say interleaved=True")
        self.interleaved, self.channel = interleaved, channel

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype is not self.dtype:
            raise UsageError(f"{self.kind} lies in {self.dtype}, not in {x.dtype}")
        if self.interleaved:
            x = x.transpose(-1, -2) if self.channel is None else x[..., self.channel]
        if self.shift == 0 and self.offset == 0:
            return x
        found: Tensor = samples(x, self.shift, self.offset, self.kind == "uint16")
        return found

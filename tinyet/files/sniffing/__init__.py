# SPDX-License-Identifier: Apache-2.0
"""Files of other tools: what one is, and how the model in it comes to be a `model.py`. Nothing in them is executed or
unpickled."""

from __future__ import annotations

from tinyet.files.sniffing.answer import sniff, sniffed_error

__all__ = ["sniff", "sniffed_error"]

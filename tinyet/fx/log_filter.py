# SPDX-License-Identifier: Apache-2.0
"""Keeps the chatter of torch and torchao (missing CUDA libraries, deprecations of their own) away from
users."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout


@contextmanager
def quiet() -> Iterator[None]:
    """Mute warnings, log records up to WARNING, and what is printed; exceptions pass.

    torch.export prints the half-traced graph when it fails: the error that we raise says what matters of it.
    """
    before = logging.root.manager.disable
    loud = before < logging.WARNING
    # Each change clears what every logger has cached, and torch has hundreds of them.
    if loud:
        logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        if loud:
            logging.disable(before)

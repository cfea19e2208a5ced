# SPDX-License-Identifier: Apache-2.0
"""The command line: one file a command; `app` puts them together."""

from __future__ import annotations

from tinyet.cli.app import app, main, run

__all__ = ["app", "main", "run"]

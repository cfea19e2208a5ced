# SPDX-License-Identifier: Apache-2.0
"""`python -m tinyet`: the command line."""

from __future__ import annotations

from tinyet.cli import main

main()

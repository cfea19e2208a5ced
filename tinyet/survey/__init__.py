# SPDX-License-Identifier: Apache-2.0
"""A look at models before there is data: what is supported, what stays float, what it would cost, whether it fits.

look.py: one model; folder.py: the models below a folder; budgets.py: what models may take, from a pyproject.toml;
as_tests.py: these as tests of pytest; everywhere.py: one model on every emulated board.
"""

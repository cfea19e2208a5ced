# SPDX-License-Identifier: Apache-2.0
"""Estimates cycles of a core from the instructions that an emulator executes for it."""

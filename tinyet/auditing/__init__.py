# SPDX-License-Identifier: Apache-2.0
"""Whether a linked firmware holds the program's constants, and whose every other byte of its flash is."""

# SPDX-License-Identifier: Apache-2.0
"""The version, alone: everybody may ask for it."""

__version__ = "0.1.0"

# SPDX-License-Identifier: Apache-2.0
"""How long instructions take: Thumb code decoded, and the manufacturers' tables of cycles, core by core."""

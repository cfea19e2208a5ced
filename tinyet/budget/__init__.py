# SPDX-License-Identifier: Apache-2.0
"""The memory that a deployment needs on a board, and whether it fits."""

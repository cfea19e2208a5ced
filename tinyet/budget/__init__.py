# SPDX-License-Identifier: Apache-2.0
"""What a deployment takes of a board's memories, and whether it fits."""

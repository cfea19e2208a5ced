# SPDX-License-Identifier: Apache-2.0
"""The plan of a graph for one target: kernels, layouts, tiles and memory, by time, flash and RAM."""

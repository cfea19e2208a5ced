# SPDX-License-Identifier: Apache-2.0
"""The plan of a graph for one target: kernels, layouts, tiles and memory, by instructions, flash and RAM.

Read `search.py` first: from candidates of kernels to the plan that is taken. `pareto.py` compares plans.
"""

# SPDX-License-Identifier: Apache-2.0
"""From a .tflite file to the graph: one row an operator, the bits of the original kernels."""

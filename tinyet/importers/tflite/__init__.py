# SPDX-License-Identifier: Apache-2.0
"""From a .tflite file to the graph: one handler for each operator, the bits of the original kernels."""

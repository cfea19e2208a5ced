# SPDX-License-Identifier: Apache-2.0
"""From ONNX to the graph: files read and checked, graphs of integers taken exactly, float graphs handed on to torch."""

# SPDX-License-Identifier: Apache-2.0
"""Quantization of values: their types, ranges, training, calibration, and the cost of each in accuracy.

Works on captured torch programs, between `fx.capture` and `importers.torch.importer`; `lowering` does the whole way.
"""

# SPDX-License-Identifier: Apache-2.0
"""A float graph, of whatever file, as a torch module of the same answers: what is in front of the quantizer for models
that did not come from PyTorch."""

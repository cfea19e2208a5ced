# SPDX-License-Identifier: Apache-2.0
"""A graph as a .tflite file: one handler for each operator, bits equal to the runtime's own kernels, or a refusal."""

from __future__ import annotations

from tinyet.exporters.tflite.exporter import export_graph

__all__ = ["export_graph"]

# SPDX-License-Identifier: Apache-2.0
"""From PyTorch to the graph: the ATen operators of a captured program become tinyet's.

`source.load_source` reads the source that MODEL names; `tinyet.fx` captures it; `importer` makes the graph.
"""

# SPDX-License-Identifier: Apache-2.0
"""From PyTorch to the graph: a module is captured with torch.export and its ATen operators become tinyet's.

`source.load_source` reads what MODEL names; `capture` and `importer` are the steps.
"""

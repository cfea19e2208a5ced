# SPDX-License-Identifier: Apache-2.0
"""From PyTorch to the graph: the only package that imports torch.

`source.load_source` reads what MODEL names; `compile.lower_module` and `compile.lower_program` do the whole
way; `capture`, `quantize` and `importer` are its steps.
"""

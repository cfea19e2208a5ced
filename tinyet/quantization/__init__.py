# SPDX-License-Identifier: Apache-2.0
"""How values become integers: which, with what range, trained or calibrated, and what each costs in accuracy.

Works on captured torch programs, between `fx.capture` and `importers.torch.importer`; `lowering` does the whole way.
"""

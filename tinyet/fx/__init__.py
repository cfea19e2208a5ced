# SPDX-License-Identifier: Apache-2.0
"""torch's fx graphs: a module is captured as one, which is then read, simplified and rewritten.

`capture.capture` makes an ExportedProgram of a module; `edit` changes a graph; `origins` says which line of the user's
Python asked for a node. Quantization and the import to tinyet's own graph both begin here.
"""

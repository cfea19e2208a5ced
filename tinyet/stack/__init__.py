# SPDX-License-Identifier: Apache-2.0
"""An upper bound of a firmware's stack, from the compiler's figures, the machine code and the call graph."""

# SPDX-License-Identifier: Apache-2.0
"""How deep a firmware's stack can grow: a bound from the compiler's figures, the machine code and the call graph."""

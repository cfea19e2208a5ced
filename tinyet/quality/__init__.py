# SPDX-License-Identifier: Apache-2.0
"""How good a quantized program's answers are, which layers spoil them, and what helps."""

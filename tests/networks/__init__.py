# SPDX-License-Identifier: Apache-2.0
"""Small networks of unusual ranges and shapes, and how near to the float model they stay in integers: in the programs
that tinyet makes, and in plain PT2E beside them."""

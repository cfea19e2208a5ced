# SPDX-License-Identifier: Apache-2.0
"""Inner loops that are described, not written: from a tile and a core's page to assembly, and to its exact cost.

tile.py is the description; blocks.py says it in instructions of values, filling.py those of one pixel with loads that
loads.py plans; schedule.py orders these, registers.py finds registers for them, function.py puts the parts together and
counts; printer.py prints the C file. depthwise.py and planes.py describe loops within loops, which nest.py counts.
"""

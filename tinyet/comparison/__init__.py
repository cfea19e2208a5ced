# SPDX-License-Identifier: Apache-2.0
"""Two measured things beside each other: reports, programs, projects, firmwares; and limits for what may change.

sides.py: each as figures and parts, whatever it was; compare.py: the differences; conditions.py: limits for them.
"""

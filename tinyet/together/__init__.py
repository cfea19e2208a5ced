# SPDX-License-Identifier: Apache-2.0
"""Several models in one project: a declared schedule, one arena that they have in turns, and the proof of both."""

# SPDX-License-Identifier: Apache-2.0
"""What stands beside a program's answers: whether a score is above a threshold that was chosen on data, and how far an
input is from the data that a model was made for."""

FALSE_ALARMS = 0.01
"""The share of ordinary inputs that may be above a threshold, where nobody says another."""

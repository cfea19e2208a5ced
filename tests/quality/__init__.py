# SPDX-License-Identifier: Apache-2.0
"""Whether integers give the answers of the model: the alarm, the cause, the repair."""

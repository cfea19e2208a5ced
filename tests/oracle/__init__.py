# SPDX-License-Identifier: Apache-2.0
"""Independent implementations that the project's numerics are compared with."""

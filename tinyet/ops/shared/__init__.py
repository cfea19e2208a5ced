# SPDX-License-Identifier: Apache-2.0
"""What several operators have in common."""

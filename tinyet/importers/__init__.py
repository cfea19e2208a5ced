# SPDX-License-Identifier: Apache-2.0
"""Foreign models as graphs: a room for each format, none of which knows another."""

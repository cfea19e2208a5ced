# SPDX-License-Identifier: Apache-2.0
"""The .tet file: a program as a flatbuffer with a checksum behind it."""

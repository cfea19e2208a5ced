# SPDX-License-Identifier: Apache-2.0
"""A project on disk, and the tools that make firmware of it: PlatformIO, CMake, Arduino, west, GCC."""

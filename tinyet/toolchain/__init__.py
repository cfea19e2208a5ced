# SPDX-License-Identifier: Apache-2.0
"""Everything that starts a process or opens a device: compilers, PlatformIO, emulators, serial ports."""

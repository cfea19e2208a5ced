# SPDX-License-Identifier: Apache-2.0
"""What runs a model's harness, and how the host talks to it: this machine, QEMU, Renode, a board on a serial port."""

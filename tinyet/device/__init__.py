# SPDX-License-Identifier: Apache-2.0
"""Running a model's harness and talking to it: on this machine, in QEMU or Renode, on a board at a serial port."""

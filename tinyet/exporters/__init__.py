# SPDX-License-Identifier: Apache-2.0
"""From a program's graph to other tools' files."""

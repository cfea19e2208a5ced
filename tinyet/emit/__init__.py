# SPDX-License-Identifier: Apache-2.0
"""From a deployment to texts: the model's C, and the project around it; nothing is read from or written to a disk."""

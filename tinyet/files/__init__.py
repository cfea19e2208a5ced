# SPDX-License-Identifier: Apache-2.0
"""Files of strangers are read within bounds and told by their content; files are written whole or not at all."""

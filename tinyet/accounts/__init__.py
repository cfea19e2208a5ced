# SPDX-License-Identifier: Apache-2.0
"""What a deployment costs, as records for reports: layers.py, each call of the generated code; code.py, kernels and
functions; fronts.py, what could have been chosen.
"""

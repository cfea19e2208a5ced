# SPDX-License-Identifier: Apache-2.0
"""One inference as profilers show it: what each layer took, in the order of execution, with its source line.

spans.py: layers and the modules that they are in; forms.py: the files of trace viewers and flame graphs.
"""

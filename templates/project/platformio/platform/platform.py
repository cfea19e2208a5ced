# SPDX-License-Identifier: Apache-2.0
"""PlatformIO's view of this directory: which packages a build needs."""

import shutil

from platformio.public import PlatformBase


class TinyetPlatform(PlatformBase):
    def is_embedded(self):
        return True

    def configure_default_packages(self, variables, targets):
        # The compiler on PATH is used when there is one; PlatformIO's is downloaded only when there is none.
        if shutil.which("arm-none-eabi-gcc") is None:
            self.packages["toolchain-gccarmnoneeabi"]["optional"] = False
        return super().configure_default_packages(variables, targets)

# SPDX-License-Identifier: Apache-2.0
"""PlatformIO's view of this directory: which packages a build needs."""

import shutil

from platformio.exception import UserSideException
from platformio.public import PlatformBase


class TinyetPlatform(PlatformBase):
    def is_embedded(self):
        return True

    def configure_default_packages(self, variables, targets):
        # The compiler on PATH is used when there is one; PlatformIO's is downloaded only when there is none.
        compiler = self.board_config(variables["board"]).get("build.toolchain") + "gcc"
        if shutil.which(compiler) is None:
            if not self.packages:
                raise UserSideException(f"{compiler} is not on PATH, and PlatformIO has none: install it")
            for package in self.packages.values():
                package["optional"] = False
        return super().configure_default_packages(variables, targets)

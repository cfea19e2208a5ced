# SPDX-License-Identifier: Apache-2.0
"""The builds, by kind of project."""

from __future__ import annotations

from collections.abc import Mapping

from tinyet.build import arduino, cmake, platformio, zephyr
from tinyet.build.builder import Builder

BUILDERS: Mapping[str, Builder] = {
    "platformio": platformio.BUILDER,
    "cmake": cmake.BUILDER,
    "arduino": arduino.BUILDER,
    "zephyr": zephyr.BUILDER,
}

# SPDX-License-Identifier: Apache-2.0
"""How hypothesis draws: with new examples in every run at home, with the same ones in continuous integration, where a
failure must belong to the change that is tested."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The fixture `golden` and its option.
pytest_plugins = ["tests.golden_files"]

# Compilers and emulators are slow on a busy machine, and strategies discard what an operator refuses.
CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

settings.register_profile("home", deadline=None, suppress_health_check=CALM)
settings.register_profile("ci", deadline=None, suppress_health_check=CALM, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")

# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

pytest_plugins = "tinyet.pytest"

sys.path.insert(0, str(Path(__file__).resolve().parent))

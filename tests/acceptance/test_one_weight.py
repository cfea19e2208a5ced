# SPDX-License-Identifier: Apache-2.0
"""docs/one-weight.md: its script prints what the page says, and every name in its table exists where it says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import forked

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "one-weight.md").read_text(encoding="utf-8")
# [file](path): `name`
NAMES = re.findall(r"\]\(\.\./([\w./-]+)\): `(\w+)`", PAGE)


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_page_names_every_station() -> None:
    rooms = {Path(path).parts[1] for path, _ in NAMES if path.startswith("tinyet/")}
    assert {"importers", "quantization", "passes", "tet", "delegates", "ops", "numerics", "emit"} <= rooms


@pytest.mark.parametrize(("path", "name"), NAMES, ids=[f"{path}:{name}" for path, name in NAMES])
def test_a_name_exists_in_its_file(path: str, name: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    in_python, in_c = rf"^(def|class) {name}\b|^{name}\b.*=", rf"^\w.*\b{name}\(|^#define KERNEL {name}$"
    in_table = rf"^\[\w+\.kernels\.{name}\]$|^{name} = "
    definition = {".py": in_python, ".toml": in_table}.get(Path(path).suffix, in_c)
    assert re.search(definition, text, re.MULTILINE), f"{path} does not define {name}"


def test_the_script_prints_what_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("torchao", reason="torchao is not installed")
    script = tmp_path / "one_weight.py"  # torch.export wants source that can be read again
    script.write_text(block("python"), encoding="utf-8")
    done = forked.python([str(script)], tmp_path, os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == block("text")

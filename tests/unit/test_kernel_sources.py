# SPDX-License-Identifier: Apache-2.0
"""The sources that one table says: their text, and that the table says nothing in vain."""

from __future__ import annotations

import tomllib
from pathlib import Path
from string import Template

import pytest

from tests.golden_files import Golden
from tinyet import assets
from tinyet.delegates import kernel_sources
from tinyet.delegates.delegate import included, own_files

TABLE = tomllib.loads((kernel_sources.directory() / "instances.toml").read_text(encoding="utf-8"))


# Plain words; text of several lines; headers; a macro that goes on in the next line.
@pytest.mark.parametrize(
    "name", ["tinyet_amax_s8", "tinyet_argmax_f32", "tinyet_conv2d_s8_rne", "tinyet_lstm_s8_lut_dsp"]
)
def test_text(name: str, golden: Golden) -> None:
    golden(kernel_sources.text(f"{name}.c") or "", f"{name}.c")


@pytest.mark.parametrize("family", TABLE)
def test_family(family: str) -> None:
    text, kernels = TABLE[family]["text"], TABLE[family]["kernels"]
    assert len(kernels) > 1, "one text for one kernel is a file"
    words = set(Template(text).get_identifiers())
    for kernel, values in kernels.items():
        assert {"kernel", *values} == words, f"a word of {kernel} that the text does not take"
        printed = kernel_sources.instances()[f"{kernel}.c"]
        assert max(map(len, printed.splitlines())) <= 120
        headers = assets.path("firmware") / "include"
        assert all((headers / name).is_file() for name in included(printed)), kernel


def test_a_source_is_written_or_printed() -> None:
    printed = set(kernel_sources.instances())
    assert not printed & {path.name for path in kernel_sources.directory().iterdir()}
    assert printed < set(kernel_sources.names())
    assert kernel_sources.text("tinyet_nowhere.c") is None


def test_a_printed_source_comes_with_what_it_includes(tmp_path: Path) -> None:
    files = own_files([], ["tinyet_amax_s8.c"])
    assert {"tinyet_amax_s8.c", "tinyet_reduce.h", "tinyet_reduce_extremum_body.h"} <= files.keys()
    (path,) = kernel_sources.write(tmp_path / "new", ["tinyet_amax_s8.c"])
    assert path.read_text(encoding="utf-8") == files["tinyet_amax_s8.c"]
    with pytest.raises(KeyError, match="nowhere"):
        kernel_sources.write(tmp_path, ["nowhere.c"])

# SPDX-License-Identifier: Apache-2.0
"""Delegates on the command line: who is asked, who took what, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import small
from tests.cli.command import listing, tinyet
from tinyet.delegates import delegate_names
from tinyet.projects import open_project


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small.program().save(tmp_path / "small.tet")
    return tmp_path


def analysis(*arguments: str) -> list[str]:
    ended = tinyet("analyze", "small.tet", "--json", "-", *arguments)
    assert ended.status == 0, ended.err
    return [layer["delegate"] for layer in json.loads(ended.out)["layers"]]


def test_who_takes_part() -> None:
    assert "cortex_m" in analysis()
    assert set(analysis("--delegates", "portable")) == {"portable"}
    assert analysis("--delegates", " portable , cortex_m") == analysis("--delegates", "cortex_m,portable")


def test_the_order_does_not_matter_where_costs_are_stated() -> None:
    on = ("--board", "microbit", "--delegates")
    assert analysis(*on, "cmsis_nn,portable") == analysis(*on, "portable,cmsis_nn")


def test_the_screen_says_who_took_what() -> None:
    ended = tinyet("analyze", "small.tet", "--delegates", "portable")
    assert "layers by delegate" in ended.out
    assert "portable 3" in ended.out
    ended = tinyet("analyze", "small.tet", "--board", "mps2_an385")
    assert "cortex_m: cortex-m3 has no DSP instructions" in ended.out


def test_require_fails_on_any_fallback(here: Path) -> None:
    ended = tinyet(
        "generate", "small.tet", "--board", "mps2_an385", "--delegates", "cortex_m", "--require-delegate"
    )
    assert ended.status == 1
    assert "3 call(s) would not go to the delegate that was asked for" in ended.err
    assert "cortex-m3 has no DSP instructions" in ended.err
    assert listing(here) == ["small.tet"]
    ended = tinyet(
        "generate",
        "small.tet",
        "--board",
        "mps2_an385",
        "--delegates",
        "cortex_m,portable",
        "--require-delegate",
    )
    assert ended.status == 0, ended.err


def test_the_project_keeps_what_it_was_made_with() -> None:
    arguments = ("--board", "mps2_an386", "--delegates", "portable", "--require-delegate", "-o", "p")
    assert tinyet("generate", "small.tet", *arguments).status == 0
    project = open_project("p")
    assert [d.name for d in project.delegates] == ["portable"]
    assert project.require_delegate
    ended = tinyet("analyze", "p", "--json", "-")
    assert {layer["delegate"] for layer in json.loads(ended.out)["layers"]} == {"portable"}
    ended = tinyet("analyze", "p", "--delegates", "cortex_m", "--json", "-")
    assert "cortex_m" in {layer["delegate"] for layer in json.loads(ended.out)["layers"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--delegates", "gpu"), "no delegate called gpu"),
        (("--require-delegate",), "--require-delegate needs --delegates"),
    ],
)
def test_mistakes(here: Path, arguments: tuple[str, ...], message: str) -> None:
    for command in (("generate", "small.tet", "--board", "mps2_an386"), ("analyze", "small.tet")):
        ended = tinyet(*command, *arguments)
        assert ended.status == 2
        assert message in ended.err
    assert listing(here) == ["small.tet"]


def test_all_are_listed() -> None:
    ended = tinyet("delegates")
    assert ended.status == 0
    for name in delegate_names():
        assert f" {name} " in ended.out

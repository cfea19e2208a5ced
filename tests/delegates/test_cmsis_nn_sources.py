# SPDX-License-Identifier: Apache-2.0
"""Where the sources of CMSIS-NN come from: the cache, the user's directory, or an archive, which may be anything."""

from __future__ import annotations

import functools
import http.server
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyet import assets
from tinyet.delegates import CMSIS_NN
from tinyet.delegates.cmsis_nn import sources
from tinyet.delegates.cmsis_nn.library import HEADER
from tinyet.errors import ToolchainError

CHECKOUT = assets.cmsis_nn_dir()
needs_checkout = pytest.mark.skipif(
    CHECKOUT is None, reason=f"the sources of CMSIS-NN {assets.CMSIS_NN_VERSION} are not here"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, without a directory of the user's; returns where the library would be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TINYET_CMSIS_NN", raising=False)
    return tmp_path / "cache" / "tinyet" / "cmsis-nn" / assets.CMSIS_NN_VERSION


def archive(place: Path, changed: str = "", left_out: str = "", added: str = "") -> Path:
    """The release as GitHub packs it, below one directory; `changed` gets a byte more."""
    assert CHECKOUT is not None
    with tarfile.open(place, "w:gz") as tar:
        for part in ("Source", "Include", "LICENSE", "README.md"):
            found = CHECKOUT / part
            for path in sorted(found.rglob("*")) if found.is_dir() else [found]:
                name = path.relative_to(CHECKOUT).as_posix()
                if not path.is_file() or name == left_out:
                    continue
                data = path.read_bytes() + (b" " if name == changed else b"")
                member = tarfile.TarInfo(f"CMSIS-NN-{assets.CMSIS_NN_VERSION}/{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        if added:
            member = tarfile.TarInfo(added)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"evil"))
    return place


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the files in tmp_path / "www"."""
    (tmp_path / "www").mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def nothing_is_left(cache: Path) -> bool:
    return not cache.parent.exists() or not any(cache.parent.iterdir())


@needs_checkout
def test_a_download_fills_the_cache(
    cache: Path, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(tmp_path / "www" / "release.tar.gz", added="CMSIS-NN-7.0.0/Source/../../../outside")
    monkeypatch.setattr(sources, "URL", f"{served}/release.tar.gz")
    assert sources.directory() == cache
    assert [p.name for p in cache.parent.iterdir()] == [assets.CMSIS_NN_VERSION]
    assert sorted(p.name for p in cache.iterdir()) == ["Include", "LICENSE", "Source"]
    assert not list(tmp_path.rglob("outside"))
    # The second time there is nothing to fetch.
    monkeypatch.setattr(sources, "URL", "file:///nowhere")
    found = CMSIS_NN.files([HEADER], ["arm_pad_s8.c"])
    assert "arm_cmsis_nn_status arm_pad_s8(" in found["cmsis_nn/arm_pad_s8.c"]


@needs_checkout
@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"changed": "Source/PadFunctions/arm_pad_s8.c"}, "does not hold the files of the release"),
        ({"changed": "LICENSE"}, "does not hold the files of the release"),
        ({"left_out": "Include/arm_nn_types.h"}, "does not hold the files of the release"),
        ({"added": "CMSIS-NN-7.0.0/Source/new.c"}, "does not hold the files of the release"),
    ],
)
def test_a_tampered_archive(
    options: dict[str, str], what: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = archive(tmp_path / "release.tar.gz", **options)
    monkeypatch.setattr(sources, "URL", place.as_uri())
    with pytest.raises(ToolchainError, match=what) as caught:
        sources.directory()
    assert caught.value.where == place.as_uri()
    assert "TINYET_CMSIS_NN" in str(caught.value.hint)
    assert nothing_is_left(cache)


@needs_checkout
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_archive(
    share: float, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = archive(tmp_path / "release.tar.gz")
    data = place.read_bytes()
    place.write_bytes(data[: int(len(data) * share)])
    monkeypatch.setattr(sources, "URL", place.as_uri())
    with pytest.raises(ToolchainError, match=r"the archive is damaged|does not hold the files"):
        sources.directory()
    assert nothing_is_left(cache)


@pytest.mark.parametrize("url", ["file:///nowhere/release.tar.gz", "http://127.0.0.1:1/release.tar.gz"])
def test_offline(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "URL", url)
    with pytest.raises(ToolchainError, match=r"is not on this machine, and cannot be downloaded") as caught:
        CMSIS_NN.files([HEADER], ["arm_pad_s8.c"])
    assert caught.value.where == url
    assert f"tag v{assets.CMSIS_NN_VERSION}" in str(caught.value.hint)
    assert nothing_is_left(cache)


def test_a_page_that_is_no_archive(
    cache: Path, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "www" / "page.html").write_text("log in first")
    monkeypatch.setattr(sources, "URL", f"{served}/page.html")
    with pytest.raises(ToolchainError, match="the archive is damaged"):
        sources.directory()
    monkeypatch.setattr(sources, "URL", f"{served}/missing")
    with pytest.raises(ToolchainError, match="cannot be downloaded: File not found"):
        sources.directory()
    assert nothing_is_left(cache)


def test_a_download_without_end_is_ended_and_what_a_killed_one_left_is_removed(
    cache: Path, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MOST_BYTES", 100_000)
    (tmp_path / "www" / "release.tar.gz").write_bytes(bytes(1_000_000))
    monkeypatch.setattr(sources, "URL", f"{served}/release.tar.gz")
    old, young, link = (cache.parent / f".download-{name}" for name in ("old", "young", "link"))
    for place in (old, young):
        place.mkdir(parents=True)
        (place / "archive.tar.gz").write_text("half of it")
    link.symlink_to(young)
    os.utime(old, (1e9, 1e9))
    with pytest.raises(ToolchainError, match="the server sends more than the release"):
        sources.directory()
    assert sorted(cache.parent.iterdir()) == [link, young]


@needs_checkout
def test_a_directory_of_the_user(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken when it is the release, also with line ends of Windows, and refused with its path when not."""
    assert CHECKOUT is not None
    monkeypatch.setattr(sources, "URL", "file:///nowhere")
    mine = tmp_path / "mine"
    with tarfile.open(archive(tmp_path / "release.tar.gz")) as tar:
        for member in tar:
            data = tar.extractfile(member)
            assert data is not None
            target = mine.joinpath(*Path(member.name).parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data.read().replace(b"\n", b"\r\n"))
    monkeypatch.setenv("TINYET_CMSIS_NN", str(mine))
    assert sources.directory() == mine
    other = tmp_path / "other"
    mine.rename(other)
    (other / "LICENSE").write_text("mine")
    monkeypatch.setenv("TINYET_CMSIS_NN", str(other))
    with pytest.raises(ToolchainError, match="are not those of CMSIS-NN") as caught:
        sources.directory()
    assert caught.value.where == str(other)
    monkeypatch.setenv("TINYET_CMSIS_NN", str(tmp_path / "nowhere"))
    with pytest.raises(ToolchainError, match="names a directory without CMSIS-NN"):
        sources.directory()
    assert not cache.exists()

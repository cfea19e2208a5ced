# SPDX-License-Identifier: Apache-2.0
"""One browser for all pages of a session: its start takes a second of processor time, a page in it a twentieth.

It is spoken to by the Chrome DevTools Protocol over two pipes, messages of JSON that a 0 byte ends:
https://chromedevtools.github.io/devtools-protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)
_HEIGHT = 800
_DEADLINE = 120.0
"""Seconds, after which a browser that does not answer is killed."""


class Browser:
    """A headless Chromium with a profile of its own. A context manager: it ends with it."""

    def __init__(self, profile: Path) -> None:
        to_it, self._commands = os.pipe()
        self._answers, from_it = os.pipe()
        options = [*_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        # It reads descriptor 3 and writes 4, whatever numbers they have here.
        command = f'exec chromium "$@" 3<&{to_it} 4>&{from_it}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "chromium", *options],
            pass_fds=(to_it, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_it)
        os.close(from_it)
        self._number = 0
        self._read = b""
        self._complaints: list[str] = []
        self._events: list[str] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)  # It ends where nobody can tell it anything any more.
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def document(self, page: Path, width: int) -> tuple[str, list[str]]:
        """The document that a page becomes in a window of a width in pixels, as HTML, and what the browser complains
        of: what was thrown, written to the console or not loaded."""
        self._complaints, self._events = [], []
        deadline = threading.Timer(_DEADLINE, self._process.kill)
        deadline.start()
        try:
            target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
            session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                self._ask(f"{domain}.enable", session=session)
            size = {"width": width, "height": _HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            self._ask("Emulation.setDeviceMetricsOverride", size, session)
            self._events = []
            self._ask("Page.navigate", {"url": page.as_uri()}, session)
            while "Page.loadEventFired" not in self._events:
                self._message()
            text = {"expression": "document.documentElement.outerHTML"}
            found = self._ask("Runtime.evaluate", text, session)["result"]["value"]
            self._ask("Target.closeTarget", {"targetId": target})
        finally:
            deadline.cancel()
        return str(found), self._complaints

    def _ask(self, method: str, parameters: Mapping[str, Any] = {}, session: str = "") -> dict[str, Any]:
        """Send a command; what it answers. Fails where it answers with an error."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "result" in answer, f"{method}: {answer}"
                return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        """The next message; of an event, what it says is kept."""
        while b"\0" not in self._read:
            more = os.read(self._answers, 1 << 16)
            assert more, "the browser has ended"
            self._read += more
        text, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method = message.get("method", "")
        self._events.append(method)
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self._complaints.append(json.dumps(message["params"]))
        return message

# SPDX-License-Identifier: Apache-2.0
"""The link to a real board: a serial port, through pyserial."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

from tinyet.device.links import LinkClosed
from tinyet.errors import EmulatorError, ToolchainError

_POLL_SECONDS = 0.05


class SerialLink:
    """A link over a serial port of pyserial's.

    open_port: opens it. failures: exceptions of opening and of the open port; expired: the one for a write's timeout.
    """

    def __init__(
        self,
        name: str,
        open_port: Callable[[], Any],
        failures: tuple[type[Exception], ...],
        expired: type[Exception],
    ) -> None:
        self._name = name
        self._open_port = open_port
        self._failures = failures
        self._expired = expired
        self._port = open_port()

    def write(self, data: bytes, deadline: float) -> None:
        try:
            self._port.write_timeout = max(_POLL_SECONDS, deadline - time.monotonic())
            self._port.write(data)
        except self._expired as error:
            raise TimeoutError from error
        except self._failures as error:
            raise self._gone() from error

    def read(self, deadline: float) -> bytes:
        while time.monotonic() < deadline:
            try:
                data = bytes(self._port.read(max(1, self._port.in_waiting)))
            except self._failures as error:
                raise self._gone() from error
            if data:
                return data
        raise TimeoutError

    def _gone(self) -> LinkClosed:
        return LinkClosed(f"the serial port {self._name} is gone, as when a board is unplugged or reset")

    def rest(self) -> None:
        # A board is not stopped between requests.
        return

    def close(self) -> None:
        # A port that is gone need not be closed.
        with contextlib.suppress(*self._failures):
            self._port.close()

    def again(self, deadline: float) -> bool:
        self.close()
        while time.monotonic() < deadline:
            with contextlib.suppress(*self._failures):
                self._port = self._open_port()
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def last_words(self) -> str:
        return ""


def open_port(name: str, baud: int) -> SerialLink:
    """Open a port such as /dev/ttyACM0 or COM3. Raises ToolchainError without pyserial, EmulatorError."""
    try:
        import serial
        from serial.tools import list_ports
    except ImportError as error:
        raise ToolchainError(
            what="pyserial is not installed; talking to a board needs it",
            where=f"serial:{name}",
            hint="pip install pyserial",
        ) from error
    failures: tuple[type[Exception], ...] = (serial.SerialException, OSError, ValueError)
    if sys.platform != "win32":
        import termios

        # pyserial lets some of them through.
        failures += (termios.error,)

    def opened() -> Any:
        port = serial.Serial(name, baud, timeout=_POLL_SECONDS, exclusive=True)
        port.reset_input_buffer()
        return port

    try:
        return SerialLink(name, opened, failures, serial.SerialTimeoutException)
    except failures as error:
        ports = ", ".join(sorted(entry.device for entry in list_ports.comports())) or "none"
        raise EmulatorError(
            what=f"the serial port cannot be opened: {error}",
            where=f"serial:{name}",
            hint=f"serial ports of this machine: {ports}",
        ) from error

# SPDX-License-Identifier: Apache-2.0
"""The link to a real board: a serial port, through pyserial."""

from __future__ import annotations

import time
from typing import Any

from tinyet.device.links import LinkClosed
from tinyet.errors import EmulatorError, ToolchainError

_POLL_SECONDS = 0.05


class SerialLink:
    """A link over an open port of pyserial (`port`); `failure` and `expired` are its exceptions."""

    def __init__(self, port: Any, failure: type[Exception], expired: type[Exception]) -> None:
        self._port = port
        self._failure = failure
        self._expired = expired

    def write(self, data: bytes, deadline: float) -> None:
        self._port.write_timeout = max(_POLL_SECONDS, deadline - time.monotonic())
        try:
            self._port.write(data)
        except self._expired as error:
            raise TimeoutError from error
        except (self._failure, OSError) as error:
            raise LinkClosed from error

    def read(self, deadline: float) -> bytes:
        while time.monotonic() < deadline:
            try:
                data = bytes(self._port.read(max(1, self._port.in_waiting)))
            except (self._failure, OSError) as error:
                raise LinkClosed from error
            if data:
                return data
        raise TimeoutError

    def rest(self) -> None:
        # A board is what it is.
        return

    def close(self) -> None:
        self._port.close()

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
    try:
        port = serial.Serial(name, baud, timeout=_POLL_SECONDS, exclusive=True)
        port.reset_input_buffer()
    except (serial.SerialException, OSError, ValueError) as error:
        ports = ", ".join(sorted(entry.device for entry in list_ports.comports())) or "none"
        raise EmulatorError(
            what=f"the serial port cannot be opened: {error}",
            where=f"serial:{name}",
            hint=f"serial ports of this machine: {ports}",
        ) from error
    return SerialLink(port, serial.SerialException, serial.SerialTimeoutException)

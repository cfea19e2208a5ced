# SPDX-License-Identifier: Apache-2.0
"""Mutants of what a device sends: replies whose fields are wrong, lines that are damaged. A validation ends in a clear
error, or says of the outputs what is so."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from tests.fuzz.run import Case, Outcome, Result, refusal
from tests.golden.programs import separable
from tinyet.boards import load_board
from tinyet.data import make_samples
from tinyet.deployment import Deployment, deploy
from tinyet.device.device import Device
from tinyet.device.links import LinkClosed
from tinyet.device.protocol import NO_LAYER, PROTOCOL, Command, Decoder, Frame, encode
from tinyet.program import Program
from tinyet.validation import Sizes, validate

WORDS = (
    0,
    1,
    2,
    3,
    5,
    8,
    255,
    256,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    NO_LAYER,
    NO_LAYER - 1,
    64,
    4096,
)
SAMPLES = 2
REPLIES = 12
"""A validation of SAMPLES samples asks for about so many replies."""


class Frames:
    """A mutant is JSON: for some replies, by their number, how they differ from a right one."""

    name = "frames"

    def mutate(self, rng: random.Random) -> Case:
        changes: dict[str, Any] = {}
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            number = str(rng.choice((0, 0, 1, 1, 2, 3, rng.randrange(REPLIES))))
            changes.setdefault(number, []).append(_a_change(rng))
        data = json.dumps(changes)
        return Case(data[:300], data.encode())

    def check(self, case: Case) -> Outcome | None:
        program, deployment = _model()
        link = _Link(json.loads(case.data))
        values = np.random.default_rng(0).integers(
            -128, 128, (SAMPLES, *program.inputs[0].shape[1:]), np.int8
        )
        with refusal() as refused:
            device = Device(link, elf=None, ticks_per_instruction=1.0, bytes_per_second=1e12, timeout=0.01)
            result = validate(
                program,
                deployment,
                device,
                make_samples(program.inputs, [values]),
                on="qemu",
                board="x",
                sizes=Sizes(),
            )
        if refused:
            assert str(refused[0])
            return Outcome.REFUSED
        right = [program.outputs_for([sample[None]]) for sample in values]
        same = [
            all(np.array_equal(g, r) for g, r in zip(got, wanted, strict=True))
            for got, wanted in zip(result.outputs, right, strict=True)
        ]
        assert result.mismatches == same.count(False), "mismatches that are none, or were not seen"
        assert json.dumps(result.to_json())
        return Outcome.EXACT

    def flush(self) -> list[Result]:
        return []


@cache
def _model() -> tuple[Program, Deployment]:
    program = separable()
    return program, deploy(program.graph, load_board("mps2_an386").target)


def _a_change(rng: random.Random) -> dict[str, Any]:
    """How a reply differs: its command, its tag, words or bytes of its payload, its length, or its line."""
    match rng.randrange(8):
        case 0:
            return {"command": rng.choice((*Command, 0, 4, 255))}
        case 1:
            return {"tag": rng.randrange(256)}
        case 2 | 3 | 4:
            return {"word": rng.randrange(40), "value": rng.choice(WORDS)}
        case 5:
            return {"cut": rng.choice((0, 1, 3, 4, 20, rng.randrange(300)))}
        case 6:
            return {"more": rng.choice((1, 4, 8, 1000))}
    return {
        "line": rng.randrange(400),
        "xor": 1 << rng.randrange(8),
        "noise": rng.choice((0, 0, 1, 70, 3000)),
    }


class _Link:
    """A link to a device that answers rightly but for what a mutant changes."""

    def __init__(self, changes: Mapping[str, list[dict[str, Any]]]) -> None:
        self.changes = changes
        self.decoder = Decoder()
        self.number = 0
        self.waiting = b""

    def write(self, data: bytes, _deadline: float) -> None:
        for request in self.decoder.feed(data):
            self.waiting += self._answer(request)

    def read(self, _deadline: float) -> bytes:
        """In pieces; a device that is asked for more than it has sent has ended."""
        if not self.waiting:
            raise LinkClosed
        piece, self.waiting = self.waiting[:97], self.waiting[97:]
        return piece

    def rest(self) -> None:
        pass

    def close(self) -> None:
        pass

    def again(self, _deadline: float) -> bool:
        return False

    def last_words(self) -> str:
        return "\x1b[2J the end"

    def _answer(self, request: Frame) -> bytes:
        command, tag, payload = request.command, request.tag, bytearray(_right(request))
        changes = self.changes.get(str(self.number), [])
        self.number += 1
        for change in changes:
            command = change.get("command", command)
            tag = change.get("tag", tag)
            if "word" in change:
                at = 4 * change["word"] % max(len(payload), 1)
                payload[at : at + 4] = struct.pack("<I", change["value"])[: len(payload) - at]
            del payload[max(0, len(payload) - change.get("cut", 0)) :]
            payload += bytes(change.get("more", 0))
        line = bytearray(encode(Frame(command, tag, bytes(payload))))
        for change in changes:
            if "line" in change:
                line[change["line"] % len(line)] ^= change["xor"]
                line += b"\xdb" * change["noise"]
        return bytes(line)


def _right(request: Frame) -> bytes:
    """The payload that a right device would send."""
    program, deployment = _model()
    graph, plan = deployment.graph, deployment.plan
    layers = len(deployment.steps)
    if request.command == Command.INFO:
        slots = b"".join(
            struct.pack("<I", len(ts))
            + b"".join(struct.pack("<II", plan.offset(t), t.type.bytes) for t in ts)
            for ts in (graph.inputs, graph.outputs)
        )
        head = struct.pack("<7I3QI", PROTOCOL, 2, plan.arena_bytes, layers, 1, 10**6, 512, 10, 90, 5, 5)
        return head + slots + struct.pack("<I", len(graph.states)) + b"\x03kws" + program.hash.encode()
    if request.command == Command.READ:
        return bytes(struct.unpack("<II", request.payload)[1])
    stop, _runs, _uninterrupted = struct.unpack_from("<III", request.payload)
    ran = layers if stop == NO_LAYER else stop + 1
    counts = b"".join(struct.pack("<Q", 100 + i) for i in range(layers))
    counts += b"".join(struct.pack("<I", i < ran) for i in range(layers))
    head = struct.pack("<iIIII", 0 if stop == NO_LAYER else 1, NO_LAYER, 100, layers, 0) + struct.pack(
        "<Q", 10_000
    )
    if stop != NO_LAYER:
        return head + counts
    at, inputs = 12, []
    for tensor in graph.inputs:
        data = request.payload[at : at + tensor.type.bytes]
        inputs.append(np.frombuffer(data, tensor.dtype.numpy).reshape(tensor.shape))
        at += tensor.type.bytes
    return head + counts + b"".join(np.asarray(o).tobytes() for o in program.outputs_for(inputs))

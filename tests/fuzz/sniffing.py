# SPDX-License-Identifier: Apache-2.0
"""Mutants of files of torch.save and safetensors, which tinyet looks into to say what they are. Each gets an answer."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import tempfile
import zipfile
from pathlib import Path

from tests.fuzz.run import Case, Outcome, Result
from tinyet.files.sniffing import sniffed_error

# Opcodes that make, call, store or fetch; marks; sizes of what follows.
OPCODES = b"RbOioQPhjqrptu)](}a.e0d2s1\x81\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x90\x91\x92\x93\x94\x95c"


def _pickle_of_hand() -> bytes:
    """A state dict as torch.save pickles it: protocol 2, two tensors."""
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n(((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
        b"X\x03\x00\x00\x00cpuK\x0ctQK\x00K\x03K\x04\x86K\x04K\x01\x86\x89ccollections\nOrderedDict\n)RtR"
    )
    return (
        b"\x80\x02ccollections\nOrderedDict\n)Rq\x00(X\x01\x00\x00\x00a"
        + tensor
        + b"X\x01\x00\x00\x00b"
        + tensor
        + b"u."
    )


class SniffedFiles:
    """See the module."""

    name = "foreign"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tinyet-fuzz-"))
        nested: object = (1,)
        for _ in range(60):
            nested = (nested, nested)
        self.pickles = (
            _pickle_of_hand(),
            pickle.dumps({"epoch": 1, "state_dict": {"w": [1.5, "x", b"y", None, {1, 2}]}}, 2),
            pickle.dumps([{"a": (1, 2, 3), "b": {"c": 1 << 70}}, frozenset("ab")], 4),
            pickle.dumps({"k": nested}, 4),
        )

    def mutate(self, rng: random.Random) -> Case:
        if rng.random() < 0.2:
            header = bytearray(
                json.dumps({"w": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}).encode()
            )
            label = _damage(header, rng)
            length = rng.choice((len(header),) * 5 + (0, 1, 1 << 63, 1 << 24))
            return Case(f"safetensors: {label}", struct.pack("<Q", length) + bytes(header))
        data = bytearray(rng.choice(self.pickles))
        label = ", ".join(_damage(data, rng) for _ in range(rng.randrange(1, 4)))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(
                zipfile.ZipInfo(rng.choice(("w/data.pkl", "data.pkl", "w/x/data.pkl"))), bytes(data)
            )
        whole = bytearray(buffer.getvalue())
        if rng.random() < 0.1:
            label += f", archive: {_damage(whole, rng)}"
        return Case(f"pickle: {label}", bytes(whole))

    def check(self, case: Case) -> Outcome | None:
        path = self.folder / ("x.safetensors" if case.label.startswith("safetensors") else "x.pt")
        path.write_bytes(case.data)
        error = sniffed_error(path)
        assert str(error)
        assert len(str(error)) < 6000
        return Outcome.EXACT if "without the layers" in error.what else Outcome.REFUSED

    def flush(self) -> list[Result]:
        for path in self.folder.iterdir():
            path.unlink()
        return []


def _damage(data: bytearray, rng: random.Random) -> str:
    at = rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            del data[at + 1 :]
            return f"cut at {at}"
        case 1:
            data[at] = rng.choice(OPCODES)
            return f"byte {at} = {data[at]}"
        case 2:
            data[at:at] = bytes(rng.choice(OPCODES) for _ in range(rng.randrange(1, 5)))
            return f"opcodes at {at}"
        case 3:
            end = rng.randrange(at, min(len(data), at + 60) + 1)
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
            return f"{at} to {end} again"
    data[at] ^= 1 << rng.randrange(8)
    return f"a bit of byte {at}"

# SPDX-License-Identifier: Apache-2.0
"""Reads `tinyet.json`, which may be anyone's: a bounded file of known fields, whose paths stay in the project."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tinyet.errors import ProjectError, bullet_list
from tinyet.files.reading import read_bounded
from tinyet.messages.text import shown

MANIFEST = "tinyet.json"

# A hundred bytes a file; PlatformIO's projects with CMSIS-NN have some 200.
_MOST_BYTES = 1 << 22
MOST_FILES = 10_000
_MOST_PATH = 512
_HINT = "generate into a new directory"


def read(directory: Path) -> dict[str, Any]:
    """The manifest of a directory, as it is on disk. Fields that are not known here are kept.

    Raises ProjectError: there is none, it cannot be read, or a field of it is not what tinyet writes; all are listed.
    """
    place = directory / MANIFEST
    try:
        manifest = json.loads(read_bounded(place, _MOST_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise ProjectError(
            what=f"this directory is not a tinyet project: it has no {MANIFEST}",
            where=str(directory),
            hint="choose a directory that is new, empty or made by `tinyet generate`",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ProjectError(f"cannot read the manifest: {why}", str(place), _HINT) from error
    problems = [*_problems(manifest)] if isinstance(manifest, dict) else ["it is no JSON object"]
    if problems:
        raise ProjectError(
            f"the manifest is not one that tinyet wrote:\n{bullet_list(problems)}", str(place), _HINT
        )
    return dict(manifest)


def is_inside(path: object) -> bool:
    """Whether a value is a relative POSIX path, in its plain form, that stays below the directory it is joined to, and
    is no file of the writer's own (`.tinyet…`)."""
    if (
        not isinstance(path, str)
        or not 0 < len(path) <= _MOST_PATH
        or "\\" in path
        or ":" in path
        or "\0" in path
    ):
        return False
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or str(pure) != path:
        return False
    return not pure.parts[0].startswith(".tinyet")


def _problems(manifest: Mapping[str, object]) -> Iterator[str]:
    for field, value in manifest.items():
        check = _FIELDS.get(field)
        if check is not None and not check(value):
            yield f"{field} is {shown(value)}"


def _text(form: str) -> Callable[[object], bool]:
    pattern = re.compile(form, re.ASCII)
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _list_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_place(value: object) -> bool:
    return value == "" or is_inside(value)


def _are_limits(value: object) -> bool:
    return isinstance(value, dict) and all(limit is None or _is_count(limit) for limit in value.values())


def _are_pins(value: object) -> bool:
    layer, kernel = _text(r"[\x21-\x7e]{1,300}"), _text(r"[\x21-\x7e]{1,100}")
    if not isinstance(value, dict) or len(value) > MOST_FILES:
        return False
    return all(layer(name) and kernel(symbol) for name, symbol in value.items())


def _are_models(value: object) -> bool:
    name, digest = _text(r"[A-Za-z_]\w{0,255}"), _text(r"[0-9a-f]{64}")
    if not isinstance(value, dict) or not 1 < len(value) <= MOST_FILES:
        return False
    return all(name(model) and digest(found) for model, found in value.items())


def _are_digests(value: object) -> bool:
    digest = _text(r"[0-9a-f]{64}")
    if not isinstance(value, dict) or len(value) > MOST_FILES:
        return False
    return all(is_inside(path) and digest(found) for path, found in value.items())


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "tinyet": _text(r"[\w.+-]{1,64}"),
    "kind": _text(r"[a-z]{1,32}"),
    "model": _text(r"[A-Za-z_]\w{0,255}"),
    "hash": _text(r"[0-9a-f]{64}"),
    "board": _text(r"[a-z][a-z0-9_]{0,63}"),
    "arena_bytes": _is_count,
    "layers": _is_count,
    "model_dir": _is_place,
    "desc": _is_place,
    "yours": _list_of(is_inside),
    "delegates": _list_of(_text(r"[\x21-\x7e]{1,100}")),
    "require_delegate": lambda value: isinstance(value, bool),
    "limits": _are_limits,
    "optimize": _text(r"speed|balanced|size"),
    "input_rows": lambda value: isinstance(value, bool),
    "buffers": _text(r"arena|caller"),
    "pins": _are_pins,
    "archive": _text(r"\w{1,63}\.zip"),
    "operators": _list_of(_text(r"[\x21-\x7e]{1,200}")),
    "models": _are_models,
    "schedule": _text(r"[\w\s,|>()]{1,4000}"),
    "context": lambda value: isinstance(value, bool),
    "selftest": lambda value: isinstance(value, bool),
    "max_step": lambda value: (
        isinstance(value, str) and re.fullmatch(r"[\d.]{1,20}(s|ms|us)?", value) is not None
    ),
    "tflm_header": lambda value: isinstance(value, bool),
    "files": _are_digests,
}

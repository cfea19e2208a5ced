# SPDX-License-Identifier: Apache-2.0
"""The content of a pickle, without executing it: names stay names, calls stay calls."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field

MOST_BYTES = 1 << 22


def text_of(value: object) -> str:
    """A name. What is none is not spelt out: tuples of tuples can be longer than any memory."""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else "?"


@dataclass(frozen=True)
class Named:
    """A class or function that the pickle names: `torch.nn.modules.linear.Linear`."""

    path: str


@dataclass(eq=False)
class Made:
    """An object that the pickle would make by a call (`maker` with `args`), or a container (`maker` "dict", "list",
    "set").

    pairs: what it holds by key. values: what it holds without. state: what its attributes are set to.
    """

    maker: object
    args: object = ()
    pairs: list[tuple[object, object]] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    state: object = None

    @property
    def name(self) -> str:
        return self.maker.path if isinstance(self.maker, Named) else text_of(self.maker)

    def get(self, key: str) -> object:
        """The value of a key; None where there is none."""
        return next((value for name, value in self.pairs if isinstance(name, str) and name == key), None)


@dataclass(frozen=True, eq=False)
class Stored:
    """An object stored outside the pickle, by the description that leads to it."""

    description: object


_MARK = object()


class _Machine:
    """The pickle's own stack machine."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[object, object] = {}

    def marked(self) -> list[object]:
        """Take off what lies above the last mark, and the mark."""
        # From the top: what is passed is taken off, so that all marks together cost no more than the stack ever held.
        at = next((i for i in reversed(range(len(self.stack))) if self.stack[i] is _MARK), None)
        if at is None:
            raise ValueError("it takes what lies above a mark, and there is none")
        taken = self.stack[at + 1 :]
        del self.stack[at:]
        return taken

    def top(self, count: int) -> list[object]:
        if count > len(self.stack):
            raise ValueError("the pickle takes more than it has")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def container(self) -> Made:
        """The object on top of the stack, to be filled."""
        value = self.stack[-1]
        # What is put into anything else is of no interest: it is lost.
        return value if isinstance(value, Made) else Made("unknown")

    def set_items(self, flat: list[object]) -> None:
        self.container().pairs.extend(zip(flat[::2], flat[1::2], strict=True))

    def call(self, maker: object, args: object) -> None:
        self.stack.append(Made(maker, args))

    def step(self, name: str, arg: object) -> None:
        """One instruction."""
        action = _ACTIONS.get(name)
        if action is not None:
            action(self, arg)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name not in ("PROTO", "FRAME", "STOP"):
            self.stack.append(arg)


def _global(m: _Machine, arg: object) -> None:
    m.stack.append(Named(str(arg).replace(" ", ".")))


def _stack_global(m: _Machine, _arg: object) -> None:
    m.stack.append(Named(".".join(map(text_of, m.top(2)))))


def _mark(m: _Machine, _arg: object) -> None:
    m.stack.append(_MARK)


def _pop(m: _Machine, _arg: object) -> None:
    m.top(1)


def _pop_mark(m: _Machine, _arg: object) -> None:
    m.marked()


def _tuple(count: int | None) -> Callable[[_Machine, object], None]:
    def action(m: _Machine, _arg: object) -> None:
        m.stack.append(tuple(m.marked() if count is None else m.top(count)))

    return action


def _empty(kind: str) -> Callable[[_Machine, object], None]:
    return lambda m, _arg: m.stack.append(Made(kind))


def _filled(m: _Machine, _arg: object) -> None:
    values = m.marked()
    m.stack.append(Made("list", values=values))


def _dict(m: _Machine, _arg: object) -> None:
    flat = m.marked()
    m.stack.append(Made("dict"))
    m.set_items(flat)


def _append(m: _Machine, _arg: object) -> None:
    (value,) = m.top(1)
    m.container().values.append(value)


def _appends(m: _Machine, _arg: object) -> None:
    values = m.marked()
    m.container().values.extend(values)


def _reduce(m: _Machine, _arg: object) -> None:
    m.call(*m.top(2))


def _new_with_keywords(m: _Machine, _arg: object) -> None:
    maker, args, _keywords = m.top(3)
    m.call(maker, args)


def _object(m: _Machine, _arg: object) -> None:
    maker, *args = m.marked()
    m.call(maker, tuple(args))


def _instance(m: _Machine, arg: object) -> None:
    m.call(Named(str(arg).replace(" ", ".")), tuple(m.marked()))


def _build(m: _Machine, _arg: object) -> None:
    (state,) = m.top(1)
    m.container().state = state


def _put(m: _Machine, arg: object) -> None:
    m.memo[len(m.memo) if arg is None else arg] = m.stack[-1]


_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_ACTIONS: dict[str, Callable[[_Machine, object], None]] = {
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "MARK": _mark,
    "POP": _pop,
    "POP_MARK": _pop_mark,
    "DUP": lambda m, _arg: m.stack.append(m.stack[-1]),
    "EMPTY_TUPLE": _tuple(0),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "TUPLE": _tuple(None),
    "EMPTY_LIST": _empty("list"),
    "EMPTY_DICT": _empty("dict"),
    "EMPTY_SET": _empty("set"),
    "LIST": _filled,
    "FROZENSET": _filled,
    "DICT": _dict,
    "APPEND": _append,
    "APPENDS": _appends,
    "ADDITEMS": _appends,
    "SETITEM": lambda m, _arg: m.set_items(m.top(2)),
    "SETITEMS": lambda m, _arg: m.set_items(m.marked()),
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _new_with_keywords,
    "OBJ": _object,
    "INST": _instance,
    "BUILD": _build,
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": _put,
    "GET": lambda m, arg: m.stack.append(m.memo[arg]),
    "BINGET": lambda m, arg: m.stack.append(m.memo[arg]),
    "LONG_BINGET": lambda m, arg: m.stack.append(m.memo[arg]),
    "PERSID": lambda m, arg: m.stack.append(Stored(arg)),
    "BINPERSID": lambda m, _arg: m.stack.append(Stored(m.top(1)[0])),
}


def pickled(data: bytes, count: int = 1) -> list[object]:
    """The first `count` objects of the pickle stream `data`. Raises ValueError where it is no pickle."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"the pickle has {len(data):,} bytes")
    stream, found = io.BytesIO(data), []
    for _ in range(count):
        machine = _Machine()
        try:
            for opcode, arg, _ in pickletools.genops(stream):
                machine.step(opcode.name, arg)
            found.append(machine.stack[-1])
        # What damaged pickles raise: a stack that is empty, a memo without the entry, text that is none.
        except (ValueError, IndexError, KeyError, TypeError, EOFError, OverflowError, MemoryError) as error:
            raise ValueError(f"it is no pickle: {error}") from error
    return found

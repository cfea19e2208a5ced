# SPDX-License-Identifier: Apache-2.0
"""Which models of a program run at the same time, in words: `wake > check | (gesture, tone)`.

    a, b   may run at any time: they share no byte
    a | b  never run at the same time, and nothing of one is needed after the other has begun: they share all bytes
    a > b  b runs when a has, and takes a's output, where it lies, as its input; never at the same time
    a(b)   b runs in the midst of a's run, or while a's values are needed: they share no byte

`>` binds most, then `|`, then `,`; brackets group. States belong to their model whatever else runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinyet.errors import UsageError, bullet_list

WHERE = "--schedule"
_WORD = re.compile(r"\s*([A-Za-z]\w*|[,|>()])", re.ASCII)
_DEEPEST = 32
_FORM = 'like "kws | person > age", or "main(helper), other"'


@dataclass(frozen=True)
class Model:
    """One model, by its name."""

    name: str


@dataclass(frozen=True)
class Apart:
    """Each may run while another does. nested: the first calls the others."""

    parts: tuple[Part, ...]
    nested: bool = False


@dataclass(frozen=True)
class Never:
    """No two of them at the same time."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Chain:
    """One after another, each with the output of the one before as its input."""

    parts: tuple[Model, ...]


Part = Model | Apart | Never | Chain


def names_of(part: Part) -> Iterator[str]:
    """The models in it, in the order in which they are written."""
    if isinstance(part, Model):
        yield part.name
    else:
        for each in part.parts:
            yield from names_of(each)


def pairs_in_turn(part: Part) -> set[frozenset[str]]:
    """The pairs of models that never run at the same time."""
    if isinstance(part, Model):
        return set()
    found = set[frozenset[str]]().union(*(pairs_in_turn(each) for each in part.parts))
    if isinstance(part, Never | Chain):
        groups = [list(names_of(each)) for each in part.parts]
        for number, group in enumerate(groups):
            others = [name for each in groups[number + 1 :] for name in each]
            found |= {frozenset((a, b)) for a in group for b in others}
    return found


def chains(part: Part) -> Iterator[Chain]:
    """All chains in it."""
    if isinstance(part, Chain):
        yield part
    elif not isinstance(part, Model):
        for each in part.parts:
            yield from chains(each)


def parse(text: str | None, models: Sequence[str]) -> Part:
    """The schedule of these models, each of which it names once; None means that any may run at any time.

    Raises UsageError, listing all faults.
    """
    if text is None:
        return Apart(tuple(Model(name) for name in models))
    part = _Parser(text).whole()
    said = list(names_of(part))
    wrong = [f"{name} is no model of these" for name in dict.fromkeys(said) if name not in models]
    wrong += [f"{name} is named {said.count(name)} times" for name in models if said.count(name) > 1]
    wrong += [f"{name} is not named" for name in models if name not in said]
    if wrong:
        raise UsageError(
            f"the schedule {text!r} is not one of the models {', '.join(models)}:\n{bullet_list(wrong)}",
            WHERE,
            "name each model once",
        )
    return part


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] = []
        at = 0
        while text[at:].strip():
            match = _WORD.match(text, at)
            if match is None:
                raise self._fault(f"{text[at:].strip()[:20]!r} means nothing there")
            self._words.append(match[1])
            at = match.end()
        self._at = 0

    def whole(self) -> Part:
        part = self._apart(0)
        if self._at < len(self._words):
            raise self._fault(f"{self._words[self._at]!r} is too much")
        return part

    def _fault(self, what: str) -> UsageError:
        return UsageError(f"the schedule {self._text!r} cannot be read: {what}", WHERE, _FORM)

    def _next(self, word: str) -> bool:
        found = self._at < len(self._words) and self._words[self._at] == word
        self._at += found
        return found

    def _apart(self, depth: int) -> Part:
        parts = [self._never(depth)]
        while self._next(","):
            parts.append(self._never(depth))
        return parts[0] if len(parts) == 1 else Apart(tuple(parts))

    def _never(self, depth: int) -> Part:
        parts = [self._chain(depth)]
        while self._next("|"):
            parts.append(self._chain(depth))
        return parts[0] if len(parts) == 1 else Never(tuple(parts))

    def _chain(self, depth: int) -> Part:
        parts = [self._one(depth)]
        while self._next(">"):
            parts.append(self._one(depth))
        if len(parts) == 1:
            return parts[0]
        links = [part for part in parts if isinstance(part, Model)]
        if len(links) < len(parts):
            raise self._fault("beside > stand single models")
        return Chain(tuple(links))

    def _one(self, depth: int) -> Part:
        if depth > _DEEPEST:
            raise self._fault("too many brackets")
        if self._next("("):
            return self._closed(depth)
        if self._at == len(self._words) or not self._words[self._at][0].isalpha():
            raise self._fault("a model's name is missing")
        name = self._words[self._at]
        self._at += 1
        if self._next("("):
            return Apart((Model(name), self._closed(depth)), nested=True)
        return Model(name)

    def _closed(self, depth: int) -> Part:
        part = self._apart(depth + 1)
        if not self._next(")"):
            raise self._fault("a bracket is not closed")
        return part

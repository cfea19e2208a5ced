# SPDX-License-Identifier: Apache-2.0
"""Handler of Einsum of one or two operands: sums, one product of matrices, and a change of the order of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyet.errors import RefusedError
from tinyet.importers.onnx.context import Context
from tinyet.importers.onnx.handlers_layers import in_float
from tinyet.importers.onnx.values import Numbers, Value, shape_of
from tinyet.ir import Tensor
from tinyet.ops.linear import Linear
from tinyet.ops.matmul import MatMul
from tinyet.ops.sum import Sum


@dataclass(frozen=True)
class _Term:
    """An operand; letters: the names of its dimensions."""

    value: Value
    letters: str

    def sizes(self, letters: str) -> list[int]:
        return [shape_of(self.value)[self.letters.index(letter)] for letter in letters]


def einsum(ctx: Context) -> Value:
    terms, result = terms_of(ctx)
    in_float(ctx)
    terms = [summed(ctx, term, {*result, *_elsewhere(terms, place)}) for place, term in enumerate(terms)]
    if len(terms) == 2:
        return ordered(ctx, product(ctx, terms, result), result)
    return ordered(ctx, terms[0], result)


def terms_of(ctx: Context) -> tuple[list[_Term], str]:
    """The operands, and the letters of the result. Raises RefusedError for what sums and one product cannot give."""
    equation = ctx.attribute("equation", "").replace(" ", "")
    left, arrow, result = equation.partition("->")
    names = left.split(",")
    plain = all(name.isalpha() and len(set(name)) == len(name) for name in names)
    if len(names) != len(ctx.node.inputs) or len(names) > 2 or not plain:
        raise RefusedError(
            f"has the equation {equation[:60]!r}",
            "one or two operands, each letter once in an operand, and no ellipsis",
        )
    if not arrow:
        result = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    terms = [_Term(ctx.value(place), name) for place, name in enumerate(names)]
    known: dict[str, int] = {}
    for term in terms:
        if len(term.letters) != len(shape_of(term.value)):
            raise RefusedError(f"calls dimensions of {shape_of(term.value)} {term.letters[:20]!r}")
        for letter, size in zip(term.letters, shape_of(term.value), strict=True):
            if known.setdefault(letter, size) != size:
                raise RefusedError(f"has sizes {known[letter]} and {size} for {letter!r}")
    if len(set(result)) != len(result) or not set(result) <= set(known):
        raise RefusedError(
            f"has the equation {equation[:60]!r}", "each letter of the result once, of the operands'"
        )
    return terms, result


def _elsewhere(terms: Sequence[_Term], place: int) -> str:
    return "".join(term.letters for other, term in enumerate(terms) if other != place)


def summed(ctx: Context, term: _Term, kept: set[str]) -> _Term:
    """Without the dimensions that nothing else names."""
    axes = tuple(axis for axis, letter in enumerate(term.letters) if letter not in kept)
    if not axes:
        return term
    letters = "".join(letter for letter in term.letters if letter in kept)
    return _Term(ctx.emit(Sum(axes, False), [ctx.real(term.value)]), letters)


def product(ctx: Context, terms: Sequence[_Term], result: str) -> _Term:
    """One product of matrices: (batch, rows, depth) by (batch, depth, columns)."""
    a, b = terms[::-1] if isinstance(terms[0].value, Numbers) else terms
    shared = [letter for letter in a.letters if letter in b.letters]
    batch = "".join(letter for letter in shared if letter in result)
    depth = "".join(letter for letter in shared if letter not in result)
    rows, columns = ("".join(c for c in t.letters if c not in shared) for t in (a, b))
    sizes = [math.prod(t.sizes(letters)) for t, letters in ((a, batch), (a, rows), (a, depth), (b, columns))]
    left = matrices(ctx, a, (batch, rows, depth))
    letters = batch + rows + columns
    shape = [*a.sizes(batch), *a.sizes(rows), *b.sizes(columns)]
    if isinstance(b.value, Numbers) and not batch:
        order = [b.letters.index(letter) for letter in columns + depth]
        data = np.asarray(b.value.real, np.float32).transpose(order).reshape(sizes[3], sizes[2])
        held = ctx.held(b.value.name or f"{ctx.node.outputs[0]}_weight", data)
        made = ctx.emit(Linear(), [ctx.reshape(left, (sizes[1], sizes[2])), held, None])
    else:
        made = ctx.emit(MatMul(), [left, matrices(ctx, b, (batch, depth, columns))])
    return _Term(ctx.reshape(made, shape), letters)


def matrices(ctx: Context, term: _Term, groups: Sequence[str]) -> Tensor:
    """The dimensions in this order, each group as one."""
    order = [term.letters.index(letter) for letter in "".join(groups)]
    moved = ctx.permute(ctx.real(term.value), order)
    return ctx.reshape(moved, [math.prod(term.sizes(letters)) for letters in groups])


def ordered(ctx: Context, term: _Term, result: str) -> Value:
    return ctx.permute(ctx.real(term.value), [term.letters.index(letter) for letter in result])

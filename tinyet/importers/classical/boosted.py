# SPDX-License-Identifier: Apache-2.0
"""Boosted trees of other libraries' files, once they are read: their methods as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tinyet.errors import Complaints, RefusedError
from tinyet.importers.classical.context import Context, Imported, features, finished
from tinyet.importers.classical.linear import chosen
from tinyet.importers.classical.trees import emitted
from tinyet.ir import DType, Tensor
from tinyet.ops.shared.forest import Tree, forest_of

Link = Literal["identity", "logistic", "softmax", "exp", "one_against_all"]
"""What becomes of the sums: a number, the probability of the second class, of each class, a positive number."""

MAX_NODES = 1 << 18
"""Of a file, leaves included: more than firmware can have (`forest.MAX_LINKS`), and read in a second."""


@dataclass(frozen=True)
class Boosted:
    """file: its name. width: how many features there are. base: what each sum begins with. factor: that the sums are
    multiplied by first. classes: how many, or 0. notes: the reader's decisions."""

    file: str
    library: str
    width: int
    trees: tuple[Tree, ...]
    base: tuple[float, ...]
    link: Link
    classes: int = 0
    factor: float = 1.0
    notes: tuple[str, ...] = ()


def import_boosted(
    model: Boosted,
    methods: Sequence[str] | None = None,
    *,
    name: str,
    dtype: DType = DType.FLOAT32,
    scale: float = 1.0,
    zero_point: int = 0,
    leaf_dtype: DType = DType.FLOAT32,
) -> Imported:
    """The model as a graph of one row of features, (1, width). methods: `predict` by default, `predict_proba` of
    classifiers, `decision_function`: the sums.

    Raises UnsupportedShape for methods that the model has not, trees that are none, and integers for missing values.
    """
    asked = ("predict",) if methods is None else tuple(methods)
    ctx = Context(leaf_dtype=leaf_dtype, file=model.file, place=model.library)
    complaints = Complaints(model.file)
    outputs: list[Tensor] = []
    x = features(ctx, model.width, dtype, scale, zero_point)

    def add() -> None:
        sums = emitted(ctx, x, forest_of(model.trees, model.base))
        if model.factor != 1.0:
            sums = ctx.mul(sums, [[model.factor]])
        outputs.extend(answer(ctx, model, method, sums) for method in asked)

    complaints.attempt(f"{model.library} model", add)
    complaints.raise_any()
    for text in model.notes:
        ctx.note(text)
    fits = asked[0] == "predict" or outputs[0].type.count == model.classes
    labels = tuple(str(c) for c in range(model.classes)) if fits else ()
    return finished(ctx, name, x, outputs, asked, labels)


def answer(ctx: Context, model: Boosted, method: str, sums: Tensor) -> Tensor:
    """What a method gives."""
    likely = model.classes and model.link != "identity"
    known = ["predict", "decision_function", *(["predict_proba"] if likely else [])]
    if method not in known:
        raise RefusedError(f"has no {method} here", f"what is known: {', '.join(known)}")
    if method == "decision_function":
        return sums
    if method == "predict_proba":
        if model.link == "one_against_all":
            return ctx.unary("sigmoid", sums)
        return ctx.softmax(ctx.with_first(sums) if sums.shape[1] == 1 else sums)
    if model.classes:
        return chosen(ctx, sums)
    if model.link == "exp":
        sums = ctx.unary("exp", sums)
    elif model.link == "logistic":
        sums = ctx.unary("sigmoid", sums)
    return ctx.reshape(sums, (1,)) if sums.shape == (1, 1) else sums

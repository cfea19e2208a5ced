# SPDX-License-Identifier: Apache-2.0
"""The handler of decision trees in a module."""

from __future__ import annotations

from tinyet.errors import RefusedError
from tinyet.fx.tree_ops import TREE_ENSEMBLE
from tinyet.importers.torch.context import Args, Context, Handler, Value
from tinyet.ops.tree_ensemble import TreeEnsemble

_CONSTANTS = ("features", "thresholds", "children", "roots", "values", "targets", "base", "missing")


def tree_ensemble(ctx: Context, a: Args) -> Value:
    held = [(name, ctx.optional_constant(a[name], name)) for name in _CONSTANTS]
    if any(constant is None for _, constant in held[:-1]):
        raise RefusedError("computes its trees", "make them constants of the model")
    constants = [None if c is None else ctx.hold(c.named(ctx.parameter_name(name))) for name, c in held]
    inputs = constants if constants[-1] is not None else constants[:-1]
    base = constants[_CONSTANTS.index("base")]
    assert base is not None
    return ctx.emit(TreeEnsemble(), [ctx.real(a["x"]), *inputs], ctx.shape, base.dtype)


TREE_HANDLERS: dict[object, Handler] = {TREE_ENSEMBLE: tree_ensemble}

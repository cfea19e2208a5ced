# SPDX-License-Identifier: Apache-2.0
"""Pruning masks and parametrizations become plain weights, on a copy of the user's module.

While a model is trained, `torch.nn.utils.prune` keeps a weight as `weight_orig * weight_mask`, computed before each
forward(), and `torch.nn.utils.parametrize` computes it when it is read. Exported so, the arithmetic on weights would be
part of the model.
"""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import BasePruningMethod, remove


def with_plain_weights(module: nn.Module) -> nn.Module:
    """The module itself when it has neither masks nor parametrizations; else a copy with the weights that they give.

    In eval mode; what a parametrization does only in training (the power iteration of a spectral norm) is not done.
    """
    if not any(_masks(child) or parametrize.is_parametrized(child) for child in module.modules()):
        return module
    with torch.no_grad():
        plain = copy.deepcopy(module, _computed(module))
        for child in plain.modules():
            for name in _masks(child):
                remove(child, name)
            if parametrize.is_parametrized(child):
                _settle(child)
    return plain


def _settle(module: nn.Module) -> None:
    """Hold what the parametrizations give. torch's own remove_parametrizations alters the class, which copies share."""
    names = list(module.parametrizations)  # type: ignore[arg-type]
    values = {name: _value(module, name) for name in names}
    kind = parametrize.type_before_parametrizations(module)
    del module.parametrizations
    module.__class__ = kind
    for name, value in values.items():
        module.register_parameter(name, nn.Parameter(value, requires_grad=False))


def _value(module: nn.Module, name: str) -> torch.Tensor:
    """The result of one tensor's parametrizations. torch's own, which sum (the norm of a weight), compute in float64,
    so that the same bits come out on every processor; a user's may hold float32 tensors that nothing here can find.
    """
    steps = module.parametrizations[name]  # type: ignore[index]
    wanted = getattr(module, name).dtype
    if all(type(step).__module__ == nn.utils.parametrizations.__name__ for step in steps):
        steps.double()
    value: torch.Tensor = getattr(module, name).detach().to(wanted, copy=True)
    return value


def _masks(module: nn.Module) -> list[str]:
    """The parameters of this module (not of those inside it) that have a mask."""
    hooks = module._forward_pre_hooks.values()
    return [hook._tensor_name for hook in hooks if isinstance(hook, BasePruningMethod)]


def _computed(module: nn.Module) -> dict[int, torch.Tensor]:
    """Copies of the masked weights for deepcopy to use, which refuses tensors that are computed from others."""
    return {
        id(weight): weight.detach().clone()
        for child in module.modules()
        for weight in (getattr(child, name) for name in _masks(child))
    }

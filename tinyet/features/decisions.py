# SPDX-License-Identifier: Apache-2.0
"""From a network's scores to a decision: what stands behind the last layer, from run to run or within one.

Modules that remember hold what they keep in buffers, which become states of the program: one call of `forward` is one
run, and a reset begins anew. They compute in float32 where the network in front of them is quantized. Scores are
(1, classes), or of any shape where nothing else is said.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tinyet.errors import UsageError
from tinyet.errors.arguments import whole_given


class _Ring(nn.Module):
    """The last `count` scores, zeros where there were none yet."""

    def __init__(self, count: int, classes: int) -> None:
        super().__init__()
        self.count = whole_given(count, "count", "runs that are remembered", 2)
        self.register_buffer(
            "before", torch.zeros(1, count - 1, whole_given(classes, "classes", "scores a run"))
        )
        self.before: Tensor

    def last(self, scores: Tensor) -> Tensor:
        """(1, count, classes), the newest at the end; it is remembered."""
        ring = torch.cat([self.before, scores.unsqueeze(1)], 1)
        self.before.copy_(ring[:, 1:])
        return ring


class MovingAverage(_Ring):
    """(1, classes) to the same: the mean of the last `count` scores, of zeros before the first."""

    def forward(self, scores: Tensor) -> Tensor:
        return self.last(scores).mean(1)


class Majority(_Ring):
    """(1, classes) to the same: how often each class had the greatest of the last `count` scores. argmax of it is the
    majority's class, the first of several. Before the first runs there are no votes."""

    def __init__(self, count: int, classes: int) -> None:
        super().__init__(count, classes)
        self.register_buffer("numbers", torch.arange(classes), persistent=False)
        self.numbers: Tensor

    def forward(self, scores: Tensor) -> Tensor:
        vote = torch.where(scores.argmax(-1, keepdim=True) == self.numbers, 1.0, 0.0)
        return self.last(vote).sum(1)


class Hysteresis(nn.Module):
    """Scores to 0 or 1: 1 from a score of `on` upward, 0 from one of `off` downward, between them what it was. shape:
    of the scores; begins with 0."""

    def __init__(self, on: float, off: float, shape: tuple[int, ...] = (1,)) -> None:
        super().__init__()
        if not off < on:
            raise UsageError(f"off at {off} is not below on at {on}")
        self.on, self.off = float(on), float(off)
        self.register_buffer("state", torch.zeros(shape))
        self.state: Tensor

    def forward(self, scores: Tensor) -> Tensor:
        kept = torch.where(scores <= self.off, 0.0, self.state)
        state = torch.where(scores >= self.on, 1.0, kept)
        self.state.copy_(state)
        return state


class Debounce(nn.Module):
    """0 or 1 to the same: a change counts when it has lasted `count` runs. shape: of the values; begins with 0."""

    def __init__(self, count: int, shape: tuple[int, ...] = (1,)) -> None:
        super().__init__()
        self.count = float(whole_given(count, "count", "runs that a change must last"))
        self.register_buffer("state", torch.zeros(shape))
        self.register_buffer("runs", torch.zeros(shape))
        self.state: Tensor
        self.runs: Tensor

    def forward(self, values: Tensor) -> Tensor:
        runs = torch.where(values == self.state, 0.0, self.runs + 1.0)
        state = torch.where(runs >= self.count, values, self.state)
        self.runs.copy_(torch.where(runs >= self.count, 0.0, runs))
        self.state.copy_(state)
        return state


class NearestMean(nn.Module):
    """(N, features) to (N, classes): minus the squared distance to each class's mean, so that argmax is the nearest.

    means: (classes, features). The squares of the features themselves, equal for all classes, are left away.
    """

    def __init__(self, means: Tensor) -> None:
        super().__init__()
        if means.ndim != 2:
            raise UsageError(f"means of shape {tuple(means.shape)}", hint="(classes, features)")
        self.register_buffer("weight", (2.0 * means).float(), persistent=False)
        self.register_buffer("bias", -means.double().square().sum(1).float(), persistent=False)
        self.weight: Tensor
        self.bias: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


class CtcGreedy(nn.Module):
    """(1, steps, classes) scores to (1, steps) labels: of each step the best, repeats and blanks left out, moved to the
    front; -1 behind the last. blank: the class that stands for nothing."""

    def __init__(self, steps: int, blank: int = 0) -> None:
        super().__init__()
        self.steps, self.blank = whole_given(steps, "steps", "of the scores"), blank
        self.register_buffer("places", torch.arange(1.0, steps + 1).reshape(1, -1, 1), persistent=False)
        self.places: Tensor

    def forward(self, scores: Tensor) -> Tensor:
        best = scores.argmax(-1).float()
        before = torch.nn.functional.pad(best[:, :-1], (1, 0), value=float(self.blank))
        kept = torch.where(best == before, 0.0, torch.where(best == float(self.blank), 0.0, 1.0))
        place = (torch.cumsum(kept, 1) * kept).unsqueeze(1)
        moved = torch.where(place == self.places, best.unsqueeze(1) + 1.0, 0.0)
        return moved.sum(-1) - 1.0


class NonMaximumSuppression(nn.Module):
    """Boxes (1, N, 4), x0 y0 x1 y1, and scores (1, N) to the best (1, most, 6): box, score, number of the box.

    One after the other the box of the greatest score is taken, and those that overlap it by more than `overlap`
    (intersection over union) are put away. Rows behind the last have a score of 0; a box needs one above `score`.
    """

    def __init__(self, most: int, overlap: float = 0.5, score: float = 0.0) -> None:
        super().__init__()
        self.most = whole_given(most, "most", "boxes at most")
        if not 0 <= overlap < 1 or score < 0:
            raise UsageError(
                f"overlap {overlap}, score {score}", hint="0 <= overlap < 1, and scores from 0 on"
            )
        self.overlap, self.score = float(overlap), float(score)

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        left = torch.where(scores > self.score, scores, 0.0)
        area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
        numbers = torch.arange(float(boxes.shape[1])).reshape(1, -1)
        rows = []
        for _ in range(self.most):
            best = left.amax(1, keepdim=True)
            here = torch.where(numbers == left.argmax(1, keepdim=True).float(), 1.0, 0.0)
            box = (boxes * here.unsqueeze(-1)).sum(1)
            rows.append(torch.cat([box, best, (numbers * here).sum(1, keepdim=True)], 1))
            corner = box.unsqueeze(1)
            wide = torch.minimum(boxes[..., 2], corner[..., 2]) - torch.maximum(boxes[..., 0], corner[..., 0])
            high = torch.minimum(boxes[..., 3], corner[..., 3]) - torch.maximum(boxes[..., 1], corner[..., 1])
            common = wide.clamp(min=0.0) * high.clamp(min=0.0)
            own = (box[:, 2:3] - box[:, 0:1]) * (box[:, 3:4] - box[:, 1:2])
            over = torch.where(common > self.overlap * (area + own - common), 0.0, left)
            left = torch.where(here > 0.0, 0.0, over)
        found = torch.stack(rows, 1)
        return found * torch.where(found[..., 4:5] > 0.0, 1.0, 0.0)

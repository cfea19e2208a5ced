# SPDX-License-Identifier: Apache-2.0
"""What scikit-learn's detectors of outliers have in common."""

from __future__ import annotations

from typing import Any

from tinyet.importers.classical.context import Context, Handler, Methods
from tinyet.ir import Tensor


def outlier_methods(anomaly: Handler) -> Methods:
    """The methods of a detector whose samples have an anomaly score: what scikit-learn gives is its negative, a
    decision is that above the estimator's `offset_`, and an inlier has none below zero."""

    def scores(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
        return ctx.mul(anomaly(ctx, estimator, x), [[-1.0]])

    def decision(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
        return ctx.sub(scores(ctx, estimator, x), [[float(estimator.offset_)]])

    def inlier(ctx: Context, estimator: Any, x: Tensor) -> Tensor:
        return ctx.above(decision(ctx, estimator, x), 0.0, equal=True)

    return {
        "predict": inlier,
        "decision_function": decision,
        "score_samples": scores,
        "anomaly_score": anomaly,
    }

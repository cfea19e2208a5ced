# SPDX-License-Identifier: Apache-2.0
"""The figures of documents, by the names with which pages mark them (scripts/figures.py)."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.tables import answers, layers, reports, signals, silicon, trees, whole

FIGURES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        whole.networks_measured,
        whole.delegate_cmsis_nn,
        whole.delegate_cmsis_nn_arenas,
        whole.delegate_cmsis_nn_helium,
        whole.pruning,
        whole.against_cmsis_nn,
        layers.elementwise,
        layers.widths,
        layers.linear_w16,
        layers.linear_packed,
        layers.others,
        layers.recurrent_cores,
        answers.quality,
        answers.file_quantization,
        answers.quantization_ds_cnn,
        answers.quantization_resnet8,
        whole.memory,
        whole.memory_sequences,
        whole.objectives,
        whole.objectives_trained,
        whole.streaming,
        whole.streaming_compared,
        whole.together,
        whole.buffers,
        whole.entry_points,
        whole.context_cost,
        whole.placement,
        layers.convolutions_widened,
        layers.convolutions_others,
        signals.keywords_from_samples,
        signals.fronts,
        signals.products_from_samples,
        signals.transforms,
        signals.transforms_beside,
        whole.cycles,
        whole.cycles_of_pipelines,
        whole.cycles_of_layers,
        whole.cycles_of_aims,
        whole.cycles_of_flash,
        silicon.silicon,
        silicon.silicon_estimates,
        silicon.silicon_beaten,
        silicon.silicon_cmsis_nn,
        whole.tflite,
        trees.trees_agreement,
        trees.against_emlearn,
        trees.trees_programs,
        whole.gallery,
        answers.recurrent,
        answers.unrolled,
        answers.recurrent_quality,
        answers.networks_compared,
        whole.footprint,
        whole.evaluation,
        whole.evaluation_machine,
        whole.evaluation_all,
        reports.pages,
        reports.everywhere,
        reports.pull_request,
    )
}

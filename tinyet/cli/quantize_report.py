# SPDX-License-Identifier: Apache-2.0
"""The report of `tinyet quantize`: first, in words, whether the model is healthy and what to do; then the figures."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyet.cli import ui

if TYPE_CHECKING:
    from tinyet.quality.remedies import Choice, Diagnosis, Settings, Trial
    from tinyet.quality.sensitivity import Exception_, Sensitivity
    from tinyet.quality.yardstick import Quality

MOST_EXCEPTIONS = 12


def record_of(
    name: str,
    board: str,
    diagnosis: Diagnosis | None,
    choice: Choice | None,
    out: Path | None,
    doubts: Sequence[str],
) -> dict[str, object]:
    """The documented, stable form of `--json` (docs/json.md)."""
    found = None if choice is None else choice.found
    sensitivity = None if diagnosis is None else diagnosis.sensitivity
    if sensitivity is None and found is not None:
        sensitivity = found.sensitivity
    measured: dict[str, object] = {"output_sqnr_db": None, "layers": [], "exceptions": []}
    if sensitivity is not None:
        measured = sensitivity.to_json(() if diagnosis is None else diagnosis.whole)
    cost = found.cost if found is not None else None if sensitivity is None else sensitivity.cost
    automatic: dict[str, object] | None = None
    if choice is not None and found is not None:
        automatic = {
            "base_accuracy": choice.base_accuracy,
            "accuracy": found.accuracy,
            "settings": choice.settings.to_json(),
            "exceptions": dict(found.exceptions),
            "free": [{**settings.to_json(), "accuracy": accuracy} for settings, accuracy in choice.free],
            "steps": [
                {"exceptions": dict(step.exceptions), "accuracy": step.accuracy} for step in found.steps
            ],
        }
    return {
        "version": 2,
        "name": name,
        "board": board,
        "program": None if out is None else str(out),
        "flash_bytes": None if cost is None else cost.flash_bytes,
        "arena_bytes": None if cost is None else cost.arena_bytes,
        "doubts": list(doubts),
        "health": None if diagnosis is None else diagnosis.to_json(),
        **measured,
        "auto": automatic,
    }


# ---------------------------------------------------------------- the answer


def show_diagnosis(diagnosis: Diagnosis, command: Sequence[str], types: Sequence[str]) -> None:
    """command: `tinyet quantize MODEL` and what was given that is not free; types: what was given of --config and
    --layer."""
    quality = diagnosis.quality
    if quality.healthy:
        ui.say(f"healthy: {_why_healthy(quality)}", "bold green")
        ui.say("nothing to do")
        if quality.moving_db is not None and quality.moving_db < 0:
            ui.say(
                f"what moves at {_outputs(quality)} from sample to sample is smaller than its rounding "
                f"({_db(quality.moving_db)} dB): if that is what counts, let the model put out the difference alone"
            )
    else:
        ui.say(f"suffers: {_why_ill(quality)}", "bold yellow")
        ui.facts("", _findings(diagnosis))
        _show_advice(diagnosis, command, types)
        _show_free(diagnosis.free)
    _show_layers(diagnosis.sensitivity, _with(diagnosis))
    _show_exceptions(diagnosis)


def _db(value: float | None) -> str:
    # Without the sum, a value that rounds to zero from below would keep its sign.
    return "–" if value is None else f"{round(value, 1) + 0.0:.1f}"


def _gain(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"


def _outputs(quality: Quality) -> str:
    return "the output" if len(quality.outputs) == 1 else f"the worst of {len(quality.outputs)} outputs"


def _accuracies(quality: Quality) -> str:
    accuracy = quality.accuracy
    if accuracy is None:
        return ""
    return (
        f"accuracy {ui.percent(accuracy.share)}, float model {ui.percent(accuracy.float_share)}, over "
        f"{ui.number(accuracy.samples)} samples"
    )


def _signal(quality: Quality) -> str:
    from tinyet.quality.yardstick import ENOUGH_DB

    if quality.sqnr_db is None:
        return f"{ui.percent(quality.equal)} of the output's integers are the float model's"
    return f"SQNR of {_outputs(quality)} {_db(quality.sqnr_db)} dB, {ENOUGH_DB:.0f} are enough"


def _why_healthy(quality: Quality) -> str:
    said = [text for text in (_accuracies(quality), _signal(quality)) if text]
    if not quality.enough:
        said[-1] += " where its values count, and not only which is largest"
    return "; ".join(said)


def _why_ill(quality: Quality) -> str:
    from tinyet.quality.yardstick import ALIKE, ENOUGH_DB, MOVING_DB

    said = []
    if quality.accuracy is not None and quality.accuracy.suffers:
        said.append(_accuracies(quality))
    if quality.sqnr_db is not None and quality.sqnr_db < ENOUGH_DB:
        said.append(_signal(quality))
    elif any(output.drowned for output in quality.outputs):
        said.append(
            f"SQNR of what moves at {_outputs(quality)} from sample to sample {_db(quality.moving_db)} dB, "
            f"{MOVING_DB:.0f} are enough"
        )
    if quality.equal < ALIKE:
        said.append(f"{_signal(quality)}, {ui.percent(ALIKE)} are enough")
    return "; ".join(said)


def _with(diagnosis: Diagnosis) -> str:
    """The settings that the figures of layers and exceptions include, beside the given ones."""
    remedy = diagnosis.remedy
    return "" if remedy is None or diagnosis.healed else f" with {_settings(remedy.settings)}"


def _settings(settings: Settings) -> str:
    return " ".join(settings.flags) or "neither"


def _findings(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    found = [("hurts", _culprits(diagnosis)), ("free", _free(diagnosis))]
    if not diagnosis.healed:
        found.append(("for bytes", _for_bytes(diagnosis)))
    return found


def _culprits(diagnosis: Diagnosis) -> str:
    culprits = diagnosis.culprits
    if not diagnosis.sensitivity.layers:
        return "no layer with weights is quantized: it is what lies between them"
    if not culprits:
        return "no single layer: each is good enough alone. It is what lies between them, or all of them together"
    alone = [f"{layer.module}, alone {_db(layer.alone_sqnr_db)} dB: {layer.source}" for layer in culprits[:3]]
    more = f"\nand {len(culprits) - 3} more" if len(culprits) > 3 else ""
    others = [layer for layer in diagnosis.sensitivity.worst if layer not in culprits]
    rest = f"\nthe others leave {_db(others[0].alone_sqnr_db)} dB and more" if others else ""
    return "\n".join(alone) + more + rest


def _free(diagnosis: Diagnosis) -> str:
    remedy = diagnosis.remedy
    if remedy is None:
        return f"nothing helps: {len(diagnosis.free)} ways tried"
    quality = remedy.quality
    what = f"{_settings(remedy.settings)}: {_db(diagnosis.quality.sqnr_db)} → {_db(quality.sqnr_db)} dB"
    if quality.accuracy is not None:
        what += f", accuracy {ui.percent(quality.accuracy.share)}"
    return f"{what}, {'which is enough' if diagnosis.healed else 'which is not enough'}; no byte more on the device"


def _for_bytes(diagnosis: Diagnosis) -> str:
    advised = diagnosis.advised
    if advised is None:
        return "no layer in other types brings anything"
    where = advised.module or "all layers"
    bytes_ = "" if advised.flash_bytes is None else f", {advised.flash_bytes:+d} bytes of flash"
    bytes_ += "" if advised.arena_bytes is None else f", {advised.arena_bytes:+d} of arena"
    return f"{where} in {advised.config}: {_db(advised.output_sqnr_db)} dB ({_gain(advised.gain_db)}){bytes_}"


def _show_advice(diagnosis: Diagnosis, command: Sequence[str], types: Sequence[str]) -> None:
    advised = diagnosis.advised
    if diagnosis.flags:
        label = "to do" if diagnosis.suffices else "brings most"
        kept = types if advised is None or advised.module else ()  # all layers are given other types
        ui.say(f"\n{label}: {shlex.join([*command, *kept, *diagnosis.flags])} -o FILE.tet", "bold")
    if diagnosis.suffices:
        return
    if diagnosis.quality.accuracy is not None:
        again = shlex.join([*command, *types])
        ui.say(f"let a set of exceptions be found: {again} --auto --max-drop 0.01 -o FILE.tet")
    ui.say(
        "else: several --layer NAME=float, calibration data more like what the device will see, or training with the "
        "rounding in the loop (docs/quantization.md)"
    )


# ---------------------------------------------------------------- the figures


def _show_free(trials: Sequence[Trial]) -> None:
    if not trials:
        return
    rows = [(_settings(trial.settings), _db(trial.quality.sqnr_db), _gain(trial.gain_db)) for trial in trials]
    ui.table([("free", "text"), ("output dB", "number"), ("gain", "number")], rows)


def _show_layers(sensitivity: Sensitivity, settings: str) -> None:
    rows = [
        (
            layer.module,
            layer.op.removeprefix("aten.").split(".")[0],
            _db(layer.sqnr_db),
            _db(layer.alone_sqnr_db),
            layer.source,
        )
        for layer in sensitivity.worst
    ]
    ui.table(
        [
            (f"layer{settings}, worst first", "text"),
            ("op", "name"),
            ("SQNR dB", "number"),
            ("alone, at output", "number"),
            ("source", "detail"),
        ],
        rows,
    )
    cost = sensitivity.cost
    facts = [(f"SQNR of the output{settings}", f"{_db(sensitivity.output_sqnr_db)} dB")]
    if cost is not None:
        facts += [
            ("weights and tables", f"{ui.number(cost.flash_bytes)} bytes"),
            ("arena", f"{ui.number(cost.arena_bytes)} bytes"),
        ]
    ui.facts("", facts)


def _signed(value: int | None) -> str:
    return "–" if value is None else f"{value:+d}"


def _show_exceptions(diagnosis: Diagnosis) -> None:
    """Show the exceptions that are worth their bytes, and those that cannot be compiled, with the reason."""
    tried = (*diagnosis.sensitivity.exceptions, *diagnosis.whole)
    refused = [entry for entry in tried if entry.refused]
    shown: list[Exception_] = [*diagnosis.exceptions[:MOST_EXCEPTIONS], *refused[:MOST_EXCEPTIONS]]
    if not shown:
        return
    rows = [
        (
            entry.module or "all layers",
            entry.config,
            _gain(entry.gain_db),
            _signed(entry.flash_bytes),
            _signed(entry.arena_bytes),
            entry.refused.split("\n")[0],
        )
        for entry in shown
    ]
    ui.table(
        [
            (f"exception{_with(diagnosis)}", "text"),
            ("as", "name"),
            ("output dB", "number"),
            ("flash", "number"),
            ("arena", "number"),
            ("refused", "detail"),
        ],
        rows,
    )


def show_choice(choice: Choice) -> None:
    found = choice.found
    chosen = ", ".join(f"{path}={kind}" for path, kind in found.exceptions.items())
    pairs = [
        ("as it was given", ui.percent(choice.base_accuracy)),
        ("free", " ".join(choice.settings.flags) or ("none helps" if choice.free else "none needed")),
        ("exceptions", chosen or "none needed"),
        ("accuracy", f"{ui.percent(found.accuracy)} on the host reference"),
        ("tried", f"{len(choice.free)} free way(s), {len(found.steps)} set(s) of exceptions"),
    ]
    if found.cost is not None:
        pairs += [
            ("weights and tables", f"{ui.number(found.cost.flash_bytes)} bytes"),
            ("arena", f"{ui.number(found.cost.arena_bytes)} bytes"),
        ]
    ui.facts("", pairs)

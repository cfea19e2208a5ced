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
    from tinyet.quality.search import Step
    from tinyet.quality.sensitivity import Exception_, PartSensitivity, Sensitivity
    from tinyet.quality.yardstick import Quality

MOST_EXCEPTIONS = 12
MOST_PARTS = 12
_TELLING = ("unequal_units", "near_zero", "columns", "clipped", "few_steps")
"""Patterns, those first that say most."""


def record_of(
    name: str,
    board: str,
    diagnosis: Diagnosis | None,
    choice: Choice | None,
    out: Path | None,
    data_warnings: Sequence[str],
) -> dict[str, object]:
    """The documented, stable form of `--json` (docs/json.md)."""
    found = None if choice is None else choice.found
    sensitivity = None if diagnosis is None else diagnosis.sensitivity
    if sensitivity is None and found is not None:
        sensitivity = found.sensitivity
    nothing: dict[str, object] = {
        "layers": [],
        "operators": [],
        "groups": [],
        "patterns": [],
        "exceptions": [],
    }
    measured: dict[str, object] = {"output_sqnr_db": None, **nothing}
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
            "advice": [*choice.settings.flags, *found.flags],
            "free": [{**settings.to_json(), "accuracy": accuracy} for settings, accuracy in choice.free],
            "steps": [
                {
                    "exceptions": dict(step.exceptions),
                    "accuracy": step.accuracy,
                    "flash_bytes": None if step.cost is None else step.cost.flash_bytes,
                    "arena_bytes": None if step.cost is None else step.cost.arena_bytes,
                    "kept": step.kept,
                }
                for step in found.steps
            ],
        }
    return {
        "version": 4,
        "name": name,
        "board": board,
        "program": None if out is None else str(out),
        "flash_bytes": None if cost is None else cost.flash_bytes,
        "arena_bytes": None if cost is None else cost.arena_bytes,
        "data_warnings": list(data_warnings),
        "health": None if diagnosis is None else diagnosis.to_json(),
        **measured,
        "auto": automatic,
    }


# ---------------------------------------------------------------- while it is found


def say_finding(finding: object) -> None:
    """A line for something that has just become known, wherever the output goes."""
    from tinyet.quality.patterns import Pattern
    from tinyet.quality.remedies import Evaluated, Trial
    from tinyet.quality.search import Step
    from tinyet.quality.sensitivity import Exception_, PartSensitivity
    from tinyet.quality.yardstick import Quality

    if isinstance(finding, Quality):
        ui.say(f"measured: {_accuracies(finding) or _signal(finding)}")
    elif isinstance(finding, Trial):
        ui.say(f"tried {_settings(finding.settings)}: {_gain(finding.gain_db)} dB")
    elif isinstance(finding, Evaluated):
        ui.say(f"with {_settings(finding.settings)}: accuracy {ui.percent(finding.accuracy)}")
    elif isinstance(finding, PartSensitivity):
        ui.say(_said(finding))
    elif isinstance(finding, Pattern):
        ui.say(f"  {finding.text}")
    elif isinstance(finding, Exception_):
        ui.say(f"verified {_said_exception(finding)}")
    elif isinstance(finding, Step):
        ui.say(_said_step(finding))


def _said(part: PartSensitivity) -> str:
    gains = ", ".join(f"{kind} {_gain(gain)} dB" for kind, gain in part.gains_db.items())
    alone = f"alone {_db(part.alone_sqnr_db)} dB at the output"
    return f"{part.kind} {part.name}: {alone}{f'; instead of it {gains}' if gains else ''}: {part.source}"


def _said_exception(entry: Exception_) -> str:
    what = f"{entry.name or 'all layers'} in {entry.config}"
    if entry.refused:
        return f"{what}: refused, {entry.refused.splitlines()[0]}"
    output = f"{_gain(entry.gain_db)} dB, {_db(entry.output_sqnr_db)} at the output"
    return f"{what}: {output}{_counted(entry)}{_bytes(entry)}"


def _counted(entry: Exception_) -> str:
    return "" if entry.accuracy is None else f", accuracy {ui.percent(entry.accuracy)}"


def _bytes(entry: Exception_) -> str:
    bytes_ = "" if entry.flash_bytes is None else f", {entry.flash_bytes:+d} bytes of flash"
    return bytes_ + ("" if entry.arena_bytes is None else f", {entry.arena_bytes:+d} of arena")


def _said_step(step: Step) -> str:
    names = ", ".join(f"{name}={kind}" for name, kind in step.exceptions) or "no exceptions"
    cost = step.cost
    spent = (
        ""
        if cost is None
        else f", {ui.number(cost.flash_bytes)} bytes of flash, {ui.number(cost.arena_bytes)} of arena"
    )
    ending = "" if step.kept else "; not taken"
    return f"step: {names}: accuracy {ui.percent(step.accuracy)}{spent}{ending}"


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
    if not quality.healthy:
        _show_groups(diagnosis.sensitivity, _with(diagnosis))
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
    if quality.accuracy is not None and not quality.accuracy.decides:
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
    found = [("hurts", _culprits(diagnosis))]
    reasons = _reasons(diagnosis)
    if reasons:
        found.append(("because", "\n".join(reasons)))
    found.append(("free", _free(diagnosis)))
    if not diagnosis.healed:
        found.append(("for bytes", _for_bytes(diagnosis)))
    return found


def _culprits(diagnosis: Diagnosis) -> str:
    culprits = diagnosis.culprits
    sensitivity = diagnosis.sensitivity
    if not sensitivity.operators:
        return "no operator is quantized"
    if not culprits:
        return (
            f"none of {len(sensitivity.operators)} operators and inputs: each is good enough where it alone is "
            "rounded. It is all of them together"
        )
    alone = [f"{_named(part)}, alone {_db(part.alone_sqnr_db)} dB: {part.source}" for part in culprits[:3]]
    names = ", ".join(part.name for part in culprits[3:8])
    more = f"\nand {len(culprits) - 3} more: {names}{', …' if len(culprits) > 8 else ''}" if names else ""
    others = [part for part in sensitivity.worst_operators if part not in culprits]
    rest = f"\nthe others leave {_db(others[0].alone_sqnr_db)} dB and more" if others else ""
    return "\n".join(alone) + more + rest


def _named(part: PartSensitivity) -> str:
    """Of an operator: its name, and the module that it belongs to where that is more telling."""
    if part.kind == "input":
        return f"input {part.name}"
    return part.name if part.name == part.module or not part.module else f"{part.name} in {part.module}"


def _reasons(diagnosis: Diagnosis) -> list[str]:
    """What is seen at the culprits, those first that another scale would help most."""
    names = {part.name for part in diagnosis.culprits}
    seen = [p for p in diagnosis.sensitivity.patterns if p.operator in names or p.kind == "near_zero"]
    ranked = sorted(seen, key=lambda p: (_TELLING.index(p.kind), -(p.gain_db or 0.0)))
    first: dict[str, str] = {}  # one of a kind
    for pattern in ranked:
        first.setdefault(pattern.kind, pattern.text)
    return list(first.values())[:3]


def _free(diagnosis: Diagnosis) -> str:
    remedy = diagnosis.remedy
    if remedy is None:
        tried = ", ".join(_settings(trial.settings) for trial in diagnosis.free)
        return f"none of these brings a decibel: {tried}" if tried else "nothing was tried"
    quality = remedy.quality
    what = f"{_settings(remedy.settings)}: {_db(diagnosis.quality.sqnr_db)} → {_db(quality.sqnr_db)} dB"
    if quality.accuracy is not None:
        what += f", accuracy {ui.percent(quality.accuracy.share)}"
    return f"{what}, {'which is enough' if diagnosis.healed else 'which is not enough'}; no byte more on the device"


def _for_bytes(diagnosis: Diagnosis) -> str:
    advised = diagnosis.advised
    if advised is None:
        tried = [*diagnosis.sensitivity.exceptions, *diagnosis.whole]
        names = ", ".join(f"{entry.name or 'all layers'}={entry.config}" for entry in tried)
        parts = len(diagnosis.sensitivity.operators) + len(diagnosis.sensitivity.groups)
        most = f"of {parts} inputs, operators and groups these bring most in torch"
        return f"none of these brings a decibel: {names}; {most}" if names else "nothing was tried"
    where = advised.name or "all layers"
    gain = f"{_db(advised.output_sqnr_db)} dB ({_gain(advised.gain_db)})"
    return f"{where} in {advised.config}: {gain}{_counted(advised)}{_bytes(advised)}"


def _show_advice(diagnosis: Diagnosis, command: Sequence[str], types: Sequence[str]) -> None:
    advised = diagnosis.advised
    if diagnosis.flags:
        label = "to do" if diagnosis.suffices else "brings most"
        kept = types if advised is None or advised.name else ()  # all layers are given other types
        ui.say(f"\n{label}: {shlex.join([*command, *kept, *diagnosis.flags])} -o FILE.tet", "bold")
    if diagnosis.suffices:
        return
    if diagnosis.quality.accuracy is not None:
        again = shlex.join([*command, *types])
        ui.say(f"let a set of exceptions be found: {again} --auto --max-drop 0.01 -o FILE.tet")
    ui.say(
        "else: several --layer or --op NAME=float, calibration data more like what the device will see, or training "
        "with the rounding in the loop (docs/quantization.md)"
    )


# ---------------------------------------------------------------- the figures


def _show_free(trials: Sequence[Trial]) -> None:
    if not trials:
        return
    rows = [(_settings(trial.settings), _db(trial.quality.sqnr_db), _gain(trial.gain_db)) for trial in trials]
    ui.table([("free", "text"), ("output dB", "number"), ("gain", "number")], rows)


def _show_layers(sensitivity: Sensitivity, settings: str) -> None:
    shown = sensitivity.worst_operators[:MOST_PARTS]
    rows = [
        (
            _named(part),
            part.op.removeprefix("aten.").split(".")[0],
            _db(part.sqnr_db),
            _db(part.alone_sqnr_db),
            part.source,
        )
        for part in shown
    ]
    left = len(sensitivity.operators) - len(shown)
    ui.table(
        [
            (f"operator{settings}, worst first{f', {left} more' if left else ''}", "text"),
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


def _show_groups(sensitivity: Sensitivity, settings: str) -> None:
    """The groups of which an exception brings something, in torch."""
    ranked = sorted(sensitivity.groups, key=lambda part: -max(part.gains_db.values(), default=0.0))
    kinds = list(dict.fromkeys(kind for part in ranked for kind in part.gains_db))
    rows = [
        (part.name, part.kind, _db(part.alone_sqnr_db), *(_gained(part, kind) for kind in kinds), part.source)
        for part in ranked[:MOST_PARTS]
        if max(part.gains_db.values(), default=0.0) >= 1.0
    ]
    if rows:
        ui.table(
            [
                (f"group{settings}", "text"),
                ("kind", "name"),
                ("alone, at output", "number"),
                *((f"{kind} gains", "number") for kind in kinds),
                ("source", "detail"),
            ],
            rows,
        )


def _gained(part: PartSensitivity, kind: str) -> str:
    return _gain(part.gains_db[kind]) if kind in part.gains_db else "–"


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
            entry.name or "all layers",
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
        (
            "free",
            " ".join(choice.settings.flags) or ("none helps" if choice.free or chosen else "none needed"),
        ),
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

"""What a report discloses before any figure, as the standard requires: interruptions, purge, write
cache, deviations, warnings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.options import value_text
from writecliff.procedures.registry import entry_of
from writecliff.store.manifest import Manifest

if TYPE_CHECKING:
    from writecliff.report.testdata import TestData

IDLE_SHARE, GRAVE_IDLE_SHARE = 0.0005, 0.02
# Warnings of a driver about what is disclosed here in any case.
_SAID_HERE = ("the purge (", "the write cache is", "steady state was not reached")


def disclosures(data: TestData) -> tuple[str, ...]:
    """The disclosures of a run, one sentence each, the gravest first."""
    manifest = data.manifest
    found = [
        *_ending(data),
        *_scale(data),
        *(_interruption(item) for item in manifest.interruptions),
        *_purge(manifest),
        *_write_cache(manifest),
        *_power_state(manifest),
        *_idle(data),
        *(_deviation(item) for item in manifest.deviations if item.get("option") != "no_purge"),
        *(_sentence(text) for text in manifest.warnings if not text.lower().startswith(_SAID_HERE)),
    ]
    return tuple(dict.fromkeys(found))


def _ending(data: TestData) -> list[str]:
    reason = data.manifest.reason
    because = f" ({reason})" if reason else ""
    kept = "The figures cover what was measured until then."
    match data.status:
        case "complete":
            return []
        case "running" | "planned":
            return ["The run has not ended: these are the figures so far."]
        case "failed":
            return [f"The run failed{because}. {kept}"]
        case _:
            if data.manifest.status == "running":
                because = " (its process ended without a result)"
            return [f"The run was interrupted{because} and not resumed. {kept}"]


def _scale(data: TestData) -> list[str]:
    device = data.manifest.device
    if not device.scale_text:
        return []
    scale = f"{device.scale:g}"
    why = "Quick test: the" if data.options.get("quick") else "The"
    slowest = "The slowest ones are too short: erases and other stalls shrink with the blocks."
    if device.without_flash:  # its times do not depend on its size
        slowest = "The slowest ones of the whole drive may not be among them."
    return [
        f"{why} drive was {device.scale_text} and in 1/{scale} of all times, so that the "
        f"test is as long in drive fills. Times and amounts are those of the whole drive; "
        f"response times are of 1/{scale} of its I/Os. {slowest}"
    ]


def _interruption(item: Mapping[str, Any]) -> str:
    where = f"after {item.get('after_steps', '?')} steps"
    if "resumed" in item:
        where += f" and resumed {units.date_time(item['resumed'])}"
    if item.get("exact"):
        return (
            f"The run was interrupted {where}; the simulated drive continued from its exact state, "
            "so the results are those of an uninterrupted run."
        )
    return (
        f"The run was interrupted {where}: the drive was idle in between, while the standard "
        "requires all steps to follow each other without a pause."
    )


def _purge(manifest: Manifest) -> list[str]:
    purge = manifest.purge
    if purge is None and entry_of(manifest.procedure).own:
        return []  # its verdict says how the drive began
    if purge is None:
        return ["No purge is recorded: the drive may not have been fresh at the start."]
    if purge.conformant:
        return []
    note = f" {_sentence(purge.note)}" if purge.note else ""
    if manifest.not_purged:
        return [f"{_sentence(purge.method)}{note}"]
    return [
        f'The purge ("{purge.method}") is not one that the standard accepts: the drive may not '
        f"have been fresh at the start.{note}"
    ]


def _write_cache(manifest: Manifest) -> list[str]:
    cache, wanted = manifest.write_cache, manifest.write_cache_required
    if cache is None or wanted is None or cache.enabled is wanted:
        return []
    state = {True: "on", False: "off", None: "unknown: the drive does not report it"}[cache.enabled]
    note = f" {_sentence(cache.note)}" if cache.note else ""
    return [f"Write cache {state}; the test requires it {'on' if wanted else 'off'}.{note}"]


def _power_state(manifest: Manifest) -> list[str]:
    """Of a drive that was not in the state with the most power, which is 0."""
    power = manifest.power
    if power is None or not power.state:
        return []
    why = "" if power.before is None else ", as the command asked for"
    kind = "" if manifest.device.simulated else "NVMe "
    return [f"The drive was in {kind}power state {power.text}{why}: it may be slower than in 0."]


def _idle(data: TestData) -> list[str]:
    text = idle_text(data)
    return [text] if text is not None and grave_idle(data) else []


def grave_idle(data: TestData) -> bool:
    """Whether the pauses between steps were long enough for garbage collection to matter."""
    return data.idle_ns >= GRAVE_IDLE_SHARE * data.elapsed_ns


def idle_text(data: TestData) -> str | None:
    """How long nothing was issued between steps; None if it is negligible."""
    if not data.elapsed_ns or data.idle_ns < IDLE_SHARE * data.elapsed_ns:
        return None
    time = units.duration(data.idle_ns)
    share = units.percent(data.idle_ns / data.elapsed_ns)
    if data.manifest.device.simulated:
        return (
            f"Between the steps, for {time}, {share} of the time, the last I/Os of a step were "
            "completed before the first of the next one was issued."
        )
    return (
        f"The drive was idle between the steps for {time}, {share} of the time, while the load "
        "generator was restarted."
    )


def _deviation(item: Mapping[str, Any]) -> str:
    if item.get("text"):
        return _sentence(f"Option {item['text']}")
    return (
        f"Option {item.get('option')} is {value_text(item.get('used'))}; "
        f"{item.get('level', 'given')} by {item.get('clause', 'the standard')}: "
        f"{value_text(item.get('standard'))}."
    )


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")

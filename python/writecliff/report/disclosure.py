"""Report sections that are the same for all tests.

The disclosures required by the standard (interruptions, purge, write cache, deviations and
warnings) precede all figures. The other sections show choices between sources, disturbed steps,
drive health and the test platform.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.options import value_text
from writecliff.procedures.pts import PtsProcedure
from writecliff.procedures.registry import entry_of
from writecliff.report.header import NOT_KNOWN, none_for_nvme
from writecliff.report.model import Section, section
from writecliff.report.power import power_of
from writecliff.report.power_meter import readings_of
from writecliff.report.table import Column, table
from writecliff.store.manifest import Manifest
from writecliff.units import UNKNOWN, plural

if TYPE_CHECKING:
    from writecliff.procedures.sources import Choice
    from writecliff.report.testdata import TestData


IDLE_SHARE, GRAVE_IDLE_SHARE = 0.0005, 0.02
# Prefixes of driver warnings that this module always discloses.
_DISCLOSED_HERE = ("the purge (", "the write cache is", "steady state was not reached")


def disclosures(data: TestData) -> tuple[str, ...]:
    """Return a run's disclosures as sentences, in descending order of severity."""
    manifest = data.manifest
    disclosures = [
        *_ending(data),
        *_scale(data),
        *(_interruption(item) for item in manifest.interruptions),
        *_purge(manifest),
        *_write_cache(manifest),
        *_power_state(manifest),
        *_idle(data),
        *(_deviation(item) for item in manifest.deviations if item.get("option") != "no_purge"),
        *(
            _sentence(text)
            for text in manifest.warnings
            if not text.lower().startswith(_DISCLOSED_HERE)
        ),
    ]
    return tuple(dict.fromkeys(disclosures))


def _ending(data: TestData) -> list[str]:
    reason = data.manifest.reason
    because = f" ({reason})" if reason else ""
    coverage = "The figures cover the measurements until then."
    match data.status:
        case "complete":
            return []
        case "running" | "planned":
            return ["The run is in progress: these are the figures so far."]
        case "failed":
            return [f"The run failed{because}. {coverage}"]
        case _:
            if data.manifest.status == "running":
                because = " (its process ended without a result)"
            return [f"The run was interrupted{because} and not resumed. {coverage}"]


def _scale(data: TestData) -> list[str]:
    device = data.manifest.device
    if not device.scale_text:
        return []
    scale = f"{device.scale:g}"
    why = "Quick test: the" if data.options.get("quick") else "The"
    slowest = "Tail latencies are too short: erases and other stalls shrink with the blocks."
    # Latencies of drives that have no flash do not depend on the drive size.
    if device.without_flash:
        slowest = "They may not include the slowest I/Os of the whole drive."
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
    if purge is None and entry_of(manifest.procedure).is_user_load:
        return []  # The verdict already describes the initial state.
    if purge is None:
        return ["No purge is recorded: the drive may not have been fresh at the start."]
    if purge.conformant:
        return []
    note = f" {_sentence(purge.note)}" if purge.note else ""
    if manifest.not_purged:
        return [f"{_sentence(purge.method)}{note}"]
    return [
        f'The purge ("{purge.method}") is not accepted by the standard: the drive may not '
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
    """Return a sentence if the drive was not in power state 0, the state with the highest power."""
    power = manifest.power
    if power is None or not power.state:
        return []
    why = "" if power.before is None else ", as requested"
    kind = "" if manifest.device.simulated else "NVMe "
    return [f"The drive was in {kind}power state {power.text}{why}: it may be slower than in 0."]


def _idle(data: TestData) -> list[str]:
    text = idle_text(data)
    return [text] if text is not None and grave_idle(data) else []


def grave_idle(data: TestData) -> bool:
    """Return `True` if the pauses between steps were long enough to affect garbage collection."""
    return data.idle_ns >= GRAVE_IDLE_SHARE * data.elapsed_ns


def idle_text(data: TestData) -> str | None:
    """Return a sentence about the idle time between steps, or None if it is negligible."""
    if not data.elapsed_ns or data.idle_ns < IDLE_SHARE * data.elapsed_ns:
        return None
    time = units.duration(data.idle_ns)
    share = units.percent(data.idle_ns / data.elapsed_ns)
    if data.manifest.device.simulated:
        return (
            f"Between the steps, for {time}, {share} of the time, the drive completed the last "
            "I/Os of a step before it received the first of the next step."
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


# -- choices between sources -------------------------------------------------------------------


CHOICES_TITLE = "Differences between sources of the standard"
_CHOICES_INTRO = (
    "The full text of the standard is not public. Its quotations, the SNIA primer and published "
    "programs that follow it differ at these points; none of them is a deviation."
)


def choices_section(data: TestData) -> Section:
    """Return the section about a run's choices, which is empty for tests without choices."""
    choices = _choices(data)
    if not choices:
        return section(CHOICES_TITLE, "")
    head = (
        Column("Point", key="point"),
        Column("Sources, the default first", key="sources"),
        Column("This run", key="here"),
        Column("Option", key="option"),
    )
    rows = [(c.what.capitalize(), c.sources, c.here, c.option or UNKNOWN) for c in choices]
    return section(
        CHOICES_TITLE, _CHOICES_INTRO, table(CHOICES_TITLE, head, rows, file="choices.csv")
    )


def choices_mapping(data: TestData) -> list[dict[str, Any]]:
    """Return a run's choices for the summary."""
    return [asdict(choice) for choice in _choices(data)]


def _choices(data: TestData) -> tuple[Choice, ...]:
    procedure = data.procedure
    if not isinstance(procedure, PtsProcedure) or entry_of(data.manifest.procedure).campaign:
        return ()
    return procedure.choices()


# -- remarks and drive health ------------------------------------------------------------------


# Prefix of a stored remark about a step that the host or the drive disturbed.
PREFIX = "disturbance: "
_STEPS_SHOWN = 40

# Rows with phase, round, label, seq and warning, one row per remark.
Remarks = Sequence[Mapping[str, Any]]


def step_disclosures(remarks: Remarks) -> tuple[str, ...]:
    """Return the number of disturbed steps, and a description of the disturbances."""
    disturbances = [step for step in remarks if step["warning"].startswith(PREFIX)]
    if not disturbances:
        return ()
    # For example, the remark "disturbance: "CPU steal: 12 % of ..." has the kind "CPU steal".
    kinds = Counter(s["warning"].removeprefix(PREFIX).partition(":")[0] for s in disturbances)
    named = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
    count = len({step["seq"] for step in disturbances})
    return (f"{count} step{'s were' if count > 1 else ' was'} disturbed: {named}; see Remarks.",)


def remarks_section(remarks: Remarks) -> Iterator[Section]:
    """Yield remarks about steps.

    A remark shared by many steps (about the load generator) takes a single line, while disturbances
    are listed by step.
    """
    if not remarks:
        return
    general = Counter(s["warning"] for s in remarks if not s["warning"].startswith(PREFIX))
    rows = [(plural(count, "step"), text) for text, count in general.items()]
    single = [step for step in remarks if step["warning"].startswith(PREFIX)]
    for step in single[:_STEPS_SHOWN]:
        where = f"round {step['round']}, " if step["round"] else f"{step['phase']}, "
        rows.append((where + step["label"], step["warning"].removeprefix(PREFIX)))
    note = ""
    if len(single) > _STEPS_SHOWN:
        note = f"the first {_STEPS_SHOWN} of {len(single)} disturbed steps"
    yield section(
        "Remarks", "", table("Remarks on steps", ("Step", "Remark"), rows, "ll", note=note)
    )


def health_sections(data: TestData) -> Iterator[Section]:
    """Yield a real drive's health log; simulated drives have no SMART log."""
    health = data.manifest.health
    if data.manifest.device.simulated or not health:
        return
    before, after = _flat(health.get("before")), _flat(health.get("after"))
    rows = [
        (name, before.get(name, "-"), after.get(name, "-"))
        for name in dict.fromkeys((*before, *after))
    ]
    if rows:
        title = "Condition as the drive reports it"
        yield section("Drive health", "", table(title, ("Attribute", "Before", "After"), rows))


def _flat(values: Any, prefix: str = "") -> dict[str, str]:
    """Flatten nested logs to "table / name" keys with text values."""
    flat: dict[str, str] = {}
    if not isinstance(values, Mapping):
        return flat
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{name} / ")
        elif value is not None:
            flat[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return flat


# -- test platform -----------------------------------------------------------------------------
#
# The standard requires that figures for different drives come from one reference test platform, so
# reports disclose any other platform (PTS, "Reference Test Platform").


PLATFORM_TITLE = "Reference test platform"
_PLATFORM_INTRO = (
    "The host that issued the I/Os, and the path to the drive. Figures of two drives compare "
    "drives only if both were measured on the same platform."
)
_SIMULATED = (
    "Drive and host are simulated. The figures do not depend on the machine that ran the "
    "simulation: equal drive, load and seed give equal bytes anywhere."
)
Rows = list[tuple[str, str, str]]


def platform_section(data: TestData) -> Section:
    """Return the platform section with a run's components and their effect on the figures."""
    simulated = data.manifest.device.simulated
    rows = _simulated(data) if simulated else _real(data)
    head = ("Part", "Here", "Effect on the figures")
    return section(
        PLATFORM_TITLE,
        _SIMULATED if simulated else _PLATFORM_INTRO,
        table(PLATFORM_TITLE, head, rows, "lll"),
    )


def _simulated(data: TestData) -> Rows:
    manifest = data.manifest
    device = manifest.device
    scale = device.scale_text.capitalize() or "Whole drive"
    return [
        ("Clock", "Virtual, in nanoseconds", "Times are exact and do not depend on the machine."),
        ("Host", "Simulated", "It issues I/Os without delay: response times are those of the drive "
         "and its link, without an operating system."),
        ("Host interface", device.interface or NOT_KNOWN, "Its limits are part of the drive."),
        ("Drive", device.target, f"Device file with hash {(device.device_hash or '-')[:12]}."),
        ("Scale", scale, "Times and amounts are scaled to the whole drive."),
        _power(data),
        ("Load generator", f"writecliff {manifest.versions.get('writecliff') or units.UNKNOWN}",
         f"Seed {manifest.seed}."),
    ]  # fmt: skip


def _real(data: TestData) -> Rows:
    manifest = data.manifest
    device, host, versions = manifest.device, manifest.host, manifest.versions
    virtual = host.get("virtual_machine")
    guest = "Another layer of software is between load and drive." if virtual == "yes" else ""
    adapter = none_for_nvme(data) or device.adapter
    rows = [
        ("Machine", host.get("platform"), ""),
        ("Architecture", host.get("machine"), ""),
        ("Virtual machine", virtual, guest),
        ("Motherboard", host.get("motherboard"), ""),
        ("CPU", host.get("cpu"), "Too few cores limit small I/Os before the drive does."),
        ("CPU frequency governor", host.get("cpu_governor"),
         "Other governors than 'performance' add latency at low load."),
        ("Memory", host.get("memory"), ""),
        ("Operating system", host.get("operating_system"), ""),
        ("Kernel", versions.get("kernel"), "Response times include its block layer."),
        ("Host adapter", adapter, "Its queue and link limit the drive."),
        ("PCIe link", device.pcie, ""),
        ("Host interface", device.interface, ""),
        *_state_of_power(data),
        _power(data),
        ("Load generator", versions.get("fio"), "Direct I/O, past the page cache."),
        ("Test software", f"writecliff {versions.get('writecliff') or units.UNKNOWN}", ""),
    ]  # fmt: skip
    return [(name, value or NOT_KNOWN, meaning) for name, value, meaning in rows]


def _power(data: TestData) -> tuple[str, str, str]:
    """Return the source of power figures, or a statement that power was not measured."""
    if readings_of(data.run.path) is not None:
        return "Power", "A meter on the drive's supply", "The report includes its log."
    timed = [row for row in data.rows if row.elapsed_ns]  # Fast-forwarded steps have no series.
    if power_of(data, timed[:1]) is not None:
        return "Power", "Modelled", "Section [power] of the device file."
    if data.manifest.device.simulated:
        return "Power", "Not modelled", "The device file has no section [power]."
    return "Power", "Not measured", "Add the log of a meter with report --power."


_MODELLED_STATE = (
    "Operations of dies wait if they would exceed the power limit. The watts are the maximum "
    "by section [power] of the device file."
)


def _state_of_power(data: TestData) -> Rows:
    """Return the power state of an NVMe or simulated drive, or an empty text for other drives."""
    power = data.manifest.power
    if power is None:
        return []
    if data.manifest.device.simulated:
        return [("Power state", power.text, _MODELLED_STATE)]
    means = "The maximum power that the drive reports for the state limits its speed."
    if power.before is not None:
        before = "was in it" if power.before == power.state else f"was found in {power.before}"
        means = f"Requested; the drive {before}. {means}"
    if power.autonomous:
        means += " When idle, it enters non-operational states by itself, which adds latency."
    return [("NVMe power state", power.text, means)]

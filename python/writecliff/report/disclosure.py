"""Sections that every report has, independent of its test.

The disclosures that the standard requires come before any figure: interruptions, purge, write
cache, deviations, warnings. The other sections show choices between sources, disturbed steps, the
health of the drive, and the test platform.
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
    if purge is None and entry_of(manifest.procedure).is_user_load:
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


# -- choices between sources -------------------------------------------------------------------


CHOICES_TITLE = "Where sources of the standard differ"
_CHOICES_INTRO = (
    "The full text of the standard is not public. Its quotations, the SNIA primer and published "
    "programs that follow it differ at these points; none of them is a deviation."
)


def choices_section(data: TestData) -> Section:
    """The choices of a run; an empty section, which is left out, for other tests."""
    found = _choices(data)
    if not found:
        return section(CHOICES_TITLE, "")
    head = (
        Column("Point", key="point"),
        Column("Sources, the default first", key="sources"),
        Column("This run", key="here"),
        Column("Option", key="option"),
    )
    rows = [(one.what.capitalize(), one.sources, one.here, one.option or UNKNOWN) for one in found]
    return section(
        CHOICES_TITLE, _CHOICES_INTRO, table(CHOICES_TITLE, head, rows, file="choices.csv")
    )


def choices_mapping(data: TestData) -> list[dict[str, Any]]:
    """The choices in the summary for programs."""
    return [asdict(one) for one in _choices(data)]


def _choices(data: TestData) -> tuple[Choice, ...]:
    procedure = data.procedure
    if not isinstance(procedure, PtsProcedure) or entry_of(data.manifest.procedure).campaign:
        return ()
    return procedure.choices()


# -- remarks and health ------------------------------------------------------------------------


PREFIX = "disturbance: "  # of a stored remark: the host or the drive disturbed the step
_STEPS_SHOWN = 40

Remarks = Sequence[Mapping[str, Any]]  # phase, round, label, seq and warning, a row per remark


def step_disclosures(remarks: Remarks) -> tuple[str, ...]:
    """How many steps were disturbed, and by what."""
    disturbances = [step for step in remarks if step["warning"].startswith(PREFIX)]
    if not disturbances:
        return ()
    # "disturbance: CPU steal: 12 % of ..." is of the kind "CPU steal".
    kinds = Counter(s["warning"].removeprefix(PREFIX).partition(":")[0] for s in disturbances)
    named = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
    count = len({step["seq"] for step in disturbances})
    return (f"{count} step{'s were' if count > 1 else ' was'} disturbed: {named}; see Remarks.",)


def remarks_section(remarks: Remarks) -> Iterator[Section]:
    """Remarks on steps. A remark that many steps share (how the load generator does something) is
    one line; disturbances are listed step by step.
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
    """What a real drive reports of its condition; simulated drives have no SMART log."""
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
    """Nested logs as "table / name": text."""
    found: dict[str, str] = {}
    if not isinstance(values, Mapping):
        return found
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= _flat(value, f"{name} / ")
        elif value is not None:
            found[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


# -- test platform -----------------------------------------------------------------------------
#
# The standard requires that figures of different drives come from one reference test platform;
# reports disclose any other platform (PTS, "Reference Test Platform").


PLATFORM_TITLE = "Reference test platform"
_PLATFORM_INTRO = (
    "What issued the I/Os, and what was between it and the drive. Figures of two drives compare "
    "drives only if both were measured on the same platform."
)
_SIMULATED = (
    "The drive and the host that loads it are simulated. Nothing of the machine that ran the "
    "simulation is in the figures: the same drive, load and seed give the same bytes anywhere."
)
Rows = list[tuple[str, str, str]]


def platform_section(data: TestData) -> Section:
    """The platform of a run, a line for each of its parts and what that means for the figures."""
    simulated = data.manifest.device.simulated
    rows = _simulated(data) if simulated else _real(data)
    head = ("Part", "Here", "What it means for the figures")
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
        ("Host", "Simulated", "It issues an I/O at once: response times are those of the drive and "
         "its link, without time of an operating system."),
        ("Host interface", device.interface or NOT_KNOWN, "Its limits are part of the drive."),
        ("Drive", device.target, f"Described by a file, hash {(device.device_hash or '-')[:12]}."),
        ("Scale", scale, "Times and amounts are shown as those of the whole drive."),
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
         "Any but 'performance' lengthens response times at low load."),
        ("Memory", host.get("memory"), ""),
        ("Operating system", host.get("operating_system"), ""),
        ("Kernel", versions.get("kernel"), "Its block layer is in every response time."),
        ("Host adapter", adapter, "Its queue and link bound what the drive can show."),
        ("PCIe link", device.pcie, ""),
        ("Host interface", device.interface, ""),
        *_state_of_power(data),
        _power(data),
        ("Load generator", versions.get("fio"), "Direct I/O, past the page cache."),
        ("Test software", f"writecliff {versions.get('writecliff') or units.UNKNOWN}", ""),
    ]  # fmt: skip
    return [(name, value or NOT_KNOWN, meaning) for name, value, meaning in rows]


def _power(data: TestData) -> tuple[str, str, str]:
    """Where figures of power come from, or that there are none."""
    if readings_of(data.run.path) is not None:
        return "Power", "A meter on the drive's supply", "Its log was given to the report."
    timed = [row for row in data.rows if row.elapsed_ns]  # others have no series
    if power_of(data, timed[:1]) is not None:
        return "Power", "Modelled", "From the section [power] of the drive's file."
    if data.manifest.device.simulated:
        return "Power", "Not modelled", "The drive's file has no section [power]."
    return "Power", "Not measured", "The log of a meter can be added: report --power."


_MODELLED_STATE = (
    "Dies read, program and erase up to the limit at once; others wait. The watts are the most "
    "that the section [power] of the drive's file adds up to."
)


def _state_of_power(data: TestData) -> Rows:
    """The state of an NVMe drive, or a simulated one with states; nothing for other drives."""
    power = data.manifest.power
    if power is None:
        return []
    if data.manifest.device.simulated:
        return [("Power state", power.text, _MODELLED_STATE)]
    means = "The most power that the drive says it draws in it bounds its speed."
    if power.before is not None:
        found = "was in it" if power.before == power.state else f"was found in {power.before}"
        means = f"Asked for; the drive {found}. {means}"
    if power.autonomous:
        means += " When idle it goes to states without I/O by itself, and takes time to return."
    return [("NVMe power state", power.text, means)]

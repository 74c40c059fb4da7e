"""What every report says besides its test: disturbances of single steps, the drive's health.

Both come from the run directory and from no test in particular, so they are added here, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from writecliff.report.model import Section, Table

if TYPE_CHECKING:
    from writecliff.report.model import ReportModel
    from writecliff.store.rundir import RunDirectory

PREFIX = "disturbance: "  # of a stored remark: the host or the drive disturbed the step
_STEPS_SHOWN = 40
_STEPS = "select seq, phase, round, label, unnest(warnings) as warning from rounds order by seq"


def with_extras(model: ReportModel, run: RunDirectory) -> ReportModel:
    """The report with its disturbances disclosed and listed, and the health of a real drive."""
    steps = run.query(_STEPS).to_pylist()
    sections = (*_disturbances(steps), *_health(run))
    return replace(
        model,
        disclosures=(*model.disclosures, *_disclosed(steps)),
        sections=(*model.sections, *sections),
    )


def _disclosed(steps: list[dict[str, Any]]) -> tuple[str, ...]:
    disturbed = {step["seq"] for step in steps if step["warning"].startswith(PREFIX)}
    if not disturbed:
        return ()
    kinds = Counter(_kind(s["warning"]) for s in steps if s["warning"].startswith(PREFIX))
    named = ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())
    count = len(disturbed)
    return (f"{count} step{'s were' if count > 1 else ' was'} disturbed: {named}; see Remarks.",)


def _kind(text: str) -> str:
    """ "disturbance: CPU steal: 12 % of ..." is "CPU steal"."""
    return text.removeprefix(PREFIX).partition(":")[0]


def _disturbances(steps: list[dict[str, Any]]) -> Iterator[Section]:
    """Remarks on steps. The same remark on many steps (how a load generator does something) is one
    line; disturbances are listed step by step."""
    if not steps:
        return
    rows = []
    general = Counter(s["warning"] for s in steps if not s["warning"].startswith(PREFIX))
    for text, count in general.items():
        rows.append((f"{count} step{'s' if count > 1 else ''}", text))
    single = [step for step in steps if step["warning"].startswith(PREFIX)]
    for step in single[:_STEPS_SHOWN]:
        where = f"round {step['round']}, " if step["round"] else f"{step['phase']}, "
        rows.append((where + step["label"], step["warning"].removeprefix(PREFIX)))
    note = ""
    if len(single) > _STEPS_SHOWN:
        note = f"the first {_STEPS_SHOWN} of {len(single)} disturbed steps"
    table = Table("Remarks on steps", ("Step", "Remark"), tuple(rows), ("left", "left"), note)
    yield Section("Remarks", "", tables=(table,))


def _health(run: RunDirectory) -> Iterator[Section]:
    """Simulated drives have no SMART log; what they count is in the tables of the run."""
    health = run.manifest.health
    if run.manifest.device.simulated or not health:
        return
    before, after = _flat(health.get("before")), _flat(health.get("after"))
    rows = tuple(
        (name, before.get(name, "-"), after.get(name, "-"))
        for name in dict.fromkeys((*before, *after))
    )
    if rows:
        table = Table(
            "What the drive says of its condition",
            ("Attribute", "Before", "After"),
            rows,
            ("left", "right", "right"),
        )
        yield Section("Drive health", "", tables=(table,))


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

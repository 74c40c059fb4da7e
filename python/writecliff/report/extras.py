"""What every report says besides its test: disturbed steps and the health of a real drive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from writecliff.report.model import Section, section
from writecliff.report.table import table
from writecliff.units import plural

if TYPE_CHECKING:
    from writecliff.report.testdata import TestData

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
    one line; disturbances are listed step by step."""
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

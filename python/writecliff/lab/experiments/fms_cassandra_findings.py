"""The findings of `fms-cassandra`: which conditions make streams matter, and how the claim fares.

Every sentence is derived from the rows that were measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from writecliff.lab.experiments.fms_cassandra import (
    CLAIMED_IO,
    CLAIMED_LIFETIME,
    ORACLE,
    Assigned,
    Case,
    Row,
)

# Change of the lifetime ratio from which a condition matters.
MATTERS = 0.1
# Change of write amplification in the last quarter below which a drive has settled.
SETTLED = 0.05
# Relative distance within which a ratio counts as that of the deck.
NEAR = 0.1


@dataclass(frozen=True)
class Factor:
    """Effect of one condition on the lifetime ratio while all others stay."""

    name: str
    levels: tuple[str, ...]
    least: float
    median: float
    most: float
    groups: int

    @property
    def matters(self) -> bool:
        return self.median >= MATTERS


def on_off(value: bool) -> str:
    return "on" if value else "off"


def nodes_text(nodes: int) -> str:
    return "one node" if nodes == 1 else f"{nodes} nodes"


# Fields of a case: the name of the condition, and how its values are written.
_CONDITIONS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "trim": ("TRIM", on_off),
    "allocator": ("allocator", str),
    "fill_pct": ("files at their peak", lambda fill: f"{fill:g} %"),
    "nodes": ("nodes", str),
    "unit_share": ("reclaim unit / table", lambda share: f"{share:g}"),
}


def factors(rows: Sequence[Row]) -> tuple[Factor, ...]:
    """Each condition's spread of the lifetime ratio over rows that agree in everything else. The
    allocator's is taken without TRIM and with it: it decides which dead data are overwritten, and
    with TRIM there are none."""
    found = []
    for key, (name, _) in _CONDITIONS.items():
        if key != "allocator":
            found.append(_factor(key, name, rows))
            continue
        for trim in (False, True):
            some = [row for row in rows if row.case.trim == trim]
            found.append(_factor(key, f"{name}, TRIM {on_off(trim)}", some))
    return tuple(factor for factor in found if factor is not None)


def _factor(key: str, name: str, rows: Sequence[Row]) -> Factor | None:
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[_without(row.case, key)].append(row)
    spreads = [
        max(r.lifetime_ratio for r in group) - min(r.lifetime_ratio for r in group)
        for group in groups.values()
        if len({getattr(r.case, key) for r in group}) > 1
    ]
    if not spreads:
        return None
    text = _CONDITIONS[key][1]
    levels = tuple(dict.fromkeys(text(getattr(row.case, key)) for row in rows))
    return Factor(name, levels, min(spreads), median(spreads), max(spreads), len(spreads))


def _without(case: Case, key: str) -> tuple[object, ...]:
    """All conditions but one."""
    return tuple(value for name, value in vars(case).items() if name != key)


def describe(case: Case) -> str:
    """The conditions in words."""
    trim = "TRIM" if case.trim else f"no TRIM, {case.allocator}"
    share = "" if case.unit_share == 1 else f", units of {case.unit_share:g} tables"
    return f"{nodes_text(case.nodes)}, {case.fill_pct:g} % full, {trim}{share}"


def findings(rows: Sequence[Row], assigned: Sequence[Assigned]) -> tuple[str, ...]:
    """The findings in sentences."""
    said = [_claim(rows), _trim(rows), *_matter(rows), _assignments(assigned), _io(rows)]
    said.append(_settled(rows))
    return tuple(sentence for sentence in said if sentence)


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _claim(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: row.lifetime_ratio)
    near = [r for r in rows if r.lifetime_ratio >= (1 - NEAR) * CLAIMED_LIFETIME]
    nothing = sum(row.lifetime_ratio < 1 + NEAR / 2 for row in rows)
    count = f"{len(near)} of {len(rows)} sets of conditions" if near else "none of the conditions"
    return (
        f"Streams extend the drive's lifetime {_span([r.lifetime_ratio for r in rows])} times. "
        f"The claimed {CLAIMED_LIFETIME:g} is reached, within 10 %, in {count}; the best is "
        f"{describe(best.case)}: write amplification {best.off.waf:.2f} without streams, "
        f"{best.on.waf:.2f} with them, {best.lifetime_ratio:.2f} times. In {nothing} streams gain "
        "less than 5 %."
    )


def _trim(rows: Sequence[Row]) -> str:
    """TRIM against streams, in conditions measured with both."""
    with_trim = {_without(row.case, "trim"): row for row in rows if row.case.trim}
    pairs = [
        (with_trim[case], row)
        for row in rows
        if not row.case.trim and (case := _without(row.case, "trim")) in with_trim
    ]
    if not pairs:
        return ""
    better = sum(trimmed.off.waf <= other.on.waf for trimmed, other in pairs)
    trimmed_life = _span([trimmed.lifetime_ratio for trimmed, _ in pairs])
    other_life = _span([other.lifetime_ratio for _, other in pairs])
    columns = (
        ("neither", [other.off.waf for _, other in pairs]),
        ("streams alone", [other.on.waf for _, other in pairs]),
        ("TRIM alone", [trimmed.off.waf for trimmed, _ in pairs]),
        ("both", [trimmed.on.waf for trimmed, _ in pairs]),
    )
    shown = ", ".join(f"{name} {median(values):.2f}" for name, values in columns)
    return (
        f"With TRIM streams extend the lifetime {trimmed_life} times, without {other_life} times. "
        f"Median write amplification: {shown}. TRIM alone does as well as streams alone, or "
        f"better, in {better} of {len(pairs)} sets of conditions."
    )


def _matter(rows: Sequence[Row]) -> list[str]:
    found = factors(rows)
    said = []
    for matters, words in ((True, "matter"), (False, "hardly matter")):
        some = sorted((f for f in found if f.matters == matters), key=lambda f: -f.median)
        if some:
            parts = [f"{f.name} ({f.median:.2f}, at most {f.most:.2f})" for f in some]
            said.append(
                f"Conditions that {words} (median change of the lifetime ratio, all else equal): "
                f"{'; '.join(parts)}."
            )
    return said


def _assignments(assigned: Sequence[Assigned]) -> str:
    """Share of the oracle's gain that each assignment reaches."""
    shares: dict[str, list[float]] = defaultdict(list)
    for one in assigned:
        names = list(one.waf)
        worst, best = one.waf[names[0]], one.waf[ORACLE]
        if worst - best < MATTERS / 2:
            continue
        for name in names[1:-1]:
            shares[name].append(100 * (worst - one.waf[name]) / (worst - best))
    if not shares:
        return ""
    parts = [f"{name} {min(won):.0f} to {max(won):.0f} %" for name, won in shares.items()]
    return (
        "Of the write amplification that an oracle with as many streams avoids, these avoid: "
        f"{'; '.join(parts)}."
    )


def _io(rows: Sequence[Row]) -> str:
    reached = sum(row.io_ratio >= CLAIMED_IO for row in rows)
    reached_cached = sum(row.io_ratio_cached >= CLAIMED_IO for row in rows)
    best = max(rows, key=lambda row: row.io_ratio_cached)
    return (
        f"The drive sustains {_span([r.io_ratio for r in rows])} times as many operations if "
        "every read of the client goes to it, "
        f"{_span([r.io_ratio_cached for r in rows])} times if caches serve all reads. The claimed "
        f"{CLAIMED_IO:g} is reached in {reached} and {reached_cached} of {len(rows)} sets of "
        f"conditions; the best is {describe(best.case)}."
    )


def _settled(rows: Sequence[Row]) -> str:
    """The number of drives that had not settled; empty if all had."""
    moved = [max(abs(side.waf_drift or 0.0) for side in (row.off, row.on)) for row in rows]
    unsettled = sum(drift > SETTLED for drift in moved)
    if not unsettled:
        return ""
    return (
        f"In {unsettled} of {len(rows)} sets of conditions write amplification still changed by "
        f"more than {100 * SETTLED:.0f} % in the last quarter, at most by {100 * max(moved):.0f} %."
    )

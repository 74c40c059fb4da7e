"""What `fms-cassandra` found: which conditions make streams matter, and what comes of the claim.

Nothing is known beforehand: every sentence is made of the rows that were measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from writecliff.experiments.fms_cassandra import (
    CLAIMED_IO,
    CLAIMED_LIFETIME,
    ORACLE,
    Assigned,
    Case,
    Row,
)

# What a condition has to change in the ratio of lifetimes to be said to matter.
MATTERS = 0.1
# How much write amplification may still move in the last quarter of a drive that has settled.
SETTLED = 0.05
# How near a ratio counts as the deck's.
NEAR = 0.1


@dataclass(frozen=True)
class Factor:
    """One condition while all others stay: by how much the ratio of lifetimes moves."""

    name: str
    levels: tuple[str, ...]
    least: float
    median: float
    most: float
    groups: int

    @property
    def matters(self) -> bool:
        return self.median >= MATTERS


_NAMES: dict[str, tuple[str, Callable[[Case], object], Callable[[Case], str]]] = {
    "trim": ("TRIM", lambda c: c.trim, lambda c: "on" if c.trim else "off"),
    "allocator": ("allocator", lambda c: c.allocator, lambda c: c.allocator),
    "fill": ("files at their peak", lambda c: c.fill_pct, lambda c: f"{c.fill_pct:g} %"),
    "nodes": ("nodes", lambda c: c.nodes, lambda c: str(c.nodes)),
    "unit": ("reclaim unit / table", lambda c: c.unit_share, lambda c: f"{c.unit_share:g}"),
}


def factors(rows: Sequence[Row]) -> tuple[Factor, ...]:
    """Each condition's spread of the lifetime ratio over rows that agree in everything else. The
    allocator's is taken without TRIM and with it: it decides which dead data are overwritten, and
    with TRIM there are none."""
    found = []
    for key in _NAMES:
        if key != "allocator":
            found.append(_factor(key, _NAMES[key][0], rows))
            continue
        for trim in (False, True):
            some = [row for row in rows if row.case.trim == trim]
            name = f"allocator, TRIM {'on' if trim else 'off'}"
            found.append(_factor(key, name, some))
    return tuple(factor for factor in found if factor is not None)


def _factor(key: str, name: str, rows: Sequence[Row]) -> Factor | None:
    others = [pick for other, (_, pick, _) in _NAMES.items() if other != key]
    _, own, text = _NAMES[key]
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(pick(row.case) for pick in others)].append(row)
    spreads = [
        max(r.lifetime_ratio for r in group) - min(r.lifetime_ratio for r in group)
        for group in groups.values()
        if len({own(r.case) for r in group}) > 1
    ]
    if not spreads:
        return None
    levels = tuple(dict.fromkeys(text(row.case) for row in rows))
    return Factor(name, levels, min(spreads), median(spreads), max(spreads), len(spreads))


def describe(case: Case) -> str:
    """The conditions in words."""
    nodes = "one node" if case.nodes == 1 else f"{case.nodes} nodes"
    trim = "TRIM" if case.trim else f"no TRIM, {case.allocator}"
    share = "" if case.unit_share == 1 else f", units of {case.unit_share:g} tables"
    return f"{nodes}, {case.fill_pct:g} % full, {trim}{share}"


def findings(rows: Sequence[Row], assigned: Sequence[Assigned]) -> tuple[str, ...]:
    """What an engineer would want to be told, in sentences."""
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
        f"Streams lengthen the drive's life {_span([r.lifetime_ratio for r in rows])} times. "
        f"The claimed {CLAIMED_LIFETIME:g} is reached, to a tenth, in {count}; most in "
        f"{describe(best.case)}: write amplification {best.off.waf:.2f} without streams, "
        f"{best.on.waf:.2f} with them, {best.lifetime_ratio:.2f} times. In {nothing} streams win "
        "less than 5 %."
    )


def _trim(rows: Sequence[Row]) -> str:
    """TRIM and streams against one another, in places measured with both."""
    with_trim = {_place(r): r for r in rows if r.case.trim}
    pairs = [(with_trim[_place(r)], r) for r in rows if not r.case.trim and _place(r) in with_trim]
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
        f"With TRIM streams lengthen life {trimmed_life} times, without {other_life} times. "
        f"Median write amplification: {shown}. TRIM alone does as well as streams alone, or "
        f"better, in {better} of {len(pairs)} sets of conditions."
    )


def _place(row: Row) -> tuple[object, ...]:
    case = row.case
    return case.nodes, case.allocator, case.fill_pct, case.unit_share


def _matter(rows: Sequence[Row]) -> list[str]:
    found = factors(rows)
    said = []
    for matters, words in ((True, "matter"), (False, "hardly matter")):
        some = sorted((f for f in found if f.matters == matters), key=lambda f: -f.median)
        if some:
            parts = [f"{f.name} ({f.median:.2f}, at most {f.most:.2f})" for f in some]
            said.append(
                f"Conditions that {words} (what they change in the ratio of lifetimes, in the "
                f"middle, all else equal): {'; '.join(parts)}."
            )
    return said


def _assignments(assigned: Sequence[Assigned]) -> str:
    """How much of what the oracle wins each assignment wins."""
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
        f"The drive carries {_span([r.io_ratio for r in rows])} times as many operations if "
        "every read of the client goes to it, "
        f"{_span([r.io_ratio_cached for r in rows])} times if caches meet all reads. The claimed "
        f"{CLAIMED_IO:g} is reached in {reached} and {reached_cached} of {len(rows)} sets of "
        f"conditions; most in {describe(best.case)}."
    )


def _settled(rows: Sequence[Row]) -> str:
    """Which figures are of a drive that is still on its way."""
    moved = [max(abs(side.waf_drift or 0.0) for side in (row.off, row.on)) for row in rows]
    unsettled = sum(drift > SETTLED for drift in moved)
    if not unsettled:
        return ""
    return (
        f"In {unsettled} of {len(rows)} sets of conditions write amplification still moved by more "
        f"than {100 * SETTLED:.0f} % in the last quarter, at most by {100 * max(moved):.0f} %."
    )

"""What comparisons put side by side of two data-centre drives (PM863 white paper, 2015): mixes by
queue depth with reads and writes apart (tables 4 to 11), messenger (figure 6), servers (7 to 10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import mix_text
from writecliff.report.axes import depth_axis
from writecliff.report.campaigns.datacentre_results import (
    messenger,
    mix_consistency_pct,
    profile_and_depth,
)
from writecliff.report.campaigns.results import MS, Steps
from writecliff.report.compared import Grid

Value = Callable[[StepRow], float | None]
OPERATIONS = {"read": 0.0, "write": 100.0}  # with the share of reads at which there are none
_SLOW = (("p999", "99.9 %", 0.999), ("p9999", "99.99 %", 0.9999), ("max", "Maximum", 1.0))
_NINES = (0.99, 0.999, 0.9999)


def mix_cells(steps: Steps) -> Sequence[StepRow]:
    """The steps of the part "mixes" that were run at every queue depth: those of the first block
    size."""
    rows = steps.data.stage_rows("mixes")
    return [row for row in rows if row.block_bytes == rows[0].block_bytes]


def datacentre_grids(steps: Steps) -> list[Grid]:
    """All of them, as far as the run has their parts."""
    return [*_mixes(steps), *_messenger(steps), *_servers(steps)]


def _mixes(steps: Steps) -> Iterator[Grid]:
    cells = mix_cells(steps)
    for operation, none in OPERATIONS.items():
        rows, name = [row for row in cells if row.read_pct != none], operation.capitalize()
        if rows:
            speed = partial(steps.iops, operation=operation)
            yield _mix_grid(f"{operation}-iops", f"{name} IOPS", rows, speed, "IOPS")
            for key, title, q in _SLOW:
                slow = partial(_latency_ms, steps, q=q, operation=operation)
                full = f"{title} response time of {operation}s"
                yield _mix_grid(f"{operation}-{key}", full, rows, slow, "ms")
    for operation in OPERATIONS:
        yield consistency_grid(steps, operation)


def consistency_grid(steps: Steps, operation: str) -> Grid:
    """IOPS consistency of one operation by mix and queue depth; empty where steps are too short."""
    rows = [row for row in mix_cells(steps) if row.read_pct != OPERATIONS[operation]]
    value = partial(mix_consistency_pct, steps, operation=operation)
    return _mix_grid(
        f"{operation}-consistency", f"IOPS consistency of {operation}s", rows, value, "%"
    )


def _latency_ms(steps: Steps, row: StepRow, q: float | None, operation: str | None) -> float | None:
    value = steps.latency_ns(row, q, operation)
    return None if value is None else value / MS


def _mix_grid(name: str, title: str, rows: Sequence[StepRow], value: Value, unit: str) -> Grid:
    """A grid of queue depths by mixes."""
    found = {(str(row.queue_depth), mix_text(row.read_pct or 0.0)): value(row) for row in rows}
    return Grid(
        name=f"mixes-{name}",
        title=f"{title} by mix and queue depth",
        corner="QD, R/W",
        rows=sorted({depth for depth, _ in found}, key=int),
        columns=list(dict.fromkeys(mix for _, mix in found)),
        values={key: number for key, number in found.items() if number is not None},
        unit=unit,
        higher_is_better=unit != "ms",
    )


def _messenger(steps: Steps) -> Iterator[Grid]:
    found = messenger(steps)
    if found is None:
        return
    yield Grid(
        name="messenger-iops",
        title="Messenger service: read IOPS of a thread",
        corner="",
        rows=["Readers"],
        columns=["Read IOPS"],
        values={("Readers", "Read IOPS"): found.reader_iops},
        unit="IOPS",
        higher_is_better=True,
        drawn="bars",
    )
    slow = {units.nines(q): found.readers_ns(q) for q in _NINES}
    yield Grid(
        name="messenger-latency",
        title="Messenger service: response times of reads",
        corner="Percentile",
        rows=list(slow),
        columns=["Response time"],
        values={(q, "Response time"): ns / MS for q, ns in slow.items() if ns is not None},
        unit="ms",
        higher_is_better=False,
        drawn="bars",
    )


def _servers(steps: Steps) -> Iterator[Grid]:
    rows = steps.data.stage_rows("servers")
    if not rows:
        return
    loads = [(*profile_and_depth(steps, row), row) for row in rows]
    depths = sorted({depth for _, depth, _ in loads})
    kinds: tuple[tuple[str, str, Value, str], ...] = (
        ("iops", "IOPS of servers", steps.iops, "IOPS"),
        ("latency", "Average response time of servers",
         partial(_latency_ms, steps, q=None, operation=None), "ms"),
    )  # fmt: skip
    for name, title, value, unit in kinds:
        found = {(str(depth), profile): value(row) for profile, depth, row in loads}
        yield Grid(
            name=f"servers-{name}",
            title=title,
            corner="QD",
            rows=[str(depth) for depth in depths],
            columns=list(dict.fromkeys(profile for profile, _, _ in loads)),
            values={key: number for key, number in found.items() if number is not None},
            unit=unit,
            higher_is_better=unit != "ms",
            drawn="lines",
            x=depth_axis(depths),
            places=[float(depth) for depth in depths],
        )

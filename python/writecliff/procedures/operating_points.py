"""Operating points of a demand variation, which are the loads to examine response times at.

The rule (PTS-E 1.1, ECW and DIRTH) applies to the cells of threads x queue depth whose average
response time is below 5 ms:

    MaxIOPS   the cell with the most IOPS
    MinIOPS   the cell with the least load: TC 1/QD 1
    MidIOPS   the cell whose IOPS are closest to half-way between the two

Among equal cells, the cell with the shorter response time is selected, then the cell with fewer
outstanding I/Os. If no cell is below the limit, there is no operating point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.procedures.model import StageHistory, StepRow

ART_LIMIT_MS = 5.0
KNEE_SHARE = 0.9
Name = Literal["max", "mid", "min"]
NAMES: tuple[Name, ...] = ("max", "mid", "min")  # Operating points in the standard's order.


@dataclass(frozen=True)
class Cell:
    """A load of a demand variation, averaged over its rounds."""

    threads: int
    queue_depth: int
    iops: float
    art_ns: float  # Average response time; NaN if no I/O was completed.
    cpu_pct: float | None = None

    @property
    def outstanding(self) -> int:
        """Total number of outstanding I/Os of all threads."""
        return self.threads * self.queue_depth


def cells_of(rows: Iterable[StepRow]) -> tuple[Cell, ...]:
    """Return the cells of `rows`, averaged over the rounds, in loop order.

    All rows must belong to the loop.
    """
    by_load: dict[tuple[int, int], list[StepRow]] = {}
    for row in rows:
        if row.threads is not None and row.queue_depth is not None:
            by_load.setdefault((row.threads, row.queue_depth), []).append(row)
    return tuple(_cell(load, group) for load, group in by_load.items())


def _cell(load: tuple[int, int], rows: Sequence[StepRow]) -> Cell:
    latencies = [row.latency_mean_ns for row in rows if row.latency_mean_ns is not None]
    busy = [row.cpu_busy_pct for row in rows if row.cpu_busy_pct is not None]
    return Cell(
        *load,
        iops=sum(row.iops for row in rows) / len(rows),
        art_ns=sum(latencies) / len(latencies) if len(latencies) == len(rows) else math.nan,
        cpu_pct=sum(busy) / len(busy) if busy else None,
    )


def operating_points(
    cells: Sequence[Cell], *, limit_ms: float = ART_LIMIT_MS
) -> Mapping[Name, Cell]:
    """Return the operating points among `cells`, or none if no cell is below the limit."""
    # This comparison excludes NaN.
    allowed = [cell for cell in cells if cell.art_ns < limit_ms * 1e6]
    if not allowed:
        return {}
    highest = min(allowed, key=lambda cell: (-cell.iops, cell.art_ns, cell.outstanding))
    lowest = min(allowed, key=lambda cell: (cell.outstanding, cell.threads))
    middle = (highest.iops + lowest.iops) / 2
    mid = min(allowed, key=lambda cell: (abs(cell.iops - middle), cell.art_ns, cell.outstanding))
    return {"max": highest, "mid": mid, "min": lowest}


def knee(cells: Sequence[Cell]) -> Cell | None:
    """Return the smallest load that reaches `KNEE_SHARE` of the highest IOPS.

    Beyond this load, more load mainly increases the response time. The result is `None` if there
    are no cells.
    """
    enough = KNEE_SHARE * max((cell.iops for cell in cells), default=0.0)
    able = [cell for cell in cells if cell.iops >= enough]
    return min(able, key=lambda cell: (cell.outstanding, -cell.iops), default=None)


def rows_considered(stage: StageHistory, source: str) -> list[StepRow]:
    """Return the rows of the window or the "last" round, which determine operating points."""
    if source == "last":
        return stage.round_rows(stage.rounds_done)
    return stage.window_rows()

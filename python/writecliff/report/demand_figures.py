"""The figures of ECW/CBW and DIRTH."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.procedures.demand_intensity import is_cell
from writecliff.report import figures
from writecliff.report.axes import Axis, Line, depth_axis, round_axis, time_axis
from writecliff.report.figures3d import columns_3d
from writecliff.report.latency import latency_table, latency_unit
from writecliff.report.model import Figure, Table, drawn
from writecliff.report.plots import lines

if TYPE_CHECKING:
    from writecliff.procedures.model import StepRow
    from writecliff.procedures.operating_points import Cell, Name
    from writecliff.report.demand import DemandData

IOPS = Axis("IOPS")


def prewrites(demand: DemandData, data: str) -> tuple[Figure, ...]:
    """Plot 3: the pre-writes one after the other, as if nothing was between them."""
    stage = demand.rounds
    rows = [row for row in stage.rows if not is_cell(row)] if stage is not None else []
    return _writes("prewrites", "Between-round pre-writes", "IOPS of a pre-write", rows, data)


def _writes(
    name: str, title: str, label: str, rows: Sequence[StepRow], data: str
) -> tuple[Figure, ...]:
    """IOPS of steps over the time spent in them."""
    middles, elapsed_ns = [], 0
    for row in rows:
        middles.append(elapsed_ns + row.elapsed_ns / 2)
        elapsed_ns += row.elapsed_ns
    text = "IOPS of every pre-write step over the time spent in them"
    x = time_axis(elapsed_ns, "Time of pre-writes")
    series = [Line(label, middles, [row.iops for row in rows])]
    svg = lines(name, series, x, IOPS, description=text, joined=False) if rows else None
    return drawn(name, title, svg, data, text)


def tracking(demand: DemandData, data: str) -> tuple[Figure, ...]:
    """Plot 4: the cells of the tracked thread count over the rounds, a line a queue depth."""
    stage, (threads, _) = demand.rounds, demand.procedure.tracked
    if stage is None:
        return ()
    series = []
    for depth in demand.procedure.options.queue_depths:
        rows = [
            row
            for row in stage.rows
            if is_cell(row) and (row.threads, row.queue_depth) == (threads, depth)
        ]
        label = f"QD={depth}"
        series.append(Line(label, [row.round for row in rows], [row.iops for row in rows]))
    decision = stage.decision
    rounds = decision.rounds if decision is not None else ()
    text = f"IOPS of TC {threads} by queue depth over rounds"
    svg = lines(
        "dv-convergence",
        series,
        round_axis(),
        IOPS,
        description=text,
        window=(rounds[0] - 0.4, rounds[-1] + 0.4) if rounds else None,
        window_label=f"window, rounds {rounds[0]}-{rounds[-1]}" if rounds else "",
    )
    return drawn("dv-convergence", f"DV IOPS, TC={threads}, all QD", svg, data, text)


def variation(demand: DemandData, data: str) -> tuple[Figure, ...]:
    """Plots 6, 7 and 8: IOPS over queue depth, response time over IOPS, CPU use."""
    if not demand.cells:
        return ()
    groups = {
        threads: sorted(
            (cell for cell in demand.cells if cell.threads == threads),
            key=lambda cell: cell.queue_depth,
        )
        for threads in sorted({cell.threads for cell in demand.cells})
    }
    by_depth = [
        Line(f"TC={threads}", [c.queue_depth for c in row], [c.iops for c in row])
        for threads, row in groups.items()
    ]
    by_iops = [
        Line(f"TC={threads}", [c.iops for c in row], [c.art_ns for c in row])
        for threads, row in groups.items()
    ]
    depths = depth_axis(cell.queue_depth for cell in demand.cells)
    text = "IOPS over queue depth, a line a thread count"
    svg = lines("demand-variation", by_depth, depths, IOPS, description=text)
    found = drawn("demand-variation", "Demand Variation", svg, data, text)
    text = "Average response time over IOPS, a line a thread count, points by rising queue depth"
    ms = Axis("Average response time", units=(units.LATENCY_UNITS[2],), log=True)
    svg = lines("demand-intensity", by_iops, IOPS, ms, description=text)
    found += drawn("demand-intensity", "Demand Intensity", svg, data, text)
    return found + _cpu(groups, data)


def _cpu(groups: dict[int, list[Cell]], data: str) -> tuple[Figure, ...]:
    """Plot 8; none where the CPU use is unknown (simulated drives have no host)."""
    depths = sorted({cell.queue_depth for row in groups.values() for cell in row})
    values = []
    for row in groups.values():
        known = {cell.queue_depth: cell.cpu_pct for cell in row}
        values.append([_number(known.get(depth)) for depth in depths])
    text = "CPU utilisation of the system by queue depth and thread count"
    svg = columns_3d(
        "cpu",
        [f"{depth}" for depth in depths],
        [f"TC={threads}" for threads in groups],
        values,
        "Queue depth",
        "Threads",
        Axis("CPU (%)", top=100.0),
        description=text,
    )
    title = "System CPU utilisation during the demand variation"
    return drawn("cpu", title, svg, data, text, wide=True)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def point(demand: DemandData, name: Name, steps: str, buckets: str) -> tuple[Figure, ...]:
    """Plots 9 to 14: pre-writes and histogram of an operating point, and its confidence plot."""
    before, _ = demand.point_rows(name)
    title = f"{name.capitalize()} IOPS"
    found = _writes(
        f"{name}-prewrites", f"{title}: pre-writes", "IOPS of a pre-write", before, steps
    )
    histogram = demand.histograms.get(name)
    if histogram is None:
        return found
    longest = units.latency(histogram.max_ns, latency_unit(histogram))
    found += drawn(
        f"{name}-histogram",
        f"{title}: response-time histogram (MRT {longest})",
        figures.response_time_histogram(f"{name}-histogram", histogram),
        buckets,
        "Number of I/Os by response time with average, nines and maximum",
    )
    return found + drawn(
        f"{name}-confidence",
        f"{title}: confidence level plot",
        figures.confidence(f"{name}-confidence", histogram),
        buckets,
        "Cumulative share of I/Os over response time",
    )


def point_tables(demand: DemandData, name: Name) -> tuple[Table, ...]:
    histogram = demand.histograms.get(name)
    if histogram is None:
        return ()
    return (replace(latency_table(histogram), title=f"Response times at {name.capitalize()} IOPS"),)

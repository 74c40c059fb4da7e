"""Figures for ECW/CBW and DIRTH reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from writecliff import units
from writecliff.procedures.demand_intensity import DemandProcedure, is_cell
from writecliff.procedures.model import StepRow
from writecliff.procedures.operating_points import Cell
from writecliff.report.axes import Axis, Line, depth_axis, time_axis
from writecliff.report.figures import convergence
from writecliff.report.figures3d import columns_3d
from writecliff.report.interaction import Label
from writecliff.report.model import Figure
from writecliff.report.plots import Marks, lines
from writecliff.report.steady import SteadyView, or_nan
from writecliff.report.table import DataFile

IOPS = Axis("IOPS")


def prewrites(name: str, title: str, data: DataFile, rows: Iterable[StepRow]) -> Figure | None:
    """Return the IOPS of the pre-writes over their running time, without gaps between steps."""
    middles, iops, elapsed_ns = [], [], 0
    for row in rows:
        middles.append(elapsed_ns + row.elapsed_ns / 2)
        iops.append(row.iops)
        elapsed_ns += row.elapsed_ns
    alt = "IOPS of every pre-write step over the time spent in them"
    x = time_axis(elapsed_ns, "Time of pre-writes")
    series = [Line("IOPS of a pre-write", middles, iops)]
    return lines(name, title, data, series, x, IOPS, alt=alt, joined=False)


def tracking(view: SteadyView, procedure: DemandProcedure[Any], data: DataFile) -> Figure | None:
    """Return the tracked thread count's cells by round, with a line per queue depth."""
    threads, _ = procedure.tracked
    series = []
    for depth in procedure.options.queue_depths:
        rows = [
            row
            for row in (view.stage.rows if view.stage is not None else ())
            if is_cell(row) and (row.threads, row.queue_depth) == (threads, depth)
        ]
        series.append(Line(f"QD={depth}", [row.round for row in rows], [row.iops for row in rows]))
    window = view.window if view.judged else ()
    title = f"DV IOPS, TC={threads}, all QD"
    return convergence("dv-convergence", title, data, series, window, IOPS)


def variation(cells: Sequence[Cell], data: DataFile) -> Iterator[Figure | None]:
    """Yield plots 6, 7 and 8.

    The plots show IOPS over queue depth, response time over IOPS, and CPU use.
    """
    groups: dict[int, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.threads, cell.queue_depth)):
        groups.setdefault(cell.threads, []).append(cell)
    by_depth = [
        Line(f"TC={threads}", [c.queue_depth for c in row], [c.iops for c in row])
        for threads, row in groups.items()
    ]
    by_iops = [
        Line(f"TC={threads}", [c.iops for c in row], [c.art_ns for c in row])
        for threads, row in groups.items()
    ]
    depths = depth_axis(cell.queue_depth for cell in cells)
    alt = "IOPS over queue depth, a line per thread count"
    yield lines("demand-variation", "Demand Variation", data, by_depth, depths, IOPS, alt=alt)
    alt = "Average response time over IOPS, a line per thread count, points by rising queue depth"
    ms = Axis("Average response time", units=(units.LATENCY_UNITS[2],), log=True)
    yield lines("demand-intensity", "Demand Intensity", data, by_iops, IOPS, ms, alt=alt)
    yield _cpu(groups, data)


def by_outstanding(
    cells: Sequence[Cell], best: Cell | None, data: DataFile
) -> Iterator[Figure | None]:
    """Yield IOPS and response time over outstanding I/Os, with the knee marked.

    Beyond the knee, more outstanding I/Os increase the response time and hardly increase the IOPS
    (SNIA primer, figure 18).
    """
    order = sorted(cells, key=lambda cell: (cell.threads, cell.outstanding))
    most = max(cell.outstanding for cell in cells)
    named = [4**power for power in range(10) if 4**power < 4 * most]  # More ticks would overlap.
    x = depth_axis(named, Label("Outstanding I/Os", note="threads x queue depth"))
    art = Axis("Average response time", units=units.LATENCY_UNITS, log=True)
    for name, title, y, value in (
        ("outstanding-iops", "IOPS v outstanding I/Os", IOPS, attrgetter("iops")),
        ("outstanding-art", "Response time v outstanding I/Os", art, attrgetter("art_ns")),
    ):
        series = [
            Line(f"TC={threads}", [c.outstanding for c in row], [value(c) for c in row])
            for threads, row in ((t, list(g)) for t, g in groupby(order, attrgetter("threads")))
        ]
        marks = []
        if best is not None and value(best) > 0:
            label = f"optimum, TC{best.threads}/QD{best.queue_depth}"
            marks = [Marks(label, [(best.outstanding, value(best))])]
        alt = f"{y.label} over threads times queue depth, a line per thread count"
        yield lines(name, title, data, series, x, y, marks=marks, alt=alt)


def _cpu(groups: Mapping[int, Sequence[Cell]], data: DataFile) -> Figure | None:
    """Return plot 8, or None if CPU use is unknown (simulated drives have no host)."""
    depths = sorted({cell.queue_depth for row in groups.values() for cell in row})
    values = []
    for row in groups.values():
        busy = {cell.queue_depth: cell.cpu_pct for cell in row}
        values.append([or_nan(busy.get(depth)) for depth in depths])
    return columns_3d(
        "cpu",
        "System CPU utilisation during the demand variation",
        data,
        [f"{depth}" for depth in depths],
        [f"TC={threads}" for threads in groups],
        values,
        "Queue depth",
        "Threads",
        Axis(Label("CPU", "%"), top=100.0),
        alt="CPU utilisation of the system by queue depth and thread count",
    )

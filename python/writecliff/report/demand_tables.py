"""The tables of ECW/CBW and DIRTH."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.procedures import ecw_load
from writecliff.procedures.operating_points import NAMES, Cell
from writecliff.report.model import Align, Table

if TYPE_CHECKING:
    from writecliff.report.demand import DemandData

RIGHT: Align = "right"


def cell_tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """IOPS and average response time by threads and queue depth."""
    if not cells:
        return ()
    return (
        _grid("IOPS", cells, lambda cell: units.number(cell.iops, 1)),
        _grid(
            "Average response time (ms)", cells, lambda cell: units.significant(cell.art_ns / 1e6)
        ),
    )


def _grid(title: str, cells: Sequence[Cell], text: Callable[[Cell], str]) -> Table:
    known = {(cell.threads, cell.queue_depth): text(cell) for cell in cells}
    depths = sorted({depth for _, depth in known})
    rows = tuple(
        (f"TC={threads}", *(known.get((threads, depth), units.UNKNOWN) for depth in depths))
        for threads in sorted({threads for threads, _ in known})
    )
    return Table(
        title,
        ("", *(f"QD={depth}" for depth in depths)),
        rows,
        ("left", *[RIGHT] * len(depths)),
    )


def points_table(demand: DemandData) -> tuple[Table, ...]:
    """The operating points with what their histograms say."""
    if not demand.cells:
        return ()
    rows = []
    for name in NAMES:
        cell, histogram = demand.points.get(name), demand.histograms.get(name)
        label = f"{name.capitalize()} IOPS"
        if cell is None:
            rows.append((label, "no operating point", *[units.UNKNOWN] * 5))
            continue
        rows.append(
            (
                label,
                f"TC {cell.threads}/QD {cell.queue_depth}",
                units.number(cell.iops, 1),
                units.latency(cell.art_ns),
                units.latency(histogram.mean_ns if histogram is not None else None),
                units.latency(histogram.quantile(0.99999).value_ns if histogram else None),
                units.latency(histogram.max_ns if histogram is not None else None),
            )
        )
    return (
        Table(
            "Operating points",
            ("", "Load", "IOPS", "ART", "ART of RTH", "99.999 % of RTH", "MRT of RTH"),
            tuple(rows),
            ("left", "left", "right", "right", "right", "right", "right"),
        ),
    )


def composition_table() -> tuple[Table, ...]:
    """Block sizes and zones of the composite."""
    total = sum(share for _, share in ecw_load.SIZES)
    sizes = tuple(
        (
            f"{size / 1024:g} KiB",
            f"{100 * share / total:g} %",
            f"{100 * size * share / total / ecw_load.MEAN_BYTES:.1f} %",
        )
        for size, share in ecw_load.SIZES
    )
    zones, first = [], 0.0
    for zone in ecw_load.ZONES:
        last = first + zone.size_pct
        zones.append((f"{first:g} to {last:g} %", f"{zone.access_pct:g} %"))
        first = last
    return (
        Table(
            "Block sizes",
            ("Block size", "Share of accesses", "Share of bytes"),
            sizes,
            ("left", "right", "right"),
            f"Mean transfer {ecw_load.MEAN_BYTES / 1024:.3f} KiB.",
        ),
        Table(
            "Zones of addresses",
            ("Addresses", "Share of accesses"),
            tuple(zones),
            ("left", "right"),
        ),
    )

"""A figure of steps over time, with each step's block size as a second track in the background."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.procedures.pts import mix_text
from writecliff.report import style
from writecliff.report.csvs import data_file
from writecliff.report.interaction import Label
from writecliff.report.model import Figure
from writecliff.report.series import series
from writecliff.report.style import house_style
from writecliff.units import KIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from writecliff.report.testdata import TestData

WIDTH_IN = 8.6  # Width, in inches, of a figure that spans the page.
# Number of segments per step; a segment is five seconds in the standard's one-minute step.
PARTS = 12


def two_tracks(rows: Sequence[StepRow], unit: units.Unit, label: str) -> tuple[Drawing, Axes, Axes]:
    """Return a wide figure over the duration of `rows`, and its two plots.

    The plot for `label` uses the left axis. The block size bars in the background use the right
    axis, which is logarithmic.
    """
    zero_ns = rows[0].started_ns
    figure = style.new_figure(width_in=WIDTH_IN)
    plot = style.add_axes(figure, Label("Time", unit.name), top_axis=True, right_in=0.62)
    bars = plot.twinx()
    bars.set_zorder(plot.get_zorder() - 1)
    plot.set_facecolor("none")
    begins = [(row.started_ns - zero_ns) / unit.size for row in rows]
    widths = [row.elapsed_ns / unit.size for row in rows]
    sizes = [(row.block_bytes or 0) / KIB for row in rows]
    bars.bar(begins, sizes, widths, align="edge", color=style.WINDOW, label="block size (right)")
    bars.set_yscale("log", base=2)
    bars.set_yticks([size for size in sorted(set(sizes)) if size])
    bars.get_yaxis().set_major_formatter(lambda value, _: f"{value:g}")
    bars.minorticks_off()
    # The smallest bar must remain visible.
    bars.set_ylim(min(filter(None, sizes)) / 2, max(sizes) * 1.3)
    bars.spines["right"].set_visible(True)
    plot.set_xlim(0, (rows[-1].ended_ns - zero_ns) / unit.size)
    style.write_above(figure, 0.08, label, row=1, of=plot)
    right_in = WIDTH_IN - 0.08
    style.write_above(figure, right_in, Label("Block size", "KiB"), row=1, right=True, of=bars)
    return figure, plot, bars


@house_style()
def block_size_sequence(data: TestData, rows: Sequence[StepRow], title: str) -> Figure | None:
    """Draw the IOPS over a round of mixes and block sizes (SNIA primer, figure A-2).

    A point covers a twelfth of a step. The result is `None` if no step was measured.
    """
    parts = _parts(data, rows)
    if not parts or not any(row.block_bytes for row in rows):
        return None
    middle, iops = (np.array(column) for column in list(zip(*parts, strict=True))[1:])
    unit = units.time_unit(float(rows[-1].ended_ns - rows[0].started_ns))
    figure, plot, bars = two_tracks(rows, unit, Label("IOPS", note="logarithmic"))
    plot.plot(middle / unit.size, iops, color=style.SERIES[0], linewidth=1.1, label="IOPS (left)")
    positive = iops[iops > 0]
    if not len(positive):
        return None
    style.log_axis(plot, "y", float(positive.min()) / 1.4, float(positive.max()) * 2.2, style.plain)
    _mixes(plot, rows, unit)
    style.legend(figure, plot, bars)
    alt = "IOPS over one round, with the block size of each step as bars and the mixes named"
    lines = ((at, row.block_bytes, row.read_pct, value) for row, at, value in parts)
    file = data_file("sequence.csv", ("middle_ns", "block_bytes", "read_pct", "iops"), lines)
    return style.finished(figure, "sequence", title, file, alt, wide=True)


def _mixes(plot: Axes, rows: Sequence[StepRow], unit: units.Unit) -> None:
    """Draw a line between mixes, and the name of each mix at the top."""
    zero_ns = rows[0].started_ns
    for mix, steps in groupby(rows, key=lambda row: row.read_pct):
        part = list(steps)
        begin, end = ((ns - zero_ns) / unit.size for ns in (part[0].started_ns, part[-1].ended_ns))
        if begin > 0:
            plot.axvline(begin, color=style.MUTED, lw=0.7, ls=(0, (3, 3)))
        plot.annotate(
            mix_text(mix or 0.0),
            ((begin + end) / 2, 0.985),
            xycoords=plot.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=8,
        )


def _parts(data: TestData, rows: Sequence[StepRow]) -> list[tuple[StepRow, float, float]]:
    """Return each step's `PARTS` equal parts with their midpoints and IOPS.

    Midpoints are in ns since the start of the first step. Intervals of 1 s are too short for large
    block sizes.
    """
    intervals, parts = series(data, rows), []
    zero_ns = rows[0].started_ns
    for row in rows:
        mine = intervals.seq == data.seq(row)
        begin_ns, length_ns = float(row.started_ns - zero_ns), row.elapsed_ns / PARTS
        if not mine.any() or not length_ns:
            continue
        number = (intervals.middle_ns[mine] - begin_ns) // length_ns
        part = number.clip(0, PARTS - 1).astype(np.int64)
        ios = np.bincount(part, weights=intervals.ios[mine], minlength=PARTS)
        width = np.bincount(part, weights=intervals.width_ns[mine], minlength=PARTS)
        parts += [
            (row, begin_ns + (n + 0.5) * length_ns, float(ios[n] / width[n] * 1e9))
            for n in range(PARTS)
            if width[n] > 0
        ]
    return parts

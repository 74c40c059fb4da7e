"""Power over time for a simulated drive with a power model or a real drive with a meter.

A run's intervals have a column in watts if the engine reports power. For real drives, the readings
of a meter on the power supply are stored with the run (see `power_meter.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.report import style
from writecliff.report.csvs import data_file
from writecliff.report.interaction import Label
from writecliff.report.model import Figure
from writecliff.report.power_meter import Readings, readings_of
from writecliff.report.sequence import PARTS, two_tracks
from writecliff.report.series import timeline
from writecliff.report.style import house_style
from writecliff.report.table import DataFile
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    import numpy.typing as npt

    from writecliff.report.axes import Numbers

COLUMN = "watts"
POWER_CSV = "power.csv"


@dataclass(frozen=True)
class PowerSeries:
    """Power in W over intervals, with times in ns since the start of the first step."""

    data: TestData
    seq: npt.NDArray[np.int64]
    begin_ns: Numbers
    end_ns: Numbers
    watts: Numbers

    def mean_of(self, row: StepRow) -> float | None:
        """Return a step's time-weighted mean power in W, or None if unknown."""
        mine = self.seq == self.data.seq(row)
        width = (self.end_ns - self.begin_ns)[mine]
        if not width.sum():
            return None
        return float((self.watts[mine] * width).sum() / width.sum())

    def file(self, name: str = POWER_CSV) -> DataFile:
        """Return the power series as CSV."""
        columns = (self.begin_ns.tolist(), self.end_ns.tolist(), self.watts.tolist())
        head = ("begin_ns", "end_ns", "watts")
        return data_file(name, head, zip(*columns, strict=True))


def power_of(data: TestData, rows: Sequence[StepRow]) -> PowerSeries | None:
    """Return the power during `rows`, or None if it was not measured."""
    if not rows:
        return None
    metered = readings_of(data.run.path)
    if metered is not None:
        return _of_meter(data, rows, metered)
    columns = data.run.query("select * from intervals limit 0").column_names
    if COLUMN not in columns:
        return None
    measured = data.run.query(
        f"select seq, end_ns, max({COLUMN}) as watts from intervals "
        f"where seq in (select unnest(?::int[])) and {COLUMN} is not null and not isnan({COLUMN}) "
        "group by seq, end_ns order by seq, end_ns",
        [[data.seq(row) for row in rows]],
    )
    if not measured.num_rows:
        return None
    seq = measured.column("seq").to_numpy().astype(np.int64)
    inside_ns = measured.column("end_ns").to_numpy().astype(np.float64)
    watts = measured.column("watts").to_numpy().astype(np.float64)
    return PowerSeries(data, seq, *timeline(data, rows, seq, inside_ns), watts)


def _of_meter(data: TestData, rows: Sequence[StepRow], metered: Readings) -> PowerSeries | None:
    """Return the readings during steps; each reading applies until the next reading."""
    first_ns, zero_ns = data.rows[0].started_ns, rows[0].started_ns
    begin_ns = metered.times_s * 1e9 + first_ns
    gap_ns = float(np.median(np.diff(begin_ns))) if len(begin_ns) > 1 else 1e9
    end_ns = np.append(begin_ns[1:], begin_ns[-1] + gap_ns)
    starts = np.array([row.started_ns for row in rows], dtype=np.float64)
    ends = np.array([row.ended_ns for row in rows], dtype=np.float64)
    step = np.searchsorted(starts, begin_ns, side="right") - 1
    inside = (step >= 0) & (begin_ns < ends[step])
    if not inside.any():
        return None
    step = step[inside]
    seq = np.array([data.seq(rows[int(index)]) for index in step], dtype=np.int64)
    until_ns = np.minimum(end_ns[inside], ends[step])
    return PowerSeries(data, seq, begin_ns[inside] - zero_ns, until_ns - zero_ns,
                       metered.watts[inside])  # fmt: skip


def _way(row: StepRow) -> str:
    """Return a step's line; reads and writes are never combined in a line."""
    read_pct = -1.0 if row.read_pct is None else row.read_pct
    return {100.0: "reads", 0.0: "writes"}.get(read_pct, "mixes")


WAYS = {"reads": 0, "writes": 4, "mixes": 2}  # Colour number by kind of load.


def _drawn(power: PowerSeries, rows: Sequence[StepRow | None]) -> tuple[Numbers, Numbers]:
    """Return the times and mean values of equal parts of each row in `rows`.

    A `None` in `rows` leaves a gap in the plotted line. Averaging over these parts smooths bursts
    in single intervals.
    """
    times: list[float] = []
    watts: list[float] = []
    for row in rows:
        if row is None:
            times.append(math.nan)
            watts.append(math.nan)
            continue
        mine = power.seq == power.data.seq(row)
        begin, width = power.begin_ns[mine], (power.end_ns - power.begin_ns)[mine]
        if not width.sum():
            continue
        from_ns, length_ns = float(begin[0]), float(begin[-1] + width[-1] - begin[0])
        count = min(PARTS, len(begin))
        part = np.minimum(((begin - from_ns) / length_ns * count).astype(np.int64), count - 1)
        for index in np.unique(part):
            here = part == index
            middle = from_ns + (float(index) + 0.5) * length_ns / count
            times.append(middle)
            watts.append(float((power.watts[mine][here] * width[here]).sum() / width[here].sum()))
    return np.array(times), np.array(watts)


@house_style()
def power_figure(
    power: PowerSeries,
    rows: Sequence[StepRow],
    name: str = "power-time",
    title: str = "Power v time",
    csv: str = POWER_CSV,
) -> Figure:
    """Draw power in W by direction, with each step's block size as bars (right axis)."""
    unit = units.time_unit(float(rows[-1].ended_ns - rows[0].started_ns))
    figure, plot, bars = two_tracks(rows, unit, Label("Power", "W"))
    bars.grid(False)
    highest = 0.0
    for way, number in WAYS.items():
        times, watts = _drawn(power, [row if _way(row) == way else None for row in rows])
        if not np.isnan(watts).all():
            highest = max(highest, float(np.nanmax(watts)))
            colour, label = style.SERIES[number], f"{way} (left)"
            plot.plot(times / unit.size, watts, color=colour, linewidth=1.2, label=label)
    style.linear_axis(plot, "y")
    plot.set_ylim(0, highest * 1.15)
    style.legend(figure, plot, bars)
    alt = "Power over time of reads, writes and mixes, with the block size as bars"
    return style.finished(figure, name, title, power.file(csv), alt, wide=True)

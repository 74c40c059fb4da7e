"""Power over time, where the drive reports it: so far only simulated drives do.

The intervals of a run have a column of watts if its engine knows them; those of real drives have
none, or only nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.procedures.model import StepRow
from writecliff.report import style
from writecliff.report.csvs import data_file
from writecliff.report.model import DataFile, Figure
from writecliff.report.sequence import two_tracks
from writecliff.report.series import timeline
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    import numpy.typing as npt

    from writecliff.report.axes import Numbers

COLUMN = "watts"
POWER_CSV = "power.csv"


@dataclass(frozen=True)
class PowerSeries:
    """Watts over intervals; times in ns since the first step of the series began."""

    data: TestData
    seq: npt.NDArray[np.int64]
    begin_ns: Numbers
    end_ns: Numbers
    watts: Numbers

    def mean_of(self, row: StepRow) -> float | None:
        """Mean power of a step, weighted by time; None if it is unknown."""
        mine = self.seq == self.data.seq(row)
        width = (self.end_ns - self.begin_ns)[mine]
        if not width.sum():
            return None
        return float((self.watts[mine] * width).sum() / width.sum())

    def file(self) -> DataFile:
        columns = (self.begin_ns.tolist(), self.end_ns.tolist(), self.watts.tolist())
        head = ("begin_ns", "end_ns", "watts")
        return data_file(POWER_CSV, head, zip(*columns, strict=True))


def power_of(data: TestData, rows: Sequence[StepRow]) -> PowerSeries | None:
    """The power of `rows`; None if it was not measured."""
    columns = data.run.query("select * from intervals limit 0").column_names
    if COLUMN not in columns or not rows:
        return None
    found = data.run.query(
        f"select seq, end_ns, max({COLUMN}) as watts from intervals "
        f"where seq in (select unnest(?::int[])) and {COLUMN} is not null and not isnan({COLUMN}) "
        "group by seq, end_ns order by seq, end_ns",
        [[data.seq(row) for row in rows]],
    )
    if not found.num_rows:
        return None
    seq = found.column("seq").to_numpy().astype(np.int64)
    inside_ns = found.column("end_ns").to_numpy().astype(np.float64)
    watts = found.column("watts").to_numpy().astype(np.float64)
    return PowerSeries(data, seq, *timeline(data, rows, seq, inside_ns), watts)


@house_style()
def power_figure(power: PowerSeries, rows: Sequence[StepRow]) -> Figure:
    """Watts as a line, and the block size of each step as a bar behind it (right axis)."""
    unit = units.time_unit(float(rows[-1].ended_ns - rows[0].started_ns))
    figure, plot, bars = two_tracks(rows, unit, "Power (W)")
    # Short intervals at the end of a step, in which its last I/Os complete, show an idle drive.
    width = power.end_ns - power.begin_ns
    whole = width >= np.median(width) / 2
    middle = ((power.begin_ns + power.end_ns) / 2 / unit.size)[whole]
    plot.plot(
        middle, power.watts[whole], color=style.SERIES[0], linewidth=1.2, label="power (left)"
    )
    style.linear_axis(plot, "y")
    plot.set_ylim(0, float(power.watts.max()) * 1.15)
    style.legend(figure, plot, bars)
    alt = "Power over time, with the block size as bars"
    return style.finished(figure, "power-time", "Power v time", power.file(), alt, wide=True)

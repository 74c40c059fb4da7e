"""Response time by percentile: the tail in full, several curves on common axes.

The x axis is the number of I/Os of which one is slower, on a logarithmic axis with its percentiles
as ticks. Only percentiles that enough I/Os support are drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.operation_names import plural_of
from writecliff.report import plots
from writecliff.report.axes import Axis, Line
from writecliff.report.csvs import histograms_csv
from writecliff.report.model import Figure
from writecliff.report.table import DataFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from writecliff._native import Histogram

_NINES = 5
_PER_DECADE = 8
_TICKS = (2.0, *(10.0**nines for nines in range(1, _NINES + 1)))
PERCENTILE = Axis(
    "Percentile of the I/Os", log=True, ticks=tuple((t, units.nines(1 - 1 / t)) for t in _TICKS)
)
RESPONSE = Axis("Response time", units=units.LATENCY_UNITS, log=True)


def percentile_figure(
    name: str, title: str, histograms: Mapping[str, Histogram], *, data: str = ""
) -> Figure | None:
    """A curve for each operation, with the buckets of the histograms as their data (`data` names
    the file); None without I/Os."""
    file = DataFile(data or f"{name}.csv", histograms_csv(histograms))
    lines = [percentile_line(plural_of(operation), h) for operation, h in histograms.items()]
    alt = f"Response time of {' and '.join(map(plural_of, histograms))} by percentile"
    return plots.lines(name, title, file, lines, PERCENTILE, RESPONSE, alt=alt)


def percentile_line(label: str, histogram: Histogram) -> Line:
    """The response times of a histogram by percentile, up to what its I/Os support."""
    x, y = [], []
    for step in range(round(math.log10(2) * _PER_DECADE), _NINES * _PER_DECADE + 1):
        one_in = 10 ** (step / _PER_DECADE)
        value = histogram.quantile(1 - 1 / one_in).value_ns
        if value is not None:
            x.append(one_in)
            y.append(float(value))
    return Line(label, x, y)

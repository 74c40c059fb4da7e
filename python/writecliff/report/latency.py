"""Response times of a histogram in every form that reports use: key figures, table, JSON.

All three show the same quantiles. A quantile that too few I/Os support is never made up: it is
"not enough samples" in words and null in JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.report import kinds
from writecliff.report.kinds import Span
from writecliff.report.model import KeyFigure
from writecliff.report.table import Column, Table, Value, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from writecliff._native import Histogram
    from writecliff.report.intervals import Bounds

NINES = (0.99, 0.999, 0.9999, 0.99999)
QUANTILES = (0.5, 0.9, *NINES)
_OVERALL = ("count", "min_ns", "mean_ns", "sd_ns", "max_ns")


def latency_mapping(
    histogram: Histogram, interval: Callable[[float], Bounds | None] | None = None
) -> dict[str, Any]:
    """Return the JSON form of a histogram: times in ns, percentiles with their 95 % intervals.

    `interval` returns the interval of a quantile from batches. Without it the I/Os are assumed to
    be independent, so the intervals are lower bounds of the uncertainty.
    """
    return {
        **{name: getattr(histogram, name) for name in _OVERALL},
        "percentiles": [_percentile(histogram, q, interval) for q in QUANTILES],
    }


def _percentile(
    histogram: Histogram, q: float, interval: Callable[[float], Bounds | None] | None
) -> dict[str, Any]:
    quantile = histogram.quantile(q)
    found = {
        "pct": round(100 * q, 6),
        **{name: getattr(quantile, name) for name in ("value_ns", "low_ns", "high_ns", "count")},
    }
    if interval is not None:
        bounds = interval(q)
        low, high, degrees = (None,) * 3 if bounds is None else bounds
        found |= {"low_ns": low, "high_ns": high, "degrees": degrees}
    return found


def latency_unit(histogram: Histogram) -> units.Unit:
    """The unit of all figures, tables and titles of a histogram."""
    return units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)


def latency_table(histogram: Histogram, title: str = "Response times") -> Table:
    """Average, quantiles and maximum with their confidence intervals, all in one unit."""
    in_unit = kinds.latency_in(latency_unit(histogram))
    rows: list[Sequence[Value]] = [("Average", histogram.mean_ns, "", "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        known = quantile.value_ns is not None
        ends = Span(quantile.low_ns, quantile.high_ns)  # too small a sample leaves ends open
        value = quantile.value_ns if known else units.NOT_ENOUGH
        rows.append((units.nines(q), value, ends if known else "", histogram.count * (1 - q)))
    rows.append(("Maximum", histogram.max_ns, "", ""))
    columns = (
        "",
        Column("Response time", in_unit),
        Column("95 % confidence interval", kinds.ranges(in_unit)),
        Column("I/Os beyond", kinds.NUMBER),
    )
    return table(title, columns, rows, note=f"{histogram.count:,} I/Os.")


def latency_figures(histogram: Histogram, of: str = "") -> tuple[KeyFigure, ...]:
    """Average, quantiles and maximum for the top of the page, all in one unit; `of` begins their
    labels ("Reads").
    """
    unit = latency_unit(histogram)

    def figure(label: str, value_ns: float | None, note: str) -> KeyFigure:
        label = f"{of}, {label.lower()}" if of else label
        if value_ns is None:
            return KeyFigure(label, units.UNKNOWN, "", units.NOT_ENOUGH)
        number, _, name = units.latency(value_ns, unit).rpartition(" ")
        return KeyFigure(label, number, name, note)

    def nine(q: float) -> KeyFigure:
        quantile = histogram.quantile(q)
        beyond = f"{units.number(quantile.count * (1 - q))} I/Os beyond"
        return figure(units.nines(q), quantile.value_ns, beyond)

    return (
        figure("Average latency", histogram.mean_ns, ""),
        *map(nine, NINES),
        figure("Maximum", histogram.max_ns, f"of {units.number(histogram.count)} I/Os"),
    )


def service_note(histogram: Histogram | None, which: str, *, otherwise: str) -> str:
    """What the latency figures cover: `which` I/Os, or `otherwise`, the reason there are none."""
    if histogram is None:
        return otherwise
    return f"Service time, from issue to completion, of {histogram.count:,} I/Os{which}."

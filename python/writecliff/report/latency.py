"""Response times from a histogram as key figures, table and JSON for reports.

Key figures, table and JSON all show the same quantiles. A quantile with too few I/Os is shown as
"not enough samples" in text and as null in JSON.
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
    """Return a histogram as JSON, with times in ns and percentiles with 95 % intervals.

    `interval` returns a quantile's confidence interval, estimated from batches. Without `interval`,
    the I/Os are assumed to be independent, so the intervals are lower bounds on the uncertainty.
    """
    return {
        **{name: getattr(histogram, name) for name in _OVERALL},
        "percentiles": [_percentile(histogram, q, interval) for q in QUANTILES],
    }


def _percentile(
    histogram: Histogram, q: float, interval: Callable[[float], Bounds | None] | None
) -> dict[str, Any]:
    quantile = histogram.quantile(q)
    mapping = {
        "pct": round(100 * q, 6),
        **{name: getattr(quantile, name) for name in ("value_ns", "low_ns", "high_ns", "count")},
    }
    if interval is not None:
        bounds = interval(q)
        low, high, degrees = (None,) * 3 if bounds is None else bounds
        mapping |= {"low_ns": low, "high_ns": high, "degrees": degrees}
    return mapping


def latency_unit(histogram: Histogram) -> units.Unit:
    """Return the unit for a histogram's figures, tables and titles."""
    return units.common_unit([histogram.mean_ns or 1.0], units.LATENCY_UNITS)


def latency_table(histogram: Histogram, title: str = "Response times") -> Table:
    """Return the average, quantiles and maximum with confidence intervals, all in one unit."""
    in_unit = kinds.latency_in(latency_unit(histogram))
    rows: list[Sequence[Value]] = [("Average", histogram.mean_ns, "", "")]
    for q in NINES:
        quantile = histogram.quantile(q)
        supported = quantile.value_ns is not None
        # An interval end is open if the sample is too small.
        ends = Span(quantile.low_ns, quantile.high_ns)
        value = quantile.value_ns if supported else units.NOT_ENOUGH
        rows.append((units.nines(q), value, ends if supported else "", histogram.count * (1 - q)))
    rows.append(("Maximum", histogram.max_ns, "", ""))
    columns = (
        "",
        Column("Response time", in_unit),
        Column("95 % confidence interval", kinds.ranges(in_unit)),
        Column("I/Os beyond", kinds.NUMBER),
    )
    return table(title, columns, rows, note=f"{histogram.count:,} I/Os.")


def latency_figures(histogram: Histogram, prefix: str = "") -> tuple[KeyFigure, ...]:
    """Return the average, quantiles and maximum for the top of the page, all in one unit.

    `of` is the prefix of the figures' labels ("Reads").
    """
    unit = latency_unit(histogram)

    def figure(label: str, value_ns: float | None, note: str) -> KeyFigure:
        label = f"{prefix}, {label.lower()}" if prefix else label
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
    """Return the I/Os covered by latency figures, or the reason why no figures exist."""
    if histogram is None:
        return otherwise
    return f"Service time, from issue to completion, of {histogram.count:,} I/Os{which}."

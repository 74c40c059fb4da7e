"""Plots on a page, with the quantities of each plot, their names, and their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from writecliff.operation_names import plural_of
from writecliff.ui.marks import columns_for, numbers, times, within
from writecliff.ui.series import Line, Series


class Quantity(NamedTuple):
    """A quantity, with its plot, its name on the plot, and its name in a list of all quantities."""

    plot: str
    name: str
    title: str


class Plot(NamedTuple):
    """A plot of quantities over time."""

    title: str
    unit: str
    log: bool = False  # `True` for a logarithmic axis.


PLOTS: Mapping[str, Plot] = {
    "iops": Plot("I/Os per second", "IOPS"),
    "mbps": Plot("Throughput", "MB/s"),
    "latency": Plot("Latency", "ms", log=True),
    "waf": Plot("Write amplification", ""),
    "watts": Plot("Power", "W"),
    "temperature": Plot("Temperature", "°C"),
    "free_units": Plot("Free reclaim units", ""),
}
QUANTITIES: Mapping[str, Quantity] = {
    "iops": Quantity("iops", "", "IOPS"),
    "mbps": Quantity("mbps", "", "Throughput (MB/s)"),
    "latency_mean": Quantity("latency", "mean", "Mean latency (ms)"),
    "latency_p99": Quantity("latency", "p99", "p99 latency (ms)"),
    "latency_p99_step": Quantity("latency", "p99 of the step", "p99 latency of steps (ms)"),
    "latency_max": Quantity("latency", "maximum", "Maximum latency (ms)"),
    "service_mean": Quantity("latency", "mean service time", "Mean service time (ms)"),
    "service_p99": Quantity("latency", "p99 service time", "p99 service time (ms)"),
    "service_p99_step": Quantity(
        "latency", "p99 service time of the step", "p99 service time of steps (ms)"
    ),
    "service_max": Quantity("latency", "maximum service time", "Maximum service time (ms)"),
    "waf": Quantity("waf", "", "Write amplification"),
    "watts": Quantity("watts", "", "Power (W)"),
    "temperature": Quantity("temperature", "", "Temperature (°C)"),
    "free_units": Quantity("free_units", "", "Free reclaim units"),
}


def line_name(line: Line) -> str:
    """Return the name of a line on its plot, such as "writes: mean"."""
    quantity = QUANTITIES[line.quantity]
    operation = plural_of(line.operation) if line.operation else ""
    return ": ".join(filter(None, (operation, quantity.name))) or PLOTS[quantity.plot].title


def key_title(key: str) -> str:
    """Return a quantity's name in a list of all quantities, such as "IOPS, writes"."""
    quantity, _, operation = key.partition(".")
    title = QUANTITIES[quantity].title if quantity in QUANTITIES else key
    return f"{title}, {plural_of(operation)}" if operation else title


def drawn(line: Line, name: str, view: tuple[float, float], columns: int) -> dict[str, Any]:
    """Return a line for the page: its points in view, a completeness flag, and overall limits."""
    x, y, whole = within(line.x, line.y, *view, columns)
    inside = line.y[(line.x >= view[0]) & (line.x <= view[1])]
    measured = inside[np.isfinite(inside)]
    limits = (
        [None, None] if not len(measured) else numbers(np.array([measured.min(), measured.max()]))
    )
    return {
        "name": name, "x": times(x), "y": numbers(y), "whole": whole,
        "points": len(inside), "least": limits[0], "greatest": limits[1],
    }  # fmt: skip


def run_plots(series: Series, view: tuple[float, float], wanted: int) -> dict[str, object]:
    """Return all plots of a run between two times in s, for a width of `wanted` pixels."""
    columns = columns_for(len(series.lines), wanted)
    plots = []
    for key, plot in PLOTS.items():
        lines = [line for line in series.lines if QUANTITIES[line.quantity].plot == key]
        if lines:
            shown = [drawn(line, line_name(line), view, columns) for line in lines]
            plots.append({"key": key, **plot._asdict(), "lines": shown})
    return page_of_plots(plots, series.span_s, view, series.intervals)


def page_of_plots(
    plots: Sequence[Mapping[str, Any]],
    span_s: tuple[float, float],
    view: tuple[float, float],
    intervals: int,
) -> dict[str, object]:
    """Return the response for a page with plots."""
    marks = sum(len(line["x"]) for plot in plots for line in plot["lines"])
    return {"plots": plots, "span": span_s, "view": view, "intervals": intervals, "marks": marks}


def view_of(
    span_s: tuple[float, float], low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the requested part of a span, or the whole span if that part is empty."""
    begin = span_s[0] if low is None else max(low, span_s[0])
    end = span_s[1] if high is None else min(high, span_s[1])
    return (begin, end) if begin < end else span_s

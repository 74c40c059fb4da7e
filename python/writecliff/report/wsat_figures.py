"""The figures of the write saturation test over time, volume written and drive fills."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.report import style
from writecliff.report.axes import Axis, Line
from writecliff.report.csvs import lines_csv
from writecliff.report.interaction import Label
from writecliff.report.model import Figure
from writecliff.report.plots import lines
from writecliff.report.style import house_style
from writecliff.report.table import DataFile
from writecliff.report.wsat_data import WsatData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from writecliff.report.axes import Numbers


@house_style()
def iops_over_time(wsat: WsatData, data: DataFile, *, log: bool) -> Figure:
    """IOPS of every step, with the spread of its one-second intervals behind."""
    unit = units.time_unit(wsat.elapsed_ns)
    x = (wsat.start_ns + wsat.end_ns) / 2 / unit.size
    figure, axes = style.new_axes(Label("Time since the purge", unit.name), "IOPS")
    _shade(axes, wsat, wsat.start_ns / unit.size, wsat.end_ns / unit.size)
    _iops(figure, axes, wsat, x, log=log)
    style.from_zero_to(axes, "x", wsat.elapsed_ns / unit.size)
    return _finished(figure, "time", "time", data, log=log)


@house_style()
def iops_over_volume(wsat: WsatData, data: DataFile, *, log: bool) -> Figure:
    """IOPS over the volume written, which a second axis gives as drive fills."""
    unit = units.common_unit([wsat.written_bytes[-1]], units.BYTE_UNITS)
    before, after = wsat.before_bytes / unit.size, wsat.written_bytes / unit.size
    figure, axes = style.new_axes(
        Label("Written since the purge", unit.name), "IOPS", top_axis=True
    )
    _shade(axes, wsat, before, after)
    _iops(figure, axes, wsat, (before + after) / 2, log=log)
    style.from_zero_to(axes, "x", after[-1])
    per_fill = wsat.data.capacity_bytes / unit.size
    fills = axes.secondary_xaxis(
        "top",
        functions=(lambda v: np.asarray(v) / per_fill, lambda v: np.asarray(v) * per_fill),
    )
    fills.set_xlabel("Drive fills", labelpad=3)
    fills.spines["top"].set_visible(True)
    return _finished(figure, "volume", "volume written", data, log=log)


def _finished(drawing: Drawing, name: str, over: str, data: DataFile, *, log: bool) -> Figure:
    kind, axis = ("log", "logarithmic") if log else ("linear", "linear")
    name, title = f"iops-{name}-{kind}", f"WSAT IOPS ({kind}) v {over}"
    return style.finished(
        drawing, name, title, data, f"IOPS of every step over {over}, {axis} axis"
    )


def _iops(figure: Drawing, axes: Axes, wsat: WsatData, x: Numbers, *, log: bool) -> None:
    low, high = wsat.spread
    spread = np.isfinite(low)
    if spread.any():
        axes.fill_between(
            x,
            np.where(spread, low, wsat.iops),
            np.where(spread, high, wsat.iops),
            color=style.BAND,
            label="range of its intervals",
        )
    axes.plot(x, wsat.iops, *_marker(wsat), color=style.BLUE, label="IOPS of a step")
    drawn = np.concatenate([wsat.iops, low[spread], high[spread]])
    top = max(float(drawn.max()), 1.0)
    if log:
        positive = drawn[drawn > 0]
        first = np.floor(np.log10(float(positive.min()) if len(positive) else 1.0))
        last = max(np.ceil(np.log10(top)), first + 1)
        style.log_axis(axes, "y", float(10**first), float(10**last))
    else:
        style.linear_axis(axes, "y")
        style.from_zero_to(axes, "y", top * 1.06)
    style.legend(figure, axes)


def _marker(wsat: WsatData) -> tuple[str, ...]:
    """One or two points make no line that can be seen."""
    return ("o-",) if len(wsat.rows) < 3 else ()


def _shade(axes: Axes, wsat: WsatData, begin: Numbers, end: Numbers) -> None:
    """Shade the steps that the figures of latency and write amplification stand for, and mark where
    the drive leaves its fresh state: the transition is between the two."""
    if wsat.view.judged:
        window = wsat.window
        axes.axvspan(begin[window][0], end[window][-1], color=style.WINDOW, label="window")
    if wsat.leaves_fob is not None:
        at = begin[wsat.leaves_fob]
        axes.axvline(at, color=style.MUTED, lw=0.9, ls=(0, (2, 2)), label="leaves FOB")


@house_style()
def write_amplification(wsat: WsatData, data: DataFile) -> Figure | None:
    """Write amplification of every step over drive fills; None where the drive does not report
    it."""
    if not np.isfinite(wsat.waf).any():
        return None
    figure, axes = style.new_axes(
        "Drive fills since the purge", Label("WAF", note="NAND/host bytes")
    )
    before, fills = (v / wsat.data.capacity_bytes for v in (wsat.before_bytes, wsat.written_bytes))
    _shade(axes, wsat, before, fills)
    x = (before + fills) / 2
    axes.plot(x, wsat.waf, *_marker(wsat), color=style.ORANGE, label="WAF of a step")
    axes.axhline(1.0, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    style.from_zero_to(axes, "x", wsat.drive_fills)
    style.linear_axis(axes, "y")
    style.from_zero_to(axes, "y", float(np.nanmax(wsat.waf)) * 1.12)
    style.legend(figure, axes)
    title = "Write amplification v drive fills"
    alt = "Write amplification of every step over drive fills"
    return style.finished(figure, "waf", title, data, alt)


@house_style()
def latency_over_time(wsat: WsatData, data: DataFile) -> Figure | None:
    """Average, nines and maximum of every step, logarithmic; None without latencies."""
    lines = [
        ("average", wsat.column(lambda row: row.latency_mean_ns), style.BLUE),
        ("99.9 %", wsat.column(lambda row: row.latency_p999_ns), style.GREEN),
        ("99.99 %", wsat.column(lambda row: row.latency_p9999_ns), style.PURPLE),
        ("maximum", wsat.column(lambda row: row.latency_max_ns), style.ORANGE),
    ]
    lines = [line for line in lines if np.isfinite(line[1]).any()]
    if not lines:
        return None
    known = np.concatenate([values for _, values, _ in lines])
    known = known[np.isfinite(known) & (known > 0)]
    unit = units.common_unit(known.tolist(), units.LATENCY_UNITS)
    clock = units.time_unit(wsat.elapsed_ns)
    x = (wsat.start_ns + wsat.end_ns) / 2 / clock.size
    figure, axes = style.new_axes(
        Label("Time since the purge", clock.name), Label("Latency", unit.name)
    )
    for label, values, colour in lines:
        axes.plot(x, values / unit.size, *_marker(wsat), color=colour, linewidth=1.1, label=label)
    low, high = known.min() / unit.size, known.max() / unit.size
    style.log_axis(axes, "y", low / 1.5, high * 1.5)
    style.from_zero_to(axes, "x", wsat.elapsed_ns / clock.size)
    style.legend(figure, axes)
    alt = "Average, 99.9 %, 99.99 % and maximum latency of every step over time, logarithmic axis"
    return style.finished(figure, "latency-time", "Latency v time (log)", data, alt)


def latency_over_fills(wsat: WsatData) -> Figure | None:
    """Average, 99.999 % and maximum over drive fills, logarithmic (PTS 2.0, WSAT); None without
    latencies."""
    fills = (wsat.before_bytes + wsat.written_bytes) / 2 / wsat.data.capacity_bytes
    by_round, nines = wsat.five_nines
    middles = [float(fills[part].mean()) for part, _ in nines]
    mean, longest = (
        wsat.column(value)
        for value in (attrgetter("latency_mean_ns"), attrgetter("latency_max_ns"))
    )
    series = [
        Line("ART", fills.tolist(), mean.tolist()),
        Line(
            f"99.999 %{' of a round' if by_round else ''}", middles, [value for _, value in nines]
        ),
        Line("MRT", fills.tolist(), longest.tolist()),
    ]
    data = DataFile(
        "latency-fills.csv", lines_csv(series, "statistic", "drive_fills", "latency_ns")
    )
    alt = "Average, 99.999 % and maximum response time over drive fills, logarithmic axis"
    return lines(
        "latency-fills",
        "ART, 99.999 % and MRT v drive fills (log)",
        data,
        series,
        Axis("Drive fills since the purge"),
        Axis("Response time", units=units.LATENCY_UNITS, log=True),
        alt=alt,
    )

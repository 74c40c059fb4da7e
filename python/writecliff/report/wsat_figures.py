"""The figures of the write saturation test over time, volume written and drive fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from writecliff import units
from writecliff.report import style
from writecliff.report.data import RunData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from writecliff.report.data import Numbers


def iops_over_time(name: str, data: RunData, *, log: bool) -> str:
    """IOPS of every step, with the spread of its one-second intervals behind."""
    unit = units.time_unit(data.elapsed_ns)
    s = data.series
    x = (s.start_ns + s.end_ns) / 2 / unit.size
    figure, axes = style.new_axes(f"Time since the purge ({unit.name})", "IOPS")
    _shade(axes, data, s.start_ns / unit.size, s.end_ns / unit.size)
    _iops(figure, axes, data, x, log=log)
    axes.set_xlim(0, data.elapsed_ns / unit.size)
    text = f"IOPS over time, {'logarithmic' if log else 'linear'} axis"
    return style.to_svg(figure, name, text)


def iops_over_volume(name: str, data: RunData, *, log: bool) -> str:
    """IOPS over the volume written, which a second axis gives as drive fills."""
    s = data.series
    unit = units.common_unit([data.written_bytes], units.BYTE_UNITS)
    before = s.written_bytes - s.host_write_bytes
    x = (before + s.written_bytes) / 2 / unit.size
    figure, axes = style.new_axes(f"Written since the purge ({unit.name})", "IOPS", top_axis=True)
    _shade(axes, data, before / unit.size, s.written_bytes / unit.size)
    _iops(figure, axes, data, x, log=log)
    axes.set_xlim(0, data.written_bytes / unit.size)
    per_fill = data.capacity_bytes / unit.size
    fills = axes.secondary_xaxis(
        "top",
        functions=(lambda v: np.asarray(v) / per_fill, lambda v: np.asarray(v) * per_fill),
    )
    fills.set_xlabel("Drive fills", labelpad=3)
    fills.spines["top"].set_visible(True)
    text = f"IOPS over volume written, {'logarithmic' if log else 'linear'} axis"
    return style.to_svg(figure, name, text)


def _iops(figure: Figure, axes: Axes, data: RunData, x: Numbers, *, log: bool) -> None:
    s = data.series
    spread = np.isfinite(s.iops_low)
    if spread.any():
        axes.fill_between(
            x,
            np.where(spread, s.iops_low, s.iops),
            np.where(spread, s.iops_high, s.iops),
            color=style.BAND,
            label="range of its intervals",
        )
    axes.plot(x, s.iops, *_marker(len(s)), color=style.BLUE, label="IOPS of a step")
    drawn = np.concatenate([s.iops, s.iops_low[spread], s.iops_high[spread]])
    high = max(float(drawn.max()), 1.0)
    if log:
        positive = drawn[drawn > 0]
        low = float(positive.min()) if len(positive) else 1.0
        decades = np.floor(np.log10(low)), max(np.ceil(np.log10(high)), np.floor(np.log10(low)) + 1)
        style.log_axis(axes, "y", float(10 ** decades[0]), float(10 ** decades[1]))
    else:
        style.linear_axis(axes, "y")
        axes.set_ylim(0, high * 1.06)
    style.legend(figure, axes)


def _marker(points: int) -> tuple[str, ...]:
    return ("o-",) if points < 3 else ()


def _shade(axes: Axes, data: RunData, begin: Numbers, end: Numbers) -> None:
    """The steps that the latency and WAF figures stand for."""
    if data.decision is not None:
        places = range(len(begin))[data.window]
        axes.axvspan(begin[places[0]], end[places[-1]], color=style.WINDOW, label="window")


def write_amplification(name: str, data: RunData) -> str | None:
    """WAF of every step over drive fills; None where the drive does not tell."""
    s = data.series
    if not np.isfinite(s.waf).any():
        return None
    x = (s.written_bytes - s.host_write_bytes / 2) / data.capacity_bytes
    figure, axes = style.new_axes("Drive fills since the purge", "WAF (NAND/host bytes)")
    fills = s.written_bytes / data.capacity_bytes
    _shade(axes, data, fills - s.host_write_bytes / data.capacity_bytes, fills)
    axes.plot(x, s.waf, *_marker(len(s)), color=style.ORANGE, label="WAF of a step")
    axes.axhline(1.0, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlim(0, data.drive_fills)
    style.linear_axis(axes, "y")
    axes.set_ylim(0, float(np.nanmax(s.waf)) * 1.12)
    style.legend(figure, axes)
    return style.to_svg(figure, name, "Write amplification over drive fills")


def latency_over_time(name: str, data: RunData) -> str | None:
    """Average, nines and maximum of every step, logarithmic; None without latencies."""
    s = data.series
    lines = [
        ("average", s.latency_mean_ns, style.BLUE),
        ("99.9 %", s.latency_quantile_ns[0.999], style.GREEN),
        ("99.99 %", s.latency_quantile_ns[0.9999], style.PURPLE),
        ("maximum", s.latency_max_ns, style.ORANGE),
    ]
    lines = [line for line in lines if np.isfinite(line[1]).any()]
    if not lines:
        return None
    known = np.concatenate([values for _, values, _ in lines])
    known = known[np.isfinite(known) & (known > 0)]
    unit = units.common_unit(known.tolist(), units.LATENCY_UNITS)
    clock = units.time_unit(data.elapsed_ns)
    x = (s.start_ns + s.end_ns) / 2 / clock.size
    figure, axes = style.new_axes(f"Time since the purge ({clock.name})", f"Latency ({unit.name})")
    for label, values, colour in lines:
        axes.plot(x, values / unit.size, *_marker(len(s)), color=colour, linewidth=1.1, label=label)
    low, high = known.min() / unit.size, known.max() / unit.size
    style.log_axis(axes, "y", low / 1.5, high * 1.5)
    axes.set_xlim(0, data.elapsed_ns / clock.size)
    style.legend(figure, axes)
    return style.to_svg(figure, name, "Latency of every step over time, logarithmic axis")

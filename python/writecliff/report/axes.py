"""Matplotlib axes and series for the generic figures.

Values are in base units (ns, bytes, bytes/s, IOPS). An `Axis` selects a single unit for all its
values, so a plot has one unit per axis. Limits always ascend, and tick labels are plain numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from writecliff.report import style
from writecliff.report.interaction import Label
from writecliff.units import KIB, Unit, common_unit, time_unit

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes as Plot

    Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A labelled series.

    A y value that is not finite, or not positive on a logarithmic axis, leaves a gap. Points are
    joined in the given order (demand-intensity plots order points by queue depth).
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Axis:
    """A plot axis with label, units and ticks.

    `label` excludes the unit. `units` lists the candidate units (`units.LATENCY_UNITS`, `(MB_S,)`),
    from which the axis selects the unit that suits the median of all values. Without candidate
    units, the label is complete ("IOPS"). `ticks` are (value in base units, text) pairs for an axis
    with named values. `whole` restricts ticks to whole numbers (for example, rounds). A linear axis
    starts at 0 unless `from_zero` is off. `top` (in base units) fixes the upper limit, for example
    100 % for a percentage.
    """

    label: str  # Axis label; a `Label` if the unit is always the same.
    units: tuple[Unit, ...] = ()
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    whole: bool = False
    from_zero: bool = True
    top: float | None = None

    def unit(self, values: Iterable[float]) -> Unit:
        """Return the unit that suits all of `values`."""
        return common_unit(values, self.units) if self.units else Unit("", 1.0)

    def title(self, unit: Unit) -> Label:
        """Return the label with unit and scale."""
        note = "logarithmic" if self.log and not self.ticks else ""
        if isinstance(self.label, Label) and not (unit.name or note):
            return self.label
        return Label(self.label, unit.name, note)


def block_size_axis(sizes_bytes: Iterable[int]) -> Axis:
    """Return a logarithmic axis of block sizes with a KiB label at each size: 0.5, 4, ... 1024."""
    ticks = tuple((float(size), f"{size / KIB:g}") for size in sorted(set(sizes_bytes)))
    return Axis(Label("Block size", "KiB"), log=True, ticks=ticks)


def depth_axis(depths: Iterable[int], label: str = "Queue depth") -> Axis:
    """Return a logarithmic axis of queue depths or thread counts, with a label at each value."""
    return Axis(label, log=True, ticks=tuple((float(d), f"{d}") for d in sorted(set(depths))))


def round_axis() -> Axis:
    """Return an axis for test rounds."""
    return Axis("Round", whole=True, from_zero=False)


def time_axis(duration_ns: float, label: str = "Time") -> Axis:
    """Return a time axis in ns, labelled in the unit that suits a run of `duration_ns`."""
    return Axis(label, units=(time_unit(duration_ns),))


def finite(line: Line, *, x_log: bool = False, y_log: bool = False) -> tuple[Numbers, Numbers]:
    """Return a line's coordinates.

    Points that cannot be drawn have NaN as their y value, and points with an unknown x value are
    omitted.
    """
    x, y = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64).copy()
    if x.shape != y.shape:
        raise ValueError(f"{line.label}: {x.size} x values for {y.size} y values")
    drawable = np.isfinite(x) & ((x > 0) if x_log else True)
    x, y = x[drawable], y[drawable]
    y[~np.isfinite(y) | ((y <= 0) if y_log else False)] = np.nan
    return x, y


def apply(plot: Plot, which: str, axis: Axis, unit: Unit, values: Numbers) -> None:
    """Set the scale, limits and ticks of `axis` for `values`, which are already in `unit`."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if axis.top is not None:
        high = axis.top / unit.size
    mine = getattr(plot, f"{which}axis")
    if axis.log:
        _log(plot, which, axis, low, high)
    else:
        style.linear_axis(plot, which, from_zero=False)
        if axis.whole or which == "x":  # Long numbers need room on a horizontal axis.
            most = 5 if high >= 10_000 else 9
            steps = [1, 2, 5, 10] if axis.whole else [1, 2, 2.5, 5, 10]
            mine.set_major_locator(MaxNLocator(most, steps=steps, integer=axis.whole))
        _linear(plot, which, axis, low, high)
    if axis.ticks:
        positions = [value / unit.size for value, _ in axis.ticks]
        texts = dict(zip(positions, (text for _, text in axis.ticks), strict=True))
        mine.set_major_locator(FixedLocator(positions))
        mine.set_major_formatter(FuncFormatter(lambda v, _: texts.get(v, "")))


def _linear(plot: Plot, which: str, axis: Axis, low: float, high: float) -> None:
    span = high - low
    if axis.whole:
        low, high = low - 0.6, high + 0.6
    elif axis.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
        if axis.top is None:
            high += 0.0 if which == "x" else 0.08 * (high - low)
    else:
        low, high = low - 0.06 * span, high + 0.06 * span
    getattr(plot, f"set_{which}lim")(low, high if high > low else low + 1)


def _log(plot: Plot, which: str, axis: Axis, low: float, high: float) -> None:
    room = 1.12 if which == "x" else 1.35
    if axis.ticks:
        low, high = min(low, axis.ticks[0][0]), max(high, axis.ticks[-1][0])
        room = (high / low) ** 0.04 if high > low else 1.5
    text = style.compact if high >= 1e6 else style.plain
    style.log_axis(plot, which, low / room, high * room, text, minor=not axis.ticks)

"""Expected against found values on equal axes: points near the diagonal agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from writecliff.report import style
from writecliff.report.axes import Axis, Line, apply, finite
from writecliff.report.model import Data, Figure
from writecliff.report.style import house_style

GUIDE_PCT = 20.0  # of the dashed lines beside the diagonal


@house_style()
def agreement(
    name: str,
    title: str,
    data: Data,
    series: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    alt: str = "",
) -> Figure | None:
    """Points (x: expected, y: found) in one unit, the diagonal, and lines 20 % above and below it.

    Both axes have the same limits; both are logarithmic or neither is. None if no point can be
    drawn.
    """
    found = [(line.label, *finite(line, x_log=x.log, y_log=y.log)) for line in series]
    found = [entry for entry in found if np.isfinite(entry[2]).any()]
    if not found:
        return None
    every = np.concatenate([np.append(px, py[np.isfinite(py)]) for _, px, py in found])
    unit = x.unit(every)
    figure, plot = style.new_axes(x.title(unit), y.title(unit))
    every = every / unit.size
    for which, axis in (("x", x), ("y", y)):
        apply(plot, which, axis, unit, every)
    low, high = plot.get_xlim()
    plot.set_ylim(low, high)
    ends = np.array([low, high])
    plot.plot(ends, ends, color=style.MUTED, lw=0.9, label="equal")
    for factor in (1 + GUIDE_PCT / 100, 1 - GUIDE_PCT / 100):
        label = f"±{GUIDE_PCT:g} %" if factor > 1 else None
        plot.plot(ends, ends * factor, color=style.MUTED, lw=0.8, ls=(0, (4, 3)), label=label)
    colours = (0, 5, 3, 7, 1, 6, 2, 4)
    for number, (label, px, py) in enumerate(found):
        plot.plot(
            px / unit.size,
            py / unit.size,
            linestyle="none",
            marker=style.MARKERS[number % len(style.MARKERS)],
            markersize=4,
            markeredgewidth=0,
            alpha=0.85,
            color=style.SERIES[colours[number % len(colours)]],
            label=label,
            clip_on=False,
        )
    style.legend(figure, plot)
    return style.finished(figure, name, title, data, alt)

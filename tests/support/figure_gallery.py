"""All generic figures, drawn from difficult data; used only by tests.

Draw long labels, many series, eight decades of latency, gaps, and overlapping columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from writecliff import units
from writecliff.procedures.steady import judge
from writecliff.report.axes import (
    Axis,
    Line,
    block_size_axis,
    depth_axis,
    time_axis,
)
from writecliff.report.figures import (
    confidence,
    convergence,
    response_time_histogram,
    steady_window,
)
from writecliff.report.figures3d import columns_3d
from writecliff.report.model import Figure
from writecliff.report.plots import (
    Bars,
    Reference,
    bars,
    lines,
    normalised,
    two_axes,
)
from writecliff.report.table import DataFile

# Name, title and data of every figure.
HEAD = ("g", "title", DataFile("g.csv", "a\n1\n"))
SIZES = (512, 4096, 8192, 16384, 32768, 65536, 131072, 1048576)
MIXES = ("0/100", "5/95", "35/65", "50/50", "65/35", "95/5", "100/0")
DEPTHS = (1, 2, 4, 6, 8, 16, 32)
HOUR_NS = 3600e9
MINUTES = 600
TIMES = [60e9 * k for k in range(MINUTES)]
LATENCY = Axis("Response time", units=units.LATENCY_UNITS, log=True)


def iops(size: int, mix: str) -> float:
    reads = int(mix.partition("/")[0]) / 100
    write_s, read_s = max(size / 4096, 1) / 12_000, max(size / 8192, 1) / 90_000
    return 1 / ((1 - reads) * write_s + reads * read_s)


def wide_histogram():  # type: ignore[no-untyped-def]
    """Return a histogram of latencies from 800 ns to 9 s, most of them near 100 µs."""
    from writecliff._native import Histogram

    histogram = Histogram()
    for value, count in ((800, 40), (99_000, 90_000), (120_000, 50_000), (2_500_000, 700)):
        histogram.record(value, count)
    histogram.record(250_000_000, 30)
    histogram.record(9_000_000_000, 2)
    return histogram


def _block_sizes() -> Figure | None:
    series = [Line(mix, SIZES, [iops(size, mix) for size in SIZES]) for mix in MIXES]
    return lines(*HEAD, series, block_size_axis(SIZES), Axis("IOPS", log=True))


def _convergence() -> Figure | None:
    rounds = range(1, 9)
    series = [
        Line(units.block(s), rounds, [iops(s, "0/100") * (1 + 2 / r**3) for r in rounds])
        for s in SIZES
    ]
    return convergence(*HEAD, series, (4, 5, 6, 7, 8), Axis("IOPS", log=True))


def _demand_intensity() -> Figure | None:
    series = []
    for threads in DEPTHS:
        rate = [90_000 * threads * depth / (threads * depth + 40) for depth in DEPTHS]
        art = [threads * depth / r * 1e9 for depth, r in zip(DEPTHS, rate, strict=True)]
        series.append(Line(f"TC {threads}", rate, art))
    return lines(*HEAD, series, Axis("IOPS"), LATENCY)


def _demand_variation() -> Figure | None:
    series = [Line(f"TC {t}", DEPTHS, [t * d * 900.0 for d in DEPTHS]) for t in DEPTHS]
    return lines(*HEAD, series, depth_axis(DEPTHS), Axis("IOPS"))


def throughput() -> list[float]:
    return [480e6 if minute < MINUTES / 2 else 90e6 + 7e5 * minute for minute in range(MINUTES)]


def _throughput() -> Figure | None:
    return lines(
        *HEAD,
        [Line("throughput of a minute", TIMES, throughput())],
        time_axis(TIMES[-1]),
        Axis("Throughput", units=(units.MB_S,)),
        window=(2 * HOUR_NS, 4 * HOUR_NS),
        references=[Reference("average", 400e6, dashed=False), Reference("110 %", 440e6)],
    )


def _two_axes() -> Figure | None:
    art = [32e6 * 1e9 / value for value in throughput()]
    mrt = [value * (30 + 20 * math.sin(k)) for k, value in enumerate(art)]
    return two_axes(
        *HEAD,
        time_axis(TIMES[-1]),
        (Axis("Throughput", units=(units.MB_S,)), [Line("TP", TIMES, throughput())]),
        (LATENCY, [Line("ART", TIMES, art), Line("MRT", TIMES, mrt)]),
    )


def _curves() -> list[Line]:
    fills = [k / 50 for k in range(300)]
    return [
        Line(
            f"Example Drive Series {k}, 960 GB",
            fills,
            [9e4 * k * (0.1 * k + math.exp(-k * max(fill - 1, 0))) for fill in fills],
        )
        for k in (1, 2, 3)
    ]


def _bars() -> Figure | None:
    series = [Bars("0/100 (write)", [512e6, 505e6]), Bars("100/0 (read)", [551e6, math.nan])]
    y = Axis("Throughput", units=(units.MB_S,))
    return bars(*HEAD, ["1024 KiB", "128 KiB"], series, y)


def _columns(*, log: bool) -> Figure | None:
    sizes = SIZES[::-1]
    values = [[iops(size, mix) for size in sizes] for mix in MIXES]
    names = [f"{size / 1024:g}" for size in sizes]
    y = Axis("IOPS", log=log)
    return columns_3d(*HEAD, names, MIXES, values, "Block size (KiB)", "R/W mix", y)


def _window() -> Figure:
    state = judge([92e3, 95e3, 93e3, 91e3, 96e3], range(3, 8))
    return steady_window(*HEAD, state, Axis("Average latency", units=units.LATENCY_UNITS))


GALLERY: dict[str, Callable[[], Figure | None]] = {
    "iops v block size": _block_sizes,
    "convergence of block sizes": _convergence,
    "demand intensity": _demand_intensity,
    "demand variation": _demand_variation,
    "throughput v time": _throughput,
    "two axes": _two_axes,
    "normalised": lambda: normalised(*HEAD, _curves(), Axis("Drive fills")),
    "bars": _bars,
    "3-D columns": lambda: _columns(log=False),
    "3-D columns, logarithmic": lambda: _columns(log=True),
    "steady window": _window,
    "histogram": lambda: response_time_histogram(*HEAD, wide_histogram()),
    "confidence": lambda: confidence(*HEAD, wide_histogram()),
}

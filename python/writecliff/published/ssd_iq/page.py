"""The page about SSD-iq's figures: curves relative to uniform, latencies, errors, every figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from writecliff import units
from writecliff.published.ssd_iq.conditions import OpenLoop
from writecliff.published.ssd_iq.result import (
    FACTOR,
    Comparison,
    Point,
    Row,
    Score,
    mapping,
    rows_csv,
)
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.model import DataFile, Figure, Section, Table, section, table
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.units import LATENCY_UNITS

CSV = "figures.csv"
_CURVES: tuple[tuple[str, str, Callable[[Point], float | None]], ...] = (
    ("zipf", "Zipf, theta", lambda point: point.spread.theta),
    ("static", "Static pages (%)", lambda point: _share(point, static=True)),
    ("zones", "Cold pages (%)", lambda point: _share(point, static=False)),
)
_TAILS = ("p50", "p99", "p99.9", "p99.99")


def _share(point: Point, *, static: bool) -> float | None:
    """Share of the pages of the colder zones of a curve's point."""
    if point.spread.kind != ("static" if static else "zones"):
        return None
    hot = max(point.spread.zones, key=lambda zone: zone[1] / zone[0])
    return 100 - hot[0]


@one_page()
def page_of(found: Comparison) -> Page:
    """Return the page of a comparison."""
    unknown = sum(row.simulated is None for row in found.rows)
    disclosures = [
        "Every drive is derived from its data sheet by rule; no figure is adjusted after the "
        "simulation.",
        f"Drives are simulated at {_scales(found)} of their capacity, with ranges and zones in "
        "proportion. Percentiles are those of 22 s of an open loop, where the source "
        "has medians of minutes; maxima of the source are those of 48 minutes.",
    ]
    if unknown:
        disclosures.append(f"{unknown} of {len(found.rows)} figures have no simulated one.")
    return Page(
        title="Published and simulated: skewed, static and open-loop loads (SSD-iq)",
        intro="Figures of real drives by Haas et al. (PVLDB 18(11), 2025) beside simulated drives "
        "under the same loads. Rates relative to uniform writes show what garbage collection "
        "makes of skew.",
        sections=(
            section(
                "Errors", "Sizes of the errors, by kind of figure.", scores_table(found.scores)
            ),
            Section("Curves", "Write rates over those of uniform writes.", tuple(_curves(found))),
            Section("Open loop", _OPEN, tuple(_open_loops(found))),
            section("All figures", "", *rows_tables(found)),
        ),
        summary=mapping(found),
        data=(DataFile(CSV, rows_csv(found)),),
        disclosures=tuple(disclosures),
    )


_OPEN = (
    "Latency of a probe of reads and writes at a fixed rate beside Poisson arrivals of writes; "
    "published and simulated."
)


def _scales(found: Comparison) -> str:
    scales = sorted({drive.scale for drive in found.drives})
    return " to ".join(f"1/{scale:g}" for scale in dict.fromkeys((*scales[:1], *scales[-1:])))


def scores_table(scores: Sequence[Score]) -> Table:
    """Return the errors by kind as a table."""

    def size(score: Score, value: float) -> str:
        return f"{value:.2f} x" if score.unit == "x" else f"{value:.1f} %"

    rows = [
        (
            score.kind,
            units.number(score.figures),
            size(score, score.median),
            size(score, score.p90),
            "" if score.within is None else f"{score.within:.0f} %",
        )
        for score in scores
    ]
    header = ("Kind", "Figures", "Median", "90 % within", f"Within {FACTOR:g} x")
    return table("Errors by kind", header, rows, "lrrrr")


def _curves(found: Comparison) -> Iterator[Figure]:
    for name, label, place in _CURVES:
        points = [(at, point) for point in found.points if (at := place(point)) is not None]
        series: list[Line] = []
        for drive in dict.fromkeys(point.drive for _, point in points):
            own = sorted((at, one.published, one.simulated) for at, one in points
                         if one.drive == drive)  # fmt: skip
            x = [at for at, _, _ in own]
            series.append(Line(f"{drive}, published", x, [value for _, value, _ in own]))
            series.append(Line(f"{drive}, simulated", x, [value for _, _, value in own]))
        figure = lines(
            f"curve-{name}",
            f"Write rate relative to uniform: {label.partition(' (')[0].lower()}",
            CSV,
            series,
            Axis(label, from_zero=False),
            Axis("Rate over that of uniform writes"),
            alt=f"Rates relative to uniform writes, published and simulated, {len(points)} points",
        )
        if figure is not None:
            yield figure


def _open_loops(found: Comparison) -> Iterator[Figure]:
    names = dict.fromkeys(row.drive for row in found.rows if isinstance(row.load, OpenLoop))
    for number, drive in enumerate(names):
        for way in ("read", "write"):
            series: list[Line] = []
            for tail in _TAILS:
                metric = f"{way} latency {tail}"
                own = sorted(_latencies(found.rows, drive, metric))
                rates = [rate for rate, _, _ in own]
                series.append(Line(f"{tail}, published", rates, [value for _, value, _ in own]))
                series.append(Line(f"{tail}, simulated", rates, [value for _, _, value in own]))
            figure = lines(
                f"open-{number}-{way}",
                f"{drive}: {way}s of the probe",
                CSV,
                series,
                Axis("Arrivals of writes a second"),
                Axis("Latency", units=LATENCY_UNITS, log=True),
                alt=f"Latency of {way}s over the rate of arrivals, {drive}",
            )
            if figure is not None:
                yield figure


def _latencies(
    rows: Sequence[Row], drive: str, metric: str
) -> Iterator[tuple[float, float, float]]:
    """Rate, published and simulated latency in ns."""
    for row in rows:
        if row.drive != drive or row.metric != metric or not isinstance(row.load, OpenLoop):
            continue
        if row.value is not None and row.simulated is not None:
            size = 1e3 if row.unit == "us" else 1.0
            yield row.load.rate_iops, row.value * size, row.simulated * size


def rows_tables(found: Comparison) -> Iterator[Table]:
    """Return every figure beside its simulation, a table per drive."""
    for drive in dict.fromkeys(row.drive for row in found.rows):
        own = [row for row in found.rows if row.drive == drive]
        cells = [
            (
                row.condition if row.load is None else row.load.label,
                row.metric,
                "" if row.value is None else f"{row.value:,.6g} {row.unit}",
                "" if row.simulated is None else f"{row.simulated:,.6g}",
                row.reason if row.error_pct is None else f"{row.error_pct:+.1f} %",
            )
            for row in own
        ]
        header = ("Load", "Metric", "Published", "Simulated", "Error")
        yield table(drive or "Without a drive", header, cells, "llrrr", data=CSV)

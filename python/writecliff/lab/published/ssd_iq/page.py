"""Report page of the comparison with SSD-iq, with errors, curves, latencies and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from writecliff.lab.published.ssd_iq.result import (
    FACTOR,
    TIMES,
    Comparison,
    Point,
    Row,
    Score,
    disclosures,
    mapping,
    rows_csv,
)
from writecliff.published.ssd_iq.conditions import OpenLoop
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.model import Figure, Section, section
from writecliff.report.pages import Page
from writecliff.report.plots import lines
from writecliff.report.table import Column, DataFile, Quantity, Table, table
from writecliff.units import LATENCY_UNITS

CSV = "figures.csv"
_CURVES: tuple[tuple[str, str, Callable[[Point], float | None]], ...] = (
    ("zipf", "Zipf, theta", lambda point: point.spread.theta),
    ("static", "Static pages (%)", lambda point: _share(point, static=True)),
    ("zones", "Cold pages (%)", lambda point: _share(point, static=False)),
)
_TAILS = ("p50", "p99", "p99.9", "p99.99")


def _share(point: Point, *, static: bool) -> float | None:
    """Return the percentage of cold pages, or None for a point of another curve."""
    if point.spread.kind != ("static" if static else "zones"):
        return None
    hot = max(point.spread.zones, key=lambda zone: zone[1] / zone[0])
    return 100 - hot[0]


@one_page()
def page_of(comparison: Comparison) -> Page:
    """Return the page of a comparison."""
    return Page(
        title="Published and simulated: skewed, static and open-loop loads (SSD-iq)",
        intro="Haas et al. (PVLDB 18(11), 2025) measured real drives. This page compares their "
        "figures with simulated drives under the same loads. Rates relative to uniform writes show "
        "the effect of skew on garbage collection.",
        sections=(
            section(
                "Errors", "Absolute errors by kind of figure.", scores_table(comparison.scores)
            ),
            Section(
                "Curves", "Write rates relative to uniform writes.", tuple(_curves(comparison))
            ),
            Section("Open loop", _OPEN, tuple(_open_loops(comparison))),
            section("All figures", "", *rows_tables(comparison)),
        ),
        summary=mapping(comparison),
        data=(DataFile(CSV, rows_csv(comparison)),),
        disclosures=tuple(disclosures(comparison)),
    )


_OPEN = (
    "Published and simulated latency of a fixed-rate probe of reads and writes, under Poisson "
    "arrivals of writes."
)


def scores_table(scores: Sequence[Score]) -> Table:
    """Return the errors by kind as a table."""

    def size(score: Score, value: float) -> Quantity:
        return Quantity(value, kinds.decimals(2, "x") if score.unit == "x" else kinds.percents(1))

    rows = [
        (
            score.kind,
            score.figures,
            size(score, score.median),
            size(score, score.p90),
            "" if score.within is None else score.within,
        )
        for score in scores
    ]
    header = ("Kind", Column("Figures", kinds.NUMBER), Column("Median", kinds.RIGHT),
              Column("90th percentile", kinds.RIGHT),
              Column(f"Within {FACTOR:g} x", kinds.percents(0)))  # fmt: skip
    return table("Errors by kind", header, rows)


def _published_and_simulated(
    name: str, points: Iterable[tuple[float, float, float]]
) -> Iterator[Line]:
    """Yield two plot lines for points of x, published value and simulated value."""
    ordered = sorted(points)
    x = [at for at, _, _ in ordered]
    yield Line(f"{name}, published", x, [published for _, published, _ in ordered])
    yield Line(f"{name}, simulated", x, [simulated for _, _, simulated in ordered])


def _curves(comparison: Comparison) -> Iterator[Figure]:
    for name, label, position in _CURVES:
        points = [(x, point) for point in comparison.points if (x := position(point)) is not None]
        series: list[Line] = []
        for drive in dict.fromkeys(point.drive for _, point in points):
            values = (
                (x, point.published, point.simulated) for x, point in points if point.drive == drive
            )
            series += _published_and_simulated(drive, values)
        figure = lines(
            f"curve-{name}",
            f"Write rate relative to uniform: {label.partition(' (')[0].lower()}",
            CSV,
            series,
            Axis(label, from_zero=False),
            Axis("Rate relative to uniform writes"),
            alt=f"Rates relative to uniform writes, published and simulated, {len(points)} points",
        )
        if figure is not None:
            yield figure


def _open_loops(comparison: Comparison) -> Iterator[Figure]:
    names = dict.fromkeys(row.drive for row in comparison.rows if isinstance(row.load, OpenLoop))
    for number, drive in enumerate(names):
        for operation in ("read", "write"):
            series: list[Line] = []
            for tail in _TAILS:
                latencies = _latencies(comparison.rows, drive, f"{operation} latency {tail}")
                series += _published_and_simulated(tail, latencies)
            figure = lines(
                f"open-{number}-{operation}",
                f"{drive}: {operation}s of the probe",
                CSV,
                series,
                Axis("Write arrivals per second"),
                Axis("Latency", units=LATENCY_UNITS, log=True),
                alt=f"Latency of {operation}s by arrival rate, {drive}",
            )
            if figure is not None:
                yield figure


def _latencies(
    rows: Sequence[Row], drive: str, metric: str
) -> Iterator[tuple[float, float, float]]:
    """Yield the arrival rate per second, and the published and simulated latency in ns."""
    for row in rows:
        if row.drive != drive or row.metric != metric or not isinstance(row.load, OpenLoop):
            continue
        if row.value is not None and row.simulated is not None:
            size = TIMES.get(row.unit.lower(), 1.0)
            yield row.load.rate_iops, row.value * size, row.simulated * size


def rows_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield a table per drive with all simulated figures and the reasons for missing figures."""
    simulated = [row for row in comparison.rows if row.simulated is not None]
    header = ("Load", "Metric", "Published", "Simulated", Column("Error", kinds.signed()))
    for drive in dict.fromkeys(row.drive for row in simulated):
        cells = [
            (
                "" if row.load is None else row.load.label,
                row.metric,
                "" if row.value is None else f"{row.value:,.6g} {row.unit}".strip(),
                Quantity(row.simulated, kinds.digits(4, row.unit)),
                "" if row.error_pct is None else row.error_pct,
            )
            for row in simulated
            if row.drive == drive
        ]
        yield table(drive, header, cells, "llrr", data=CSV)
    missing = [row for row in comparison.rows if row.simulated is None]
    if missing:
        reasons = [
            (
                f"{row.drive}; {row.load.label}" if row.load else row.condition,
                row.metric,
                row.reason,
            )
            for row in missing
        ]
        columns = ("Drive and load", "Metric", "Reason")
        yield table("Figures that could not be simulated", columns, reasons, "lll", data=CSV)

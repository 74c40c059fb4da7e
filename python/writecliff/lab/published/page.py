"""Report page of a reproduction, with errors, agreement, and all figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from writecliff.lab.published.output import CSV, LOADS_CSV, figures_csv, loads_csv, mapping
from writecliff.lab.published.reproduce import Reproduction
from writecliff.lab.published.tables import (
    FAR,
    STATES,
    drives_table,
    item_tables,
    kinds_table,
    loads_table,
    missed_table,
    missing_table,
    sources_table,
    wrong_table,
)
from writecliff.published.figures import CAMPAIGNS, PublishedFigure
from writecliff.published.kinds import (
    BETTER_RATES,
    BETTER_TAILS,
    CONSISTENCY,
    DEVIATION,
    MIXED,
    POWER,
    PURE,
)
from writecliff.published.scores import Row, right_pct
from writecliff.report.axes import Axis, Line
from writecliff.report.colours import one_page
from writecliff.report.model import Figure, Section
from writecliff.report.pages import Page
from writecliff.report.plots import GUIDE_PCT, agreement
from writecliff.report.table import DataFile, table

# Plot name, axis label and row selection.
_PLOTS: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    ("iops", "IOPS", lambda r: r.kind in (PURE, MIXED) and r.figure.unit == "IOPS"),
    ("throughput", "Throughput (MB/s)", lambda r: r.figure.unit == "MB/s"),
    ("latency", "Latency (ms)", lambda r: r.figure.unit == "ms"),
    ("ratio", "Ratio of the IOPS of two drives", lambda r: r.kind is BETTER_RATES),
    ("ratio-latency", "Ratio of the latencies of two drives", lambda r: r.kind is BETTER_TAILS),
    ("consistency", "Consistency of IOPS (%)", lambda r: r.kind is CONSISTENCY),
    ("deviation", "Standard deviation of IOPS", lambda r: r.kind is DEVIATION),
    ("tbw", "TBW (TB)", lambda r: r.figure.metric == "tbw"),
    ("dwpd", "Drive writes per day", lambda r: r.figure.metric == "dwpd"),
    ("power", "Power (W)", lambda r: r.kind is POWER),
)  # fmt: skip
# Metrics with values near 1 or 100 %, which do not span a power of ten.
_LINEAR = ("ratio", "consistency")


@one_page()
def page_of(reproduction: Reproduction) -> Page:
    """Return the page of a reproduction."""
    return Page(
        title=f"Published and simulated: {reproduction.about}",
        intro="Published figures of real drives, and those of the simulated drives of the "
        "catalogue under the same conditions. No figure is adjusted after the simulation. A few "
        "parameters of each drive were fitted to figures of the shipped table (with 'writecliff "
        "lab fit'); 'writecliff lab reproduce others' shows figures that no fit has used.",
        sections=(
            Section(
                "Overall",
                "",
                tables=(kinds_table(reproduction), sources_table(reproduction)),
            ),
            Section(
                "Agreement",
                f"Published and simulated values. Points on the solid line agree; points between "
                f"the dashed lines are within {GUIDE_PCT:g} %.",
                tuple(filter(None, _agreement(reproduction.rows))),
            ),
            *_comparisons(reproduction),
            *_far(reproduction),
            *_items(reproduction.rows),
            *_missing(reproduction),
            *_conditions(reproduction),
        ),
        data=(
            DataFile(CSV, figures_csv(reproduction)),
            DataFile(LOADS_CSV, loads_csv(reproduction)),
        ),
        summary=mapping(reproduction),
        disclosures=_disclosures(reproduction),
    )


def _disclosures(reproduction: Reproduction) -> tuple[str, ...]:
    notes = []
    if reproduction.missing:
        notes.append(
            f"{len(reproduction.missing)} of {len(reproduction.rows)} figures are not simulated. "
            "They are left out of all scores and listed with the reason."
        )
    if reproduction.smaller:
        notes.append(reproduction.smaller)
    notes += [f"Not a figure: {row}" for row in reproduction.skipped]
    return tuple(notes)


# -- plots --------------------------------------------------------------------------------------


def _agreement(rows: Sequence[Row]) -> Iterator[Figure | None]:
    for name, label, wanted in _PLOTS:
        chosen = [row for row in rows if row.simulated is not None and wanted(row)]
        series = _series(chosen, by_kind=name == "latency")
        log = name not in _LINEAR
        x = Axis(f"Published, {_lower(label)}", log=log, from_zero=False)
        y = Axis("Simulated", log=log, from_zero=False)
        about = f"{label}: published against simulated, {len(chosen)} figures"
        yield agreement(f"agreement-{name}", label, CSV, series, x, y, alt=about)


def _lower(label: str) -> str:
    return label if label.startswith(("IOPS", "TBW")) else label[0].lower() + label[1:]


def _series(rows: Sequence[Row], *, by_kind: bool) -> list[Line]:
    """Plot series, one per source or kind, with improvements as ratios."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        label = row.kind.name if by_kind else _source_name(row.figure)
        pair = row.compared
        if pair is not None:
            points.setdefault(label, []).append(pair)
    return [
        Line(label, [x for x, _ in pairs], [y for _, y in pairs]) for label, pairs in points.items()
    ]


def _source_name(figure: PublishedFigure) -> str:
    """The short name of a figure's campaign."""
    return next(
        (campaign.name for campaign in CAMPAIGNS if campaign.source == figure.source), figure.source
    )


# -- sections -----------------------------------------------------------------------------------


def _comparisons(reproduction: Reproduction) -> tuple[Section, ...]:
    comparisons = reproduction.comparisons
    if not comparisons:
        return ()
    wrong = sum(not comparison.right for comparison in comparisons)
    intro = (
        f"{len(comparisons)} comparisons of two drives under the same conditions: "
        f"{right_pct(comparisons):.1f} % with the right winner, {wrong} with the wrong winner."
    )
    tables = (wrong_table(comparisons),) if wrong else ()
    return (Section("Winners of comparisons", intro, tables=tables),)


def _far(reproduction: Reproduction) -> tuple[Section, ...]:
    table = missed_table(reproduction.rows)
    if not table.rows:
        return ()
    intro = "The largest errors first, with the reason if it is known."
    return (Section("Large errors", intro, tables=(table,)),)


def _items(rows: Sequence[Row]) -> tuple[Section, ...]:
    """Page sections, one per source, with tables and figures."""
    by_source: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        items = by_source.setdefault(row.figure.source, {})
        items.setdefault(row.figure.item, []).append(row)
    about = {campaign.source: campaign.about for campaign in CAMPAIGNS}
    intro = (
        f"{FAR} marks errors beyond the limit of their kind: 20 % for rates and means, 1.5 x for "
        "tails, 2 x for deviations, 15 points for improvements, 3 points for consistency. The "
        "states of a drive are defined at the end of the page."
    )
    return tuple(
        Section(
            about.get(source, source or "Figures without a source"),
            intro,
            tables=tuple(table for item_rows in items.values() for table in item_tables(item_rows)),
        )
        for source, items in by_source.items()
    )


def _missing(reproduction: Reproduction) -> tuple[Section, ...]:
    if not reproduction.missing:
        return ()
    return (Section("Not simulated", "", tables=(missing_table(reproduction.missing),)),)


def _conditions(reproduction: Reproduction) -> tuple[Section, ...]:
    states = table("States of a drive", ("state", "meaning"), STATES.items(), "ll")
    intro = (
        "Each drive is brought to a state once, and each load starts in exactly this state. Before "
        "a load is measured it runs for 12 s (reads with a deep queue: 2 s), except on a fresh "
        "drive. If a source does not give the number of outstanding I/Os, random loads have 128 "
        "and sequential loads 32, as PTS-E recommends. Data are random unless the source gives "
        "their compressibility; then the data on the drive are as compressible as the load's."
    )
    sections = [Section("Conditions", intro, tables=(states,))]
    if reproduction.loads:
        text = (
            "All metrics of every load, with separate latencies of reads and writes. Every figure "
            "in the tables above is one of these values."
        )
        sections.append(Section("Loads", text, tables=(loads_table(reproduction),)))
    if reproduction.drives:
        text = f"{reproduction.wall_s / 60:.1f} minutes in total."
        sections.append(Section("Drives and times", text, tables=(drives_table(reproduction),)))
    return tuple(sections)

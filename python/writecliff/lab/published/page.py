"""The page of a reproduction: errors, agreement, and every figure beside its simulation."""

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

# The plots: a name, the label of the axes, which rows.
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
_LINEAR = ("ratio", "consistency")  # values near 1 or 100 %, where no power of ten is


@one_page()
def page_of(found: Reproduction) -> Page:
    return Page(
        title=f"Published and simulated: {found.about}",
        intro="Published figures of real drives beside those of the simulated drives of the "
        "catalogue under the same conditions. No figure is adjusted after the simulation. A few "
        "parameters of each drive were fitted to figures of the shipped table (with 'writecliff "
        "fit'); 'writecliff lab reproduce others' shows figures that no fit has used.",
        sections=(
            Section(
                "Overall",
                "",
                tables=(kinds_table(found), sources_table(found)),
            ),
            Section(
                "Agreement",
                f"Published against simulated; a point on the solid line agrees, between the "
                f"dashed ones it is within {GUIDE_PCT:g} %.",
                tuple(filter(None, _agreement(found.rows))),
            ),
            *_comparisons(found),
            *_far(found),
            *_items(found.rows),
            *_missing(found),
            *_conditions(found),
        ),
        data=(DataFile(CSV, figures_csv(found)), DataFile(LOADS_CSV, loads_csv(found))),
        summary=mapping(found),
        disclosures=_disclosures(found),
    )


def _disclosures(found: Reproduction) -> tuple[str, ...]:
    said = []
    if found.missing:
        said.append(
            f"{len(found.missing)} of {len(found.rows)} figures are not simulated. They are left "
            "out of all scores and listed with the reason."
        )
    if found.smaller:
        said.append(found.smaller)
    said += [f"Not a figure: {one}" for one in found.skipped]
    return tuple(said)


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
    """A series for each source or kind; improvements as ratios."""
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
    """The short name of the campaign."""
    return next((one.name for one in CAMPAIGNS if one.source == figure.source), figure.source)


# -- sections -----------------------------------------------------------------------------------


def _comparisons(found: Reproduction) -> tuple[Section, ...]:
    comparisons = found.comparisons
    if not comparisons:
        return ()
    wrong = sum(not one.right for one in comparisons)
    intro = (
        f"{len(comparisons)} comparisons of two drives under the same conditions: "
        f"{right_pct(comparisons):.1f} % with the right winner, {wrong} with the wrong one."
    )
    tables = (wrong_table(comparisons),) if wrong else ()
    return (Section("Which of two drives is better", intro, tables=tables),)


def _far(found: Reproduction) -> tuple[Section, ...]:
    table = missed_table(found.rows)
    if not table.rows:
        return ()
    intro = "The largest errors first, with the reason where it is known."
    return (Section("Missed", intro, tables=(table,)),)


def _items(rows: Sequence[Row]) -> tuple[Section, ...]:
    """A section for each source, with its tables and figures."""
    by_source: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        items = by_source.setdefault(row.figure.source, {})
        items.setdefault(row.figure.item, []).append(row)
    about = {one.source: one.about for one in CAMPAIGNS}
    intro = (
        f"Errors beyond the limit of their kind are marked {FAR}: 20 % of rates and means, 1.5 x "
        "of tails, 2 x of deviations, 15 points of improvements, 3 points of consistency. The "
        "states of a drive are defined at the end of the page."
    )
    return tuple(
        Section(
            about.get(source, source or "Figures without a source"),
            intro,
            tables=tuple(table for found in items.values() for table in item_tables(found)),
        )
        for source, items in by_source.items()
    )


def _missing(found: Reproduction) -> tuple[Section, ...]:
    if not found.missing:
        return ()
    return (Section("Not simulated", "", tables=(missing_table(found.missing),)),)


def _conditions(found: Reproduction) -> tuple[Section, ...]:
    states = table("States of a drive", ("state", "meaning"), STATES.items(), "ll")
    intro = (
        "Each drive is brought to a state once, and each load begins in exactly this state. Before "
        "a load is measured it runs for a while, 12 s (deep reads: 2 s), except on a fresh drive. "
        "Where a source does not give the number of outstanding I/Os, random loads have 128 "
        "and sequential ones 32, as the PTS-E recommends. Data are random unless the source says "
        "otherwise; then the data on the drive are as compressible as those of the load."
    )
    sections = [Section("Conditions", intro, tables=(states,))]
    if found.loads:
        text = (
            "What every load measured, the latencies of reads and writes apart; a figure in the "
            "table above is one of these."
        )
        sections.append(Section("Loads", text, tables=(loads_table(found),)))
    if found.drives:
        text = f"{found.wall_s / 60:.1f} minutes in total."
        sections.append(Section("Drives and times", text, tables=(drives_table(found),)))
    return tuple(sections)

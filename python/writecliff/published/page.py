"""The page of a reproduction: goals, agreement, and every figure beside its simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from writecliff.published.figures import CAMPAIGNS, PublishedFigure
from writecliff.published.goals import right_pct
from writecliff.published.output import CSV, figures_csv, mapping
from writecliff.published.reproduce import Reproduction
from writecliff.published.scores import POWER, Row
from writecliff.published.tables import (
    FAR,
    FAR_PCT,
    drives_table,
    goals_table,
    groups_table,
    item_tables,
    missed_table,
    missing_table,
    sources_table,
    wrong_table,
)
from writecliff.published.words import STATES
from writecliff.report.agreement import GUIDE_PCT, agreement
from writecliff.report.axes import Axis, Line
from writecliff.report.model import DataFile, Figure, Section, Table, drawn
from writecliff.report.pages import Page
from writecliff.report.style import house_style

# What is drawn together: a name, what the axes show, which rows.
_PLOTS: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    ("iops", "IOPS", lambda r: r.group == "throughput" and r.figure.unit == "IOPS"),
    ("throughput", "Throughput (MB/s)", lambda r: r.group == "throughput" and _mb(r.figure)),
    ("latency", "Latency (ms)", lambda r: r.group.startswith("latency")),
    ("ratio", "One drive over another (ratio)", lambda r: bool(r.figure.baseline)),
    ("consistency", "Standard deviation of IOPS", lambda r: r.group == "consistency"),
    ("tbw", "TBW (TB)", lambda r: r.figure.metric == "tbw"),
    ("dwpd", "Drive writes a day", lambda r: r.figure.metric == "dwpd"),
    ("power", "Power (W)", lambda r: r.group == POWER),
)


def _mb(figure: PublishedFigure) -> bool:
    return figure.unit == "MB/s"


def page_of(found: Reproduction) -> Page:
    with house_style():
        plots = _agreement(found.rows)
    return Page(
        title=f"Published and simulated: {found.about}",
        intro="Figures that others have published of real drives, and what the simulated drives of "
        "the catalogue give under the same conditions. No figure is adjusted after the simulation. "
        "The drives have a few parameters each that were fitted to figures of the shipped table "
        "(by 'writecliff fit'); 'writecliff reproduce others' shows figures that no fit has used.",
        sections=(
            Section(
                "Overall",
                "",
                tables=(goals_table(found), groups_table(found), sources_table(found)),
            ),
            Section(
                "Agreement",
                f"Published against simulated; a point on the solid line agrees, between the "
                f"dashed ones it is within {GUIDE_PCT:g} %.",
                plots,
            ),
            *_duels(found),
            *_far(found),
            *_items(found.rows),
            *_missing(found),
            *_conditions(found),
        ),
        data=(DataFile(CSV, figures_csv(found)),),
        summary=mapping(found),
        disclosures=_disclosures(found),
    )


def _disclosures(found: Reproduction) -> tuple[str, ...]:
    said = []
    short = [goal.what for goal in found.goals if goal.met is False]
    if short:
        said.append(f"Goals that are not met: {'; '.join(short)}.")
    if found.missing:
        said.append(
            f"{len(found.missing)} of {len(found.rows)} figures are not simulated; they count "
            "nowhere, and are listed with the reason."
        )
    return tuple(said)


# -- pictures -----------------------------------------------------------------------------------


def _agreement(rows: Sequence[Row]) -> tuple[Figure, ...]:
    drawings: tuple[Figure, ...] = ()
    for name, label, wanted in _PLOTS:
        chosen = [row for row in rows if row.simulated is not None and wanted(row)]
        series = _series(chosen, by_group=name == "latency")
        log = name != "ratio"  # ratios lie near 1, where no power of ten is
        x = Axis(f"Published, {_lower(label)}", log=log, from_zero=False)
        y = Axis("Simulated", log=log, from_zero=False)
        about = f"{label}: published against simulated, {len(chosen)} figures"
        svg = agreement(f"agreement-{name}", series, x, y, description=about)
        drawings += drawn(f"agreement-{name}", label, svg, CSV, about)
    return drawings


def _lower(label: str) -> str:
    return label if label.startswith(("IOPS", "TBW")) else label[0].lower() + label[1:]


def _series(rows: Sequence[Row], *, by_group: bool) -> list[Line]:
    """A series a source, or a kind of latency; improvements as ratios."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        label = row.group.removeprefix("latency, ") if by_group else _source_name(row.figure)
        pair = (row.figure.value, row.simulated or 0.0)
        if row.figure.unit == "%":
            pair = (1 + pair[0] / 100, 1 + pair[1] / 100)
        points.setdefault(label, []).append(pair)
    return [
        Line(label, [x for x, _ in pairs], [y for _, y in pairs]) for label, pairs in points.items()
    ]


def _source_name(figure: PublishedFigure) -> str:
    """The short name of the campaign."""
    return next((one.name for one in CAMPAIGNS if one.source == figure.source), figure.source)


# -- sections -----------------------------------------------------------------------------------


def _duels(found: Reproduction) -> tuple[Section, ...]:
    duels = found.duels
    if not duels:
        return ()
    wrong = [duel for duel in duels if not duel.right]
    intro = (
        f"{len(duels)} comparisons of two drives under the same conditions: "
        f"{right_pct(duels):.1f} % with the right winner, {len(wrong)} with the wrong one."
    )
    tables = (wrong_table(duels, "Wrong winner"),) if wrong else ()
    return (Section("Which of two drives is better", intro, tables=tables),)


def _far(found: Reproduction) -> tuple[Section, ...]:
    table = missed_table(found.rows)
    if not table.rows:
        return ()
    intro = "The worst first, with the reason where one was found."
    return (Section("Missed", intro, tables=(table,)),)


def _items(rows: Sequence[Row]) -> tuple[Section, ...]:
    """A section a source, with the tables and figures that it has."""
    by_source: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        items = by_source.setdefault(row.figure.source, {})
        items.setdefault(row.figure.item, []).append(row)
    about = {one.source: one.about for one in CAMPAIGNS}
    intro = (
        f"Errors beyond {FAR_PCT:g} % are marked {FAR}. What the words of the conditions mean is "
        "at the end of the page."
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
    return (Section("What is not simulated", "", tables=(missing_table(found.missing),)),)


def _conditions(found: Reproduction) -> tuple[Section, ...]:
    rows = tuple((name, text) for name, text in STATES.items())
    states = Table("States of a drive", ("state", "what it is"), rows, ("left", "left"))
    intro = (
        "Each drive is brought to a state once; the loads that want it follow each other, reads "
        "first. Before a load is measured it runs for a fifth of its time, except on a fresh "
        "drive. Where a source does not say how many I/Os were outstanding, random loads have 128 "
        "and sequential ones 32, as the PTS-E recommends. Data are random where nothing else is "
        "said; else what the drive holds compresses as far as what the load writes. Improvements "
        "are errors of the ratio."
    )
    sections = [Section("Conditions", intro, tables=(states,))]
    if found.drives:
        text = f"{found.wall_s / 60:.1f} minutes in all."
        sections.append(Section("Drives and times", text, tables=(drives_table(found),)))
    return tuple(sections)

"""Tables of a reproduction: goals, groups, campaigns, comparisons, what is missing.

Cells are finished text; the page and the command line show the same tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from writecliff.published.figures import PublishedFigure
from writecliff.published.goals import right_pct
from writecliff.published.notes import note_of
from writecliff.published.output import CSV
from writecliff.published.reproduce import Reproduction
from writecliff.published.scores import Duel, Row, Score, duels_of, scores_of
from writecliff.published.words import (
    condition_text,
    drive_name,
    drive_text,
    error_text,
    joined,
    metric_text,
    value_text,
)
from writecliff.report import units
from writecliff.report.model import Align, Table

FAR_PCT = 20.0  # errors beyond are marked
FAR = "▲"


def goals_table(found: Reproduction) -> Table:
    rows = tuple(
        (goal.what, goal.limit_text, _percent(goal.reached_pct), goal.verdict)
        for goal in found.goals
    )
    return _table("Goals", ("what", "goal", "reached", ""), rows, "lrrl")


def groups_table(found: Reproduction) -> Table:
    header = ("figures of", "number", "median absolute error", "within 20 %", "worst")
    rows = tuple(
        (
            score.group,
            str(score.figures),
            _percent(score.median_error_pct),
            _percent(score.within_20_pct),
            worst_text(score),
        )
        for score in found.scores
    )
    duels = found.duels
    return _table(
        "Errors by group",
        header,
        rows,
        "wrrrl",
        note=f"{len(found.rows)} figures, {len(found.missing)} of them not simulated; "
        f"{len(duels)} comparisons of two drives, {_percent(right_pct(duels))} right",
    )


def sources_table(found: Reproduction) -> Table:
    """The same by source, over the kinds of figures that have a goal."""
    by_source: dict[str, list[Row]] = {}
    for row in found.rows:
        by_source.setdefault(row.figure.source, []).append(row)
    header = ("source", "figures", "simulated", *_JUDGED, "right winner")
    rows = tuple(
        (
            source,
            str(len(rows)),
            str(sum(row.simulated is not None for row in rows)),
            *(_median_of(group, rows) for group in _JUDGED),
            _percent(right_pct(duels_of(rows))),
        )
        for source, rows in by_source.items()
    )
    return _table("Median absolute error by source", header, rows, "wrrrrrr")


_JUDGED = ("throughput", "latency, average", "latency, percentiles and maximum")


def _median_of(group: str, rows: Sequence[Row]) -> str:
    found = (score.median_error_pct for score in scores_of(rows) if score.group == group)
    return _percent(next(found, None))


def worst_text(score: Score) -> str:
    figure = score.worst.figure
    what = joined_label(figure)
    return f"{error_text(score.worst)}: {drive_text(figure)}, {what}"


def joined_label(figure: PublishedFigure) -> str:
    """Metric and load of a figure: "mean latency, random 4 KiB 0 % read QD 1"."""
    return f"{metric_text(figure.metric)}, {figure.label}".removesuffix(", ")


def item_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """Of one table or figure of a source: drives side by side where it compares them, then every
    figure with its condition."""
    item = rows[0].figure.item
    whole = _table(
        f"{item}: all figures",
        ("figure", "drive", "published", "simulated", "error", "simulated under", "remarks"),
        tuple(_detail(row) for row in rows),
        "lwrrrll",
    )
    beside = _side_by_side(item, rows)
    return (whole,) if beside is None else (beside, whole)


def _detail(row: Row) -> tuple[str, ...]:
    figure = row.figure
    remark = note_of(figure) if row.simulated is not None else f"not simulated: {reason_of(row)}"
    return (
        joined_label(figure),
        drive_text(figure),
        value_text(figure.value, figure.unit),
        value_text(row.simulated, figure.unit),
        _marked(row),
        condition_text(figure) if row.simulated is not None else units.UNKNOWN,
        joined((remark, figure.note)),
    )


def _side_by_side(item: str, rows: Sequence[Row]) -> Table | None:
    """A row a test, a column a drive; None unless some test has two drives."""
    by_test: dict[str, dict[str, Row]] = {}
    for row in rows:
        if not row.figure.baseline:
            by_test.setdefault(joined_label(row.figure), {})[row.figure.device] = row
    drives = list(dict.fromkeys(row.figure.device for row in rows if not row.figure.baseline))
    if not any(len(found) > 1 for found in by_test.values()):
        return None
    header = ("", "", *map(drive_name, drives))
    body = tuple(
        (test if not n else "", _said(what, found), *(_cell(found.get(d), what) for d in drives))
        for test, found in by_test.items()
        for n, what in enumerate(_BESIDE)
    )
    return _table(f"{item}: drives side by side", header, body, "ww" + "r" * len(drives))


_BESIDE = ("published", "simulated", "error")


def _said(what: str, found: Mapping[str, Row]) -> str:
    """Of a line of a test; the first one names the unit."""
    unit = next(iter(found.values())).figure.unit
    return f"{what}, {unit}" if what == _BESIDE[0] and unit else what


def _cell(row: Row | None, what: str) -> str:
    if row is None:
        return ""
    if what == "error":
        return _marked(row)
    return units.significant(row.figure.value if what == "published" else row.simulated)


def wrong_table(duels: Sequence[Duel], title: str) -> Table:
    """The comparisons with the wrong winner."""
    rows = tuple(
        (
            duel.item,
            f"{metric_text(duel.metric)}, {duel.label}".removesuffix(", "),
            " v ".join(duel.drives),
            _ratio(duel.published),
            _ratio(duel.simulated),
        )
        for duel in duels
        if not duel.right
    )
    header = ("item", "test", "drives", "published ratio", "simulated ratio")
    return _table(title, header, rows, "llwrr")


def _ratio(pair: tuple[float, float]) -> str:
    return f"{pair[0] / pair[1]:.3g}" if pair[1] else units.UNKNOWN


def missing_table(rows: Sequence[Row]) -> Table:
    """What is not simulated, and why."""
    body = tuple(
        (
            row.figure.item,
            drive_text(row.figure),
            joined_label(row.figure),
            value_text(row.figure.value, row.figure.unit),
            reason_of(row),
        )
        for row in rows
    )
    header = ("item", "drive", "figure", "published", "reason")
    return _table("Not simulated", header, body, "lwlrl")


def reason_of(row: Row) -> str:
    """Why there is no figure: what somebody found out, else what the program can tell."""
    return note_of(row.figure) or row.why


def missing_summary(rows: Sequence[Row]) -> Table:
    """The same by reason."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(reason_of(row), []).append(row)
    body = tuple(
        (
            str(len(those)),
            ", ".join(dict.fromkeys(row.figure.device for row in those)),
            reason,
        )
        for reason, those in by_reason.items()
    )
    return _table("Not simulated", ("figures", "drives", "reason"), body, "rll")


def missed_table(rows: Sequence[Row]) -> Table:
    """Figures off by more than 20 %, the worst first, with the reasons that were found."""
    far = [row for row in rows if row.error_pct is not None and abs(row.error_pct) > FAR_PCT]
    far.sort(key=lambda row: -abs(row.error_pct or 0.0))
    body = tuple(
        (
            drive_text(row.figure),
            joined_label(row.figure),
            value_text(row.figure.value, row.figure.unit),
            value_text(row.simulated, row.figure.unit),
            error_text(row),
            note_of(row.figure),
        )
        for row in far
    )
    header = ("drive", "figure", "published", "simulated", "error", "reason")
    return _table(f"Off by more than {FAR_PCT:g} %", header, body, "wlrrrl")


def drives_table(found: Reproduction) -> Table:
    rows = tuple(
        (d.name, d.description, str(d.loads), f"{d.wall_s:,.0f} s", d.device_hash[:16])
        for d in found.drives
    )
    header = ("preset", "what it is", "loads", "wall time", "hash of the device")
    return _table("Drives", header, rows, "wlrrl")


def _marked(row: Row) -> str:
    far = row.error_pct is not None and abs(row.error_pct) > FAR_PCT
    return f"{FAR} {error_text(row)}" if far else error_text(row)


def _percent(value: float | None) -> str:
    return units.UNKNOWN if value is None else f"{value:.1f} %"


def _table(
    title: str,
    header: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    sides: str,
    note: str = "",
) -> Table:
    names: dict[str, Align] = {"l": "left", "r": "right", "w": "whole"}
    align = tuple(names[side] for side in sides)
    return Table(title, header, rows, align, note, data=CSV)

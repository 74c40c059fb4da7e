"""Tables for a reproduction, and the wording of figures and conditions.

Cells are formatted text, and the page and the command line show the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from writecliff import units
from writecliff.engines.preconditioned import RECIPES
from writecliff.lab.published.notes import note_of
from writecliff.lab.published.output import CSV, LOADS_CSV
from writecliff.lab.published.reproduce import LoadResult, Reproduction
from writecliff.published.conditions import (
    IMPROVEMENT,
    STATISTICS,
    Load,
    State,
    condition,
    preset_of,
)
from writecliff.published.figures import PublishedFigure
from writecliff.published.kinds import MEAN, MIXED, PURE, TAILS, WINNERS
from writecliff.published.modern import part_scores
from writecliff.published.scores import (
    PairwiseComparison,
    Row,
    Score,
    scores_of,
)
from writecliff.report import kinds
from writecliff.report.kinds import Kind
from writecliff.report.table import Column, Table, table

FAR = "▲"  # Mark on errors beyond the limit for their kind.
# Descriptions of the drive states that `measure.py` prepares.
STATES: dict[State, str] = {  # `conditions.STATES`
    "fresh": "purged; the load is the first that is written",
    "fill": RECIPES["fill"],
    "sustained": RECIPES["sustained"],
    "client": "80 % of the capacity twice, 128 KiB in order, then twice the 8 GiB of 1,024 "
    "segments that loads use, 4 KiB at random",
}
_METRICS = {
    "iops": "IOPS",
    "iops_fob": "IOPS, fresh out of the box",
    "iops_steady": "IOPS, steady",
    "throughput_fob": "throughput, fresh out of the box",
    "tbw": "TBW",
    "dwpd": "drive writes per day",
    "waf": "write amplification",
    "lifetime_ratio_streams_vs_none": "lifetime with streams",
    "power_idle": "power, idle",
    "power_read": "power, reads",
    "power_write": "power, writes",
    "power_seq_read": "power, sequential reads",
    "power_random_write": "power, random writes",
    "power_random_read_min": "power, random reads, minimum",
    "power_random_read_max": "power, random reads, maximum",
    "power_active_read_max": "power, reads, maximum",
    "power_active_write_max": "power, writes, maximum",
}
# Components of composite metric names: quantity, operation, improvement.
_WHAT = {
    "iops_stddev": "standard deviation of IOPS",
    "iops_consistency": "consistency of IOPS",
    "iops": "IOPS",
    "throughput": "throughput",
    "latency_avg": "mean latency",
    "latency_max": "maximum latency",
    "latency_p99.99": "99.99 % latency",
    "latency_p99.9": "99.9 % latency",
    "latency_p99": "99 % latency",
}
_WAY = {"read": "reads", "write": "writes"}
_BETTER = {
    "_improvement_min": ", least improvement",
    "_improvement_max": ", greatest improvement",
    IMPROVEMENT: ", better by",
}


# -- words --------------------------------------------------------------------------------------


def label_of(figure: PublishedFigure) -> str:
    """Return a figure's metric and load ("mean latency, random 4 KiB 0 % read QD 1")."""
    return _label(figure.metric, figure.label)


def _label(metric: str, load: str) -> str:
    name = metric_text(metric)
    return f"{name}, {load}" if load else name


def metric_text(metric: str) -> str:
    """Return a metric's name, such as "99.99 % latency of reads, better by"."""
    if metric in _METRICS:
        return _METRICS[metric]
    ending = next((suffix for suffix in _BETTER if metric.endswith(suffix)), "")
    words = metric.removesuffix(ending)
    way = next((way for way in _WAY if f"_{way}" in words or words.startswith(f"{way}_")), "")
    what = words.replace(f"_{way}", "").removeprefix(f"{way}_") if way else words
    if what not in _WHAT:
        return metric.replace("_", " ")
    return _WHAT[what] + (f" of {_WAY[way]}" if way else "") + _BETTER.get(ending, "")


def drive_text(figure: PublishedFigure) -> str:
    """Return the drive, or both drives of a comparison."""
    return f"{figure.device} v {figure.baseline}" if figure.baseline else figure.device


def drive_name(name: str) -> str:
    """Return a drive's name in the source, adding the preset name if it differs."""
    preset = preset_of(name)
    return name if preset == name else f"{name} ({preset})"


def load_text(load: Load, depths: tuple[int, int] | None = None) -> str:
    """Return the load without state and time ("random 4 KiB, 70 % reads, 32 outstanding")."""
    if load.profile:
        text = f"profile {load.profile}"
    else:
        read = load.read_pct or 0.0
        mix = {0.0: " writes", 100.0: " reads"}.get(read, f", {read:g} % reads")
        text = f"{load.pattern} {(load.block_bytes or 0) / 1024:g} KiB{mix}"
    if depths:
        text += f", {depths[0]} to {depths[1]} outstanding"
    elif load.outstanding:
        text += f", {load.outstanding} outstanding"
    data = load.compressible_pct
    return f"{text}, data compressible by {data:g} %" if data else text


def condition_text(row: Row) -> str:
    """Return state, load and time of the simulated figure."""
    measured = condition(row.figure)
    if measured is None or row.simulated is None:
        return units.UNKNOWN
    if measured.metric == "lifetime_ratio_streams_vs_none":
        return "as in experiment fms-fio: write amplification, the smaller of its two readings"
    if measured.load is None:
        return "idle"
    load = measured.load
    text = f"{load.state}; {load_text(load, row.figure.depths)}; {load.seconds:g}\u00a0s"
    if measured.metric in ("tbw", "dwpd"):
        return f"rated cycles and the write amplification of: {text}"
    return text


def value_text(value: float | None, figure: PublishedFigure) -> str:
    """Format a value to three digits with its unit, and improvements with their sign."""
    if value is None:
        return units.UNKNOWN
    if figure.unit == "%":
        return f"{value:{'+' if figure.baseline else ''}.1f} %"
    return f"{units.significant(value)} {figure.unit}".rstrip()


def error_text(row: Row) -> str:
    """Format an error in the unit of its kind, as "+3.2 %", "1.80 x" or "-4.5 points"."""
    if row.error is None:
        return units.UNKNOWN
    return _in_unit(row.error, row.kind.unit, sign=True)


def _in_unit(value: float, unit: str, *, sign: bool = False) -> str:
    plus = "+" if sign else ""
    return f"{value:.2f} x" if unit == "x" else f"{value:{plus}.1f} {unit}"


def reason_of(row: Row) -> str:
    """Return the reason for a missing figure: its note or the simulation's reason."""
    return note_of(row.figure) or row.why


def _published(row: Row) -> str:
    return value_text(row.figure.value, row.figure)


def _simulated(row: Row) -> str:
    return value_text(row.simulated, row.figure)


def _marked(row: Row) -> str:
    return f"{FAR} {error_text(row)}" if row.is_far else error_text(row)


# -- tables -------------------------------------------------------------------------------------


def parts_tables(reproduction: Reproduction) -> list[Table]:
    """Return the errors for current drives, for fitted figures and for held-out figures.

    The rule derives constants from the fitted figures, so the table shows no error for these
    figures.
    """
    rows: list[tuple[str | float, ...]] = [
        (score.part, score.kind, score.figures, "set by the rule", "")
        if score.part == "fit"
        else (score.part, score.kind, score.figures, score.value, score.goal)
        for score in part_scores(reproduction.rows)
    ]
    header = (
        "Part",
        "Kind",
        Column("Figures", kinds.plain()),
        Column("Median error", kinds.percents(1)),
        Column("Goal", kinds.plain("%")),
    )
    title = "Figures of the fit and held-out figures"
    return [table(title, header, rows, "ll")] if rows else []


def kinds_table(reproduction: Reproduction) -> Table:
    """Return a summary of errors by kind of figure, and the percentage of correct winners."""

    def goal(score: Score) -> str:
        if score.goal is None:
            return ""
        sign = "≤" if score.statistic == "median" else "≥"
        return f"{sign} {_in_unit(score.goal, score.unit)}"

    predicted = reproduction.predicted

    def cross_validated(score: Score) -> str:
        prediction = predicted.get(score.kind)
        return (
            ""
            if prediction is None
            else f"{_in_unit(prediction.value, prediction.unit)} ({prediction.figures})"
        )

    def worst(score: Score) -> str:
        if score.worst is None:
            return ""
        figure = score.worst.figure
        return f"{error_text(score.worst)}: {drive_text(figure)}, {label_of(figure)}"

    return Table.of(
        "Errors by kind",
        reproduction.scores,
        ("figures of", kinds.WHOLE, lambda s: s.kind),
        ("number", kinds.plain(), lambda s: s.figures),
        ("statistic", kinds.TEXT, lambda s: s.statistic),
        ("value", kinds.RIGHT, lambda s: _in_unit(s.value, s.unit)),
        ("cross-validated", kinds.RIGHT, cross_validated),
        ("goal", kinds.RIGHT, goal),
        ("", kinds.TEXT, lambda s: {None: "", True: "reached", False: "missed"}[s.reached]),
        ("worst", kinds.TEXT, worst),
        note=f"{len(reproduction.rows)} figures, {len(reproduction.missing)} not simulated; "
        f"relative errors in %, tails and deviations as simulated over published or its "
        f"reciprocal, percentages in points; cross-validated: errors and number of figures that "
        f"were each predicted by a fit of other loads; empty without predictions of these presets",
        data=CSV,
    )


def sources_table(reproduction: Reproduction) -> Table:
    """Return the main rows of the summary by source."""
    by_source: dict[str, list[Row]] = {}
    for row in reproduction.rows:
        by_source.setdefault(row.figure.source, []).append(row)
    scores = {source: scores_of(rows) for source, rows in by_source.items()}

    def cell(source: str, kind: str) -> str:
        matching = (score for score in scores[source] if score.kind == kind)
        return next((_in_unit(score.value, score.unit) for score in matching), units.UNKNOWN)

    lines = (PURE.name, MIXED.name, MEAN.name, TAILS.name, WINNERS)
    return Table.of(
        "By source",
        by_source.items(),
        ("source", kinds.WHOLE, lambda pair: pair[0]),
        ("figures", kinds.plain(), lambda pair: len(pair[1])),
        ("simulated", kinds.plain(), lambda p: sum(row.simulated is not None for row in p[1])),
        *((name, kinds.RIGHT, lambda pair, name=name: cell(pair[0], name)) for name in lines),
        data=CSV,
    )


def loads_table(reproduction: Reproduction) -> Table:
    """Return each load's metrics, with separate read and write latencies."""

    def number(name: str) -> Callable[[LoadResult], float | None]:
        return lambda result: result.metrics.get(name)

    latencies: list[tuple[str, Kind, Callable[[LoadResult], float | None]]] = [
        (f"{statistic} {way}, ms", kinds.digits(), number(f"latency_{statistic}_{way}"))
        for way in _WAY
        for statistic in STATISTICS
    ]
    return Table.of(
        "Loads",
        reproduction.loads,
        ("drive", kinds.WHOLE, lambda result: result.drive),
        ("state", kinds.TEXT, lambda result: result.load.state),
        ("load", kinds.TEXT, lambda result: load_text(result.load)),
        ("s", kinds.plain(), lambda result: result.load.seconds),
        ("read IOPS", kinds.digits(), number("read_iops")),
        ("write IOPS", kinds.digits(), number("write_iops")),
        *latencies,
        data=LOADS_CSV,
    )


def rows_table(rows: Sequence[Row]) -> Table:
    """Return every figure and its simulated value, by drive."""
    return Table.of(
        "Figures",
        sorted(rows, key=lambda row: drive_text(row.figure)),
        ("drive", kinds.WHOLE, lambda row: drive_text(row.figure)),
        ("figure", kinds.TEXT, lambda row: label_of(row.figure)),
        ("published", kinds.RIGHT, _published),
        ("simulated", kinds.RIGHT, _simulated),
        ("error", kinds.RIGHT, _marked),
        data=CSV,
    )


def item_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """Return the tables for a table or figure in a source.

    If the source compares drives, the first table shows them side by side. The last table has every
    figure and its condition.
    """

    def remarks(row: Row) -> str:
        why = note_of(row.figure) if row.simulated is not None else reason_of(row)
        remark = why if row.simulated is not None else f"not simulated: {why}"
        return "; ".join(part for part in (remark, row.figure.note) if part)

    item = rows[0].figure.item
    whole = Table.of(
        f"{item}: all figures",
        rows,
        ("figure", kinds.TEXT, lambda row: label_of(row.figure)),
        ("drive", kinds.WHOLE, lambda row: drive_text(row.figure)),
        ("published", kinds.RIGHT, _published),
        ("simulated", kinds.RIGHT, _simulated),
        ("error", kinds.RIGHT, _marked),
        ("simulated under", kinds.TEXT, condition_text),
        ("remarks", kinds.TEXT, remarks),
        data=CSV,
    )
    beside = _side_by_side(item, rows)
    return (whole,) if beside is None else (beside, whole)


def _side_by_side(item: str, rows: Sequence[Row]) -> Table | None:
    """Table with a row per test and a column per drive, or None if no test has two drives."""
    by_test: dict[str, dict[str, Row]] = {}
    for row in rows:
        if not row.figure.baseline:
            by_test.setdefault(label_of(row.figure), {})[row.figure.device] = row
    drives = list(dict.fromkeys(row.figure.device for row in rows if not row.figure.baseline))
    if not any(len(by_device) > 1 for by_device in by_test.values()):
        return None
    body: list[tuple[str, ...]] = []
    for test, by_device in by_test.items():
        unit = next(iter(by_device.values())).figure.unit
        published = f"published, {unit}" if unit else "published"
        for number, what in enumerate((published, "simulated", "error")):
            cells = (_cell(by_device.get(drive), number) for drive in drives)
            body.append((test if not number else "", what, *cells))
    header = ("", "", *map(drive_name, drives))
    return table(f"{item}: drives side by side", header, body, "ww", data=CSV)


def _cell(row: Row | None, line: int) -> str:
    """Cell with a figure's published value, simulated value or error."""
    if row is None:
        return ""
    values = (row.figure.value, row.simulated)
    return units.significant(values[line]) if line < len(values) else _marked(row)


def wrong_table(comparisons: Sequence[PairwiseComparison]) -> Table:
    """Return the comparisons whose winner is wrong."""
    kind = Kind(lambda value: units.UNKNOWN if value is None else f"{value:.3g}")

    def ratio(pair: tuple[float, float]) -> float | None:
        return pair[0] / pair[1] if pair[1] else None

    return Table.of(
        "Wrong winner",
        [comparison for comparison in comparisons if not comparison.right],
        ("item", kinds.TEXT, lambda comparison: comparison.item),
        ("test", kinds.TEXT, lambda comparison: _label(comparison.metric, comparison.label)),
        ("drives", kinds.WHOLE, lambda comparison: " v ".join(comparison.drives)),
        ("published ratio", kind, lambda comparison: ratio(comparison.published)),
        ("simulated ratio", kind, lambda comparison: ratio(comparison.simulated)),
        data=CSV,
    )


def missing_table(rows: Sequence[Row]) -> Table:
    """Return the figures that are not simulated, with the reasons."""
    return Table.of(
        "Not simulated",
        rows,
        ("item", kinds.TEXT, lambda row: row.figure.item),
        ("drive", kinds.WHOLE, lambda row: drive_text(row.figure)),
        ("figure", kinds.TEXT, lambda row: label_of(row.figure)),
        ("published", kinds.RIGHT, _published),
        ("reason", kinds.TEXT, reason_of),
        data=CSV,
    )


def missing_summary(rows: Sequence[Row]) -> Table:
    """Return the figures that are not simulated, counted by reason."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(reason_of(row), []).append(row)
    return Table.of(
        "Not simulated",
        by_reason.values(),
        ("figures", kinds.plain(), len),
        (
            "drives",
            kinds.TEXT,
            lambda same: ", ".join(dict.fromkeys(r.figure.device for r in same)),
        ),
        ("reason", kinds.TEXT, lambda same: reason_of(same[0])),
        data=CSV,
    )


def missed_table(rows: Sequence[Row]) -> Table:
    """Return figures whose errors exceed the limit of their kind, worst first, with notes."""
    return Table.of(
        "Missed",
        sorted((r for r in rows if r.is_far), key=lambda r: -(r.size or 0.0) / r.kind.limit),
        ("drive", kinds.WHOLE, lambda row: drive_text(row.figure)),
        ("figure", kinds.TEXT, lambda row: label_of(row.figure)),
        ("published", kinds.RIGHT, _published),
        ("simulated", kinds.RIGHT, _simulated),
        ("error", kinds.RIGHT, error_text),
        ("reason", kinds.TEXT, lambda row: note_of(row.figure)),
        data=CSV,
    )


def drives_table(reproduction: Reproduction) -> Table:
    """Return the simulated drives with their scales, loads and times."""
    return Table.of(
        "Drives",
        reproduction.drives,
        ("preset", kinds.WHOLE, lambda drive: drive.name),
        ("description", kinds.TEXT, lambda drive: drive.description),
        ("simulated", kinds.SIZE, lambda drive: drive.simulated_bytes),
        (
            "of its capacity",
            kinds.RIGHT,
            lambda drive: f"1/{drive.scale:g}" if drive.scale > 1 else "all",
        ),
        ("loads", kinds.plain(), lambda drive: drive.loads),
        ("wall time", kinds.decimals(0, "s"), lambda drive: drive.wall_s),
        ("device hash", kinds.TEXT, lambda drive: drive.device_hash[:16]),
        data=CSV,
    )

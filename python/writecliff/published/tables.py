"""The tables of a reproduction, and how figures and conditions are put into words.

Cells are finished text; the page and the command line show the same tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from writecliff import units
from writecliff.engines.preconditioned import RECIPES
from writecliff.published.conditions import Load, State, condition, preset_of
from writecliff.published.figures import PublishedFigure
from writecliff.published.notes import note_of
from writecliff.published.output import CSV
from writecliff.published.reproduce import Reproduction
from writecliff.published.scores import (
    PairwiseComparison,
    Row,
    Score,
    comparisons_of,
    right_pct,
    scores_of,
)
from writecliff.report.model import Table, table

FAR_PCT = 20.0  # errors beyond are marked
FAR = "▲"
# What each state is, as `measure.py` prepares it.
STATES: dict[State, str] = {
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
    "read_iops": "IOPS of reads",
    "write_iops": "IOPS of writes",
    "iops_stddev": "standard deviation of IOPS",
    "iops_improvement": "IOPS, better by",
    "throughput_fob": "throughput, fresh out of the box",
    "throughput_improvement": "throughput, better by",
    "latency_avg": "mean latency",
    "latency_max": "maximum latency",
    "latency_p99": "99 % latency",
    "latency_p99.9": "99.9 % latency",
    "latency_p99.99": "99.99 % latency",
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


# -- words --------------------------------------------------------------------------------------


def label_of(figure: PublishedFigure) -> str:
    """Metric and load of a figure: "mean latency, random 4 KiB 0 % read QD 1"."""
    return _label(figure.metric, figure.label)


def _label(metric: str, load: str) -> str:
    name = _METRICS.get(metric, metric.replace("_", " "))
    return f"{name}, {load}" if load else name


def drive_text(figure: PublishedFigure) -> str:
    """The drive, or both drives of a comparison."""
    return f"{figure.device} v {figure.baseline}" if figure.baseline else figure.device


def drive_name(name: str) -> str:
    """The drive as the source calls it, with the preset where that differs."""
    preset = preset_of(name)
    return name if preset == name else f"{name} ({preset})"


def load_text(load: Load) -> str:
    """The load without state and time: "random 4 KiB, 70 % reads, 32 outstanding"."""
    mix = {0.0: " writes", 100.0: " reads"}.get(load.read_pct, f", {load.read_pct:g} % reads")
    text = f"{load.pattern} {load.block_bytes / 1024:g} KiB{mix}, {load.outstanding} outstanding"
    data = load.compressible_pct
    return f"{text}, data compressible by {data:g} %" if data else text


def condition_text(row: Row) -> str:
    """State, load and time behind the simulated figure."""
    one = condition(row.figure)
    if one is None or row.simulated is None:
        return units.UNKNOWN
    if one.metric == "lifetime_ratio_streams_vs_none":
        return "as in experiment fms-fio: write amplification, the smaller of its two readings"
    if one.load is None:
        return "idle"
    text = f"{one.load.state}; {load_text(one.load)}; {one.load.seconds:g}\u00a0s"
    if one.metric in ("tbw", "dwpd"):
        return f"rated cycles and the write amplification of: {text}"
    return text


def value_text(value: float | None, unit: str) -> str:
    """Three digits and the unit; percentages of an improvement with their sign."""
    if value is None:
        return units.UNKNOWN
    return f"{value:+.1f} %" if unit == "%" else f"{units.significant(value)} {unit}".rstrip()


def error_text(row: Row) -> str:
    """The relative error with its sign."""
    return units.UNKNOWN if row.error_pct is None else f"{row.error_pct:+.1f} %"


def reason_of(row: Row) -> str:
    """Why there is no figure: the note on it, else the reason that the program gives."""
    return note_of(row.figure) or row.why


def _published(row: Row) -> str:
    return value_text(row.figure.value, row.figure.unit)


def _simulated(row: Row) -> str:
    return value_text(row.simulated, row.figure.unit)


def _is_far(row: Row) -> bool:
    return row.error_pct is not None and abs(row.error_pct) > FAR_PCT


def _marked(row: Row) -> str:
    return f"{FAR} {error_text(row)}" if _is_far(row) else error_text(row)


# -- tables -------------------------------------------------------------------------------------


def groups_table(found: Reproduction) -> Table:
    def worst(score: Score) -> str:
        figure = score.worst.figure
        return f"{error_text(score.worst)}: {drive_text(figure)}, {label_of(figure)}"

    comparisons = found.comparisons
    return Table.of(
        "Errors by group",
        found.scores,
        ("figures of", "whole", lambda s: s.group),
        ("number", "right", lambda s: str(s.figures)),
        ("median absolute error", "right", lambda s: units.pct(s.median_error_pct, 1)),
        ("within 20 %", "right", lambda s: units.pct(s.within_20_pct, 1)),
        ("worst", "left", worst),
        note=f"{len(found.rows)} figures, {len(found.missing)} of them not simulated; "
        f"{len(comparisons)} comparisons of two drives, {units.pct(right_pct(comparisons), 1)} "
        "right",
        data=CSV,
    )


def sources_table(found: Reproduction) -> Table:
    """Median errors of the main groups by source."""
    by_source: dict[str, list[Row]] = {}
    for row in found.rows:
        by_source.setdefault(row.figure.source, []).append(row)

    def median(rows: Sequence[Row], group: str) -> str:
        errors = (score.median_error_pct for score in scores_of(rows) if score.group == group)
        return units.pct(next(errors, None), 1)

    latency, tail = "latency, average", "latency, percentiles and maximum"
    return Table.of(
        "Median absolute error by source",
        by_source.values(),
        ("source", "whole", lambda rows: rows[0].figure.source),
        ("figures", "right", lambda rows: str(len(rows))),
        ("simulated", "right", lambda rows: str(sum(r.simulated is not None for r in rows))),
        ("throughput", "right", lambda rows: median(rows, "throughput")),
        (latency, "right", lambda rows: median(rows, latency)),
        (tail, "right", lambda rows: median(rows, tail)),
        ("right winner", "right", lambda rows: units.pct(right_pct(comparisons_of(rows)), 1)),
        data=CSV,
    )


def item_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """The tables for one table or figure of a source: drives side by side where it compares them,
    then every figure with its condition."""

    def remarks(row: Row) -> str:
        why = note_of(row.figure) if row.simulated is not None else reason_of(row)
        remark = why if row.simulated is not None else f"not simulated: {why}"
        return "; ".join(part for part in (remark, row.figure.note) if part)

    item = rows[0].figure.item
    whole = Table.of(
        f"{item}: all figures",
        rows,
        ("figure", "left", lambda row: label_of(row.figure)),
        ("drive", "whole", lambda row: drive_text(row.figure)),
        ("published", "right", _published),
        ("simulated", "right", _simulated),
        ("error", "right", _marked),
        ("simulated under", "left", condition_text),
        ("remarks", "left", remarks),
        data=CSV,
    )
    beside = _side_by_side(item, rows)
    return (whole,) if beside is None else (beside, whole)


def _side_by_side(item: str, rows: Sequence[Row]) -> Table | None:
    """A row a test, a column a drive; None unless some test has two drives."""
    by_test: dict[str, dict[str, Row]] = {}
    for row in rows:
        if not row.figure.baseline:
            by_test.setdefault(label_of(row.figure), {})[row.figure.device] = row
    drives = list(dict.fromkeys(row.figure.device for row in rows if not row.figure.baseline))
    if not any(len(found) > 1 for found in by_test.values()):
        return None
    body: list[tuple[str, ...]] = []
    for test, found in by_test.items():
        unit = next(iter(found.values())).figure.unit
        published = f"published, {unit}" if unit else "published"
        for number, what in enumerate((published, "simulated", "error")):
            cells = (_cell(found.get(drive), number) for drive in drives)
            body.append((test if not number else "", what, *cells))
    header = ("", "", *map(drive_name, drives))
    return table(f"{item}: drives side by side", header, body, "ww", data=CSV)


def _cell(row: Row | None, line: int) -> str:
    """The published value, the simulated one or the error of a figure."""
    if row is None:
        return ""
    values = (row.figure.value, row.simulated)
    return units.significant(values[line]) if line < len(values) else _marked(row)


def wrong_table(comparisons: Sequence[PairwiseComparison]) -> Table:
    """The comparisons with the wrong winner."""

    def ratio(pair: tuple[float, float]) -> str:
        return f"{pair[0] / pair[1]:.3g}" if pair[1] else units.UNKNOWN

    return Table.of(
        "Wrong winner",
        [one for one in comparisons if not one.right],
        ("item", "left", lambda one: one.item),
        ("test", "left", lambda one: _label(one.metric, one.label)),
        ("drives", "whole", lambda one: " v ".join(one.drives)),
        ("published ratio", "right", lambda one: ratio(one.published)),
        ("simulated ratio", "right", lambda one: ratio(one.simulated)),
        data=CSV,
    )


def missing_table(rows: Sequence[Row]) -> Table:
    """The figures that are not simulated, with the reasons."""
    return Table.of(
        "Not simulated",
        rows,
        ("item", "left", lambda row: row.figure.item),
        ("drive", "whole", lambda row: drive_text(row.figure)),
        ("figure", "left", lambda row: label_of(row.figure)),
        ("published", "right", _published),
        ("reason", "left", reason_of),
        data=CSV,
    )


def missing_summary(rows: Sequence[Row]) -> Table:
    """The figures that are not simulated, counted by reason."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(reason_of(row), []).append(row)
    return Table.of(
        "Not simulated",
        by_reason.values(),
        ("figures", "right", lambda those: str(len(those))),
        ("drives", "left", lambda those: ", ".join(dict.fromkeys(r.figure.device for r in those))),
        ("reason", "left", lambda those: reason_of(those[0])),
        data=CSV,
    )


def missed_table(rows: Sequence[Row]) -> Table:
    """Figures off by more than 20 %, the worst first, with their notes."""
    return Table.of(
        f"Off by more than {FAR_PCT:g} %",
        sorted(filter(_is_far, rows), key=lambda row: -abs(row.error_pct or 0.0)),
        ("drive", "whole", lambda row: drive_text(row.figure)),
        ("figure", "left", lambda row: label_of(row.figure)),
        ("published", "right", _published),
        ("simulated", "right", _simulated),
        ("error", "right", error_text),
        ("reason", "left", lambda row: note_of(row.figure)),
        data=CSV,
    )


def drives_table(found: Reproduction) -> Table:
    return Table.of(
        "Drives",
        found.drives,
        ("preset", "whole", lambda drive: drive.name),
        ("description", "left", lambda drive: drive.description),
        ("loads", "right", lambda drive: str(drive.loads)),
        ("wall time", "right", lambda drive: f"{drive.wall_s:,.0f} s"),
        ("device hash", "left", lambda drive: drive.device_hash[:16]),
        data=CSV,
    )

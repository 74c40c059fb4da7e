"""Rendering of a live experiment's results as JSON, tables and page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from writecliff.lab.experiments.live.machine import FILE_SYSTEM
from writecliff.lab.experiments.live.model import Comparison, Ratio, Result, Trial
from writecliff.report import kinds
from writecliff.report.axes import Axis
from writecliff.report.colours import one_page
from writecliff.report.csvs import csv_text
from writecliff.report.model import Figure, Section
from writecliff.report.pages import Page
from writecliff.report.plots import Bars, bars
from writecliff.report.table import DataFile, Table
from writecliff.units import latency, size

SCHEMA = "writecliff/experiment-live/1"
TRIALS_CSV, STREAMS_CSV = "trials.csv", "streams.csv"
_POINTS = {"mean": "mean", "p50": "p50", "p99": "p99", "p99_9": "p99.9", "max": "maximum"}
_LATE_MAX = 0.1  # Maximum lateness, equal to the limit for a served drive's warning.
_WIDE = 3.0
_OUTSTANDING_MIN = 1.0  # Minimum queue depth; below this value, the drive does not limit the load.


def mapping(result: Result) -> dict[str, Any]:
    """Return all results as plain data; `precondition` applies to every figure."""
    application = result.application
    return {
        "schema": SCHEMA,
        "experiment": application.name,
        "about": application.about,
        "claim": application.claim,
        "claimed": {
            "lifetime_ratio": application.claimed_lifetime,
            "io_ratio": application.claimed_io,
        },
        "precondition": result.precondition,
        "device": result.device,
        "device_file": result.device_file,
        "capacity_bytes": result.capacity_bytes,
        "reclaim_units": result.units,
        "reclaim_unit_bytes": result.unit_bytes,
        "overprovision_pct": result.spare_pct,
        "slow_down": application.slow_down,
        "file_system": FILE_SYSTEM,
        "parts": [asdict(part) for part in application.parts],
        "findings": list(findings(result)),
        "comparisons": [asdict(comparison) for comparison in result.comparisons()],
        "trials": [_trial(trial) for trial in result.trials],
    }


def _trial(trial: Trial) -> dict[str, object]:
    return {
        **asdict(trial.condition),
        "repeat": trial.repeat + 1,
        "position": trial.position,
        "operations_per_s": trial.throughput,
        "latency_ns": {point: trial.latency_ns(point) for point in trial.client.latency_ns},
        "waf": trial.waf,
        "outstanding_writes": trial.outstanding,
        "client": asdict(trial.client),
        "session": dict(trial.session),
        "run": trial.run,
    }


def findings(result: Result) -> Iterator[str]:
    """Compare the trials with the claim, in one sentence per finding."""
    application = result.application
    for comparison in result.comparisons():
        where = _trim(comparison.trim)
        lifetime, io = application.claimed_lifetime, application.claimed_io
        yield (
            f"{where}: the drive lasts {ratio_text(comparison.lifetime)} times as long with "
            f"streams; the claimed {lifetime:g} is {comparison.lifetime.reaches(lifetime)}."
        )
        gain = (
            f"{where}: the client does {ratio_text(comparison.throughput)} times as many operations"
        )
        claimed = f"; the claimed {io:g} is {comparison.throughput.reaches(io)}" if io else ""
        yield f"{gain}{claimed}."
        p99 = ratio_text(comparison.latency["p99"])
        yield f"{where}: the 99th percentile of its writes is {p99} times that without streams."
    idle = min(trial.outstanding for trial in result.trials)
    if idle < _OUTSTANDING_MIN:
        yield (
            f"The drive had only {idle:.1f} writes outstanding on average in a trial, so it was "
            "often idle: this machine and the application limited the operations, too. This does "
            "not affect write amplification."
        )
    late = max(trial.late for trial in result.trials)
    if late > _LATE_MAX:
        yield (
            f"Replies of the server were late by up to {100 * late:.0f} % of the drive's own "
            "latency, so this machine affects the client's figures. It does not affect write "
            "amplification."
        )


def ratio_text(ratio: Ratio) -> str:
    """Format a ratio and its confidence interval, omitting intervals that are too wide."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.mean:.2f}"
    if ratio.high > _WIDE * ratio.mean:
        return f"{ratio.mean:.2f} (no interval)"
    return f"{ratio.mean:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _trim(trim: bool) -> str:
    return "With TRIM" if trim else "Without TRIM"


def tables(result: Result) -> tuple[Table, ...]:
    """Return the tables of findings, comparisons, trials, streams and layout."""
    sentences = Table.of("Findings", list(findings(result)), ("", kinds.TEXT, str))
    return sentences, _compared(result), _trials(result), _streams(result), _layout(result)


def _compared(result: Result) -> Table:
    points = [point for point in _POINTS if point in result.comparisons()[0].latency]
    return Table.of(
        "Streams on against off",
        result.comparisons(),
        ("", kinds.TEXT, lambda row: _trim(row.trim)),
        ("lifetime", kinds.RIGHT, lambda row: ratio_text(row.lifetime)),
        ("operations a second", kinds.RIGHT, lambda row: ratio_text(row.throughput)),
        *((f"write {_POINTS[point]}", kinds.RIGHT, _latency_ratio(point)) for point in points),
        note="geometric means of the pairs' ratios, with 95 % confidence intervals (Student's t) "
        f"if there are several pairs and the intervals are not wider than a factor of {_WIDE:g} "
        "either way",
    )


def _latency_ratio(point: str) -> Any:
    def text(comparison: Comparison) -> str:
        return ratio_text(comparison.latency[point])

    return text


def _trials(result: Result) -> Table:
    points = [point for point in _POINTS if point in result.trials[0].client.latency_ns]
    return Table.of(
        "Trials",
        result.trials,
        ("order", kinds.plain(), lambda trial: trial.position),
        ("TRIM", kinds.TEXT, lambda trial: "on" if trial.condition.trim else "off"),
        ("streams", kinds.TEXT, lambda trial: "on" if trial.condition.streams else "off"),
        ("operations a second", kinds.decimals(0), lambda trial: trial.throughput),
        *((f"write {_POINTS[point]}", kinds.RIGHT, _latency(point)) for point in points),
        ("WAF", kinds.decimals(2), lambda trial: trial.waf),
        ("lifetime", kinds.RIGHT, _lifetime),
        ("written", kinds.SIZE, _written),
        ("drive writes", kinds.decimals(1), lambda trial: _written(trial) / result.capacity_bytes),
        ("outstanding", kinds.decimals(1), lambda trial: trial.outstanding),
        ("late", kinds.decimals(0, "%"), lambda trial: 100 * trial.late),
        ("run", kinds.TEXT, lambda trial: Path(trial.run).name),
        note="times and rates are the drive's: wall time divided by the factor by which the drive "
        f"is slowed down. Latency: {result.application.client}. Lifetime: until the flash reaches "
        "its rated cycles, at the session's write amplification. Outstanding: the drive's writes, "
        "on average. Late: lateness of replies relative to the drive's own latency",
        data=TRIALS_CSV,
    )


def _latency(point: str) -> Any:
    def text(trial: Trial) -> str:
        return latency(trial.latency_ns(point))

    return text


def _lifetime(trial: Trial) -> str:
    lifetime = trial.session.get("lifetime") or {}
    endurance = lifetime.get("endurance_bytes")
    return "unknown" if endurance is None else f"{size(endurance)} written"


def _written(trial: Trial) -> int:
    return int(trial.session["operations"]["write"]["bytes"])


def _streams(result: Result) -> Table:
    return Table.of(
        "Data written with each stream",
        list(_stream_rows(result)),
        ("order", kinds.plain(), lambda row: row[0].position),
        ("TRIM", kinds.TEXT, lambda row: "on" if row[0].condition.trim else "off"),
        ("stream", kinds.plain(), lambda row: row[1]),
        ("holds", kinds.TEXT, lambda row: row[2]),
        ("written", kinds.SIZE, lambda row: row[3]),
        ("share", kinds.decimals(0, "%"), lambda row: 100 * row[3] / _written(row[0])),
        data=STREAMS_CSV,
    )


def _stream_rows(result: Result) -> Iterator[tuple[Trial, int, str, int]]:
    """Rows of trial, stream, file description and bytes written, for trials with streams."""
    holds = {part.stream: part.holds for part in result.application.parts}
    for trial in result.trials:
        if not trial.condition.streams:
            continue
        for row in trial.session["streams"]:
            for number in row["numbers"]:
                yield trial, number, holds.get(number, ""), row["written_bytes"]


def _layout(result: Result) -> Table:
    return Table.of(
        f"File systems ({FILE_SYSTEM}) on the drive",
        result.application.parts,
        ("name", kinds.TEXT, lambda part: part.name),
        ("holds", kinds.TEXT, lambda part: part.holds),
        ("size", kinds.SIZE, lambda part: part.size_bytes),
        ("stream", kinds.plain(), lambda part: part.stream),
        note="the last file system also takes the remainder of the drive",
    )


@one_page()
def page(result: Result) -> Page:
    """Return the page of results."""
    sentences, compared, trials, streams, layout = tables(result)
    application = result.application
    return Page(
        title=application.title,
        intro=f"Published: {application.claim}. Here: {application.about}, on a served simulated "
        f"drive of the kind {result.device}, {size(result.capacity_bytes)} with {result.units} "
        f"reclaim units of {size(result.unit_bytes)} and {result.spare_pct:.1f} % "
        f"over-provisioning. Precondition: {result.precondition}.",
        sections=(
            Section("Findings", "", tables=(replace(sentences, title=""), compared)),
            Section("Trials", "", _plots(result), (trials,)),
            Section("Streams", "", tables=(streams, layout)),
        ),
        data=_data(result),
        summary=mapping(result),
        disclosures=(
            "Streams by file system: no file system of Linux passes the write hint of a file to a "
            "drive's write streams (ext4, XFS and btrfs tried on Linux 7.3). Files that belong "
            "together therefore have their own file system, and each file system writes with one "
            "stream. Without streams the same file systems write with the default stream.",
            f"Scale: the drive has {size(result.capacity_bytes)} instead of 480 GB, and its "
            f"reclaim units {size(result.unit_bytes)} instead of 302 MB. Dies and their times are "
            "those of the whole drive.",
            f"Time: the drive is slowed down by {application.slow_down:g}, so that it limits the "
            "load instead of this machine. The time of the machine's processors counts less by "
            "this factor than with a real drive; a program that is limited by processors gains "
            "less.",
            "Throughput and latency are measured by the client. Write amplification, lifetime and "
            "streams are those of the session of the served drive, stored in a run directory per "
            "trial.",
            *application.notes,
        ),
    )


def _plots(result: Result) -> tuple[Figure, ...]:
    """Bar plot of results without and with streams, by condition and repeat."""
    offs = [trial for trial in result.trials if not trial.condition.streams]
    groups = [f"{_trim(trial.condition.trim)}, {trial.repeat + 1}" for trial in offs]
    on = {(t.condition.trim, t.repeat): t for t in result.trials if t.condition.streams}
    ons = [on[trial.condition.trim, trial.repeat] for trial in offs]
    figures = (
        _bars(name, title, groups, [[pick(trial) for trial in side] for side in (offs, ons)])
        for name, title, pick in (
            ("waf", "Write amplification", attrgetter("waf")),
            ("operations", "Operations a second", attrgetter("throughput")),
        )
    )
    return tuple(figure for figure in figures if figure is not None)


def _bars(
    name: str, title: str, groups: Sequence[str], values: Sequence[Sequence[float]]
) -> Figure | None:
    sides = ("one stream", "streams")
    series = [Bars(label, side) for label, side in zip(sides, values, strict=True)]
    return bars(name, f"{title}, by pair of trials", TRIALS_CSV, groups, series, Axis(title))


def _data(result: Result) -> tuple[DataFile, ...]:
    points = list(result.trials[0].client.latency_ns)
    head = ["position", "repeat", "trim", "streams", "operations_per_s", "waf", "written_bytes"]
    head += [f"write_latency_{point}_ns" for point in points] + ["lateness_share"]
    rows: Iterator[list[float | str]] = (
        [
            trial.position,
            trial.repeat + 1,
            trial.condition.trim,
            trial.condition.streams,
            trial.throughput,
            trial.waf,
            _written(trial),
            *(trial.latency_ns(point) for point in points),
            trial.late,
        ]
        for trial in result.trials
    )
    streams: Iterator[list[float | str]] = (
        [trial.position, trial.condition.trim, number, holds, written]
        for trial, number, holds, written in _stream_rows(result)
    )
    return (
        DataFile(TRIALS_CSV, csv_text(head, rows)),
        DataFile(
            STREAMS_CSV, csv_text(["position", "trim", "stream", "holds", "written_bytes"], streams)
        ),
    )

"""The report of the Aerospike certification test: passed or not, the table by hour, the search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from writecliff import units
from writecliff.procedures.campaigns.act import SEARCH
from writecliff.procedures.campaigns.act_judge import LIMITS_PCT, THRESHOLDS_MS, Slice, Trial
from writecliff.report import figures, plots
from writecliff.report.axes import Axis, Line
from writecliff.report.campaigns.act_text import (
    TABLE_MS,
    certified,
    procedure_of,
    slices,
    table_text,
)
from writecliff.report.campaigns.common import (
    RESULTS_CSV,
    Result,
    page,
    results_file,
    summary,
)
from writecliff.report.csvs import csv_text, histogram_csv
from writecliff.report.loops import aligned
from writecliff.report.model import (
    DataFile,
    KeyFigure,
    ReportModel,
    Section,
    Table,
    Verdict,
    drawn,
)
from writecliff.report.style import house_style
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

SLICES_CSV, HISTOGRAM_CSV = "slices.csv", "reads-histogram.csv"
TABLE = "act-latency.txt"


def report(run: RunDirectory) -> ReportModel:
    """The report of a run. Raises StoreError: damaged, or nothing measured yet."""
    data = load(run)
    trial = certified(data)
    results = _results(data)
    with house_style():
        sections = [*_certified(data, trial), _search(data)]
    return page(
        data,
        verdict=_verdict(data, trial),
        key_figures=_key_figures(data, trial),
        sections=sections,
        summary=summary(data, results, act=_act(data)),
        files=(results_file(results), *_files(data, trial)),
        more_notes=(
            "A latency within the histogram's resolution of a threshold (1/64 of it) counts as "
            "over it.",
        ),
    )


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """What `report(run)` holds as its summary, without drawing anything."""
    data = load(run)
    return summary(data, _results(data), act=_act(data))


def _act(data: TestData) -> dict[str, Any]:
    """The judgement, for programs."""
    procedure, trial = procedure_of(data), certified(data)
    passed = trial is not None and procedure.passed(trial)
    return {
        "model": procedure.options.model,
        "load": None if trial is None else trial.multiple,
        "passed": passed if trial is not None else None,
        "stopped": None if trial is None else trial.stopped(procedure.options.max_lag_sec),
        "largest_passed": trial.multiple if trial is not None and passed else None,
        "searched": procedure.options.search,
        "slices": [
            {
                "slice": item.number,
                "reads": item.reads,
                "passed": item.passed,
                **{f"over_{ms}ms_pct": share for ms, share in item.over_pct.items()},
            }
            for item in (slices(data, trial) if trial is not None else ())
        ],
    }


def _results(data: TestData) -> list[Result]:
    trial = certified(data)
    if trial is None:
        return []
    procedure = procedure_of(data)
    place: dict[str, Any] = {"item": f"act {trial.multiple:g}x", "access": "act"}
    found = []
    for ms in TABLE_MS:
        shares = [item.over_pct[ms] for item in slices(data, trial)]
        for name, value in (("avg", _mean(shares)), ("max", max(shares, default=None))):
            if value is not None:
                metric = f"over_{ms}ms_{name}"
                found.append(Result(metric=metric, value=value, unit="%", higher_is_better=False,
                                    **place))  # fmt: skip
    if procedure.options.search:
        best = trial.multiple if procedure.passed(trial) else 0.0
        found.append(Result("act", "act", "largest_load", best, "x"))
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _verdict(data: TestData, trial: Trial | None) -> Verdict:
    procedure = procedure_of(data)
    options = procedure.options
    rule = "; ".join(f"fewer than {limit:g} % over {ms} ms" for ms, limit in LIMITS_PCT.items())
    meaning = [f"Wanted of the reads of every slice: {rule}."]
    if trial is None:
        text = "No load was passed in the search" if options.search else "Nothing was tested yet"
        return Verdict("bad", text, tuple(meaning))
    load_text, hours = f"{trial.multiple:g}x", units.duration(_tested_ns(data, trial))
    bad = [item.number for item in trial.slices if not item.passed]
    done = f"Tested at {load_text} for {hours}; the load was at most "
    meaning.append(f"{done}{units.significant(trial.lag_s)} s behind its schedule.")
    if trial.stopped(options.max_lag_sec):
        return Verdict("bad", f"Stopped: the drive cannot keep up with {load_text}", tuple(meaning))
    if not trial.complete:
        return Verdict("warning", f"{load_text}: not tested to its end", tuple(meaning))
    if bad:
        meaning.append(f"Slices that are over: {', '.join(map(str, bad))}.")
        meaning.append("As a stress test it is passed: it ran to its end.")
        return Verdict("bad", f"{load_text} failed", tuple(meaning))
    return Verdict("good", f"{load_text} passed", tuple(meaning))


def _tested_ns(data: TestData, trial: Trial) -> float:
    return float(sum(row.elapsed_ns for row in trial.rows))


def _key_figures(data: TestData, trial: Trial | None) -> tuple[KeyFigure, ...]:
    if trial is None:
        return ()
    procedure = procedure_of(data)
    verdict = "passed" if procedure.passed(trial) else "not passed"
    label = "Largest load" if procedure.options.search else "Load"
    found = [KeyFigure(label, f"{trial.multiple:g}", "x", verdict)]
    done = slices(data, trial)
    for ms, limit in LIMITS_PCT.items():
        worst = max((item.over_pct[ms] for item in done), default=None)
        text = units.UNKNOWN if worst is None else f"{worst:.2f}"
        note = f"in the worst slice; wanted: below {limit:g} %"
        found.append(KeyFigure(f"Over {ms} ms", text, "%", note))
    return tuple(found)


def _certified(data: TestData, trial: Trial | None) -> list[Section]:
    if trial is None:
        return []
    done = slices(data, trial)
    histogram = data.run.histogram(
        steps=[data.seq(row) for row in trial.rows], operation="read", job=0
    )
    table = Table(
        f"Reads over each threshold, {trial.multiple:g}x",
        ("Slice", "Reads", *(f"> {ms} ms" for ms in TABLE_MS), ""),
        tuple(_row(item) for item in done),
        (*aligned(5), "left"),
        "" if done else "No slice is complete.",
        SLICES_CSV,
    )
    plots_ = drawn(
        "slices",
        "Reads over 1, 8 and 64 ms by slice",
        _slices_svg(done),
        SLICES_CSV,
        "Percent of the reads of each slice that took longer",
    )
    if histogram is not None and histogram.count:
        name = "reads-histogram"
        svg = figures.response_time_histogram(name, histogram)
        plots_ += drawn(name, "Reads by response time", svg, HISTOGRAM_CSV, "Number of reads")
        svg = figures.confidence("reads-confidence", histogram)
        plots_ += drawn("reads-confidence", "Confidence level of reads", svg, HISTOGRAM_CSV,
                        "Cumulative share of reads")  # fmt: skip
    intro = "Percent of the reads, as in the table of act_latency.py."
    return [Section("By slice", intro, plots_, (table,))]


def _row(item: Slice) -> tuple[str, ...]:
    shares = (f"{item.over_pct[ms]:.2f} %" for ms in TABLE_MS)
    return (str(item.number), units.number(item.reads), *shares, "" if item.passed else "over")


def _slices_svg(done: Sequence[Slice]) -> str | None:
    numbers = [float(item.number) for item in done]
    return plots.lines(
        "slices",
        [Line(f"> {ms} ms", numbers, [item.over_pct[ms] for item in done]) for ms in LIMITS_PCT],
        Axis("Slice", whole=True, from_zero=False),
        Axis("Reads over the threshold (%)"),
        description="Percent of reads over 1, 8 and 64 ms, slice by slice",
        references=[
            # One name for all of them: what begins with "_" is not in the legend.
            plots.Reference("_" * bool(place) + "limits", limit)
            for place, limit in enumerate(LIMITS_PCT.values())
        ],
    )


def _search(data: TestData) -> Section:
    stage = data.stage(SEARCH)
    if stage is None or not stage.rows:
        return Section("Search", "")
    procedure = procedure_of(data)
    lag = procedure.options.max_lag_sec
    rows = []
    for trial in procedure.trials(stage.rows, SEARCH):
        cells = [
            f"{trial.slices[0].over_pct[ms]:.2f} %" if trial.slices else units.UNKNOWN
            for ms in LIMITS_PCT
        ]
        stopped = "stopped: cannot keep up" if trial.stopped(lag) else "failed"
        verdict = stopped if trial.failed(lag) else "passed"
        rows.append((f"{trial.multiple:g}x", units.duration(_tested_ns(data, trial)), *cells,
                     f"{units.significant(trial.lag_s)} s", verdict))  # fmt: skip
    table = Table(
        "Loads that were tried",
        ("Load", "Tested", *(f"> {ms} ms" for ms in LIMITS_PCT), "Lag", ""),
        tuple(rows),
        aligned(6),
        data=RESULTS_CSV if not rows else "",
    )
    return Section("Search", "One slice each, by doubling and halving.", tables=(table,))


def _files(data: TestData, trial: Trial | None) -> tuple[DataFile, ...]:
    if trial is None:
        return ()
    done = slices(data, trial)
    head = ("slice", "reads", *(f"over_{ms}ms_pct" for ms in THRESHOLDS_MS))
    cells = ((item.number, item.reads, *item.over_pct.values()) for item in done)
    found = [DataFile(SLICES_CSV, csv_text(head, cells))]
    if done:
        old = procedure_of(data).options.model == "3.x"
        found.append(DataFile(TABLE, table_text(done, old=old)))
    histogram = data.run.histogram(
        steps=[data.seq(row) for row in trial.rows], operation="read", job=0
    )
    if histogram is not None:
        found.append(DataFile(HISTOGRAM_CSV, histogram_csv(histogram)))
    return tuple(found)

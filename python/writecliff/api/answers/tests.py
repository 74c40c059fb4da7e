"""Answers of tests, workloads, suites, sweeps, and their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from writecliff.api.answers.base import (
    Answer,
    Difference,
    Item,
    LimitResult,
    Object,
    Refusal,
)
from writecliff.engines.base import DeviceIdentity


class TestEntry(Item, frozen=True):
    """A test that can be run."""

    name: str  # Name on the command line
    title: str  # Name in reports
    summary: str  # Description in a sentence
    editions: Sequence[str]  # Editions of the standard that define the test
    required: bool  # `true` if these editions require it for all drives
    campaign: str | None  # Published campaign that the test repeats


class TestList(Answer, frozen=True, tag="writecliff/test-list/1"):
    """The tests."""

    commands = "test --list"

    tests: Sequence[TestEntry]  # Tests, in the order of `--help`


class TestPlan(Answer, frozen=True, tag="writecliff/test-plan/1"):
    """Plan of a test: its steps, duration and writes."""

    commands = "test NAME --dry-run"

    dry_run: Literal[True]  # Always `true`: nothing was run
    target: DeviceIdentity  # Identity of the drive
    # `title`, `phases`, bounds of `steps`, `device_time` and `write_bytes` (`_min`, `_max`),
    # `deviations`, and the `estimate` of a pilot run (`null`: none was possible)
    plan: Any
    refusal: Refusal | None  # Set if the run would be refused; the exit code is then 2


class SuitePlan(Answer, frozen=True, tag="writecliff/suite-plan/1"):
    """Plan of a suite: the plan of each test."""

    commands = "suite EDITION --dry-run"

    dry_run: Literal[True]  # Always `true`: nothing was run
    target: DeviceIdentity  # Identity of the drive
    tests: Mapping[str, Any]  # Plan by name of the test, as in `test NAME --dry-run`
    refusal: Refusal | None  # Set if the suite would be refused; the exit code is then 2


class FigureValue(Item, frozen=True):
    """A headline figure of a contender."""

    value: float  # Value, in the unit of the figure
    low: float | None  # Low end of its 95 % interval
    high: float | None  # High end of its 95 % interval
    interval_of: str | None  # Population that the interval describes
    at: str  # Load at which it was measured
    steady: bool  # `true` if it was measured in steady state


class ComparedFigure(Item, frozen=True):
    """A figure that at least two contenders have in common."""

    test: str  # Name of the test
    key: str  # Key of the figure
    label: str  # Name of the figure in words
    unit: str  # Unit of the values
    higher_is_better: bool  # `false` for latencies and the like
    values: Sequence[FigureValue | None]  # Figure by contender; `null`: not measured
    best: str | None  # Label of the best contender
    margin_pct: float | None  # Difference of the best from the second, in percent of the second
    noise: str  # Significance of the difference


class Comparison(Answer, frozen=True, tag="writecliff/comparison/2", kw_only=True):
    """Comparison of runs, suites, sweeps or saved answers."""

    commands = "compare"
    more = "suites-sweeps-and-comparisons"

    report: Path  # HTML report
    # Report as PDF; absent, like `csv`, from a comparison with a baseline
    pdf: Path | UnsetType | None = UNSET
    csv: Path | UnsetType | None = UNSET  # Folder with the data
    contenders: Sequence[Object]  # Each contender with its `label`, its set-up and its `runs`
    differences: Sequence[Difference]  # Differences in the set-up
    figures: Sequence[ComparedFigure]  # Headline figures
    curves: Sequence[Object]  # Points of the plotted curves
    # Figures by two settings: `cells` with `row`, `column`, `values`, `differences`, `best`
    grids: Sequence[Object]
    rule: str  # Rule that separates differences from noise
    verdict: str  # Result in one line


class TestOutcome(Answer, frozen=True, tag="writecliff/test-outcome/1"):
    """Outcome of a test."""

    commands = "test NAME"
    more = "steady-state-of-a-stage"

    run: Path  # Run directory
    report: Path  # HTML report
    status: Literal["complete"]  # Status of the run
    # Factor by which the simulated drive was scaled down (`--quick`, or to fit in memory); 1: not
    # scaled
    scale: float
    ended_by: str  # Rule that ended the run
    steps: int  # Number of measured steps
    stages: Sequence[Object]  # Steady state of each stage
    device_time_ns: int  # Duration by the drive's clock
    host_write_bytes_total: int  # Bytes that the host wrote in the run
    drive_fills: float  # Bytes that the host wrote, divided by the capacity
    last_step: Object  # Last row of the run's table
    warnings: Sequence[str]  # Warnings
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # Result in one line


class WorkloadOutcome(Answer, frozen=True, tag="writecliff/workload-run/1"):
    """Outcome of a workload."""

    commands = "run"
    more = "suites-sweeps-and-comparisons"

    file: str  # Workload file
    target: str  # Target of the workload
    scale: float  # Factor by which the simulated drive was scaled down; 1: not scaled
    precondition: str  # State of the drive before the workload
    precondition_because: str  # Reason for the choice of this state
    steps: Sequence[Object]  # Results of each step: `jobs` with `operations`, `waf`, `counters`
    run: Path  # Run directory
    report: Path  # HTML report
    warnings: Sequence[str]  # Warnings
    expectations: Sequence[LimitResult]  # Limits of `--expect` and of the file
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # Result in one line


class SetRun(Item, frozen=True):
    """A run of a suite or sweep."""

    name: str  # Name of the run
    test: str  # Name of the test
    status: str | None  # Status of the run; `null`: not started
    run: Path  # Run directory
    report: Path  # HTML report


class SetOutcome(Answer, frozen=True, tag="writecliff/set-outcome/1"):
    """Outcome of a suite or sweep."""

    commands = "suite, sweep"

    kind: Literal["suite", "sweep", "choice"]  # Kind of the set
    about: str  # Edition of the suite, or options that the sweep varies
    folder: Path  # Directory of the runs
    report: Path  # HTML report
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    runs: Sequence[SetRun]  # Runs, in order


class SweepEntry(Item, frozen=True):
    """A predefined sweep."""

    name: str  # Name on the command line
    option: str  # Option that the sweep varies
    values: Sequence[str]  # Values of the option
    summary: str  # Purpose in a sentence


class SweepList(Answer, frozen=True, tag="writecliff/sweep-list/1"):
    """The predefined sweeps."""

    commands = "sweep --list"

    sweeps: Sequence[SweepEntry]  # Predefined sweeps


class ReportFiles(Answer, frozen=True, tag="writecliff/report/1"):
    """The report of a run."""

    commands = "report"
    more = "run"

    report: Path  # HTML report
    pdf: Path | None  # Report as PDF
    csv: Path | None  # Folder with the data
    summary: Object  # Summary of the run; each test has its own `schema`


class Demo(Answer, frozen=True, tag="writecliff/demo/1"):
    """A demonstration of the write cliff."""

    commands = "demo"
    more = "run"

    run: Path  # Run directory
    report: Path  # HTML report
    summary: Object  # Summary of the run


class Replay(Answer, frozen=True, tag="writecliff/replay/1", kw_only=True):
    """Replay of a trace on a simulated drive."""

    commands = "replay"
    more = "replays-and-stream-advice"

    trace: Object  # Trace, with the assumptions about it
    device: Object  # Simulated drive
    assign: str  # Rule that assigned writes to streams
    streams: int  # Number of streams in use
    mistag_pct: float  # Share of writes assigned to a wrong stream
    waf: float | None  # Write amplification over the second half of the writes
    waf_drift: float | None  # Relative change of the write amplification within that half
    # Bytes that the drive holds valid at the end
    mapped_bytes: int | UnsetType | None = UNSET
    # Bytes that a host can write to the full-size drive within its rated cycles
    endurance_bytes: float | None
    years: float | None  # Lifetime of the full-size drive in years
    read_p9999_ns: float | None  # 99.99th percentile of the latency of concurrent reads
    read_mean_ns: float | None  # Mean latency of concurrent reads
    reads: int  # Number of concurrent reads
    write_bytes_per_s: float | None  # Write rate during the reads
    oracle: str | None  # Variant that the oracle chose; `null`: no oracle
    statistics: Object | None  # FDP statistics of the drive over the measured half
    overflow_bytes: Object  # Bytes by stream, for streams that the drive could not open
    data_placement: Object | None  # State of the data placement interface at the end
    # Reason why `waf` and the figures derived from it are `null`
    not_quoted: str | UnsetType | None = UNSET
    by_stream: Sequence[Object]  # Bytes, lifetimes and origins of the data of each stream
    series: Object  # `host_bytes` and `nand_bytes` over the replay
    run: Path  # Run directory
    report: Path  # HTML report
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # Result in one line


class ReplayTimed(Answer, frozen=True, tag="writecliff/replay-timed/1"):
    """Replay of a trace on a real drive or a file."""

    commands = "replay"

    trace: Path  # Trace file
    target: str  # Target as given
    speed: float  # Speed relative to the recording
    ios: Mapping[str, int]  # Issued I/Os by operation
    elapsed_s: float  # Time until the last completion
    # Accuracy of the issue times: `lateness_ns` (from due time to issue:
    # `mean`, `p50`, `p99`, `p99_9`, `max`), `waited` (I/Os that waited for queue depth),
    # `left` (never issued), `intended_ns` and `length_ns` (due and issue time of the last I/O),
    # `length_error_pct`, `in_flight_max`
    timing: Object
    # Response times from the due time, by operation: `mean`, `p50`, `p99`, `p99_9`, `max`
    response_ms: Mapping[str, Mapping[str, float | None]]
    # Service times from the issue, by operation, flushes included
    service_ms: Mapping[str, Mapping[str, float | None]]
    notes: Sequence[str]  # Remarks
    issued_trace: Path  # Trace of the issued I/Os, each with due, issue and completion time


class StreamAdvice(Answer, frozen=True, tag="writecliff/stream-advice/1"):
    """Comparison of ways to assign a trace's writes to streams."""

    commands = "advise-streams"
    more = "replays-and-stream-advice"

    report: Path  # HTML report
    trace: Object  # Trace, with the assumptions about it
    device: Object  # Simulated drive
    verdict: Sequence[str]  # Recommendation in sentences
    best: Object  # Figures of the recommended assignment, as in `replay --json`
    rules: str | None  # Rules that assign writes to streams
    # Figures of each assignment and number of streams; `bound`: `true` if users cannot select it
    cells: Sequence[Object]
    # Cost of writes to a wrong stream: `assign`, `streams` and `cells` by `share_pct`
    mistagged: Object

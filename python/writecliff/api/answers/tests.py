"""JSON output of tests, workloads, suites and sweeps, and of their reports."""

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
    """An available test."""

    name: str  # Command-line name of the test
    title: str  # Test name used in reports
    summary: str  # One-sentence description of the test
    editions: Sequence[str]  # Editions of the standard that define the test
    required: bool  # `true` if these editions require the test for all drives
    campaign: str | None  # Published campaign that the test reproduces


class TestList(Answer, frozen=True, tag="writecliff/test-list/1"):
    """The tests."""

    commands = "test --list"

    tests: Sequence[TestEntry]  # Tests, in the same order as in `--help`


class TestPlan(Answer, frozen=True, tag="writecliff/test-plan/1"):
    """Planned steps, duration and write volume of a test."""

    commands = "test NAME --dry-run"

    dry_run: Literal[True]  # Always `true`: no test was run
    target: DeviceIdentity  # Drive identity
    # Test plan: `title`, `phases`, bounds on `steps`, `device_time` and `write_bytes` (`_min`,
    # `_max`), `deviations`, and the `estimate` from a pilot run (`null` if no pilot run was
    # possible)
    plan: Any
    # Reason for rejection, if the run would be rejected; the exit code is then 2
    refusal: Refusal | None


class SuitePlan(Answer, frozen=True, tag="writecliff/suite-plan/1"):
    """Plans of the tests in a suite."""

    commands = "suite EDITION --dry-run"

    dry_run: Literal[True]  # Always `true`: no test was run
    target: DeviceIdentity  # Drive identity
    tests: Mapping[str, Any]  # Test plans by test name, as in `test NAME --dry-run`
    # Reason for rejection, if the suite would be rejected; the exit code is then 2
    refusal: Refusal | None


class FigureValue(Item, frozen=True):
    """A headline figure of a contender."""

    value: float  # Figure value, in the figure's unit
    low: float | None  # Lower bound of the 95 % interval
    high: float | None  # Upper bound of the 95 % interval
    interval_of: str | None  # Population that the 95 % interval describes
    at: str  # Workload that produced the figure
    steady: bool  # `true` if the figure was measured in steady state


class ComparedFigure(Item, frozen=True):
    """A figure that at least two contenders report."""

    test: str  # Test name
    key: str  # Figure key
    label: str  # Figure name in words
    unit: str  # Unit of the values
    higher_is_better: bool  # `false` for latencies and other figures where lower is better
    values: Sequence[FigureValue | None]  # Figure values by contender; `null` if not measured
    best: str | None  # Label of the best contender
    # Lead of the best contender over the second-best, in percent of the second-best value
    margin_pct: float | None
    noise: str  # Significance of the difference, in words


class Comparison(Answer, frozen=True, tag="writecliff/comparison/2", kw_only=True):
    """Comparison of runs, suites, sweeps or saved JSON output."""

    commands = "compare"
    more = "suites-sweeps-and-comparisons"

    report: Path  # Path of the HTML report
    # Path of the PDF report; absent, like `csv`, from a comparison with a baseline
    pdf: Path | UnsetType | None = UNSET
    csv: Path | UnsetType | None = UNSET  # Folder that contains the CSV data
    contenders: Sequence[Object]  # Contenders, each with its `label`, set-up and `runs`
    differences: Sequence[Difference]  # Set-up differences between contenders
    figures: Sequence[ComparedFigure]  # Headline figures of all contenders
    curves: Sequence[Object]  # Data points on the plotted curves
    # Figures that depend on two settings: `cells` with `row`, `column`, `values`, `differences`,
    # `best`
    grids: Sequence[Object]
    rule: str  # Rule that separates significant differences from noise
    verdict: str  # One-line summary


class TestOutcome(Answer, frozen=True, tag="writecliff/test-outcome/1"):
    """Outcome of a test."""

    commands = "test NAME"
    more = "steady-state-of-a-stage"

    run: Path  # Run directory
    report: Path  # Path of the HTML report
    status: Literal["complete"]  # Run status
    # Factor by which the simulated drive was scaled down (`--quick`, or to fit in memory); 1 if it
    # was not scaled
    scale: float
    ended_by: str  # Rule that ended the run
    steps: int  # Number of measured steps
    stages: Sequence[Object]  # Steady-state result of each stage
    device_time_ns: int  # Duration on the drive's clock
    host_write_bytes_total: int  # Bytes written by the host during the run
    drive_fills: float  # Bytes written by the host, as a multiple of the drive capacity
    last_step: Object  # Last row in the run's results table
    warnings: Sequence[str]  # Warnings
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # One-line summary of the result


class WorkloadOutcome(Answer, frozen=True, tag="writecliff/workload-run/1"):
    """Outcome of a workload."""

    commands = "run"
    more = "suites-sweeps-and-comparisons"

    file: str  # Workload file
    target: str  # Target that ran the workload
    scale: float  # Factor by which the simulated drive was scaled down; 1 if it was not scaled
    precondition: str  # Drive state before the workload
    precondition_because: str  # Reason why this state was chosen
    steps: Sequence[Object]  # Results by workload step: `jobs` with `operations`, `waf`, `counters`
    run: Path  # Run directory
    report: Path  # Path of the HTML report
    warnings: Sequence[str]  # Warnings
    # Results of limits from `--expect` and from the workload file
    expectations: Sequence[LimitResult]
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # One-line summary of the result


class SetRun(Item, frozen=True):
    """A run of a suite or sweep."""

    name: str  # Run name
    test: str  # Test name
    status: str | None  # Run status; `null` if the run has not started
    run: Path  # Run directory
    report: Path  # Path of the HTML report


class SetOutcome(Answer, frozen=True, tag="writecliff/set-outcome/1"):
    """Outcome of a suite or sweep."""

    commands = "suite, sweep"

    kind: Literal["suite", "sweep", "choice"]  # Set type
    about: str  # Suite edition, or the options that the sweep varies
    folder: Path  # Directory that contains the runs
    report: Path  # Path of the HTML report
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    runs: Sequence[SetRun]  # Runs of the set, in execution order


class SweepEntry(Item, frozen=True):
    """A predefined sweep."""

    name: str  # Command-line name of the sweep
    option: str  # Option that the sweep varies
    values: Sequence[str]  # Option values
    summary: str  # One-sentence statement of purpose


class SweepList(Answer, frozen=True, tag="writecliff/sweep-list/1"):
    """The predefined sweeps."""

    commands = "sweep --list"

    sweeps: Sequence[SweepEntry]  # Predefined sweeps


class ReportFiles(Answer, frozen=True, tag="writecliff/report/1"):
    """The report of a run."""

    commands = "report"
    more = "run"

    report: Path  # Path of the HTML report
    pdf: Path | None  # Path of the PDF report
    csv: Path | None  # Folder that contains the CSV data
    summary: Object  # Run summary, whose `schema` depends on the test


class Demo(Answer, frozen=True, tag="writecliff/demo/1"):
    """A demonstration of the write cliff."""

    commands = "demo"
    more = "run"

    run: Path  # Run directory
    report: Path  # Path of the HTML report
    summary: Object  # Run summary


class Replay(Answer, frozen=True, tag="writecliff/replay/1", kw_only=True):
    """Replay of a trace on a simulated drive."""

    commands = "replay"
    more = "replays-and-stream-advice"

    trace: Object  # Trace statistics, including the assumptions made about the trace
    device: Object  # Simulated drive
    assign: str  # Rule that assigned writes to streams
    streams: int  # Number of streams that the replay used
    mistag_pct: float  # Percentage of writes assigned to a wrong stream
    waf: float | None  # Write amplification in the second half of the writes
    waf_drift: float | None  # Relative change of the write amplification within the second half
    # Bytes of valid data on the drive after the replay
    mapped_bytes: int | UnsetType | None = UNSET
    # Bytes that the host can write to the full-size drive within the rated erase cycles
    endurance_bytes: float | None
    years: float | None  # Lifetime of the full-size drive, in years
    read_p9999_ns: float | None  # 99.99th percentile of the concurrent read latency, in ns
    read_mean_ns: float | None  # Mean concurrent read latency, in ns
    reads: int  # Number of concurrent reads
    write_bytes_per_s: float | None  # Write rate during the reads, in bytes per second
    oracle: str | None  # Variant chosen by the oracle; `null` if no oracle was used
    statistics: Object | None  # FDP statistics for the measured half of the writes
    overflow_bytes: Object  # Bytes of each stream that the drive could not open
    data_placement: Object | None  # Final state of the data placement interface
    # Reason why `waf` and the figures derived from it are `null`
    not_quoted: str | UnsetType | None = UNSET
    by_stream: Sequence[Object]  # Byte counts, data lifetimes and data origins by stream
    series: Object  # Series of `host_bytes` and `nand_bytes` over the replay
    run: Path  # Run directory
    report: Path  # Path of the HTML report
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # One-line summary of the result


class ReplayTimed(Answer, frozen=True, tag="writecliff/replay-timed/1"):
    """Replay of a trace on a real drive or a file."""

    commands = "replay"

    trace: Path  # Path of the trace file
    target: str  # Target as given
    speed: float  # Replay speed relative to the recorded speed
    ios: Mapping[str, int]  # Number of issued I/Os by operation
    elapsed_s: float  # Time until the last completion, in seconds
    # Accuracy of issue times: `lateness_ns` (from due time to issue time: `mean`, `p50`, `p99`,
    # `p99_9`, `max`), `waited` (I/Os delayed by the queue depth limit), `left` (I/Os never issued),
    # `intended_ns` and `length_ns` (due and issue time of the last I/O), `length_error_pct`,
    # `in_flight_max`
    timing: Object
    # Response times by operation, measured from the due time: `mean`, `p50`, `p99`, `p99_9`, `max`
    response_ms: Mapping[str, Mapping[str, float | None]]
    # Service times by operation, from issue to completion, including flushes
    service_ms: Mapping[str, Mapping[str, float | None]]
    notes: Sequence[str]  # Remarks
    issued_trace: Path  # Trace of the issued I/Os with due, issue and completion times


class StreamAdvice(Answer, frozen=True, tag="writecliff/stream-advice/1"):
    """Comparison of methods for assigning a trace's writes to streams."""

    commands = "advise-streams"
    more = "replays-and-stream-advice"

    report: Path  # Path of the HTML report
    trace: Object  # Trace statistics, including the assumptions made about the trace
    device: Object  # Simulated drive
    verdict: Sequence[str]  # Recommendations as full sentences
    best: Object  # Figures with the recommended assignment, as in `replay --json`
    rules: str | None  # Rules that assign writes to streams
    # Figures by assignment and stream count, with `bound`: `true` for assignments that users cannot
    # select
    cells: Sequence[Object]
    # Cost of assigning writes to the wrong stream: `assign`, `streams` and `cells` by `share_pct`
    mistagged: Object

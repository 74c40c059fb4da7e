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
    summary: str  # What it does, in a sentence
    editions: Sequence[str]  # Editions of the standard that have the test
    required: bool  # The standard requires it for all drives of these editions
    campaign: str | None  # The published campaign that the test repeats


class TestList(Answer, frozen=True, tag="writecliff/test-list/1"):
    """The tests."""

    commands = "test --list"

    tests: Sequence[TestEntry]  # The tests, in the order of `--help`


class TestPlan(Answer, frozen=True, tag="writecliff/test-plan/1"):
    """What a test would do and cost."""

    commands = "test NAME --dry-run"

    dry_run: Literal[True]  # Nothing was done
    target: DeviceIdentity  # The drive
    # `title`, `phases`, bounds of `steps`, `device_time` and `write_bytes` (`_min`, `_max`),
    # `deviations`, and `estimate` by a pilot run (`null`: none was possible)
    plan: Any
    refusal: Refusal | None  # Set if the run would be refused; the exit code is then 2


class SuitePlan(Answer, frozen=True, tag="writecliff/suite-plan/1"):
    """What a suite would do and cost."""

    commands = "suite EDITION --dry-run"

    dry_run: Literal[True]  # Nothing was done
    target: DeviceIdentity  # The drive
    tests: Mapping[str, Any]  # The plan of each test, by its name, as `test NAME --dry-run` has it
    refusal: Refusal | None  # Set if the suite would be refused; the exit code is then 2


class FigureValue(Item, frozen=True):
    """A headline figure of one contender."""

    value: float  # The figure
    low: float | None  # Low end of its 95 % interval
    high: float | None  # High end of its 95 % interval
    interval_of: str | None  # Population that the interval is about
    at: str  # Load at which it was measured
    steady: bool  # It was measured in steady state


class ComparedFigure(Item, frozen=True):
    """A figure that at least two contenders have."""

    test: str  # The test
    key: str  # Key of the figure
    label: str  # The figure in words
    unit: str  # Unit of the values
    higher_is_better: bool  # `false` for latencies and the like
    values: Sequence[FigureValue | None]  # The figure by contender
    best: str | None  # Label of the best contender
    margin_pct: float | None  # Difference of the best to the next, in percent of the next
    noise: str  # Whether the difference is more than noise


class Comparison(Answer, frozen=True, tag="writecliff/comparison/2", kw_only=True):
    """Comparison of runs, suites, sweeps or saved answers."""

    commands = "compare"
    more = "suites-sweeps-and-comparisons"

    report: Path  # The page
    # The page as PDF; absent from a comparison with a baseline, as the next
    pdf: Path | UnsetType | None = UNSET
    csv: Path | UnsetType | None = UNSET  # Folder of the numbers
    contenders: Sequence[Object]  # Each contender with its `label`, its set-up and its `runs`
    differences: Sequence[Difference]  # Differences in the set-up
    figures: Sequence[ComparedFigure]  # The headline figures
    curves: Sequence[Object]  # Points of the curves that are drawn
    # Figures over two settings: `cells` with `row`, `column`, `values`, `differences`, `best`
    grids: Sequence[Object]
    rule: str  # The rule for differences that are more than noise
    verdict: str  # The outcome in one line


class TestOutcome(Answer, frozen=True, tag="writecliff/test-outcome/1"):
    """Outcome of a test."""

    commands = "test NAME"
    more = "steady-state-of-a-stage"

    run: Path  # The run directory
    report: Path  # The page
    status: Literal["complete"]  # Status of the run
    # Factor by which the simulated drive was scaled down (`--quick`, or too large to be
    # simulated whole); 1: whole
    scale: float
    ended_by: str  # The rule that ended the run
    steps: int  # Steps that were measured
    stages: Sequence[Object]  # Steady state of each stage
    device_time_ns: int  # Duration by the drive's clock
    host_write_bytes_total: int  # Bytes that the host wrote in the run
    drive_fills: float  # Bytes that the host wrote, divided by the capacity
    last_step: Object  # The last row of the run's table
    warnings: Sequence[str]  # Sentences
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # The outcome in one line


class WorkloadOutcome(Answer, frozen=True, tag="writecliff/workload-run/1"):
    """Outcome of a workload."""

    commands = "run"
    more = "suites-sweeps-and-comparisons"

    file: str  # The workload
    target: str  # The drive
    scale: float  # Factor by which the simulated drive was scaled down; 1: whole
    precondition: str  # State to which the drive was brought first
    precondition_because: str  # Reason for that state
    steps: Sequence[Object]  # Results of each step: `jobs` with `operations`, `waf`, `counters`
    run: Path  # The run directory
    report: Path  # The page
    warnings: Sequence[str]  # Sentences
    expectations: Sequence[LimitResult]  # Limits of `--expect` and of the file
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # The outcome in one line


class SetRun(Item, frozen=True):
    """A run of a suite or sweep."""

    name: str  # Name of the run
    test: str  # Name of the test
    status: str | None  # Status of the run; `null`: not started
    run: Path  # The run directory
    report: Path  # The page


class SetOutcome(Answer, frozen=True, tag="writecliff/set-outcome/1"):
    """Outcome of a suite or sweep."""

    commands = "suite, sweep"

    kind: Literal["suite", "sweep", "choice"]  # Whether it was a suite or a sweep
    about: str  # The edition, or the option that is varied
    folder: Path  # Directory of the runs
    report: Path  # The page
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    runs: Sequence[SetRun]  # The runs, in order


class SweepEntry(Item, frozen=True):
    """A predefined sweep."""

    name: str  # Name on the command line
    option: str  # The option that is varied
    values: Sequence[str]  # Its values
    summary: str  # What it shows, in a sentence


class SweepList(Answer, frozen=True, tag="writecliff/sweep-list/1"):
    """The predefined sweeps."""

    commands = "sweep --list"

    sweeps: Sequence[SweepEntry]  # The sweeps


class ReportFiles(Answer, frozen=True, tag="writecliff/report/1"):
    """The report of a run."""

    commands = "report"
    more = "run"

    report: Path  # The page
    pdf: Path | None  # The page as PDF
    csv: Path | None  # Folder of the numbers
    summary: Object  # Summary of the run, with a schema of its own for each test


class Demo(Answer, frozen=True, tag="writecliff/demo/1"):
    """A demonstration of the write cliff."""

    commands = "demo"
    more = "run"

    run: Path  # The run directory
    report: Path  # The page
    summary: Object  # Summary of the run


class Replay(Answer, frozen=True, tag="writecliff/replay/1", kw_only=True):
    """A trace that was replayed on a simulated drive."""

    commands = "replay"
    more = "replays-and-stream-advice"

    trace: Object  # The trace, and what was assumed about it
    device: Object  # The drive as it was simulated
    assign: str  # How writes were assigned to streams
    streams: int  # Streams that were used
    mistag_pct: float  # Writes that were assigned to a wrong stream
    waf: float | None  # Write amplification of the second half of what was written
    waf_drift: float | None  # Change of the write amplification within that half
    # Capacity that the trace's files took at their peak
    mapped_bytes: int | UnsetType | None = UNSET
    # Bytes that a host can write to the whole drive within its rated cycles
    endurance_bytes: float | None
    years: float | None  # Lifetime of the whole drive
    read_p9999_ns: float | None  # 99.99th percentile of the latency of concurrent reads
    read_mean_ns: float | None  # Mean latency of concurrent reads
    reads: int  # Concurrent reads that were measured
    write_bytes_per_s: float | None  # Rate of the writes beside the reads
    oracle: str | None  # The variant that an oracle chose
    statistics: Object | None  # The drive's FDP statistics of the measured half
    overflow_bytes: Object  # Bytes written to streams that the drive could not open, by stream
    data_placement: Object | None  # State of the data placement interface at the end
    # Reason why `waf` and what follows from it are `null`
    not_quoted: str | UnsetType | None = UNSET
    by_stream: Sequence[Object]  # Bytes, lifetimes and origins of the data of each stream
    series: Object  # `host_bytes` and `nand_bytes` over the replay
    run: Path  # The run directory
    report: Path  # The page
    expectations: Sequence[LimitResult]  # Limits of `--expect`
    comparison: Comparison | None  # Comparison with `--baseline`
    verdict: str  # The outcome in one line


class ReplayTimed(Answer, frozen=True, tag="writecliff/replay-timed/1"):
    """A trace that was replayed on a real drive or a file."""

    commands = "replay"

    trace: Path  # The file that was replayed
    target: str  # The drive, as it was named
    speed: float  # Speed, relative to that of the recording
    ios: Mapping[str, int]  # I/Os that were issued, by operation
    elapsed_s: float  # Time up to the last completion
    # Accuracy of the times: `lateness_ns` (from when an I/O was due until it was issued:
    # `mean`, `p50`, `p99`, `p99_9`, `max`), `waited` (for others, by their depth), `left`
    # (never issued), `intended_ns` and `length_ns` (up to the last I/O, due and issued),
    # `length_error_pct`, `in_flight_max`
    timing: Object
    # Times from when I/Os were due, by operation: `mean`, `p50`, `p99`, `p99_9`, `max`
    response_ms: Mapping[str, Mapping[str, float | None]]
    # Times from when I/Os were issued, with flushes
    service_ms: Mapping[str, Mapping[str, float | None]]
    notes: Sequence[str]  # Sentences
    issued_trace: Path  # The trace of what was issued, with the three times of each I/O


class StreamAdvice(Answer, frozen=True, tag="writecliff/stream-advice/1"):
    """Comparison of ways to assign a trace's writes to streams."""

    commands = "advise-streams"
    more = "replays-and-stream-advice"

    report: Path  # The page
    trace: Object  # The trace, and what was assumed about it
    device: Object  # The drive as it was simulated
    verdict: Sequence[str]  # The recommendation, in sentences
    best: Object  # Figures of the recommended assignment, as `replay --json` has them
    rules: str | None  # The rules that assign writes to streams
    # Figures of each assignment and number of streams; `bound`: it cannot be had
    cells: Sequence[Object]
    # Cost of writes in a wrong stream: `assign`, `streams` and `cells` by `share_pct`
    mistagged: Object

"""Answers about choices of drives and twins of drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from writecliff.api.answers.base import Answer, Item, Object


class RankedDrive(Item, frozen=True):
    """A candidate of a choice, with its rank."""

    device: str  # Drive, with its over-provisioning if that varies
    candidate: str  # Candidate from which the drive is made
    rank: int  # Rank, from 1
    passes: bool  # `true` if the drive meets all limits
    score: float  # Score, 0 to 1
    why: str  # Reason for its rank
    not_sustained: str | None  # Reason why the drive did not keep up with the load
    sure: str | None  # Certainty of its difference from the first drive
    best_of_its_kind: bool  # `true` if no drive is better in every weighted figure
    metrics: Mapping[str, float | None]  # Figures; the names contain the units
    intervals: Mapping[str, Sequence[float]]  # 95 % intervals of figures
    limits: Sequence[Object]  # Limits, with their results
    # Error of the model for this kind of load, in percent: `rates_pct`, `means_pct` and
    # `tails_pct` of IOPS, mean and p99.99; `by_figure`: for each figure with a weight or
    # limit, `error_pct`, `lower_bound`, and the `kinds` of held-out figures behind it with
    # their number and `scope`
    model_error: Object | None
    scale: float  # Factor by which the drive was scaled down; 1: not scaled
    level: Literal["rough", "medium", "fine"]  # Level of simulation of the figures
    power_loss_protection: bool | None  # `true`: it has capacitors; `null`: no volatile buffer
    # Rating that ends its life: `rated cycles` or `rated bytes (TBW)`; `null`: no rating, or a
    # life longer than reports quote
    life_end: str | None
    runs: Sequence[Path]  # Run directories


class Change(Item, frozen=True):
    """A change of the drives or the load, with the ranking that results."""

    change: str  # Change in words
    first: str  # First drive after the change
    changes_answer: bool  # `true` if another drive becomes the first
    ranking: Sequence[Object]  # First drives: `device`, `applied`, `passes`, `metrics`


class Choice(Answer, frozen=True, tag="writecliff/choose/1"):
    """The drives of a choice, ranked for a load."""

    commands = "choose"

    workload: str  # Workload file
    limits: Sequence[str]  # Limits as given
    weights: Mapping[str, float]  # Weights by figure
    ranking: Sequence[RankedDrive]  # Drives, best first
    what_if: Sequence[Change]  # Changes tried with the first drives
    # Reason why the choice ended: no other drive can become the first, the budget was spent, or the
    # user interrupted it
    ended: Literal["decided", "budget", "interrupted"]
    open: Sequence[str]  # Drives whose finer simulation could still change the first
    # Reason, by drive, why a drive of a group could not be simulated under the load
    left_out: Mapping[str, str]
    verdict: str  # Result in one or two sentences
    folder: Path  # Directory of the runs
    report: Path  # HTML report


class FittedValue(Item, frozen=True):
    """A parameter of a twin."""

    key: str  # Key of the device file
    unit: str  # Unit of the values
    start: float  # Value before the fit
    value: float  # Value after the fit
    error_pct: float | None  # One standard error; `null`: unbounded
    determined: bool  # `true` if the measurements determine the value
    at_bound: bool  # `true` if the value is at a bound of its range
    source: str  # Source of the start value


class TwinFigure(Item, frozen=True):
    """A figure of a drive and of its twin."""

    load: str  # Name of the load
    state: str  # State of the drive before the load
    metric: str  # Name of the figure
    unit: str  # Unit of the values
    measured: float  # Value measured on the drive
    twin: float | None  # Value of the twin
    error_pct: float | None  # Error of the twin


class MedianErrors(Item, frozen=True):
    """Median errors of figures."""

    rates_pct: float | None  # Error of IOPS and throughput
    means_pct: float | None  # Error of mean latencies
    tails_pct: float | None  # Error of 99th percentiles
    figures: int  # Number of figures


class Twin(Answer, frozen=True, tag="writecliff/twin/1"):
    """A twin of a drive."""

    commands = "twin"

    name: str  # Name of the twin
    drive: str  # Target that was measured
    device_file: Path  # Device file of the twin
    scale: float  # Factor by which the twin was scaled down; 1: not scaled
    starts: int  # Starting points of the fit
    dies: int  # Dies of the twin
    bounds: Object  # Bottlenecks of reads and writes at the start of the fit
    overprovision_pct: float  # Over-provisioning of the twin
    # Write amplification at the end of the overwrites; `null`: the drive does not report it
    waf_measured: float | None
    waf_twin: float | None  # Write amplification of the twin at that point
    overwritten_pct: float  # Share of the capacity that was overwritten, 4 KiB at random
    # Bytes written before the rate of the first writes dropped; `null`: it did not drop
    cache_bytes: int | None
    values: Sequence[FittedValue]  # Fitted values
    fitted: Sequence[TwinFigure]  # Figures of the fit
    kept_aside: Sequence[TwinFigure]  # Held-out figures
    errors: MedianErrors  # Errors of the held-out figures
    errors_of_fit: MedianErrors  # Errors of the figures of the fit
    not_told_apart: Sequence[str]  # Remarks on values that the measurements cannot separate
    verdict: str  # Result in one line
    run: Path  # Directory of the measurements
    report: Path  # HTML report


class CheckedKind(Item, frozen=True):
    """A kind of load in a check of a drive."""

    name: str  # Name of the kind
    figures: int  # Number of figures
    worse_pct: float | None  # Median by which the drive is worse
    allowed_pct: float  # Allowed difference
    outcome: Literal["as expected", "better", "degraded"]  # Result for the kind of load


class TwinCheck(Answer, frozen=True, tag="writecliff/twin-check/1"):
    """Comparison of a drive with its twin or data sheet."""

    commands = "twin --check"

    drive: str  # Target that was measured
    expected: str  # Twin, drive or data sheet with which it is compared
    is_sheet: bool  # `true` if `expected` is a data sheet
    model_error_known: bool  # `true` if the device file states the model's held-out errors
    kinds: Sequence[CheckedKind]  # Kinds of load
    # Each figure: `kind`, `load`, `metric`, `unit`, `measured`, `expected`, `worse_pct`
    figures: Sequence[Object]
    degraded: bool  # `true` if a kind of load is degraded; the exit code is then 3
    verdict: str  # Result in one line
    run: Path  # Directory of the measurements
    report: Path  # HTML report

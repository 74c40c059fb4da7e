"""Answers about choices of drives and twins of drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from writecliff.api.answers.base import Answer, Item, Object


class RankedDrive(Item, frozen=True):
    """A drive that was considered."""

    device: str  # The drive, with its over-provisioning if that varies
    candidate: str  # The candidate that it is made of
    rank: int  # Place in the ranking, from 1
    passes: bool  # It meets all limits
    score: float  # 0 to 1
    why: str  # Reason for its place
    not_sustained: str | None  # Reason why it did not keep up with the load
    sure: str | None  # Certainty of the difference to the first drive
    best_of_its_kind: bool  # No drive is better in every figure that counts
    metrics: Mapping[str, float | None]  # Figures, with units in their names
    intervals: Mapping[str, Sequence[float]]  # 95 % intervals of figures
    limits: Sequence[Object]  # The limits, and what became of them
    # Error of the model for this kind of load, in percent: `rates_pct`, `means_pct` and
    # `tails_pct` of IOPS, mean and p99.99; `by_figure`: for each figure that counts or is
    # limited, `error_pct`, `lower_bound`, and the `kinds` of held-out figures behind it with
    # their number and `scope`
    model_error: Object | None
    scale: float  # Factor by which the drive was scaled down
    power_loss_protection: bool | None  # Capacitors; `null`: it has no volatile buffer
    # The rating that ends its life: `rated cycles` or `rated bytes (TBW)`; `null`: it outlives
    # the longest time that is quoted, or has no rating
    life_end: str | None
    runs: Sequence[Path]  # Run directories


class Change(Item, frozen=True):
    """A change of the drives or the load, and the ranking with it."""

    change: str  # The change, in words
    first: str  # The drive that is first then
    changes_answer: bool  # Another drive is first
    ranking: Sequence[Object]  # The first drives: `device`, `applied`, `passes`, `metrics`


class Choice(Answer, frozen=True, tag="writecliff/choose/1"):
    """The drive for a load."""

    commands = "choose"

    workload: str  # The workload file
    limits: Sequence[str]  # The limits, as given
    weights: Mapping[str, float]  # The weights, by figure
    ranking: Sequence[RankedDrive]  # The drives, best first
    what_if: Sequence[Change]  # Changes that were tried with the first drives
    # Reasons, by drive, why drives of a group could not be simulated here under the load
    left_out: Mapping[str, str]
    verdict: str  # The answer in a sentence or two
    folder: Path  # Directory of the runs
    report: Path  # The page


class FittedValue(Item, frozen=True):
    """A value of a twin."""

    key: str  # Key of the device file
    unit: str  # Unit of the values
    start: float  # Value before the fit
    value: float  # Value after the fit
    error_pct: float | None  # One standard error; `null`: unbounded
    determined: bool  # The measurements determine it
    at_bound: bool  # It is at a bound of its range
    source: str  # Where the start is from


class TwinFigure(Item, frozen=True):
    """A figure of a drive beside that of its twin."""

    load: str  # The load
    state: str  # State of the drive before the load
    metric: str  # The figure
    unit: str  # Unit of the values
    measured: float  # The drive's value
    twin: float | None  # The twin's value
    error_pct: float | None  # Error of the twin


class MedianErrors(Item, frozen=True):
    """Median errors of figures."""

    rates_pct: float | None  # Of IOPS and throughput
    means_pct: float | None  # Of mean latencies
    tails_pct: float | None  # Of 99th percentiles
    figures: int  # Number of figures


class Twin(Answer, frozen=True, tag="writecliff/twin/1"):
    """A twin of a drive."""

    commands = "twin"

    name: str  # Name of the twin
    drive: str  # The target that was measured
    device_file: Path  # Device file of the twin
    scale: float  # Factor by which the twin was scaled down; 1: whole
    starts: int  # Starting points that the fit chose from
    dies: int  # Dies of the twin
    bounds: Object  # Bottlenecks of reads and writes at the start of the fit
    overprovision_pct: float  # Over-provisioning of the twin
    # Write amplification at the end of the overwrites; `null`: the drive does not report it
    waf_measured: float | None
    waf_twin: float | None  # Write amplification of the twin at that point
    overwritten_pct: float  # Share of the capacity that was overwritten, 4 KiB at random
    # Bytes that the first writes took before their rate dropped; `null`: it did not drop
    cache_bytes: int | None
    values: Sequence[FittedValue]  # The fitted values
    fitted: Sequence[TwinFigure]  # Figures of the fit
    kept_aside: Sequence[TwinFigure]  # Figures that the fit has not seen
    errors: MedianErrors  # Errors of the figures that the fit has not seen
    errors_of_fit: MedianErrors  # Errors of the figures of the fit
    not_told_apart: Sequence[str]  # Sentences on values that the measurements cannot separate
    verdict: str  # The outcome in one line
    run: Path  # Directory of the measurements
    report: Path  # The page


class CheckedKind(Item, frozen=True):
    """A kind of load of a drive that is compared."""

    name: str  # Name of the kind
    figures: int  # Number of figures
    worse_pct: float | None  # How much worse the drive is (median)
    allowed_pct: float  # Allowed difference
    outcome: Literal["as expected", "better", "degraded"]  # The judgement


class TwinCheck(Answer, frozen=True, tag="writecliff/twin-check/1"):
    """A drive beside its twin or data sheet."""

    commands = "twin --check"

    drive: str  # The target that was measured
    expected: str  # The twin, drive or data sheet that it is compared with
    is_sheet: bool  # `expected` is a data sheet
    model_error_known: bool  # The device file states its errors elsewhere
    kinds: Sequence[CheckedKind]  # Kinds of load
    # Each figure: `kind`, `load`, `metric`, `unit`, `measured`, `expected`, `worse_pct`
    figures: Sequence[Object]
    degraded: bool  # A kind of load is degraded; the exit code is 3 then
    verdict: str  # The outcome in one line
    run: Path  # Directory of the measurements
    report: Path  # The page

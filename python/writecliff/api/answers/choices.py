"""JSON output of `choose` and `twin`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from writecliff.api.answers.base import Answer, Item, Object


class RankedDrive(Item, frozen=True):
    """A candidate drive, with its rank."""

    device: str  # Drive, with its over-provisioning if the candidates vary it
    candidate: str  # Candidate from which the drive was derived
    rank: int  # Rank, from 1
    passes: bool  # `true` if the drive meets all limits
    score: float  # Score, 0 to 1
    why: str  # Reason for the drive's rank
    not_sustained: str | None  # Reason why the drive did not sustain the load
    sure: str | None  # Confidence in the difference from the top-ranked drive
    best_of_its_kind: bool  # `true` if no other drive is better in every weighted figure
    metrics: Mapping[str, float | None]  # Figures, with units in the key names
    intervals: Mapping[str, Sequence[float]]  # 95 % intervals of figures
    limits: Sequence[Object]  # Limits, with their results
    # Model error for this kind of load, in percent: `rates_pct`, `means_pct` and `tails_pct` of
    # IOPS, mean and p99.99; `by_figure`: for each figure with a weight or limit, `error_pct`,
    # `lower_bound`, and the `kinds` of held-out figures behind the error, with their number and
    # `scope`
    model_error: Object | None
    scale: float  # Factor by which the drive was scaled down; 1 if it was not scaled
    level: Literal["rough", "medium", "fine"]  # Simulation level of the figures
    power_loss_protection: bool | None  # `true` with capacitors; `null` without a volatile buffer
    # Rating that limits the drive's life: `rated cycles` or `rated bytes (TBW)`; `null` if there is
    # no rating, or if the life is longer than reports quote
    life_end: str | None
    runs: Sequence[Path]  # Run directories


class Change(Item, frozen=True):
    """A change to the drives or the load, and the resulting ranking."""

    change: str  # Description of the change
    first: str  # Top-ranked drive after the change
    changes_answer: bool  # `true` if the change makes another drive the top-ranked drive
    ranking: Sequence[Object]  # First drives: `device`, `applied`, `passes`, `metrics`


class Choice(Answer, frozen=True, tag="writecliff/choose/1"):
    """The candidate drives, ranked for a load."""

    commands = "choose"

    workload: str  # Workload file
    limits: Sequence[str]  # Limits as given
    weights: Mapping[str, float]  # Weights by figure
    ranking: Sequence[RankedDrive]  # Drives, best first
    what_if: Sequence[Change]  # Changes tried on the top-ranked drives
    # Reason why the choice stopped: no other drive can take the lead, the budget was spent, or the
    # user interrupted it
    ended: Literal["decided", "budget", "interrupted"]
    open: Sequence[str]  # Drives that finer simulation could still move to the top rank
    # Reasons, by drive, why drives of a group could not be simulated under the load
    left_out: Mapping[str, str]
    verdict: str  # Result in one or two sentences
    folder: Path  # Directory of the runs
    report: Path  # HTML report


class FittedValue(Item, frozen=True):
    """A fitted parameter of a twin."""

    key: str  # Key of the device file
    unit: str  # Unit of the values
    start: float  # Value before the fit
    value: float  # Value after the fit
    error_pct: float | None  # One standard error; `null` if unbounded
    determined: bool  # `true` if the measurements constrain the value
    at_bound: bool  # `true` if the fitted value is at a bound of its range
    source: str  # Source of the starting value


class TwinFigure(Item, frozen=True):
    """A figure measured on a drive and on its twin."""

    load: str  # Load name
    state: str  # Drive state before the load
    metric: str  # Figure name
    unit: str  # Unit of the values
    measured: float  # Value measured on the drive
    twin: float | None  # Twin's value
    error_pct: float | None  # Twin's error


class MedianErrors(Item, frozen=True):
    """Median errors of a set of figures."""

    rates_pct: float | None  # Error of IOPS and throughput
    means_pct: float | None  # Error of mean latencies
    tails_pct: float | None  # Error of 99th percentiles
    figures: int  # Number of figures


class Twin(Answer, frozen=True, tag="writecliff/twin/1"):
    """A twin of a drive."""

    commands = "twin"

    name: str  # Twin's name
    drive: str  # Target that the twin was measured from
    device_file: Path  # Twin's device file
    scale: float  # Factor by which the twin was scaled down; 1 if it was not scaled
    starts: int  # Number of starting points of the fit
    dies: int  # Number of dies of the twin
    bounds: Object  # Read and write bottlenecks when the fit started
    overprovision_pct: float  # Twin's over-provisioning
    # Write amplification at the end of the overwrites; `null` if the drive does not report it
    waf_measured: float | None
    waf_twin: float | None  # Write amplification of the twin at that point
    overwritten_pct: float  # Fraction of the capacity overwritten by random 4 KiB writes
    # Bytes written before the initial write rate dropped; `null` if the rate did not drop
    cache_bytes: int | None
    values: Sequence[FittedValue]  # Fitted values
    fitted: Sequence[TwinFigure]  # Figures to which the twin was fitted
    kept_aside: Sequence[TwinFigure]  # Held-out figures
    errors: MedianErrors  # Errors of the held-out figures
    errors_of_fit: MedianErrors  # Errors of the fitted figures
    not_told_apart: Sequence[str]  # Remarks about values that the measurements cannot distinguish
    verdict: str  # One-line summary
    run: Path  # Directory that contains the measurements
    report: Path  # HTML report


class CheckedKind(Item, frozen=True):
    """Result of a drive check for one kind of load."""

    name: str  # Name of the load kind
    figures: int  # Number of figures
    worse_pct: float | None  # Median degradation of the drive
    allowed_pct: float  # Allowed difference
    outcome: Literal["as expected", "better", "degraded"]  # Verdict for this kind of load


class TwinCheck(Answer, frozen=True, tag="writecliff/twin-check/1"):
    """Comparison of a drive with its twin or data sheet."""

    commands = "twin --check"

    drive: str  # Target that the twin was measured from
    expected: str  # Twin, drive or data sheet to which the drive is compared
    is_sheet: bool  # `true` if `expected` is a data sheet
    model_error_known: bool  # `true` if the file states the model's held-out errors
    kinds: Sequence[CheckedKind]  # Kinds of load
    # Each figure: `kind`, `load`, `metric`, `unit`, `measured`, `expected`, `worse_pct`
    figures: Sequence[Object]
    degraded: bool  # `true` if any kind of load is degraded (exit code 3)
    verdict: str  # One-line summary
    run: Path  # Directory that contains the measurements
    report: Path  # HTML report

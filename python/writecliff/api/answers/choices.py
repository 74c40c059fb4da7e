"""JSON output of `choose` and `twin`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from writecliff.api.answers.base import Answer, Item, Object


class RankedDrive(Item, frozen=True):
    """A candidate drive, with its rank."""

    device: str  # Drive name, including its over-provisioning if the candidates vary it
    candidate: str  # Candidate from which the drive was derived
    rank: int  # Rank, from 1
    passes: bool  # `true` if the drive meets all limits
    score: float  # Score from 0 to 1
    why: str  # Reason for the drive's rank
    not_sustained: str | None  # Reason why the drive did not sustain the load
    sure: str | None  # Confidence in the difference from the top-ranked drive
    best_of_its_kind: bool  # `true` if no other drive is better in every weighted figure
    metrics: Mapping[str, float | None]  # Figures by name, with units in the key names
    intervals: Mapping[str, Sequence[float]]  # 95 % confidence intervals by figure name
    limits: Sequence[Object]  # Limits and their results
    # Model error for this kind of load, in percent: `rates_pct`, `means_pct` and `tails_pct` for
    # IOPS, mean and p99.99; `by_figure`: for each figure with a weight or limit, `error_pct`,
    # `lower_bound`, and the `kinds` of held-out figures behind the error, with their number and
    # `scope`
    model_error: Object | None
    scale: float  # Factor by which the drive was scaled down; 1 if it was not scaled
    level: Literal["rough", "medium", "fine"]  # Simulation level that produced the figures
    # `true` if the drive has capacitors; `null` if it has no volatile buffer
    power_loss_protection: bool | None
    # Rating that limits the drive life: `rated cycles` or `rated bytes (TBW)`; `null` if the drive
    # has no rating, or if its life is longer than reports quote
    life_end: str | None
    runs: Sequence[Path]  # Run directories


class Change(Item, frozen=True):
    """A change to the drives or the load, and the resulting ranking."""

    change: str  # Description of the change
    first: str  # Top-ranked drive under the change
    changes_answer: bool  # `true` if the change replaces the top-ranked drive
    ranking: Sequence[Object]  # First drives: `device`, `applied`, `passes`, `metrics`


class Choice(Answer, frozen=True, tag="writecliff/choose/1"):
    """The candidate drives, ranked for a load."""

    commands = "choose"

    workload: str  # Workload file
    limits: Sequence[str]  # Limits as given
    weights: Mapping[str, float]  # Weights by figure
    ranking: Sequence[RankedDrive]  # Drives, best first
    what_if: Sequence[Change]  # Changes that were tried on the top-ranked drives
    # Reason why the choice stopped: no other drive can take the lead, the budget was spent, or the
    # user interrupted the choice
    ended: Literal["decided", "budget", "interrupted"]
    open: Sequence[str]  # Drives that finer simulation could still move to the top rank
    # Reasons, by drive, why drives were omitted: discontinued, or too large for this machine
    left_out: Mapping[str, str]
    verdict: str  # Summary in one or two sentences
    folder: Path  # Directory that contains the runs
    report: Path  # Path of the HTML report


class PlannedLevel(Item, frozen=True):
    """A level of simulation in a planned choice."""

    level: Literal["rough", "medium", "fine"]  # Simulation level
    drives: int  # Number of drives; after the first level, the largest possible number
    runs: int  # Number of runs
    scale_min: float  # Smallest factor by which a drive is scaled down
    scale_max: float  # Largest factor by which a drive is scaled down
    time_s: float | None  # Expected time of the runs in seconds; `null` if a pilot takes too long
    memory_bytes: int  # Peak memory of the simultaneous runs


class ChoicePlan(Answer, frozen=True, tag="writecliff/choose-plan/1"):
    """Planned drives, levels, time and memory of a choice."""

    commands = "choose --dry-run"

    dry_run: Literal[True]  # Always `true`: no choice was run
    workload: str  # Load as given
    drives: Sequence[str]  # Drives to compare
    left_out: Mapping[str, str]  # Reasons, by drive, why some drives would be omitted
    # Levels. The first runs all drives, later levels only the drives that could still win
    levels: Sequence[PlannedLevel]
    first_ranking_s: float | None  # Expected time until the first ranking, in seconds
    longest_s: float | None  # Time if all drives run at all levels without the budget, in seconds
    budget_s: float | None  # Budget in seconds after which no finer level starts; `null` if none
    memory_bytes: int  # Peak memory of the simultaneous runs


class FittedValue(Item, frozen=True):
    """A fitted parameter of a twin."""

    key: str  # Key of the device file
    unit: str  # Unit of the values
    start: float  # Value before the fit
    value: float  # Value after the fit
    error_pct: float | None  # One standard error, in percent; `null` if unbounded
    determined: bool  # `true` if the measurements determine the value
    at_bound: bool  # `true` if the fitted value lies at a bound of its range
    source: str  # Source of the starting value


class TwinFigure(Item, frozen=True):
    """A figure measured on a drive and on its twin."""

    load: str  # Load name
    state: str  # Drive state before the load
    metric: str  # Figure name
    unit: str  # Unit of the values
    measured: float  # Value that was measured on the drive
    twin: float | None  # Twin's value
    error_pct: float | None  # Twin's error


class MedianErrors(Item, frozen=True):
    """Median errors of a set of figures."""

    rates_pct: float | None  # Median error of IOPS and throughput figures, in percent
    means_pct: float | None  # Median error of mean latencies, in percent
    tails_pct: float | None  # Median error of 99th percentiles, in percent
    figures: int  # Number of figures compared


class Twin(Answer, frozen=True, tag="writecliff/twin/1"):
    """A twin of a drive."""

    commands = "twin"

    name: str  # Twin's name
    drive: str  # Target that the twin reproduces
    device_file: Path  # Path of the twin's device file
    scale: float  # Factor by which the twin was scaled down; 1 if it was not scaled
    starts: int  # Number of starting points for the fit
    dies: int  # Number of dies in the twin
    bounds: Object  # Read and write bottlenecks at the start of the fit
    overprovision_pct: float  # Twin's over-provisioning, in percent
    # Drive's write amplification at the end of the overwrites; `null` if the drive does not report
    # it
    waf_measured: float | None
    waf_twin: float | None  # Twin's write amplification at the end of the overwrites
    overwritten_pct: float  # Random 4 KiB overwrites, as a percentage of the capacity
    # Bytes written before the initial write rate dropped; `null` if the write rate did not drop
    cache_bytes: int | None
    values: Sequence[FittedValue]  # Fitted values
    fitted: Sequence[TwinFigure]  # Figures that the twin was fitted to
    kept_aside: Sequence[TwinFigure]  # Held-out figures
    errors: MedianErrors  # Median errors of the held-out figures
    errors_of_fit: MedianErrors  # Median errors of the fitted figures
    # Remarks about parameters that the measurements cannot distinguish
    not_told_apart: Sequence[str]
    verdict: str  # One-line summary
    run: Path  # Directory that contains the measurement run
    report: Path  # Path of the HTML report


class CheckedKind(Item, frozen=True):
    """Result of a drive check for one kind of load."""

    name: str  # Workload name
    figures: int  # Number of figures compared
    worse_pct: float | None  # Median degradation of the drive, in percent
    allowed_pct: float  # Allowed difference
    outcome: Literal["as expected", "better", "degraded"]  # Verdict for this kind of workload


class TwinCheck(Answer, frozen=True, tag="writecliff/twin-check/1"):
    """Comparison of a drive with its twin or data sheet."""

    commands = "twin --check"

    drive: str  # Target to compare with the twin or data sheet
    expected: str  # Name of the twin, drive or data sheet that serves as the reference
    is_sheet: bool  # `true` if `expected` is a data sheet
    model_error_known: bool  # `true` if the file states the held-out errors of the model
    kinds: Sequence[CheckedKind]  # Results by kind of workload
    # Each figure: `kind`, `load`, `metric`, `unit`, `measured`, `expected`, `worse_pct`
    figures: Sequence[Object]
    degraded: bool  # `true` if any kind of workload is degraded (exit code 3)
    verdict: str  # One-line summary
    run: Path  # Directory that contains the measurement run
    report: Path  # Path of the HTML report

"""Answers of `validate`, `reproduce`, `fit` and other research commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from writecliff.api.answers.base import Answer, Object


class ValidateTwin(Answer, frozen=True, tag="writecliff/validate-twin/1"):
    """Answer of `validate twin`."""

    commands = "validate twin"

    ok: bool  # All medians are within the goals
    goals: Any  # `rates_pct` and `tails_pct`
    # Each hidden drive `drive`, `ok`, `rates_pct` and `tails_pct` (median errors over the other
    # loads), `kept_rates_pct` and `kept_tails_pct` (of what the twin kept aside), `values`
    # (`key`, `hidden`, `twin`) and `loads` (`load`, `iops`, `iops_twin`, `p99_ms`,
    # `p99_twin_ms`, `rate_error_pct`, `p99_error_pct`)
    drives: Any


class BenchStore(Answer, frozen=True, tag="writecliff/bench-store/1"):
    """Answer of `bench store`."""

    commands = "bench store"

    runs: Any  # Number of runs or simulations
    # Each command `case`, `wall_s` and `cpu_s` (the quickest of three), and `goal_s`, or `null`
    rows: Sequence[Object]


class BenchChoose(Answer, frozen=True, tag="writecliff/bench-choose/1"):
    """Answer of `bench choose`."""

    commands = "bench choose"

    # Each `case` (the first time, with states cached) `wall_s`, `goal_s` (of 20 drives),
    # `drives`, and whether the answer is the `same` as the first time
    rows: Sequence[Object]


class BenchSweep(Answer, frozen=True, tag="writecliff/bench-sweep/1"):
    """Answer of `bench sweep`."""

    commands = "bench sweep"

    cells: Any  # Runs of each sweep
    # Each pair `jobs_wall_s`, `dask_wall_s`, `jobs_cpu_s`, `dask_cpu_s` (of all processes),
    # `ratio` (wall time with Dask by that with `--jobs 2`), and `identical` (every table of
    # every cell)
    rows: Sequence[Object]


class BenchTrace(Answer, frozen=True, tag="writecliff/bench-trace/1"):
    """Answer of `bench trace`."""

    commands = "bench trace"

    lines: int  # Lines of the trace
    # Each case `case`, `lines`, `bytes`, `cpu_s`, `wall_s`, `lines_per_cpu_s` and
    # `peak_rss_mib`
    rows: Sequence[Object]


class ActLog(Answer, frozen=True, tag="writecliff/act-log/1"):
    """Answer of `act log`."""

    commands = "act log"

    run: Path  # The run directory
    log: str  # The log as ACT writes it


class ActLatency(Answer, frozen=True, tag="writecliff/act-latency/1"):
    """Answer of `act latency`."""

    commands = "act latency"

    run: Path  # The run directory
    # `slice` (its number), `reads`, and `over_1ms_pct` to `over_64ms_pct`: the share of its
    # reads over each threshold
    slices: Sequence[Object]


class ValidateWaf(Answer, frozen=True, tag="writecliff/validate-waf/1"):
    """Answer of `validate waf`."""

    commands = "validate waf"

    tolerance_pct: float  # Tolerance
    ok: bool  # No case is off
    rows: Sequence[Object]  # A case each, with its theory


class ValidateReduction(Answer, frozen=True, tag="writecliff/validate-reduction/1"):
    """Answer of `validate reduction`."""

    commands = "validate reduction"

    tolerance_pct: float  # Tolerance
    ok: bool  # No case is off
    rows: Sequence[Object]  # A case each, with its theory


class ValidateQuick(Answer, frozen=True, tag="writecliff/validate-quick/1"):
    """Answer of `validate quick`."""

    commands = "validate quick"

    tolerance_pct: float  # Tolerance
    ok: bool  # No figure is off
    # `test`, `key`, `label`, `unit`, `scale` of the quick suite, `full`, `quick` (`null`: not
    # given), the loads `at` and `quick_at`, `error_pct` and `ok` of each
    rows: Sequence[Object]


class ValidateStreams(Answer, frozen=True, tag="writecliff/validate-streams/1"):
    """Answer of `validate streams`."""

    commands = "validate streams"

    ok: bool  # No row is off
    rows: Sequence[Object]  # A load each
    crossovers: Any  # Crossovers between the assignments


class Torture(Answer, frozen=True, tag="writecliff/torture/1"):
    """Answer of `torture`."""

    commands = "torture"

    target: str  # The drive
    program: str  # Program
    file_system: str  # File system
    cuts: int  # Power cuts; the first failure is the last
    intact: int  # Power cuts after which nothing was missing
    # `seed`, `at_write` (of the drive, from the begin of the program), `acknowledged` (lines
    # that it had printed), `pages_undone` and `undone_as` (as in `serve`: no loss of the
    # drive's) and `finding`; or `null`
    first_failure: Object | None


class ValidateIntervals(Answer, frozen=True, tag="writecliff/validate-intervals/1"):
    """Answer of `validate intervals`."""

    commands = "validate intervals"

    # At most 5 % of equal drives are called different, and no coverage is below 93 % by more
    # than chance
    ok: bool
    # `load`, `figure`, `truth` (IOPS, ns or a ratio), `runs`, `intervals` (runs with one),
    # `covered` (that hold the truth), `covered_pct`, `shares_covered` and `shares_covered_pct`
    # (that hold the true share of I/Os slower than a percentile, else `null`), `probability`
    # (of so few if 93 % held it) and `half_width_pct` (of the median interval) of each figure
    coverage: Sequence[Object]
    # Each `load`: `pairs` of equal drives, `false_winners`, `false_pct`, `slower_pairs`,
    # `slower_found` and `slower_pct` (lower IOPS of a slower drive)
    pairs: Sequence[Object]


class ValidatePowerCuts(Answer, frozen=True, tag="writecliff/validate-power-cuts/1"):
    """Answer of `validate power-cuts`."""

    commands = "validate power-cuts"

    ok: bool  # Nothing was violated
    seed: int  # Seed
    # `extra` (SLC cache, parity across dies or none), `write_cache`, `power_loss_protection`,
    # `data_placement`, `cuts`, `commands`, `lost_slots` (confirmed and not flushed),
    # `unconfirmed_slots` (there all the same), `torn_units`, `interrupted_erases`,
    # `saved_slots` (by capacitors) and `rebuild_ns_max` of each kind of drive
    rows: Sequence[Object]
    # Kinds of drives whose power cuts are not modelled without power-loss protection
    not_covered: Any
    # `drive`, its kind and the `violation` of the first drive that fails, or `null`
    failure: Object | None


class CampaignList(Answer, frozen=True, tag="writecliff/campaign-list/1"):
    """Answer of `reproduce --list`."""

    commands = "reproduce --list"

    campaigns: Sequence[Object]  # `name`, `figures`, `about` of each


class Reproduce(Answer, frozen=True, tag="writecliff/reproduce/2"):
    """Answer of `reproduce`."""

    commands = "reproduce"
    more = "published-figures-reproduced"

    report: Path  # Report
    campaign: str  # Campaign
    about: str  # About
    build: Any  # Build
    wall_s: float  # Wall time
    kinds: Any  # Kinds
    comparisons: Any  # Comparisons
    parts: Any  # Parts
    figures: Any  # Figures
    not_simulated: Any  # Not simulated
    skipped: Any  # Skipped
    loads: Any  # Loads
    drives: Any  # Drives


class ReproduceSsdIq(Answer, frozen=True, tag="writecliff/reproduce-ssd-iq/1"):
    """Answer of `reproduce ssd-iq`."""

    commands = "reproduce ssd-iq"

    report: Path  # The page
    campaign: str  # Campaign
    build: Any  # The build of the simulator
    wall_s: float  # Duration of the simulations in seconds
    # Each figure of the table with `condition`, `metric`, `value`, `unit`, `simulated` (`null`
    # with a `reason` if it could not be simulated), `error_pct` (simulated over published,
    # minus 1), `note`, `drive` (name and capacity on the data sheet), `load`
    rows: Sequence[Object]
    # Write rates relative to uniform writes: `drive`, `load`, `kind` (`zipf`, `static`,
    # `zones`), `published`, `simulated`, `error_pct`
    curves: Sequence[Object]
    # Absolute errors by `kind`: number of `figures`, `median` and `p90` in `unit` (`%`, or `x`
    # for the larger value over the smaller), `within` (percentage of factors up to 1.5)
    scores: Any
    disclosures: Any  # Facts that a reader of the errors must know
    # Each simulated drive: `drive` (name and capacity on the data sheet), `name`,
    # `device_hash`, `scale` (factor by which it was scaled down), number of `loads`
    drives: Any


class ExperimentList(Answer, frozen=True, tag="writecliff/experiment-list/1"):
    """Answer of `experiment --list`."""

    commands = "experiment --list"

    experiments: Sequence[Object]  # `name`, `about` of each


class FeatureList(Answer, frozen=True, tag="writecliff/feature-list/1"):
    """Answer of `reliability --list`."""

    commands = "reliability --list"

    features: Sequence[Object]  # `name`, `about` of each


class FitList(Answer, frozen=True, tag="writecliff/fit-list/1"):
    """Answer of `fit --list`."""

    commands = "fit --list"

    fits: Any  # `name`, `drives`, `parameters` (keys) of each


class Fit(Answer, frozen=True, tag="writecliff/fit/1"):
    """Answer of `fit`."""

    commands = "fit"

    fits: Any  # Names
    drives: Any  # Drives that are fitted
    scale: float  # Factor by which the drives are scaled down
    simulations: int  # Number of runs or simulations
    output: Any  # The folder of the fitted device files, or `null`
    # `key`, `drive` (`null`: all), `unit`, `start`, `value`, bounds `low` and `high`,
    # `error_pct` (one standard error), `at_bound`, `determined`
    parameters: Any
    unidentifiable: Any  # Combinations (key: share) that change hardly any figure
    # Measurements that would determine a `combination` (its place in that list): `device`,
    # `load`, `metric`, and `change_pct` of it if the combination changes by 10 %
    measure_next: Any
    errors: Any  # Errors by kind of figure: before the fit, after it, of predictions
    figures: Any  # Measured, simulated and predicted, with errors


class BenchFit(Answer, frozen=True, tag="writecliff/bench-fit/1"):
    """Answer of `bench fit`."""

    commands = "bench fit"

    capacity_bytes: int  # Capacity of the drive
    parameters: Any  # Number of parameters
    figures: Any  # Number of figures
    first_output_s: float  # Time until the first line
    scaled_s: float  # Time until the search on the scaled drive has ended
    wall_s: float  # Time until the drive was simulated at full size too
    cpu_s: float  # User and system time
    simulations: int  # Number of simulations
    # Each parameter `key`, `truth`, `start`, `found`, `error_pct`, `determined`
    rows: Sequence[Object]
    figure_errors_pct: Any  # Errors of the figures at full size


class BenchSim(Answer, frozen=True, tag="writecliff/bench-sim/1"):
    """Answer of `bench sim`."""

    commands = "bench sim"

    device: str  # Device
    scale: float  # Scale of the drive
    rows: Sequence[Object]  # A case each


class BenchServe(Answer, frozen=True, tag="writecliff/bench-serve/1"):
    """Answer of `bench serve`."""

    commands = "bench serve"

    device: str  # Device
    seconds: float  # Seconds of a load
    # Each load `case`, `transport` (`nbd-unix`, `nbd-tcp`, `nvme-tcp`; `nvmet-tcp`: the
    # kernel's), `client` (`lean`, or `fio` over NBD), `iops`, `latency_p50_us`,
    # `latency_p99_9_us`, `added_p50_us` (to the latency of the drive), `server_cpu_us` (CPU
    # time of the server per request, null for the kernel's)
    rows: Sequence[Object]


class BenchFio(Answer, frozen=True, tag="writecliff/bench-fio/1"):
    """Answer of `bench fio`."""

    commands = "bench fio"

    target: str  # Target
    seconds: float  # Seconds of a run
    summary: Any  # Summary
    rows: Sequence[Object]  # A pair each

"""JSON output of `validate`, `reproduce`, `fit` and other research commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from writecliff.api.answers.base import Answer, Object


class ValidateTwin(Answer, frozen=True, tag="writecliff/validate-twin/1"):
    """Check of twins against hidden drives."""

    commands = "validate twin"

    ok: bool  # `true` if all medians are within the goals
    goals: Any  # `rates_pct` and `tails_pct`
    # Hidden drives, each with `drive`, `ok`, `rates_pct` and `tails_pct` (median errors over the
    # other loads), `kept_rates_pct` and `kept_tails_pct` (over the held-out loads), `values`
    # (`key`, `hidden`, `twin`) and `loads` (`load`, `iops`, `iops_twin`, `p99_ms`, `p99_twin_ms`,
    # `rate_error_pct`, `p99_error_pct`)
    drives: Any


class BenchStore(Answer, frozen=True, tag="writecliff/bench-store/1"):
    """Speed of commands on a large store."""

    commands = "bench store"

    runs: Any  # Number of runs in the store
    # Command cases, each with `case`, `wall_s` and `cpu_s` (fastest of three runs), and `goal_s` or
    # `null`
    rows: Sequence[Object]


class BenchChoose(Answer, frozen=True, tag="writecliff/bench-choose/1"):
    """Duration of a drive choice."""

    commands = "bench choose"

    # Cases without and with cached states, each with `case`, `wall_s`, `goal_s` (for 20 drives),
    # `drives`, and `same` (`true` if the answer equals the first answer)
    rows: Sequence[Object]


class BenchSweep(Answer, frozen=True, tag="writecliff/bench-sweep/1"):
    """Duration of sweeps with `--jobs` and with Dask."""

    commands = "bench sweep"

    cells: Any  # Number of runs in each sweep
    # Pairs of sweeps, each with `jobs_wall_s`, `dask_wall_s`, `jobs_cpu_s`, `dask_cpu_s` (over all
    # processes), `ratio` (wall time with Dask over wall time with `--jobs 2`), and `identical`
    # (`true` if all tables in all cells are equal)
    rows: Sequence[Object]


class BenchTrace(Answer, frozen=True, tag="writecliff/bench-trace/1"):
    """Speed of reading and measuring a trace."""

    commands = "bench trace"

    lines: int  # Number of lines in the trace
    # Cases, each with `lines`, `bytes`, `cpu_s`, `wall_s`, `lines_per_cpu_s` and `peak_rss_mib`
    rows: Sequence[Object]


class ActLog(Answer, frozen=True, tag="writecliff/act-log/1"):
    """Log of an ACT run."""

    commands = "act log"

    run: Path  # Run directory
    log: str  # Log in ACT's format


class ActLatency(Answer, frozen=True, tag="writecliff/act-latency/1"):
    """Percentages of slow reads in an ACT run, by slice."""

    commands = "act latency"

    run: Path  # Run directory
    # Slices, each with `slice` (its number), `reads`, and `over_1ms_pct` to `over_64ms_pct`:
    # percentage of reads above each threshold
    slices: Sequence[Object]


class ValidateWaf(Answer, frozen=True, tag="writecliff/validate-waf/1"):
    """Write amplification compared with theory."""

    commands = "validate waf"

    tolerance_pct: float  # Maximum accepted error
    ok: bool  # `true` if all cases are within the tolerance
    rows: Sequence[Object]  # Cases, each with its theoretical value


class ValidateReduction(Answer, frozen=True, tag="writecliff/validate-reduction/1"):
    """Data reduction compared with theory."""

    commands = "validate reduction"

    tolerance_pct: float  # Largest accepted error
    ok: bool  # `true` if all cases are within the tolerance
    rows: Sequence[Object]  # Cases, each with the theoretical value


class ValidateQuick(Answer, frozen=True, tag="writecliff/validate-quick/1"):
    """Quick suite compared with the full-size suite."""

    commands = "validate quick"

    tolerance_pct: float  # Largest accepted error
    ok: bool  # `true` if all figures are within the tolerance
    # Figures, each with `test`, `key`, `label`, `unit`, `scale` of the quick suite, `full`, `quick`
    # (`null` if not reported), the loads `at` and `quick_at`, `error_pct`, `ok`
    rows: Sequence[Object]


class ValidateScales(Answer, frozen=True, tag="writecliff/validate-scales/1"):
    """Figures of scaled drives next to those of the full drives."""

    commands = "validate scales"

    # Comparisons by figure, each with `drive`, `of_class`, `load`, `level`, `scale`, `figure`,
    # `kind`, the values `whole` and `scaled`, and their ratio `factor`, which is at least 1
    rows: Sequence[Object]


class ValidateStreams(Answer, frozen=True, tag="writecliff/validate-streams/1"):
    """Comparison of stream assignments."""

    commands = "validate streams"

    ok: bool  # `true` if all rows are within the tolerance
    rows: Sequence[Object]  # Loads
    crossovers: Any  # Crossovers between the assignments


class Torture(Answer, frozen=True, tag="writecliff/torture/1"):
    """Power cuts under a program."""

    commands = "torture"

    target: str  # Simulated drive
    program: str  # Program under test
    file_system: str  # File system type
    cuts: int  # Number of power cuts; the command stops after the first failure
    intact: int  # Number of power cuts without data loss
    # First power cut with data loss: `seed`, `at_write` (write number on the drive since the start
    # of the program), `acknowledged` (printed lines), `pages_undone` and `undone_as` (as in
    # `serve`; NVMe permits these losses), `finding`; `null` if no data were lost
    first_failure: Object | None


class ValidateIntervals(Answer, frozen=True, tag="writecliff/validate-intervals/1"):
    """Coverage of 95 % intervals."""

    commands = "validate intervals"

    # `true` if at most 5 % of pairs of equal drives are judged different and no coverage is
    # significantly below 93 %
    ok: bool
    # Interval coverage by figure: `load`, `figure`, `truth` (IOPS, ns or a ratio), `runs`,
    # `intervals` (runs with an interval), `covered` (intervals that contain the truth),
    # `covered_pct`, `shares_covered` and `shares_covered_pct` (intervals that contain the true
    # fraction of I/Os slower than a percentile, else `null`), `probability` (of so few covered
    # intervals at a coverage of 93 %), `half_width_pct` (median interval)
    coverage: Sequence[Object]
    # Comparisons by `load`, each with `pairs` of equal drives, `false_winners`, `false_pct`,
    # `slower_pairs`, `slower_found` and `slower_pct` (slower drives with lower IOPS)
    pairs: Sequence[Object]


class ValidatePowerCuts(Answer, frozen=True, tag="writecliff/validate-power-cuts/1"):
    """Power cuts of random drives."""

    commands = "validate power-cuts"

    ok: bool  # `true` if no durability guarantee was violated
    seed: int  # Seed for the drives and power cuts
    # Drive kinds, each with `extra` (SLC cache, parity across dies or none), `write_cache`,
    # `power_loss_protection`, `data_placement`, `cuts`, `commands`, `lost_slots` (completed but not
    # flushed), `unconfirmed_slots` (durable without a completion), `torn_units`,
    # `interrupted_erases`, `saved_slots` (by capacitors), `rebuild_ns_max`
    rows: Sequence[Object]
    # Drive kinds whose power cuts are modelled only with power-loss protection
    not_covered: Any
    # First drive that failed: `drive`, its kind, `violation`; `null` if no drive failed
    failure: Object | None


class CampaignList(Answer, frozen=True, tag="writecliff/campaign-list/1"):
    """Campaigns of published figures."""

    commands = "reproduce --list"

    campaigns: Sequence[Object]  # Campaigns, each with `name`, `figures`, `about`


class Reproduce(Answer, frozen=True, tag="writecliff/reproduce/2"):
    """Published figures and their simulations."""

    commands = "reproduce"
    more = "published-figures-reproduced"

    report: Path  # HTML report
    campaign: str  # Name of the campaign
    about: str  # Campaign description
    build: Any  # Simulator build
    wall_s: float  # Simulation time in seconds
    kinds: Any  # Errors by kind of figure
    comparisons: Any  # Comparisons of two drives, with the winner of each
    parts: Any  # Errors by part of the split: `fit` or held out
    figures: Any  # Published figures, each with its simulated value
    not_simulated: Any  # Published figures that have no simulation
    skipped: Any  # Rows in the file that are not figures
    loads: Any  # Simulated loads, with all measurements
    drives: Any  # Simulated drives


class ReproduceSsdIq(Answer, frozen=True, tag="writecliff/reproduce-ssd-iq/1"):
    """Published figures of SSD-iq and their simulations."""

    commands = "reproduce ssd-iq"

    report: Path  # HTML report
    campaign: str  # Name of the campaign
    build: Any  # Simulator build
    wall_s: float  # Simulation time in seconds
    # Published figures, each with `condition`, `metric`, `value`, `unit`, `simulated` (`null` with
    # a `reason` if it could not be simulated), `error_pct` (simulated over published, minus 1),
    # `note`, `drive` (name and capacity on the data sheet), `load`
    rows: Sequence[Object]
    # Write rates relative to those of uniform writes: `drive`, `load`, `kind` (`zipf`, `static`,
    # `zones`), `published`, `simulated`, `error_pct`
    curves: Sequence[Object]
    # Absolute errors by `kind`: `figures` (their number), `median` and `p90` in `unit` (`%`, or `x`
    # for the ratio of the larger to the smaller value), `within` (percentage of factors up to 1.5)
    scores: Any
    disclosures: Any  # Limitations of the comparison
    # Simulated drives, each with `drive` (name and capacity on the data sheet), `name`,
    # `device_hash`, `scale` (factor by which it was scaled down), number of `loads`
    drives: Any


class ExperimentList(Answer, frozen=True, tag="writecliff/experiment-list/1"):
    """Experiments."""

    commands = "experiment --list"

    experiments: Sequence[Object]  # Experiments, each with `name`, `about`


class FeatureList(Answer, frozen=True, tag="writecliff/feature-list/1"):
    """Reliability campaigns."""

    commands = "reliability --list"

    features: Sequence[Object]  # Campaigns, each with `name`, `about`


class FitList(Answer, frozen=True, tag="writecliff/fit-list/1"):
    """Fit specifications."""

    commands = "fit --list"

    fits: Any  # Fits, each with `name`, `drives`, `parameters` (keys)


class Fit(Answer, frozen=True, tag="writecliff/fit/1"):
    """Fit of device parameters to measured figures."""

    commands = "fit"

    fits: Any  # Names of the fit specifications
    drives: Any  # Fitted drives
    scale: float  # Factor by which the drives are scaled down
    simulations: int  # Number of simulations
    output: Any  # Folder that contains the fitted device files; `null` if they were not written
    # Parameters, each with `key`, `drive` (`null` for all drives), `unit`, `start`, `value`, `low`
    # and `high` (bounds), `error_pct` (one standard error), `at_bound`, `determined`
    parameters: Any
    unidentifiable: Any  # Parameter combinations (key: weight) that hardly affect any figure
    # Measurements that would determine a `combination` (its index in `unidentifiable`): `device`,
    # `load`, `metric`, and the `change_pct` of the metric if the combination changes by 10 %
    measure_next: Any
    errors: Any  # Errors by kind of figure: before the fit, after the fit, and for predictions
    figures: Any  # Figures with measured, simulated and predicted values and their errors


class BenchFit(Answer, frozen=True, tag="writecliff/bench-fit/1"):
    """Duration and accuracy of a fit to a hidden drive."""

    commands = "bench fit"

    capacity_bytes: int  # Drive capacity
    parameters: Any  # Number of parameters
    figures: Any  # Number of figures
    first_output_s: float  # Time until the first line of output
    scaled_s: float  # Time until the search on the scaled drive was complete
    wall_s: float  # Time until the simulation at full size was complete
    cpu_s: float  # User and system CPU time
    simulations: int  # Number of simulations
    # Parameters, each with `key`, `truth`, `start`, `found`, `error_pct`, `determined`
    rows: Sequence[Object]
    figure_errors_pct: Any  # Errors of the figures from the full-size simulation


class BenchSim(Answer, frozen=True, tag="writecliff/bench-sim/1"):
    """Simulator speed."""

    commands = "bench sim"

    device: str  # Simulated drive
    scale: float  # Factor by which the measured part is longer
    rows: Sequence[Object]  # Cases


class BenchServe(Answer, frozen=True, tag="writecliff/bench-serve/1"):
    """Speed of a served drive."""

    commands = "bench serve"

    device: str  # Simulated drive
    seconds: float  # Duration of each load
    # Results by load, each with `case`, `transport` (`nbd-unix`, `nbd-tcp`, `nvme-tcp`; `nvmet-tcp`
    # for the kernel's target), `client` (`lean`, or `fio` over NBD), `iops`, `latency_p50_us`,
    # `latency_p99_9_us`, `added_p50_us` (beyond the drive latency), `server_cpu_us` (CPU time of
    # the server per request; `null` for `nvmet-tcp`)
    rows: Sequence[Object]


class BenchFio(Answer, frozen=True, tag="writecliff/bench-fio/1"):
    """Simulated drives and fio side by side."""

    commands = "bench fio"

    target: str  # Target on which the runs were made
    seconds: float  # Duration of each run
    summary: Any  # Overhead over all pairs
    rows: Sequence[Object]  # Pairs of runs

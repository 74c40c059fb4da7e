"""Validation of intervals and comparisons against repetitions of a run.

A small SATA drive runs three loads many times, each time preconditioned and loaded with different
seeds. Each load runs for some time before it is measured, so that it is stationary. The true value
is the mean over all repetitions or, for percentiles, the percentile of all latencies together. The
validation counts the single-run intervals that contain the true value, and the pairs of equal
drives with a false winner. A comparison with a slower drive measures the power of the test.

Histograms have buckets, and many I/Os may have the same latency. A percentile's interval consists
of whole buckets, and therefore contains the true value more often than in 95 % of the runs. The
fraction of I/Os slower than the true percentile has no such steps, so its coverage is also counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import comb
from statistics import fmean
from typing import TYPE_CHECKING, Any

from writecliff.devices import open_device, read_device_file
from writecliff.devices.edit import with_values
from writecliff.engines.preconditioned import precondition
from writecliff.engines.sim import SimEngine
from writecliff.latency_basis import merged
from writecliff.report.comparison.figures import Figure
from writecliff.report.comparison.noise import level_of
from writecliff.report.headline import Headline, Interval
from writecliff.report.intervals import BATCHES, Bounds, Measured, stretch_of
from writecliff.store.record import RoundRecord
from writecliff.store.tables import tables_of
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.engines.base import StepResult

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FALSE_WINNERS_PCT = 5.0
LEAST_COVERED_PCT = 93.0
# Joint significance level, for all rows, of the test that coverage is at least `LEAST_COVERED_PCT`.
_LEVEL = 0.05
_PRESET = "sata-tlc-120"
_SMALL = {
    "user_capacity": ('"0.8 GB"', None),
    "flash.blocks_per_plane": ("180", None),
    "flash.pages_per_block": ("24", None),
}
_SEED_STEP = 1_000_003  # Distance between the seeds of the settling load and the measured load.
# The slower drive is slower in all parameters that limit the IOPS of writes and mixes.
_SLOWER = {
    "flash.program": ('["5.775 ms"]', None),
    "flash.erase": ('"5.25 ms"', None),
    "controller.command_time": ('"10.5 us"', None),
}


@dataclass(frozen=True)
class ValidatedLoad:
    """A load that runs for `settle_s` before it is measured for `seconds`."""

    jobs: tuple[Job, ...]
    settle_s: float
    seconds: float


LOADS: Mapping[str, ValidatedLoad] = {
    # The latencies of this load vary slowly, because slow writes are clustered until the drive has
    # been overwritten.
    "random writes": ValidatedLoad((Job(name="writes", queue_depth=8),), 107.2, 1286.4),
    "70/30 mix": ValidatedLoad((Job(name="mix", read_pct=70, queue_depth=32),), 36.0, 144.0),
    "reads beside writes": ValidatedLoad(
        (
            Job(name="reads", read_pct=100, rate_iops=400, arrival="poisson", queue_depth=64),
            Job(name="writes", rate_iops=2500, queue_depth=64),
        ),
        156.0,
        624.0,
    ),
}


@dataclass(frozen=True)
class Repetition:
    """A run: figures by name, with their intervals, and latencies by operation."""

    figures: Mapping[str, Headline]
    latencies: Mapping[str, Histogram]
    measured: Mapping[str, Measured] = field(default_factory=dict)


@dataclass(frozen=True)
class CoverageRow:
    """Coverage of the true value by a figure's intervals."""

    load: str
    figure: str
    truth: float  # True value in the unit of the figure.
    runs: int
    intervals: int  # Number of runs with an interval; the other runs have "not enough samples".
    covered: int
    # Number of intervals that cover the true fraction of slower I/Os; `None` if the figure is not a
    # percentile.
    shares_covered: int | None
    half_width_pct: float | None  # Half width of the median interval.

    @property
    def covered_pct(self) -> float | None:
        """Percentage of intervals that contain the true value, or None if there are none."""
        return 100 * self.covered / self.intervals if self.intervals else None

    @property
    def shares_covered_pct(self) -> float | None:
        """Percentage of intervals that contain the true fraction of slower I/Os, or None."""
        if self.shares_covered is None or not self.intervals:
            return None
        return 100 * self.shares_covered / self.intervals

    @property
    def probability(self) -> float:
        """Probability of so few covering intervals at a coverage of `LEAST_COVERED_PCT`."""
        least = min(n for n in (self.covered, self.shares_covered) if n is not None)
        return binomial_tail(least, self.intervals, LEAST_COVERED_PCT / 100)

    def mapping(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self) | {
            "covered_pct": self.covered_pct,
            "shares_covered_pct": self.shares_covered_pct,
            "probability": self.probability,
        }


def binomial_tail(most: int, count: int, share: float) -> float:
    """Return the probability of at most `most` successes in `count` trials."""
    terms = (comb(count, n) * share**n * (1 - share) ** (count - n) for n in range(most + 1))
    return min(1.0, sum(terms))


@dataclass(frozen=True)
class PairsRow:
    """Pairs of drives that differ significantly in any figure."""

    load: str
    pairs: int
    false_winners: int  # Number of false winners among equal drives.
    slower_pairs: int
    slower_found: int  # Number of pairs where the slower drive has significantly lower IOPS.
    slower_pct: float | None  # Mean IOPS difference of the slower drive.

    @property
    def false_pct(self) -> float:
        """Percentage of pairs of equal drives that have a false winner."""
        return 100 * self.false_winners / self.pairs if self.pairs else 0.0

    def mapping(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self) | {"false_pct": self.false_pct}


@dataclass(frozen=True)
class IntervalsReport:
    """Coverage and pairs of all loads."""

    coverage: Sequence[CoverageRow]
    pairs: Sequence[PairsRow]

    @property
    def ok(self) -> bool:
        """`True` if the validation found no problems."""
        return not self.problems

    @property
    def problems(self) -> Sequence[str]:
        """Problems, such as too many false winners or coverage below `LEAST_COVERED_PCT`.

        The coverage test is exact, at a level of 5 % for all figures together (Bonferroni).
        """
        wrong = sum(row.false_winners for row in self.pairs)
        problems = []
        if 100 * wrong > FALSE_WINNERS_PCT * sum(row.pairs for row in self.pairs):
            problems.append(
                f"more than {FALSE_WINNERS_PCT:g} % of the pairs of equal drives have a winner"
            )
        rows = [row for row in self.coverage if row.intervals]
        return problems + [
            f"{row.load}, {row.figure}: less than {LEAST_COVERED_PCT:g} % of the intervals contain "
            "the truth"
            for row in rows
            if row.probability < _LEVEL / len(rows)
        ]

    def mapping(self) -> dict[str, Any]:
        """Return the JSON form."""
        coverage = [row.mapping() for row in self.coverage]
        return {"ok": self.ok, "coverage": coverage, "pairs": [row.mapping() for row in self.pairs]}


def repetition(
    load: str, seed: int, seconds: float | None = None, *, slower: bool = False
) -> Repetition:
    """Precondition a drive with this seed, run a load and return its figures.

    `seconds` defaults to the load's duration.
    """
    text, _ = read_device_file(_PRESET)
    text = with_values(text, _SMALL | (_SLOWER if slower else {}))
    engine = SimEngine.from_device(open_device(text, "small.toml"), seed=seed)
    precondition(engine, "sustained", seed=seed)
    chosen = LOADS[load]
    seconds = chosen.seconds if seconds is None else seconds
    for length_s, load_seed in ((chosen.settle_s, seed), (seconds, seed + _SEED_STEP)):
        jobs = tuple(job.with_duration_s(length_s) for job in chosen.jobs)
        result = engine.run(Workload(load, jobs, seed=load_seed))
    return _read(result, engine.identify().capacity_bytes)


def _read(result: StepResult, capacity_bytes: int) -> Repetition:
    record = RoundRecord(phase="rounds", round=0, step=1, label="", started_ns=0,
                         elapsed_ns=result.elapsed_ns, result=result)  # fmt: skip
    table = tables_of(1, [record])["batches"]
    figures, latencies, batches = {}, {}, {}
    for number, job in enumerate(result.jobs):
        for operation, done in job.operations.items():
            kind = "service" if done.response is None else "response"
            times = done.response or done.service
            key = (number, str(operation))
            stretch = stretch_of(table, [1], kind, {key: times})([key])
            measured = Measured([] if stretch is None else [stretch], capacity_bytes)
            name = f"{job.name} {operation}s"
            latencies[name], batches[name] = times, measured
            iops, mean = done.ios / (job.elapsed_ns / 1e9), times.mean_ns
            figures[f"{name}, IOPS"] = _headline(iops, measured.iops(iops), higher=True)
            figures[f"{name}, mean"] = _headline(mean, measured.mean(mean))
            for quantile, q in QUANTILES.items():
                value_ns = times.quantile(q).value_ns
                figures[f"{name}, {quantile}"] = _headline(value_ns, measured.quantile(q))
            figures["WAF"] = _headline(result.waf, measured.waf(result.waf))
    available = {name: figure for name, figure in figures.items() if figure is not None}
    return Repetition(available, latencies, batches)


def _headline(
    value: float | None, bounds: Bounds | None, *, higher: bool = False
) -> Headline | None:
    if value is None:
        return None
    interval = None
    if bounds is not None:
        interval = Interval(bounds.low, bounds.high, BATCHES, bounds.degrees)
    return Headline(key="", label="", value=value, unit="", higher_is_better=higher,
                    interval=interval)  # fmt: skip


def run(
    seeds: int,
    seconds: float | None = None,
    *,
    first_seed: int = 1,
    loads: Sequence[str] = tuple(LOADS),
    log: Callable[[str], object] = lambda text: None,
) -> IntervalsReport:
    """Repeat each load `seeds` times, and a tenth of that number on a slower drive.

    Args:
        seeds: Number of repetitions.
        seconds: Length of a run (default: the load's).
        first_seed: Seed of the first repetition.
        loads: Names of the loads.
        log: Function called with progress messages.
    """
    coverage: list[CoverageRow] = []
    pairs = []
    for load in loads:
        once = partial(repetition, load, seconds=seconds)
        last = first_seed + seeds
        equal = [once(seed) for seed in range(first_seed, last)]
        slower = [once(seed, slower=True) for seed in range(last, last + 1 + seeds // 10)]
        coverage += coverage_rows(load, equal)
        pairs.append(pairs_row(load, equal, slower))
        log(f"{load}: {seeds} repetitions")
    return IntervalsReport(coverage, pairs)


def coverage_rows(load: str, runs: Sequence[Repetition]) -> Iterator[CoverageRow]:
    """Yield each figure's coverage, the frequency with which intervals contain the true value."""
    for name in runs[0].figures:
        having = [run for run in runs if name in run.figures]
        values = [run.figures[name] for run in having]
        operation, _, figure = name.rpartition(", ")
        truth = fmean(item.value for item in values)
        with_interval = [run for run in having if run.figures[name].interval is not None]
        shares_covered = None
        if figure in QUANTILES:
            latencies = merged(run.latencies[operation] for run in runs)
            value_ns = None if latencies is None else latencies.quantile(QUANTILES[figure]).value_ns
            if latencies is not None and value_ns is not None:
                truth = float(value_ns)
                share = _share_above(latencies, truth)
                shares_covered = sum(run.measured[operation].covers_slower(truth, share)
                                     for run in with_interval)  # fmt: skip
        intervals = [item.interval for item in values if item.interval is not None]
        slack = 1e-9 * truth
        covered = sum(
            interval.low - slack <= truth <= interval.high + slack for interval in intervals
        )
        widths = sorted(
            50 * (interval.high - interval.low) / truth for interval in intervals if truth
        )
        half = widths[len(widths) // 2] if widths else None
        yield CoverageRow(
            load, name, truth, len(values), len(intervals), covered, shares_covered, half
        )


def _share_above(latencies: Histogram, value_ns: float) -> float:
    lower, _, count = latencies.buckets()
    return float(count[lower > value_ns].sum() / count.sum())


def pairs_row(load: str, equal: Sequence[Repetition], slower: Sequence[Repetition]) -> PairsRow:
    """Compare each run with the next, and runs of the slower drive with normal runs."""
    couples = list(zip(equal, [*equal[1:], equal[0]], strict=True))
    against = list(zip(equal, slower, strict=False))
    name = next(key for key in equal[0].figures if key.endswith("IOPS"))
    ratio = fmean(run.figures[name].value for run in slower) / fmean(
        run.figures[name].value for run in equal
    )
    return PairsRow(
        load,
        len(couples),
        sum(
            any(figure.noise == "more" for figure in compared(*couple).values())
            for couple in couples
        ),
        len(against),
        sum(compared(*couple)[name].noise == "more" for couple in against),
        100 * (1 - ratio),
    )


def compared(first: Repetition, second: Repetition) -> dict[str, Figure]:
    """Return the figures of two runs, compared in the same way as by `compare`."""
    names = [name for name in first.figures if name in second.figures]
    figures = {n: Figure("load", [first.figures[n], second.figures[n]]) for n in names}
    level = level_of(p for figure in figures.values() for p in figure.probabilities())
    return {name: replace(figure, level=level) for name, figure in figures.items()}

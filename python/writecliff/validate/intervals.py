"""Validation of intervals and comparisons against repetitions of a run.

A small SATA drive runs three loads many times, each time prepared and loaded with seeds of its own.
The truth is the mean over all repetitions; for percentiles, that of all latencies together. The
validation counts the intervals of single runs that contain it, and the pairs of equal drives with
a false winner. A comparison with a slower drive measures the power of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
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
_PRESET = "sata-tlc-120"
_SMALL = {
    "user_capacity": ('"3.2 GB"', None),
    "flash.blocks_per_plane": ("180", None),
    "flash.pages_per_block": ("96", None),
}
# Slower in all parameters that bound the IOPS of writes and of mixes.
_SLOWER = {
    "flash.program": ('["5.775 ms"]', None),
    "flash.erase": ('"5.25 ms"', None),
    "controller.command_time": ('"10.5 us"', None),
}
LOADS: Mapping[str, tuple[Job, ...]] = {
    "random writes": (Job(name="writes", queue_depth=8),),
    "70/30 mix": (Job(name="mix", read_pct=70, queue_depth=32),),
    "reads beside writes": (
        Job(name="reads", read_pct=100, rate_iops=400, arrival="poisson", queue_depth=64),
        Job(name="writes", rate_iops=2500, queue_depth=64),
    ),
}


@dataclass(frozen=True)
class Repetition:
    """One run: figures by name, with their intervals, and the latencies by operation."""

    figures: Mapping[str, Headline]
    latencies: Mapping[str, Histogram]


@dataclass(frozen=True)
class CoverageRow:
    """Coverage of the truth by the intervals of a figure."""

    load: str
    figure: str
    truth: float  # in the unit of the figure
    intervals: int  # runs that had an interval; the others have "not enough samples"
    covered: int
    half_width_pct: float | None  # of the median interval

    @property
    def covered_pct(self) -> float | None:
        return 100 * self.covered / self.intervals if self.intervals else None

    def mapping(self) -> dict[str, Any]:
        return asdict(self) | {"covered_pct": self.covered_pct}


@dataclass(frozen=True)
class PairsRow:
    """Pairs of drives that differ by more than noise in any figure."""

    load: str
    pairs: int
    false_winners: int  # of equal drives
    slower_pairs: int
    slower_found: int  # with the slower drive, whose IOPS are lower by more than noise
    slower_pct: float | None  # by which its IOPS are lower in the mean

    @property
    def false_pct(self) -> float:
        return 100 * self.false_winners / self.pairs if self.pairs else 0.0

    def mapping(self) -> dict[str, Any]:
        return asdict(self) | {"false_pct": self.false_pct}


@dataclass(frozen=True)
class IntervalsReport:
    """Coverage and pairs of all loads."""

    coverage: Sequence[CoverageRow]
    pairs: Sequence[PairsRow]

    @property
    def ok(self) -> bool:
        """`True` if at most `FALSE_WINNERS_PCT` of equal drives have a false winner."""
        wrong = sum(row.false_winners for row in self.pairs)
        return 100 * wrong <= FALSE_WINNERS_PCT * sum(row.pairs for row in self.pairs)


def repetition(load: str, seed: int, seconds: float, *, slower: bool = False) -> Repetition:
    """Prepare a drive with this seed, run a load and return its figures."""
    text, _ = read_device_file(_PRESET)
    text = with_values(text, _SMALL | (_SLOWER if slower else {}))
    engine = SimEngine.from_device(open_device(text, "small.toml"), seed=seed)
    precondition(engine, "sustained", seed=seed)
    jobs = tuple(job.with_duration_s(seconds) for job in LOADS[load])
    result = engine.run(Workload(load, jobs, seed=seed))
    return _read(result, engine.identify().capacity_bytes)


def _read(result: StepResult, capacity_bytes: int) -> Repetition:
    record = RoundRecord(phase="rounds", round=0, step=1, label="", started_ns=0,
                         elapsed_ns=result.elapsed_ns, result=result)  # fmt: skip
    table = tables_of(1, [record])["batches"]
    figures, latencies = {}, {}
    for number, job in enumerate(result.jobs):
        for operation, done in job.operations.items():
            kind = "service" if done.response is None else "response"
            times = done.response or done.service
            key = (number, str(operation))
            stretch = stretch_of(table, [1], kind, {key: times})([key])
            measured = Measured([] if stretch is None else [stretch])
            name = f"{job.name} {operation}s"
            latencies[name] = times
            iops, mean = done.ios / (job.elapsed_ns / 1e9), times.mean_ns
            figures[f"{name}, IOPS"] = _headline(iops, measured.iops(iops), higher=True)
            figures[f"{name}, mean"] = _headline(mean, measured.mean(mean))
            for quantile, q in QUANTILES.items():
                value_ns = times.quantile(q).value_ns
                figures[f"{name}, {quantile}"] = _headline(value_ns, measured.quantile(q))
            figures["WAF"] = _headline(result.waf, measured.waf(result.waf, capacity_bytes))
    return Repetition({k: v for k, v in figures.items() if v is not None}, latencies)


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
    seconds: float,
    *,
    loads: Sequence[str] = tuple(LOADS),
    log: Callable[[str], object] = lambda text: None,
) -> IntervalsReport:
    """Repeat each load `seeds` times, and a tenth as often with a slower drive.

    `log` receives the progress.
    """
    coverage: list[CoverageRow] = []
    pairs = []
    for load in loads:
        once = partial(repetition, load, seconds=seconds)
        equal = [once(seed) for seed in range(1, seeds + 1)]
        slower = [once(seed, slower=True) for seed in range(seeds + 1, seeds + 2 + seeds // 10)]
        coverage += coverage_rows(load, equal)
        pairs.append(pairs_row(load, equal, slower))
        log(f"{load}: {seeds} repetitions")
    return IntervalsReport(coverage, pairs)


def coverage_rows(load: str, runs: Sequence[Repetition]) -> Iterator[CoverageRow]:
    """Yield the coverage of each figure: how often its interval contains the truth."""
    for name in runs[0].figures:
        found = [run.figures[name] for run in runs if name in run.figures]
        operation, _, figure = name.rpartition(", ")
        truth = fmean(item.value for item in found)
        if figure in QUANTILES:
            all_times = merged(run.latencies[operation] for run in runs)
            value_ns = None if all_times is None else all_times.quantile(QUANTILES[figure]).value_ns
            truth = truth if value_ns is None else float(value_ns)
        known = [item.interval for item in found if item.interval is not None]
        slack = 1e-9 * truth
        covered = sum(one.low - slack <= truth <= one.high + slack for one in known)
        widths = sorted(50 * (one.high - one.low) / truth for one in known if truth)
        half = widths[len(widths) // 2] if widths else None
        yield CoverageRow(load, name, truth, len(known), covered, half)


def pairs_row(load: str, equal: Sequence[Repetition], slower: Sequence[Repetition]) -> PairsRow:
    """Compare each run with the next, and runs of the slower drive with runs of the other."""
    couples = list(zip(equal, [*equal[1:], equal[0]], strict=True))
    against = list(zip(equal, slower, strict=False))
    name = next(key for key in equal[0].figures if key.endswith("IOPS"))
    ratio = fmean(run.figures[name].value for run in slower) / fmean(
        run.figures[name].value for run in equal
    )
    return PairsRow(
        load,
        len(couples),
        sum(any(one.noise == "more" for one in compared(*couple).values()) for couple in couples),
        len(against),
        sum(compared(*couple)[name].noise == "more" for couple in against),
        100 * (1 - ratio),
    )


def compared(first: Repetition, second: Repetition) -> dict[str, Figure]:
    """Return the figures of two runs as `compare` judges them."""
    names = [name for name in first.figures if name in second.figures]
    figures = {n: Figure("load", [first.figures[n], second.figures[n]]) for n in names}
    level = level_of(p for figure in figures.values() for p in figure.probabilities())
    return {name: replace(figure, level=level) for name, figure in figures.items()}

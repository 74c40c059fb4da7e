"""Figures of loads that limits may name, before a run and after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from writecliff.latency_basis import BASES, NOT_FROM_ARRIVAL, Basis, prefix_of
from writecliff.operation_names import FLUSH
from writecliff.report.headline import NS_PER_MS, Headline, headline
from writecliff.report.loads import QUOTED, Done, Load, distinct, figure_part

if TYPE_CHECKING:
    from writecliff.workload.load import LoadStep
    from writecliff.workload.model import Job

_TIMES = ("mean", *(f"p{pct:g}" for pct in QUOTED), "max")


def figure_units(steps: Sequence[LoadStep]) -> dict[str, str]:
    """Return the unit of each possible figure of a run of these steps, by key.

    Percentiles are those of headlines; any other percentile follows from the same latencies.
    """
    measured = [step.workload for step in steps if step.measured]
    found: dict[str, str] = {}
    for load in measured:
        where = load.name if len(measured) > 1 else ""
        names = distinct([job.name for job in load.jobs])
        for name, job in zip(names, load.jobs, strict=True):
            for operation in _operations(job):
                key = f"{where}/{name}/{figure_part(operation)}"
                flush = operation == FLUSH
                found |= {f"{key}/iops": "IOPS"} | ({} if flush else {f"{key}/mb_per_s": "MB/s"})
                found |= {
                    f"{key}/{prefix_of(basis)}{time}": "ms"
                    for basis in _bases(operation)
                    for time in _TIMES
                }
        found[f"{where}/waf"] = ""
    return found


def _operations(job: Job) -> Iterator[str]:
    """Yield the operations that a job may issue."""
    letters = {"read": "r", "write": "w", "trim": "t", FLUSH: "f"}
    listed = job.log.operations if job.log is not None else None
    if job.model is not None:
        listed = job.model.streams.operations
    if listed is not None:
        yield from (name for name, letter in letters.items() if letter in listed)
        return
    shares = {"read": job.read_pct, "write": 100 - job.read_pct - job.trim_pct,
              "trim": job.trim_pct or float(job.trim_first)}  # fmt: skip
    shares[FLUSH] = shares["write"] if job.flush_every_writes else 0.0
    yield from (name for name, share in shares.items() if share > 0)


def _bases(operation: str) -> tuple[Basis, ...]:
    """Return the bases of an operation. Flushes follow writes, so they have no arrival."""
    return BASES[:1] if operation == FLUSH else BASES


def limit_figures(
    loads: Sequence[Load], steps: Sequence[LoadStep], percentiles: Collection[float]
) -> tuple[list[Headline], dict[str, str]]:
    """Return a run's figures with further `percentiles`, and why others are unknown, by key."""
    many = len(loads) > 1
    found = [item for load in loads for item in load.headlines(many=many, bases=BASES)]
    known = {item.key for item in found}
    missing: dict[str, str] = {}
    for load in loads:
        where = load.name if many else ""
        names = distinct([job.name for job in load.workload.jobs])
        for done in load.done:
            key = f"{where}/{names[done.number]}/{figure_part(done.operation)}"
            for basis in _bases(done.operation):
                for pct in {*QUOTED, *percentiles}:
                    name = f"{key}/{prefix_of(basis)}p{pct:.10g}"
                    if name not in known:
                        item, why = _percentile(load, done, basis, pct, name)
                        found += item
                        missing |= {name: why} if why else {}
    known |= missing.keys() | {item.key for item in found}
    missing |= dict.fromkeys(figure_units(steps).keys() - known, "no such I/Os were measured")
    return found, missing


def _percentile(
    load: Load, done: Done, basis: Basis, pct: float, key: str
) -> tuple[list[Headline], str]:
    """Return a percentile that is not a headline, or the reason why it is unknown."""
    histogram = done.latency(basis)
    if histogram is None or not histogram.count:
        return [], NOT_FROM_ARRIVAL if done.scheduled and basis == "arrival" else "not timed"
    value_ns = histogram.quantile(pct / 100).value_ns
    if value_ns is None:
        return [], f"not enough samples: {histogram.count:,} I/Os"
    late = load.not_sustained if basis == "arrival" else ""
    steady = (load.view is None or load.view.reached) and not late
    interval = load.percentile_interval(done, basis, pct)
    more: Mapping[str, object] = {"steady": steady, "not_sustained": late, "interval": interval}
    return headline(key, key.lstrip("/"), value_ns / NS_PER_MS, "ms", higher_is_better=False,
                    **more), ""  # fmt: skip

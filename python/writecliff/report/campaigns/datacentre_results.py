"""The figures of the data-centre white paper's tests, read from a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from writecliff.procedures.model import StepRow
from writecliff.report.campaigns.common import MS, Result, Steps, latency_results, oio_of
from writecliff.report.campaigns.seconds import Seconds, seconds_of
from writecliff.workload.model import KIB

if TYPE_CHECKING:
    from writecliff._native import Histogram


def place_of(item: str, row: StepRow) -> dict[str, Any]:
    """What a result of a single access is of."""
    return {
        "item": item,
        "access": row.pattern or row.label.rpartition(" ")[0],
        "block_kib": row.block_bytes / KIB if row.block_bytes else None,
        "read_pct": row.read_pct,
        "oio": oio_of(row),
    }


def results(steps: Steps) -> list[Result]:
    """All figures, in the order of the parts."""
    return [
        *(r for phase in ("sequential", "basic") for row in steps.phase(phase)
          for r in _basic(steps, row)),
        *(r for row in steps.phase("mixes") for r in _mix(steps, row)),
        *_consistency(steps),
        *_messenger(steps),
        *(r for row in steps.phase("servers") for r in _server(steps, row)),
    ]  # fmt: skip


def _basic(steps: Steps, row: StepRow) -> list[Result]:
    place = place_of("basic", row)
    found = [Result(metric="iops", value=row.iops, unit="IOPS", **place)]
    if row.pattern == "sequential":
        speed = row.bytes_per_s / 1e6
        found = [Result(metric="throughput", value=speed, unit="MB/s", **place)]
    return [*found, *latency_results(steps, row, place)]


def _mix(steps: Steps, row: StepRow) -> list[Result]:
    place = place_of("mixes", row)
    found = [Result(metric="iops", value=row.iops, unit="IOPS", **place)]
    for operation in ("read", "write"):
        iops = steps.iops(row, operation)
        if iops:
            found.append(Result(metric=f"{operation}_iops", value=iops, unit="IOPS", **place))
            found += latency_results(steps, row, place, operation, prefix=f"{operation}_")
    return [*found, *latency_results(steps, row, place)]


@dataclass(frozen=True)
class Load:
    """One load of the part "consistency"."""

    row: StepRow
    seconds: Seconds


def loads(steps: Steps) -> Sequence[Load]:
    return [
        Load(row, seconds_of(steps.data, [row], oio_of(row) or 1))
        for row in steps.phase("consistency")
    ]


def _consistency(steps: Steps) -> list[Result]:
    found = []
    for load in loads(steps):
        place = place_of("consistency", load.row)
        for metric, value, unit, better in (
            ("iops", load.seconds.average, "IOPS", True),
            ("iops_stddev", load.seconds.deviation, "IOPS", False),
            ("iops_p99.9", load.seconds.slow, "IOPS", True),
            ("iops_consistency", load.seconds.consistency_pct, "%", True),
        ):
            if value is not None:
                found.append(
                    Result(metric=metric, value=value, unit=unit, higher_is_better=better, **place)
                )
    return found


@dataclass(frozen=True)
class Messenger:
    """The messenger service: the writer, and its readers one by one."""

    seconds: float
    writer: Histogram | None
    readers: Sequence[Histogram]

    def iops(self, histogram: Histogram) -> float:
        return histogram.count / self.seconds

    @property
    def reader_iops(self) -> float:
        """Of a thread, averaged over the threads."""
        return fmean(self.iops(reader) for reader in self.readers)

    def readers_ns(self, q: float | None) -> float | None:
        """A quantile (None: the mean; 1: the maximum) averaged over the threads; None if one of
        them has too few samples for it."""
        values = []
        for reader in self.readers:
            value = _statistic(reader, q)
            if value is None:
                return None
            values.append(value)
        return fmean(values)

    def writer_ns(self, q: float | None) -> float | None:
        return None if self.writer is None else _statistic(self.writer, q)


def _statistic(histogram: Histogram, q: float | None) -> float | None:
    if q is None:
        return histogram.mean_ns
    return histogram.max_ns if q == 1 else histogram.quantile(q).value_ns


STATISTICS = (("avg", None), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0))


def messenger(steps: Steps) -> Messenger | None:
    """None: the run has none, or no reader came to an I/O."""
    rows = steps.phase("messenger")
    if not rows:
        return None
    found = steps.data.run.histograms_by_job(steps.data.seq(rows[0]))
    readers = [histogram for name, histogram in found.items() if name != "writer"]
    if not readers:
        return None
    return Messenger(rows[0].elapsed_ns / 1e9, found.get("writer"), readers)


def _messenger(steps: Steps) -> list[Result]:
    found = messenger(steps)
    if found is None:
        return []
    place: dict[str, Any] = {"item": "messenger", "access": "messenger"}
    results = [
        Result(
            metric="read_iops_per_thread",
            value=found.reader_iops,
            unit="IOPS",
            block_kib=4.0,
            read_pct=100.0,
            **place,
        )
    ]
    if found.writer is not None:
        iops = found.iops(found.writer)
        results.append(
            Result(
                metric="write_iops",
                value=iops,
                unit="IOPS",
                block_kib=512.0,
                read_pct=0.0,
                **place,
            )
        )
    for kind, statistic in (("read", found.readers_ns), ("write", found.writer_ns)):
        for name, q in STATISTICS:
            value = statistic(q)
            if value is not None:
                metric = f"{kind}_latency_{name}"
                results.append(
                    Result(
                        metric=metric, value=value / MS, unit="ms", higher_is_better=False, **place
                    )
                )
    return results


def _server(steps: Steps, row: StepRow) -> list[Result]:
    name, depth = profile_and_depth(row)
    place: dict[str, Any] = {"item": "servers", "access": name, "oio": depth}
    return [
        Result(metric="iops", value=row.iops, unit="IOPS", **place),
        Result(metric="throughput", value=row.bytes_per_s / 1e6, unit="MB/s", **place),
        *latency_results(steps, row, place),
    ]


def profile_and_depth(row: StepRow) -> tuple[str, int]:
    """ "web-server QD32" is ("web-server", 32)."""
    name, _, depth = row.label.rpartition(" QD")
    return name, int(depth)

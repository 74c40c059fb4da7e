"""Evidence for a twin, which consists of figures with conditions and time series from a run.

The figures have the same form as published figures, so fits and comparisons can use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from writecliff.errors import ConfigError
from writecliff.procedures.twin import (
    FILL_PHASE,
    FRESH_PHASE,
    OVERWRITE_PHASE,
    READS_PHASE,
    REST_PHASE,
    WRITES_PHASE,
    Twin,
)
from writecliff.procedures.twin_loads import MeasuredLoad
from writecliff.published.figures import PublishedFigure, unit_of
from writecliff.report.series import series
from writecliff.report.testdata import TestData, load
from writecliff.store.rundir import RunDirectory

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity
    from writecliff.procedures.model import StepRow

SOURCE = "measured here"
CACHE_RATIO = 1.3  # Minimum ratio of the first rate to the last rate in a fill with a cache.
_PHASES = {"fresh": FRESH_PHASE, "fill": READS_PHASE, "overwritten": WRITES_PHASE}
_READS_ENOUGH = 1000  # Minimum number of reads needed to determine page read times.
_LAST = 4  # Number of final overwrite steps that determine the steady rate.


@dataclass(frozen=True)
class Observed:
    """A measured figure; `held_out` is set if the fit must not use the figure."""

    figure: PublishedFigure
    held_out: bool


@dataclass(frozen=True)
class Curve:
    """A rate over the written volume at the ends of intervals, in bytes/s and bytes."""

    volume_bytes: npt.NDArray[np.float64]
    rate_bytes_per_s: npt.NDArray[np.float64]

    @property
    def first(self) -> float | None:
        """Median rate over the first 2 % of the volume, in bytes/s."""
        return self._median(0.0, 0.02)

    @property
    def last(self) -> float | None:
        """Median rate over the last quarter of the volume, in bytes/s."""
        return self._median(0.75, 1.0)

    @property
    def drop_bytes(self) -> float | None:
        """Volume in bytes after which the rate stays below the midpoint between its two levels.

        The volume is `None` if the two levels hardly differ.
        """
        first, last = self.first, self.last
        if first is None or last is None or first < CACHE_RATIO * last:
            return None
        low = self.rate_bytes_per_s < (first + last) / 2
        for index in np.flatnonzero(low):
            if np.mean(low[index : index + 5]) > 0.5:
                return float(self.volume_bytes[index - 1]) if index else 0.0
        return None

    def _median(self, begin: float, end: float) -> float | None:
        if not len(self.rate_bytes_per_s):
            return None
        share = self.volume_bytes / self.volume_bytes[-1]
        inside = self.rate_bytes_per_s[(share > begin) & (share <= end)]
        return float(np.median(inside if len(inside) else self.rate_bytes_per_s[:1]))


@dataclass(frozen=True)
class Evidence:
    """Measurements of a drive.

    Attributes:
        gentle: `True` if only reads were measured.
        seconds: Duration of each load.
        overwritten_pct: Volume of the random overwrites, in percent of the capacity.
        waf: Write amplification at the end of the overwrites, or None if the drive does not report
            it.
        single_reads_ns: Latencies of 4 KiB reads at queue depth 1, by number of parts. All reads
            are divided into equal parts, and each part's median is listed, fastest part first.
    """

    identity: DeviceIdentity
    gentle: bool
    seconds: float
    observed: tuple[Observed, ...]
    overwritten_pct: float | None
    waf: float | None
    steady_iops: float | None
    fill: Curve | None
    overwrite: Curve | None
    rest: Curve | None
    single_reads_ns: Mapping[int, tuple[float, ...]]

    @property
    def cache_bytes(self) -> float | None:
        """Volume in bytes of the first writes until the rate dropped, or `None`."""
        return None if self.fill is None else self.fill.drop_bytes

    def figures(self, *, held_out: bool) -> list[PublishedFigure]:
        """Return either the fitted or the held-out figures."""
        return [observed.figure for observed in self.observed if observed.held_out is held_out]

    def of(self, device: str) -> Evidence:
        """Return the evidence with figures that refer to `device`, the path of a device file."""
        observed = tuple(
            replace(observed, figure=replace(observed.figure, device=device))
            for observed in self.observed
        )
        return replace(self, observed=observed)

    def value(
        self, pattern: str, block_kib: int, read_pct: float, outstanding: int, metric: str
    ) -> float | None:
        """Return the value of a fitted figure for a load, or `None` if it was not measured."""
        for observed in self.observed:
            f = observed.figure
            load = (f.access, f.block_bytes, f.read_pct, f.outstanding, f.metric)
            asked = (pattern, block_kib * 1024, read_pct, outstanding, metric)
            if not observed.held_out and load == asked:
                return f.value
        return None


def read_evidence(run: Path) -> Evidence:
    """Return the evidence stored in a run directory.

    Raises:
        ConfigError: If the run belongs to a different test or is incomplete.
    """
    directory = RunDirectory.open(run)
    if directory.manifest.procedure != Twin.name:
        raise ConfigError(
            f"{run} is a run of {directory.manifest.procedure}, not of twin",
            hint="specify a run directory that `writecliff twin` printed",
        )
    if directory.status != "complete":
        raise ConfigError(
            f"the measurements in {run} are incomplete ({directory.status})",
            hint=f"run writecliff twin --resume {run}",
        )
    return evidence_of(load(directory))


def evidence_of(data: TestData) -> Evidence:
    """Return the evidence from a run, which may be incomplete."""
    procedure, identity = data.procedure, data.manifest.device
    assert isinstance(procedure, Twin)
    overwrites = data.stage_rows(OVERWRITE_PHASE)
    written = sum(row.host_write_bytes for row in overwrites)
    pct = 100 * written / identity.capacity_bytes if overwrites else None
    state = "" if pct is None else f"overwritten:{pct:.4g}%"
    observed = tuple(
        Observed(figure, load_.held_out)
        for load_ in procedure.loads(identity)
        if (row := _row(data, load_)) is not None
        for figure in _figures(data, load_, row, state)
    )
    last = overwrites[-_LAST:]
    seconds = sum(row.elapsed_ns for row in last) / 1e9
    return Evidence(
        identity=identity,
        gentle=procedure.gentle,
        seconds=procedure.seconds,
        observed=observed,
        overwritten_pct=pct,
        waf=_waf(last),
        steady_iops=sum(row.ios for row in last) / seconds if seconds else None,
        fill=_curve(data, data.stage_rows(FILL_PHASE)),
        overwrite=_curve(data, overwrites),
        rest=_curve(data, data.stage_rows(REST_PHASE)),
        single_reads_ns=_single_reads(data),
    )


def _single_reads(data: TestData) -> dict[int, tuple[float, ...]]:
    rows = [
        row
        for row in data.stage_rows(READS_PHASE)
        if (row.pattern, row.block_bytes, row.queue_depth) == ("random", 4096, 1)
    ]
    histogram = data.histogram(rows[-1:])  # The drive has settled.
    if histogram is None or histogram.count < _READS_ENOUGH:
        return {}
    middles_of = {}
    for parts in range(2, 5):
        middles = [histogram.quantile((n + 0.5) / parts).value_ns for n in range(parts)]
        values = tuple(float(middle) for middle in middles if middle is not None)
        if len(values) == parts:
            middles_of[parts] = values
    return middles_of


def _row(data: TestData, load_: MeasuredLoad) -> StepRow | None:
    rows = data.stage_rows(_PHASES[load_.begins])
    return next((row for row in rows if row.label == load_.label), None)


def _waf(rows: Sequence[StepRow]) -> float | None:
    host = sum(row.host_write_bytes for row in rows)
    nand = [None if row.waf is None else row.waf * row.host_write_bytes for row in rows]
    reported = [nand_bytes for nand_bytes in nand if nand_bytes is not None]
    return sum(reported) / host if host and len(reported) == len(nand) else None


def _figures(
    data: TestData, load_: MeasuredLoad, row: StepRow, overwritten: str
) -> Iterator[PublishedFigure]:
    begins = overwritten if load_.begins == "overwritten" else load_.begins

    def figure(metric: str, value: float) -> PublishedFigure:
        return PublishedFigure(
            source=SOURCE, item=load_.label, device=data.manifest.device.target, baseline="",
            access=load_.pattern, block_bytes=load_.block_bytes, read_pct=load_.read_pct,
            outstanding=load_.outstanding, metric=metric, value=value, unit=unit_of(metric),
            note="", state=begins,
        )  # fmt: skip

    fresh = "_burst" if load_.begins == "fresh" else ""
    mean_ns = row.latency_mean_ns
    if load_.pattern == "sequential":
        yield figure(f"throughput{fresh}", row.bytes_per_s / 1e6)
    elif load_.outstanding == 1 and load_.read_pct in (0.0, 100.0) and mean_ns:
        yield figure(f"latency_avg{fresh}", mean_ns / 1e6)
    else:
        yield figure(f"iops{fresh}", row.iops)
    if fresh or load_.pattern == "sequential":
        return
    mixed = 0 < load_.read_pct < 100
    for operation, suffix in (("read", "_read"), ("write", "_write")) if mixed else ((None, ""),):
        histogram = data.histogram([row], operation=operation)
        if histogram is None or not histogram.count:
            continue
        if mixed and operation == "read" and histogram.mean_ns:
            yield figure("latency_avg_read", histogram.mean_ns / 1e6)
        slow = histogram.quantile(0.99).value_ns
        if slow is not None:
            yield figure(f"latency_p99{suffix}", slow / 1e6)


def _curve(data: TestData, rows: Sequence[StepRow]) -> Curve | None:
    if not rows:
        return None
    rates = series(data, rows)
    width_s = rates.width_ns / 1e9
    whole = width_s > 0
    if not whole.any():
        return None
    volume = np.cumsum(rates.bytes)
    return Curve(volume[whole], rates.bytes[whole] / width_s[whole])

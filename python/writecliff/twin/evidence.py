"""What a run of measurements says of the drive: figures with their conditions, and series.

Figures are those of the published table, so that fits and comparisons take them as any others.
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
CACHE_RATIO = 1.3  # of the first rate of a fill to its last, from which a cache is seen
_PHASES = {"fresh": FRESH_PHASE, "fill": READS_PHASE, "overwritten": WRITES_PHASE}
_READS_ENOUGH = 1000  # for the times of pages
_LAST = 4  # parts of the overwrites that the steady rate is of


@dataclass(frozen=True)
class Observed:
    """A figure that was measured; `kept`: aside."""

    figure: PublishedFigure
    kept: bool


@dataclass(frozen=True)
class Curve:
    """A rate over the volume written: at the ends of intervals, in bytes and bytes/s."""

    volume_bytes: npt.NDArray[np.float64]
    rate_bytes_per_s: npt.NDArray[np.float64]

    @property
    def first(self) -> float | None:
        """The median rate of the first fiftieth."""
        return self._median(0.0, 0.02)

    @property
    def last(self) -> float | None:
        """The median rate of the last quarter."""
        return self._median(0.75, 1.0)

    @property
    def drop_bytes(self) -> float | None:
        """The volume after which the rate is below the middle of its first and its last level for
        good; None if they are near each other.
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
    """All that was measured. `seconds`: of each load. `overwritten_pct`: of the capacity, at
    random; `waf`: write amplification at the end of that, where the drive tells; `cache_bytes`:
    what the first writes took before their rate dropped; None: not seen. `single_reads_ns`: by a
    number of parts, the latency in the middle of each part of all 4 KiB reads at queue depth 1, the
    fastest first.
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
        return None if self.fill is None else self.fill.drop_bytes

    def figures(self, *, kept: bool) -> list[PublishedFigure]:
        """Those of the fit, or those that were kept aside."""
        return [one.figure for one in self.observed if one.kept is kept]

    def of(self, device: str) -> Evidence:
        """The same with figures of the drive `device`, the path of a device file."""
        observed = tuple(
            replace(one, figure=replace(one.figure, device=device)) for one in self.observed
        )
        return replace(self, observed=observed)

    def value(
        self, pattern: str, block_kib: int, read_pct: float, outstanding: int, metric: str
    ) -> float | None:
        """A figure that is not kept aside, by its load."""
        for one in self.observed:
            f = one.figure
            load = (f.access, f.block_bytes, f.read_pct, f.outstanding, f.metric)
            asked = (pattern, block_kib * 1024, read_pct, outstanding, metric)
            if not one.kept and load == asked:
                return f.value
        return None


def read_evidence(run: Path) -> Evidence:
    """What a run directory says. Raises ConfigError: of another test, or not complete."""
    directory = RunDirectory.open(run)
    if directory.manifest.procedure != Twin.name:
        raise ConfigError(
            f"{run} is a run of {directory.manifest.procedure}, not of twin",
            hint="give a directory that `writecliff twin` named",
        )
    if directory.status != "complete":
        raise ConfigError(
            f"the measurements in {run} are not complete ({directory.status})",
            hint=f"writecliff twin --resume {run}",
        )
    return evidence_of(load(directory))


def evidence_of(data: TestData) -> Evidence:
    """What the measurements of a run say, as far as it got."""
    procedure, identity = data.procedure, data.manifest.device
    assert isinstance(procedure, Twin)
    overwrites = data.stage_rows(OVERWRITE_PHASE)
    written = sum(row.host_write_bytes for row in overwrites)
    pct = 100 * written / identity.capacity_bytes if overwrites else None
    state = "" if pct is None else f"overwritten:{pct:.4g}%"
    observed = tuple(
        Observed(figure, one.held_out)
        for one in procedure.loads(identity)
        if (row := _row(data, one)) is not None
        for figure in _figures(data, one, row, state)
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
    histogram = data.histogram(rows[-1:])  # the drive has settled
    if histogram is None or histogram.count < _READS_ENOUGH:
        return {}
    found = {}
    for parts in range(2, 5):
        middles = [histogram.quantile((n + 0.5) / parts).value_ns for n in range(parts)]
        known = tuple(float(one) for one in middles if one is not None)
        if len(known) == parts:
            found[parts] = known
    return found


def _row(data: TestData, one: MeasuredLoad) -> StepRow | None:
    rows = data.stage_rows(_PHASES[one.begins])
    return next((row for row in rows if row.label == one.label), None)


def _waf(rows: Sequence[StepRow]) -> float | None:
    host = sum(row.host_write_bytes for row in rows)
    nand = [None if row.waf is None else row.waf * row.host_write_bytes for row in rows]
    known = [one for one in nand if one is not None]
    return sum(known) / host if host and len(known) == len(nand) else None


def _figures(
    data: TestData, one: MeasuredLoad, row: StepRow, overwritten: str
) -> Iterator[PublishedFigure]:
    begins = overwritten if one.begins == "overwritten" else one.begins

    def figure(metric: str, value: float) -> PublishedFigure:
        return PublishedFigure(
            source=SOURCE, item=one.label, device=data.manifest.device.target, baseline="",
            access=one.pattern, block_bytes=one.block_bytes, read_pct=one.read_pct,
            outstanding=one.outstanding, metric=metric, value=value, unit=unit_of(metric),
            note="", state=begins,
        )  # fmt: skip

    fresh = "_burst" if one.begins == "fresh" else ""
    mean_ns = row.latency_mean_ns
    if one.pattern == "sequential":
        yield figure(f"throughput{fresh}", row.bytes_per_s / 1e6)
    elif one.outstanding == 1 and one.read_pct in (0.0, 100.0) and mean_ns:
        yield figure(f"latency_avg{fresh}", mean_ns / 1e6)
    else:
        yield figure(f"iops{fresh}", row.iops)
    if fresh or one.pattern == "sequential":
        return
    mixed = 0 < one.read_pct < 100
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
    found = series(data, rows)
    width_s = found.width_ns / 1e9
    whole = width_s > 0
    if not whole.any():
        return None
    volume = np.cumsum(found.bytes)
    return Curve(volume[whole], found.bytes[whole] / width_s[whole])

"""Data for the write saturation test report, in addition to `testdata`.

Definitions:

* Fresh out of box (FOB) refers to the steps that start in the first minute and before the whole
  capacity has been written once.
* The drive leaves FOB at the first of two consecutive steps below `FOB_SHARE` of the FOB IOPS, and
  is in transition from this step to the window.
* The window contains the steps from the first to the last sample of the reported steady-state
  window.
* Latencies come from the response-time histogram phase if the run has one, otherwise from the steps
  in the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from writecliff.errors import StoreError
from writecliff.procedures.model import StepRow
from writecliff.procedures.saturation import FOB_DRIVE_FILLS
from writecliff.report.steady import OTHER_ENDS, SteadyView, or_nan
from writecliff.report.testdata import TestData

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.report.axes import Numbers

FOB_NS = 60_000_000_000
FOB_SHARE = 0.9
FIVE_NINES = 0.99999
# Excess of write amplification over 1 that does not count as garbage collection.
NO_RELOCATION = 0.05


@dataclass(frozen=True)
class WsatData:
    """A write saturation test run.

    Arrays have one value per step in the rounds, and NaN marks unknown values.
    """

    data: TestData

    @cached_property
    def rows(self) -> Sequence[StepRow]:
        """Steps in the rounds.

        Raises:
            StoreError: If the run does not have a complete step.
        """
        rows = self.data.stage_rows("rounds")
        if not rows:
            raise StoreError(
                f"{self.data.run.path} contains no complete step to report",
                hint="wait until the run has completed a step",
            )
        return rows

    @cached_property
    def view(self) -> SteadyView:
        """Stage that consists of the rounds."""
        manifest = self.data.manifest
        other = manifest.ended_by in OTHER_ENDS
        return replace(self.data.view("rounds"), end=manifest.reason if other else "")

    def column(self, value: Callable[[StepRow], float | None]) -> Numbers:
        """Return a figure's value for every step."""
        return np.array([or_nan(value(row)) for row in self.rows], dtype=np.float64)

    @cached_property
    def start_ns(self) -> Numbers:
        """Start of each step in ns, relative to the first step."""
        return self.column(lambda row: row.started_ns - self.rows[0].started_ns)

    @cached_property
    def end_ns(self) -> Numbers:
        """End of each step in ns, relative to the start of the first step."""
        return self.column(lambda row: row.ended_ns - self.rows[0].started_ns)

    @cached_property
    def iops(self) -> Numbers:
        """IOPS of each step."""
        return self.column(lambda row: row.iops)

    @cached_property
    def written_bytes(self) -> Numbers:
        """Bytes written from the purge to the end of each step."""
        return self.column(lambda row: row.host_write_bytes_total)

    @cached_property
    def before_bytes(self) -> Numbers:
        """Bytes written from the purge to the start of each step."""
        return self.written_bytes - self.column(lambda row: row.host_write_bytes)

    @cached_property
    def waf(self) -> Numbers:
        """Write amplification of each step."""
        return self.column(lambda row: row.waf)

    @cached_property
    def spread(self) -> tuple[Numbers, Numbers]:
        """Lowest and highest IOPS among each step's one-second intervals."""
        nothing = (float("nan"), float("nan"))
        numbers = [self.data.interval_iops.get(self.data.seq(row), nothing) for row in self.rows]
        return np.array([low for low, _ in numbers]), np.array([high for _, high in numbers])

    @cached_property
    def window(self) -> slice:
        """Steps from the first to the last sample in the reported window.

        Without a window, the value covers the steps of all samples or, failing that, the last step.
        """
        rounds = self.view.window if self.view.judged else self.view.rounds
        # The last step in a round is the round's sample.
        samples = {row.round: index for index, row in enumerate(self.rows)}
        if not rounds:
            return slice(len(self.rows) - 1, len(self.rows))
        return slice(samples[rounds[0]], samples[rounds[-1]] + 1)

    @property
    def window_rows(self) -> Sequence[StepRow]:
        """Steps in `window`."""
        return self.rows[self.window]

    @property
    def drive_fills(self) -> float:
        """Data written by the end of the last step, as a multiple of the user capacity."""
        return float(self.written_bytes[-1] / self.data.capacity_bytes)

    @property
    def window_drive_fills(self) -> float:
        """Drive fills written by the end of the window's first step."""
        return float(self.written_bytes[self.window][0] / self.data.capacity_bytes)

    @property
    def fresh(self) -> bool:
        """`True` if the window starts before drives usually leave the fresh-out-of-box state."""
        return self.window_drive_fills < FOB_DRIVE_FILLS

    @property
    def elapsed_ns(self) -> float:
        """Total device time of the rounds."""
        return float(self.end_ns[-1])

    @cached_property
    def fob_rows(self) -> Sequence[StepRow]:
        """Steps that count as fresh out of box, which always include the first step."""
        late = (self.start_ns >= FOB_NS) | (self.before_bytes >= self.data.capacity_bytes)
        return [row for row, out in zip(self.rows, late, strict=True) if not out] or self.rows[:1]

    @property
    def fob_ns(self) -> float:
        """Total duration in ns of the steps that count as fresh out of box."""
        return float(sum(row.elapsed_ns for row in self.fob_rows))

    @property
    def fob_iops(self) -> float:
        """IOPS during the steps that count as fresh out of box."""
        return sum(row.ios for row in self.fob_rows) / (self.fob_ns / 1e9)

    @cached_property
    def leaves_fob(self) -> int | None:
        """Index of the step where the drive stops being fresh, or None if it is still fresh."""
        low = self.iops < FOB_SHARE * self.fob_iops
        both = low[:-1] & low[1:]
        return int(np.argmax(both)) if both.any() else None

    @property
    def becomes_steady(self) -> int | None:
        """Index of the window's first step, or None if steady state was never reached."""
        return self.window.start if self.view.reached and self.view.judged else None

    @property
    def saturated_iops(self) -> float:
        """Average over the reported window or, without one, over the samples or the last step."""
        if self.view.determination is not None:
            return self.view.determination.average
        values = [value for samples in self.view.values.values() for value in samples]
        return sum(values) / len(values) if values else float(self.iops[-1])

    @property
    def fob_ratio(self) -> float | None:
        """Ratio of the saturated IOPS to the fresh-out-of-box IOPS."""
        return self.saturated_iops / self.fob_iops if self.fob_iops else None

    @property
    def window_waf(self) -> float | None:
        """Write amplification over the window, or None if the drive does not report it."""
        return mean_waf(self.window_rows)

    @property
    def unsaturated(self) -> bool:
        """`True` if the load never caused the drive to relocate data.

        In this case, the drive maintained its fresh-out-of-box IOPS, and wrote as many bytes to
        flash as the host wrote. This happens if only a small part of the address range is written
        (for example, the segments of PTS-C), because the remaining capacity is spare flash. Drives
        without flash have no other state than this.
        """
        if self.data.manifest.device.without_flash:
            return False
        waf = self.window_waf
        return self.leaves_fob is None and (waf is None or waf < 1 + NO_RELOCATION)

    def by_round(self, value: Callable[[Sequence[StepRow]], float | None]) -> list[float | None]:
        """Return a figure for each round, from the round's steps within the window."""
        rounds = dict.fromkeys(row.round for row in self.window_rows)
        return [value([row for row in self.window_rows if row.round == n]) for n in rounds]

    @cached_property
    def five_nines(self) -> tuple[bool, Sequence[tuple[slice, float]]]:
        """99.999th percentile response times in ns, by step.

        If steps have too few I/Os, percentiles are computed by round, and the first returned value
        is `True`. Steps or rounds with too few I/Os are omitted.
        """
        by_seq = self.data.run.histograms_by_step()
        each = [by_seq.get(self.data.seq(row)) for row in self.rows]
        five_nines = [
            (slice(index, index + 1), value)
            for index, histogram in enumerate(each)
            if histogram is not None and (value := histogram.quantile(FIVE_NINES).value_ns)
        ]
        if 2 * len(five_nines) >= len(self.rows):
            return False, five_nines
        five_nines, begin = [], 0
        while begin < len(self.rows):
            number, end = self.rows[begin].round, begin
            while end < len(self.rows) and self.rows[end].round == number:
                end += 1
            histogram = self.data.histogram(self.rows[begin:end])
            if histogram is not None and (value := histogram.quantile(FIVE_NINES).value_ns):
                five_nines.append((slice(begin, end), value))
            begin = end
        return True, five_nines

    @property
    def latency_source(self) -> Literal["rth", "window"]:
        """Source of the latencies, either the response-time histogram phase or the window."""
        return "rth" if self.data.stage_rows("rth") else "window"

    @cached_property
    def latency(self) -> Histogram | None:
        """Response times of all I/Os in `latency_source`, or None without I/Os."""
        return self.data.histogram(self.data.stage_rows("rth") or self.window_rows)


def mean_latency_ns(rows: Sequence[StepRow]) -> float | None:
    """Return the mean service time in ns of all I/Os in `rows`, or None if unknown."""
    ios = sum(row.ios for row in rows)
    if not ios or any(row.latency_mean_ns is None for row in rows):
        return None
    return sum((row.latency_mean_ns or 0.0) * row.ios for row in rows) / ios


def mean_waf(rows: Sequence[StepRow]) -> float | None:
    """Return the ratio of flash bytes to host bytes written in `rows`, or None if unknown."""
    host = sum(row.host_write_bytes for row in rows)
    if not host or any(row.waf is None for row in rows):
        return None
    return sum((row.waf or 0.0) * row.host_write_bytes for row in rows) / host

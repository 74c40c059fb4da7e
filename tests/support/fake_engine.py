"""A drive modelled by a formula: deterministic, instant, with a write cliff.

The drive fulfils the `Engine` contract (virtual clock, counters, histograms, per-second rows, save
and restore), so that procedures, stores and reports can be tested without a simulator or a disk.
The results of a step depend only on the state (bytes written since purge) and the workload's seed.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from writecliff._native import Histogram
from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    JobResult,
    OperationResult,
    Progress,
    ProgressHook,
    PurgeHook,
    PurgeReport,
    StepResult,
    unseen,
)
from writecliff.engines.counters import Counters
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import SECOND_NS, Workload

FRESH_IOPS = 80_000.0
STEADY_IOPS = 12_000.0


@dataclass
class FakeEngine:
    """A fake drive.

    `before_run` is called before each `run` with the run's number (from 1), so that a test can
    raise or sleep. `noise` is the relative spread of the IOPS between steps.
    """

    capacity_bytes: int = 480_000_000_000
    kind: Literal["sim", "fio"] = "sim"
    write_refusal: TargetError | None = None
    noise: float = 0.01
    before_run: Callable[[int], None] | None = None
    target: str = "sim:fake"
    wall_s_per_run: float = 0.0
    serial: str | None = "FAKE0001"
    model: str = "Formula 480"
    speed: float = 1.0  # Factor on the IOPS that the formula yields.
    backing: str | None = None
    clock_ns: int = 0
    written_bytes: int = 0
    read_bytes: int = 0
    nand_bytes: float = 0.0
    since_purge_bytes: int = 0
    runs: int = 0
    calls: list[str] = field(default_factory=list)
    closed: bool = False
    running: bool = False  # `True` if the load of the previous run is still running.
    kept_running: list[bool] = field(default_factory=list)  # Value of `keep_running` in each run.

    def identify(self) -> DeviceIdentity:
        return DeviceIdentity(
            target=self.target,
            vendor="Fake",
            model=self.model,
            serial=self.serial,
            firmware="F1",
            capacity_bytes=self.capacity_bytes,
            sector_bytes=512,
            interface="SATA 6Gb/s",
            nand_type="TLC",
            rated_tbw_bytes=None,
            device_hash="fake" if self.kind == "sim" else None,
            simulated=self.kind == "sim",
            backing=self.backing,
        )

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        self.calls.append("purge")
        on_progress(0.4)
        self.since_purge_bytes = 0
        return PurgeReport("fake purge", conformant=True)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        self.calls.append(f"cache {'on' if enabled else 'off'}")
        return CacheReport(enabled)

    def counters(self) -> Counters:
        return Counters(
            host_write_bytes=self.written_bytes,
            host_read_bytes=self.read_bytes,
            nand_write_bytes=int(self.nand_bytes),
        )

    def health(self) -> dict[str, object] | None:
        return {"source": "formula", "host_write_bytes": self.written_bytes}

    def log_events(self) -> None:
        pass

    def power_states(self, *, settle: bool = False) -> None:
        """Do nothing, because the drive has no power states."""

    def expected_iops(self, fills: float) -> float:
        """Return fresh IOPS up to one drive fill, then an exponential decay to the steady level."""
        if fills < 1:
            return FRESH_IOPS
        return STEADY_IOPS + (FRESH_IOPS - STEADY_IOPS) * math.exp(-4 * (fills - 1))

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        self.runs += 1
        self.running = keep_running
        self.kept_running.append(keep_running)
        self.calls.append(f"run {workload.name}")
        if self.before_run is not None:
            self.before_run(self.runs)
        if self.wall_s_per_run:
            time.sleep(self.wall_s_per_run)
        return self._run(workload, on_progress)

    def speed_limit(self, workload: Workload) -> float | None:
        return None

    def stop_load(self) -> None:
        self.running = False

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        self.calls.append(f"precondition {workload.name}")
        return self._run(workload, on_progress)

    def _run(self, workload: Workload, on_progress: ProgressHook | None) -> StepResult:
        (job,) = workload.jobs
        before, started_ns = self.counters(), self.clock_ns
        rng = random.Random(workload.seed)
        fills = self.since_purge_bytes / self.capacity_bytes
        iops = self.speed * self.expected_iops(fills) * (1 + self.noise * (2 * rng.random() - 1))
        block = job.block_sizes[0].bytes
        if job.duration_ns is not None:
            elapsed_ns, ios = job.duration_ns, round(iops * job.duration_ns / SECOND_NS)
        else:
            ios = job.ios or math.ceil((job.volume_bytes or 0) / block)
            elapsed_ns = round(ios / iops * SECOND_NS)
        histogram = self._latencies(rng, ios, job.threads * job.queue_depth / iops)
        waf = 1.0 if fills < 1 else 1 + 3 * (1 - math.exp(-4 * (fills - 1)))
        self.clock_ns += elapsed_ns
        self.written_bytes += ios * block
        self.since_purge_bytes += ios * block
        self.nand_bytes += ios * block * waf
        if on_progress is not None:
            on_progress(Progress(1.0, elapsed_ns, ios, iops, waf))
        return StepResult(
            started_ns=started_ns,
            elapsed_ns=elapsed_ns,
            jobs=(
                JobResult(
                    job.name, elapsed_ns, {"write": OperationResult(ios, ios * block, histogram)}
                ),
            ),
            intervals=_intervals(elapsed_ns, ios, block, histogram, waf),
            counters_before=before,
            counters_after=self.counters(),
        )

    @staticmethod
    def _latencies(rng: random.Random, ios: int, mean_s: float) -> Any:
        """Return latencies near the mean, with rare outliers ten and fifty times as long."""
        histogram = Histogram()
        mean_ns = mean_s * SECOND_NS
        slow = ios // 10_000
        for part in range(10):
            count = (ios - slow) // 10 if part else ios - slow - 9 * ((ios - slow) // 10)
            if count:
                histogram.record(round(mean_ns * (0.55 + 0.1 * part)), count)
        if slow:
            histogram.record(round(mean_ns * 10), slow)
        histogram.record(round(mean_ns * (50 + 10 * rng.random())), 1)
        return histogram

    def save(self, path: Path) -> bool:
        if self.kind == "fio":
            return False
        self.calls.append("save")
        state = {
            name: getattr(self, name)
            for name in (
                "clock_ns",
                "written_bytes",
                "read_bytes",
                "nand_bytes",
                "since_purge_bytes",
                "runs",
            )
        }
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(state))
        os.replace(temporary, path)
        return True

    def restore(self, path: Path) -> None:
        self.calls.append("restore")
        for name, value in json.loads(path.read_text()).items():
            setattr(self, name, value)

    def close(self) -> None:
        self.closed = True


def _intervals(
    elapsed_ns: int, ios: int, block: int, histogram: Any, waf: float
) -> dict[str, np.ndarray]:
    rows = max(1, elapsed_ns // SECOND_NS)
    count = np.full(rows, ios // rows, dtype=np.int64)
    count[-1] += ios - count.sum()
    return {
        "end_ns": np.linspace(elapsed_ns / rows, elapsed_ns, rows).astype(np.int64),
        "job": np.zeros(rows, dtype=np.int32),
        "operation": np.ones(rows, dtype=np.int8),
        "ios": count,
        "bytes": count * block,
        "latency_mean_ns": np.full(rows, histogram.mean_ns or 0.0),
        "latency_max_ns": np.full(rows, histogram.max_ns or 0, dtype=np.int64),
        "latency_sd_ns": np.full(rows, histogram.sd_ns or 0.0),
        "waf": np.full(rows, waf),
    }


def failing_at(number: int, message: str = "fake drive gone") -> Callable[[int], None]:
    """Return a `before_run` that raises EngineError at run `number`."""

    def hook(run: int) -> None:
        if run == number:
            raise EngineError(message)

    return hook


def interrupted_at(number: int) -> Callable[[int], None]:
    """Return a `before_run` that raises KeyboardInterrupt at run `number`."""

    def hook(run: int) -> None:
        if run == number:
            raise KeyboardInterrupt

    return hook

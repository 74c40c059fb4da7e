"""Run directories of a WSAT run with a write cliff, generated from formulas in a second.

The modelled drive is a 120 GB SATA drive, fast for 1.1 drive fills. A cliff and an exponential
approach to the saturated level follow, with garbage-collection tails in the latencies. All data are
written through the store.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    JobResult,
    OperationResult,
    PurgeReport,
    StepResult,
)
from writecliff.engines.counters import Counters
from writecliff.store.manifest import Manifest
from writecliff.store.record import RoundRecord
from writecliff.store.rundir import RunDirectory

SECOND_NS = 1_000_000_000
BLOCK_BYTES = 4096
OUTSTANDING = 128  # TC 4 x QD 32


@dataclass(frozen=True)
class Drive:
    capacity_bytes: int = 120_034_123_776
    fresh_iops: float = 84_000.0
    saturated_iops: float = 11_800.0
    saturated_waf: float = 3.4
    cliff_fills: float = 1.1
    settling_fills: float = 0.45
    noise: float = 0.012
    drift_per_fill: float = 0.0  # Relative slope; any value other than 0 prevents steady state.
    has_waf: bool = True

    def iops(self, fills: float) -> float:
        if fills < self.cliff_fills:
            return self.fresh_iops
        beyond = fills - self.cliff_fills
        gap = math.log(self.fresh_iops / self.saturated_iops)
        level = self.saturated_iops * math.exp(gap * math.exp(-beyond / self.settling_fills))
        dip = 1 - 0.25 * math.exp(-(((beyond - 0.55) / 0.15) ** 2))
        return level * dip * math.exp(-self.drift_per_fill * beyond)

    def waf(self, fills: float) -> float:
        if fills < self.cliff_fills:
            return 1.02
        beyond = fills - self.cliff_fills
        return 1.02 + (self.saturated_waf - 1.02) * (1 - math.exp(-beyond / self.settling_fills))


def identity(drive: Drive = Drive(), *, simulated: bool = True) -> DeviceIdentity:
    return DeviceIdentity(
        target="sim:sata-tlc-120" if simulated else "/dev/sdx",
        vendor="Example" if simulated else "Acme Flash",
        model="SATA TLC 120",
        serial="SIM0000001",
        firmware="S1.0",
        capacity_bytes=drive.capacity_bytes,
        sector_bytes=512,
        interface="SATA 6Gb/s",
        nand_type="TLC",
        rated_tbw_bytes=75_000_000_000_000,
        device_hash="5f0c2a9be1d47713" if simulated else None,
        simulated=simulated,
    )


def manifest(
    drive: Drive = Drive(),
    *,
    simulated: bool = True,
    steps_per_round: int = 31,
    step_s: float = 60.0,
    **changes: Any,
) -> Manifest:
    values: dict[str, Any] = {
        "procedure": "wsat",
        "title": "Write Saturation Test",
        "edition": "PTS-E 1.1",
        "device": identity(drive, simulated=simulated),
        "options": {
            "edition": "pts-e",
            "end": ["steady", "capacity", "time"],
            "threads": 4,
            "queue_depth": 32,
            "sample_seconds": step_s,
            "round_minutes": steps_per_round * step_s / 60,
        },
        "seed": 7,
        "command": ("writecliff", "test", "wsat", "--on", "sim:sata-tlc-120", "--seed", "7"),
        "setup": {
            "subtitle": "WSAT - RND 4KiB 100% W",
            "data_pattern": "RND",
            "active_range": "100%",
            "ar_segments": "N/A",
            "precondition": "None",
            "test_stimulus": "RND 4KiB W",
            "rw_mix": "0/100",
            "toio": "TC 4/QD 32",
            "round": "31 min, last 60 s is the sample",
            "ends": "steady state over 5 rounds; 4 x user capacity written; 24 h of writes",
        },
        "purge": PurgeReport("simulated purge", conformant=True),
        "write_cache": CacheReport(enabled=False),
        "write_cache_required": False,
        "versions": {
            "writecliff": "0.1.0",
            "fio": None if simulated else "fio-3.33",
            "python": "3.11.2",
            "kernel": "Linux 6.1.0",
        },
        "host": {
            "motherboard": "Example X11",
            "cpu": "Example CPU, 2 threads",
            "memory": "24.0 GiB",
            "operating_system": "Debian GNU/Linux 12",
        },
        "status": "running",
        "created": "2026-03-02T15:30:00+00:00",
        "updated": "2026-03-02T19:20:00+00:00",
    }
    return Manifest(**{**values, **changes})


_OCTAVES = 36
_EDGES = np.concatenate(
    [np.arange(64, dtype=np.float64) * 2.0**k + 64 * 2.0**k for k in range(4, _OCTAVES)]
)
_LOG_EDGES = np.log(_EDGES)


def latencies(rng: np.random.Generator, ios: int, mean_ns: float, waf: float) -> Any:
    """Return latencies near the mean and, during garbage collection, a second mode far above it.

    The latencies have log-normal components; tanh replaces the error function, which is sufficient
    for test data.
    """
    from writecliff._native import Histogram

    tail = 0.0008 * (waf - 1)
    parts = [(1 - tail, mean_ns * 0.93, 0.22), (tail, mean_ns * 9, 0.45), (2e-6, mean_ns * 60, 0.2)]
    cdf = sum(
        weight * 0.5 * (1 + np.tanh(1.5957 * z * (1 + 0.044715 * z * z) / 2))
        for weight, centre, sigma in parts
        for z in [(_LOG_EDGES - math.log(centre)) / sigma]
    )
    share = np.maximum(np.diff(cdf), 0)
    counts = rng.multinomial(ios, share / share.sum())
    middles = ((_EDGES[:-1] + _EDGES[1:] - 1) // 2).astype(np.uint64)
    used = counts > 0
    values, counts = middles[used], counts[used].astype(np.uint64)
    mean = float(np.average(values, weights=counts))
    sd = math.sqrt(float(np.average((values - mean) ** 2, weights=counts)))
    return Histogram.from_buckets(values, counts, int(values[0]), int(values[-1]), mean, sd)


def intervals(
    rng: np.random.Generator, elapsed_ns: int, ios: int, histogram: Any, waf: float | None
) -> dict[str, np.ndarray]:
    rows = max(1, round(elapsed_ns / SECOND_NS))
    weights = rng.normal(1, 0.04 if (waf or 1) < 1.1 else 0.12, rows).clip(0.3)
    per_row = np.floor(ios * weights / weights.sum()).astype(np.int64)
    per_row[-1] += ios - per_row.sum()
    return {
        "end_ns": np.linspace(elapsed_ns / rows, elapsed_ns, rows).astype(np.int64),
        "job": np.zeros(rows, dtype=np.int32),
        "operation": np.ones(rows, dtype=np.int8),
        "ios": per_row,
        "bytes": per_row * BLOCK_BYTES,
        "latency_mean_ns": histogram.mean_ns * weights.mean() / weights,
        "latency_max_ns": rng.uniform(0.3, 1.0, rows) * histogram.max_ns,
        "latency_sd_ns": np.full(rows, histogram.sd_ns),
        "waf": np.full(rows, np.nan if waf is None else waf),
    }


def records(
    drive: Drive = Drive(),
    *,
    rounds: int = 6,
    steps_per_round: int = 31,
    step_s: float = 60.0,
    seed: int = 7,
) -> Iterator[RoundRecord]:
    """Yield the steps of a run in order; equal arguments yield equal steps."""
    rng = np.random.default_rng(seed)
    rates = random.Random(seed)  # The sequence of numpy's generator may change between versions.
    elapsed_ns = round(step_s * SECOND_NS)
    clock_ns = host = nand = 0
    for number in range(rounds * steps_per_round):
        fills = host / drive.capacity_bytes
        rate = drive.iops(fills) * (1 + drive.noise * rates.uniform(-1, 1))
        waf = drive.waf(fills)
        ios = round(rate * step_s)
        size = ios * BLOCK_BYTES
        histogram = latencies(rng, ios, OUTSTANDING / rate * SECOND_NS, waf)
        before = _counters(drive, host, nand)
        host, nand = host + size, nand + round(size * waf)
        measured = OperationResult(ios, size, histogram)
        yield RoundRecord(
            phase="rounds",
            round=number // steps_per_round + 1,
            step=number % steps_per_round + 1,
            label=f"minute {number + 1}",
            started_ns=clock_ns,
            elapsed_ns=elapsed_ns,
            result=StepResult(
                started_ns=clock_ns,
                elapsed_ns=elapsed_ns,
                jobs=(JobResult("wsat", elapsed_ns, {"write": measured}),),
                intervals=intervals(
                    rng, elapsed_ns, ios, histogram, waf if drive.has_waf else None
                ),
                counters_before=before,
                counters_after=_counters(drive, host, nand),
            ),
            sample=number % steps_per_round == steps_per_round - 1,
            host_write_bytes_total=host,
            waf=waf if drive.has_waf else None,
            extra={
                **{
                    f"latency_p{name}_ns": histogram.quantile(q).value_ns
                    for name, q in (("999", 0.999), ("9999", 0.9999), ("99999", 0.99999))
                },
                "drive_fills": host / drive.capacity_bytes,
            },
        )
        clock_ns += elapsed_ns


def _counters(drive: Drive, host: int, nand: int) -> Counters:
    return Counters(host_write_bytes=host, nand_write_bytes=nand if drive.has_waf else None)


def build_run(
    path: Path,
    drive: Drive = Drive(),
    *,
    simulated: bool = True,
    finish: str | None = "complete",
    changes: dict[str, Any] | None = None,
    **shape: Any,
) -> Path:
    """Write a run directory to `path`; `finish=None` leaves it as a killed process would."""
    fixed = {"updated": "2026-03-02T19:20:00+00:00"}
    rounds = {name: shape[name] for name in ("steps_per_round", "step_s") if name in shape}
    made = manifest(drive, simulated=simulated, **rounds, **(changes or {}))
    with RunDirectory.create(path, made) as run:
        for record in records(drive, **shape):
            run.append_round(record)
        if finish is not None:
            reason = "steady state over 5 rounds" if finish == "complete" else "stopped by the user"
            run.finish(finish, reason=reason, **fixed)  # type: ignore[arg-type]
    return path

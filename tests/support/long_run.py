"""A one-step run with any number of intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.synthetic_run import BLOCK_BYTES, Drive, manifest, records
from writecliff.store.rundir import RunDirectory

SPIKE_IOPS = 9_999_000.0  # Rate of the interval in the middle.


def make_long_run(path: Path, intervals: int) -> Path:
    """Store a write saturation run with 1 ms intervals, one of which is a spike."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drive = Drive(capacity_bytes=120_000_000_000)
    (record,) = records(drive, rounds=1, steps_per_round=1, step_s=intervals / 1000)
    rng = np.random.default_rng(1)
    ios = rng.poisson(84, intervals)
    ios[intervals // 2] = SPIKE_IOPS / 1000
    series = {
        "end_ns": np.arange(1, intervals + 1, dtype=np.int64) * 1_000_000,
        "job": np.zeros(intervals, np.int32),
        "operation": np.ones(intervals, np.int8),
        "ios": ios,
        "bytes": ios * BLOCK_BYTES,
        "latency_mean_ns": rng.normal(1.5e6, 1e5, intervals),
        "latency_max_ns": rng.normal(3e6, 1e5, intervals),
        "latency_sd_ns": np.full(intervals, 1e5),
        "waf": rng.normal(3, 0.1, intervals),
    }
    with RunDirectory.create(path, manifest(drive)) as run:
        run.append_round(replace(record, result=replace(record.result, intervals=series)))
        run.finish("complete")
    return path

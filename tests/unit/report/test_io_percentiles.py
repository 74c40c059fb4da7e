"""Percentiles in reports: computed from I/Os, never from averages over seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.synthetic_run import manifest, records
from writecliff._native import Histogram
from writecliff.report import summarise
from writecliff.store.rundir import RunDirectory

FAST_NS, SLOW_NS = 100_000, 50_000_000


def test_one_slow_io_in_a_thousand_is_in_the_percentiles_and_in_no_average(tmp_path: Path) -> None:
    """Check that rare slow I/Os appear in percentiles of I/Os, but in no average over seconds.

    Every second has the same slow I/Os. Averages hide these I/Os, but the 99.95th percentile
    cannot.
    """
    with RunDirectory.create(tmp_path / "r", manifest()) as run:
        for record in records(rounds=5, steps_per_round=1, step_s=2.0):
            (job,) = record.result.jobs
            write = job.operations["write"]
            histogram = Histogram()
            slow = write.ios // 1000
            histogram.record(FAST_NS, write.ios - slow)
            histogram.record(SLOW_NS, slow)
            changed = replace(job, operations={"write": replace(write, service=histogram)})
            intervals = dict(record.result.intervals)
            rows = len(intervals["end_ns"])
            intervals["latency_mean_ns"] = np.full(rows, histogram.mean_ns)
            result = replace(record.result, jobs=(changed,), intervals=intervals)
            run.append_round(replace(record, result=result))
        run.finish("complete", reason="done")
    latency = summarise(tmp_path / "r")["latency"]
    by_pct = {entry["pct"]: entry["value_ns"] for entry in latency["percentiles"]}
    mean_of_seconds = FAST_NS + (SLOW_NS - FAST_NS) / 1000
    assert latency["mean_ns"] == pytest.approx(mean_of_seconds, rel=0.02)
    assert by_pct[99.0] == pytest.approx(FAST_NS, rel=1 / 64)
    assert by_pct[99.99] == pytest.approx(SLOW_NS, rel=1 / 64)

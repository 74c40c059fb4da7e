"""Test of the upper bound on a test's writes, estimated from reads, against the actual writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.engines.fio import FioEngine
from writecliff.procedures.framework import simulate
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.workload.model import Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

TRIES = 3  # A busy machine may be slow during the measurement.
FACTOR = 20
pytestmark = [pytest.mark.usefixtures("no_fio_left"), pytest.mark.measures]


def test_the_speed_is_measured_once_and_by_reading(loop: str, image: Path) -> None:
    load = Workload("w", (Job(duration_ns=10**9),), seed=1)
    with FioEngine.open_device(loop, destroy_serial=None) as engine:
        limit = engine.speed_limit(load)
        # The figures are equal to the last digit, which shows that there was no second measurement.
        assert engine.speed_limit(Workload("other", load.jobs, seed=2)) == limit
    assert limit is not None
    assert limit > 1e6
    assert not any(image.read_bytes())


def test_the_bound_is_true_and_says_something(loop: str) -> None:
    options = {"end": ["time"], "time_hours": 2 / 3600, "sample_seconds": 1.0, "round_minutes": 0.1}
    procedure = procedure_from_mapping("wsat", options)
    Path(loop).read_bytes()  # Fill the page cache, which a loop device reads from.
    for remaining in reversed(range(TRIES)):
        with FioEngine.open_device(loop, destroy_serial=loop) as engine:
            plan = procedure.plan(engine.identify(), engine.speed_limit)
            history = simulate(procedure, engine)
        written = history.host_write_bytes_total
        assert plan.write_bytes_max is not None
        assert written <= plan.write_bytes_max
        assert plan.write_bytes_likely is not None
        if written <= plan.write_bytes_likely <= FACTOR * written:
            return
        assert remaining, (written, plan.write_bytes_likely)

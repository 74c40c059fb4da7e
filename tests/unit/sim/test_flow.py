"""Jobs whose I/Os stay in proportion, on both clocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload

MS = 1_000_000
READ = Job(name="read", read_pct=100.0, queue_depth=16, flow_weight=1, duration_ns=200 * MS)
WRITE = Job(name="write", pattern="sequential", threads=2, flow_weight=4, ios=4000)


def test_jobs_of_a_flow_share_their_ios_by_weight(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    later = replace(WRITE, flow_group=1, start_delay_ns=10 * MS, ios=None, duration_ns=20 * MS)
    read, write, alone = engine.run(Workload("flow", (READ, WRITE, later))).jobs
    before_the_end = WRITE.ios or 0
    assert write.operations["write"].ios == before_the_end
    # The job is not held after the other jobs end.
    assert read.operations["read"].ios > before_the_end / 8
    assert 30 * MS <= alone.began_ns + alone.elapsed_ns < 31 * MS
    both = (replace(READ, duration_ns=100 * MS), replace(WRITE, ios=None, duration_ns=100 * MS))
    read, write = engine.run(Workload("flow", both)).jobs
    # Each of the two writing threads has a weight of 4.
    assert abs(read.operations["read"].ios - write.operations["write"].ios / 8) <= 1


def test_untimed_jobs_of_a_flow_end_with_all_their_ios(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    first, other = (
        Job(name="one", flow_weight=1, queue_depth=8, ios=400),
        Job(name="other", flow_weight=3, queue_depth=2, ios=900),
    )
    done = engine.precondition(Workload("flow", (first, other)))
    assert done is not None
    assert engine.counters()["host_write_bytes"] == 1300 * 4096

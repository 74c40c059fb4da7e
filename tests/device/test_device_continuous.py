"""Steps of one load on a loop device: one fio process, no I/O lost at the cuts, nothing left."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.support.processes import fio_children
from writecliff.engines.base import Progress, StepResult
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError
from writecliff.workload.model import KIB, BlockSize, Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")

MIB = 1 << 20
SECOND = 1_000_000_000
STEP_NS = SECOND // 2
LOAD = Job(name="load", threads=2, queue_depth=4, duration_ns=STEP_NS)
pytestmark = pytest.mark.usefixtures("no_fio_left")


def opened(loop: str) -> FioEngine:
    return FioEngine.open_device(loop, destroy_serial=loop)


def step(number: int, job: Job = LOAD) -> Workload:
    return Workload(f"minute {number}", (job,), seed=number, interval_ns=SECOND // 8)


def ios_at_end(result: StepResult) -> int:
    """Return fio's I/O count since the load began."""
    document = result.raw["fio"]
    assert isinstance(document, dict)
    return sum(document["jobs"][0]["write"]["lat_ns"]["bins"].values())


@pytest.mark.measures
def test_steps_are_cut_out_of_one_load(loop: str) -> None:
    with opened(loop) as engine:
        results, pids = [], set()
        for number in range(5):
            results.append(engine.run(step(number), keep_running=True))
            pids.update(fio_children())
        assert len(pids) == 1
        assert fio_children()
        engine.stop_load()
        assert not fio_children()
    total = 0
    for before, after in itertools.pairwise(results):
        assert after.started_ns == before.started_ns + before.elapsed_ns
        # On a busy machine, one report may be late and the next report early: I/Os then move
        # between steps.
        assert after.elapsed_ns == pytest.approx(STEP_NS, rel=0.5)
    last = results[-1]
    end_ns = last.started_ns + last.elapsed_ns - results[0].started_ns
    assert end_ns == pytest.approx(len(results) * STEP_NS, abs=STEP_NS / 2)
    for result in results:
        total += result.total()[0]
        assert total == ios_at_end(result)  # No I/O is lost or counted twice.
        service = result.service()
        assert service is not None
        assert service.count == result.total()[0] == result.intervals["ios"].sum()
        assert result.total()[1] == 4096 * result.total()[0]
        assert result.intervals["end_ns"].max() == result.elapsed_ns
        assert len(set(result.intervals["end_ns"])) >= 3


@pytest.mark.measures
def test_the_last_step_ends_the_load(loop: str) -> None:
    with opened(loop) as engine:
        engine.run(step(1), keep_running=True)
        last = engine.run(step(2))
        assert not fio_children()
        assert last.raw["fio_since_ms"] == pytest.approx(500, rel=0.3)
        alone = engine.run(step(3))
        assert alone.raw["fio_since_ms"] == 0


def test_another_load_a_purge_or_closing_ends_the_load(loop: str) -> None:
    with opened(loop) as engine:
        first = engine.run(step(1), keep_running=True)
        (before,) = fio_children()
        reads = Job(name="load", read_pct=100, duration_ns=STEP_NS)
        other = engine.run(step(2, reads), keep_running=True)
        (after,) = fio_children()
        assert (set(first.jobs[0].operations), set(other.jobs[0].operations)) == (
            {"write"},
            {"read"},
        )
        assert before != after
        engine.purge()
        assert not fio_children()
        engine.run(step(3), keep_running=True)
    assert not fio_children()


def test_a_sequential_stream_goes_on_and_wraps(loop: str) -> None:
    size = 48 * MIB
    stream = Job(
        pattern="sequential",
        block_sizes=(BlockSize(64 * KIB),),
        range_bytes=size,
        rate_bytes_per_s=32 * MIB,  # Each step covers a third of the range.
        duration_ns=STEP_NS,
    )
    with opened(loop) as engine:
        engine.purge()
        done = number = 0
        while done < size + MIB and number < 50:
            number += 1
            done += engine.run(step(number, stream), keep_running=True).total()[1]
    data = Path(loop).read_bytes()
    assert done > size
    assert all(any(data[at : at + MIB]) for at in range(0, size, MIB))
    assert not any(data[size:])


@pytest.mark.measures
def test_an_interruption_keeps_the_part_and_ends_the_load(loop: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.elapsed_ns > STEP_NS // 2:
            raise KeyboardInterrupt

    with opened(loop) as engine:
        engine.run(step(1), keep_running=True)
        with pytest.raises(EngineError, match="interrupted") as caught:
            engine.run(step(2), interrupt, keep_running=True)
        assert not fio_children()
        partial = caught.value.partial
        assert partial is not None
        assert 0 < partial.elapsed_ns < STEP_NS * 2
        assert partial.total()[0] > 0
        assert engine.run(step(3)).raw["fio_since_ms"] == 0


def test_a_load_that_dies_between_two_steps_is_an_error(loop: str) -> None:
    with opened(loop) as engine:
        others = set(fio_children())
        engine.run(step(1), keep_running=True)
        (load,) = set(fio_children()) - others
        os.kill(load, 9)
        with pytest.raises(EngineError, match="killed by SIGKILL"):
            engine.run(step(2), keep_running=True)

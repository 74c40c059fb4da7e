"""Steps that form one load: the driver leaves it running between them, and always ends it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine
from tests.unit.procedures.test_hir_xsr import SHORT, make
from writecliff.errors import EngineError
from writecliff.procedures.framework import run_procedure, simulate
from writecliff.procedures.model import Procedure
from writecliff.procedures.tp import next_start
from writecliff.procedures.wsat import Wsat, WsatOptions

QUICK = WsatOptions(quick=True, end=("time",), time_hours=0.005, histogram=True)


def ran(procedure: Procedure) -> FakeEngine:
    engine = FakeEngine()
    simulate(procedure, engine)
    assert not engine.running
    return engine


def test_the_rounds_of_wsat_are_one_load_and_the_histogram_is_another() -> None:
    kept_running = ran(Wsat(QUICK)).kept_running
    assert kept_running == [True] * 18 + [False]


def test_hir_rests_only_between_its_bursts() -> None:
    procedure = make("hir", **SHORT)
    engine = ran(procedure)
    names = [call.removeprefix("run ") for call in engine.calls if call.startswith("run ")]
    kept_running = dict(zip(names, engine.kept_running, strict=True))
    assert not any(goes_on for name, goes_on in kept_running.items() if name.startswith("bursts"))
    assert any(goes_on for name, goes_on in kept_running.items() if not name.startswith("bursts"))


@pytest.mark.parametrize("error", [EngineError("gone"), KeyboardInterrupt()])
def test_no_load_outlives_a_run_that_fails(tmp_path: Path, error: BaseException) -> None:
    def fail(number: int) -> None:
        if number == 3:
            raise error

    engine = FakeEngine(before_run=fail)
    with pytest.raises(Exception):  # noqa: B017 (either kind)
        run_procedure(Wsat(QUICK), engine, tmp_path / "run")
    assert engine.runs == 3
    assert not engine.running


GIB = 1 << 30


@pytest.mark.parametrize(
    ("done", "start"),
    [
        ([], 0),
        ([30 * GIB], 30 * GIB),
        ([30 * GIB, 30 * GIB], 60 * GIB),
        # The stream has reached the end of the range, as far as is known.
        ([30 * GIB] * 3, 120 * GIB - 75 * GIB // 2),
        ([30 * GIB] * 4, 0),
        ([30 * GIB] * 5, 30 * GIB),
        ([200 * GIB], 0),  # One step covers the whole range.
        ([0], 0),
    ],
)
def test_a_stream_goes_on_from_round_to_round(done: list[int], start: int) -> None:
    assert next_start(120 * GIB, 1 << 20, done) == start


@pytest.mark.parametrize("block", [1 << 17, 1 << 20])
def test_a_stream_of_changing_speed_stays_on_blocks_and_reaches_all(block: int) -> None:
    rng, whole, done, covered = random.Random(1), 4000 * block, [], set()
    for _ in range(60):
        start = next_start(whole, block, done)
        assert start % block == 0
        blocks = rng.randint(250, 310)
        assert start + blocks * block <= whole
        covered.update(range(start // block, start // block + blocks))
        done.append(blocks * block)
    assert len(covered) > 0.97 * 4000


def test_throughput_streams_go_on_on_real_drives_only() -> None:
    for kind in ("sim", "fio"):
        engine = FakeEngine(kind=kind, target="/dev/sdx", capacity_bytes=40 * GIB)
        offsets: list[int] = []
        run = engine.run

        def watch(workload, *more, **options):  # type: ignore[no-untyped-def]
            offsets.append(workload.jobs[0].offset_bytes)  # noqa: B023
            return run(workload, *more, **options)  # noqa: B023

        engine.run = watch  # type: ignore[method-assign]
        options = {"step_seconds": 0.1, "block_sizes_kib": [128.0], "max_rounds": 5}
        simulate(make("tp", **options), engine)
        assert any(offsets) is (kind == "fio")

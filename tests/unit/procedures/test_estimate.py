"""The estimate before a run compared with the run's duration; the scaled drive behind it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_engine import FakeEngine
from tests.support.io_capture import required_options
from tests.support.small_drive import write_small_drive
from writecliff.devices import open_device
from writecliff.engines.base import StepResult
from writecliff.engines.scaled import ScaledEngine
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.procedures import estimate as estimates
from writecliff.procedures.estimate import estimate, with_estimate
from writecliff.procedures.framework import simulate
from writecliff.procedures.model import History, Procedure
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.registry import PROCEDURES, procedure_from_mapping
from writecliff.workload.model import SECOND_NS, Job, Segments, Workload

# Options that shorten a test more than --quick, so that the test ends quickly on the small drive.
# Steps are longer than with --quick. On such a small drive, chance determines which round of
# one-second steps is the first steady round, and a difference of one round is more than 5 % of such
# a run.
CELLS = {"threads": [8, 2], "queue_depths": [8, 1], "prewrite_minutes": 0.2}
SHORT: dict[str, dict[str, Any]] = {
    "iops": {"block_sizes_kib": [128.0, 4.0], "read_pcts": [100.0, 65.0, 0.0]},
    "wsat": {"sample_seconds": 2.0, "round_minutes": 0.2},
    "hir": {"step_seconds": 5.0, "precondition_minutes": 0.5, "waits_seconds": [5.0]},
    "ecw": {"step_seconds": 3.0, "precondition_minutes": 0.3, **CELLS},
    "dirth": {"step_seconds": 3.0, "precondition_minutes": 0.3, **CELLS},
    # The run ends by time, because chance determines when such a short run is steady. The `wsat`
    # test covers the steady-state end condition.
    "multi-wsat": {"end": ["time"], "time_hours": 0.05, "sample_seconds": 2.0},
    # The load has only random streams. The small drive has so few reclaim units that the write
    # amplification of sequential writes depends on the thread count by a quarter.
    "is-wsat": {"streams": 2, "end": ["time"], "time_hours": 0.025, "sample_seconds": 2.0},
    "tcqd": {"step_seconds": 3.0, "precondition_minutes": 0.3, **CELLS},
}
# Tests whose kind has a quicker test: `ecw` for demand variation, `wsat` for saturation.
LONG = ("dirth", "tcqd", "multi-wsat", "is-wsat")
CASES = [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in PROCEDURES]
ENOUGH_S = 1000.0  # CPU time limit; the selection of pilot runs must not depend on the machine.


@pytest.mark.parametrize("name", CASES)
def test_estimate_within_5_percent_of_the_run(name: str, tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    options = {"quick": True, **SHORT.get(name, {}), **required_options(name, tmp_path)}
    procedure = procedure_from_mapping(name, options)
    before = estimate(procedure, engine, budget_s=ENOUGH_S)
    assert before is not None
    assert before.scale >= 2  # The pilot run is not the run itself.
    # Driver of a run that has no run directory, because storing hundreds of steps takes far longer.
    rows = simulate(procedure, engine).rows
    took_ns = sum(row.elapsed_ns for row in rows)
    written = sum(row.host_write_bytes for row in rows)
    read = sum(row.read_bytes for row in rows)
    assert before.device_time_ns == pytest.approx(took_ns, rel=0.05)
    assert before.write_bytes == pytest.approx(written, rel=0.05)
    assert before.read_bytes == pytest.approx(read, rel=0.05)
    assert before.steps == pytest.approx(len(rows), rel=0.05)


def test_a_real_or_formula_drive_keeps_its_bounds() -> None:
    engine = FakeEngine()
    procedure = procedure_from_mapping("wsat", {})
    plan = procedure.plan(engine.identify())
    assert with_estimate(plan, procedure, engine) is plan
    assert engine.calls == []


def test_no_estimate_when_no_pilot_ends_in_time(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    assert estimate(procedure_from_mapping("wsat", {}), engine, budget_s=0.0) is None


def test_pilots_stop_when_their_time_is_used_up(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    procedure = procedure_from_mapping("wsat", {"end": ["capacity"], "drive_fills": 1.0})
    seconds = iter(range(10_000))
    estimated = estimate(procedure, engine, budget_s=12, clock=lambda: float(next(seconds)))
    assert estimated is not None
    assert estimated.pilots < len(engine.device.scales())


@pytest.mark.parametrize(("pilot_s", "pilots"), [(9.0, 1), (39.0, 1), (41.0, 0), (2.0, 2)])
def test_only_the_first_pilot_may_take_longer(
    pilot_s: float, pilots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0

    def slow(procedure: Procedure, engine: ScaledEngine, progress: RunProgress) -> History:
        nonlocal now_s
        now_s += pilot_s
        progress.step_begin("rounds", 1, 1, 1, "a step at its end")
        return simulate(procedure, engine)

    monkeypatch.setattr(estimates, "simulate", slow)
    engine = SimEngine(str(write_small_drive(tmp_path)))
    procedure = procedure_from_mapping("wsat", {"quick": True, **SHORT["wsat"]}, simulated=True)
    estimated = estimate(procedure, engine, budget_s=8.0, clock=lambda: now_s)
    assert (estimated.pilots if estimated else 0) == pilots


def test_the_estimate_leaves_the_drive_alone(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    before = engine.counters()
    plan = with_estimate(
        (procedure := procedure_from_mapping("wsat", {"quick": True})).plan(engine.identify()),
        procedure,
        engine,
    )
    assert plan.estimate is not None
    assert engine.counters() == before
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_scaled_drive_keeps_units_and_over_provisioning(tmp_path: Path) -> None:
    full = SimEngine(str(write_small_drive(tmp_path)))
    assert full.device.scales() == [8.0, 4.0, 2.0]
    small = SimEngine.from_device(full.device.scaled(4.0, 4096))
    then, now = full.description, small.description
    assert now.overprovision_pct == pytest.approx(then.overprovision_pct, abs=0.01)
    assert now.capacity_bytes * 4 == pytest.approx(then.capacity_bytes, rel=1e-4)
    assert now.raw_bytes * 4 == then.raw_bytes
    values = {value.key: value.value for value in now.values}
    assert values["flash.blocks_per_plane"] == "183"
    assert values["flash.erase"] == '"1250000 ns"'


def test_a_scaled_drive_stops_warms_up_and_ages_at_the_same_share_of_its_time(
    tmp_path: Path,
) -> None:
    section = '\n[housekeeping]\ncheckpoint_interval = "64 MiB"\ncheckpoint_time = "20 ms"\n'
    section += '[endurance]\nlife = "4 years"\n[power]\nidle = "1 W"\n'
    section += '[thermal]\nambient = "35 C"\nresistance = "8 C/W"\ncapacity = "20 J/C"\n'
    text = write_small_drive(tmp_path).read_text() + section
    small = SimEngine.from_device(open_device(text, "small").scaled(4.0, 4096))
    values = {value.key: value.value for value in small.description.values}
    assert values["housekeeping.checkpoint_interval"] == '"16777216 B"'
    assert values["housekeeping.checkpoint_time"] == '"5000000 ns"'
    assert values["endurance.life"] == f'"{365 * 86_400 * 10**9} ns"'
    assert values["thermal.capacity"] == '"5.0 J/C"'


@pytest.mark.parametrize(
    "job",
    [
        Job(read_pct=100, duration_ns=SECOND_NS),
        Job(read_pct=100, volume_bytes=20_000_000, queue_depth=8),
        Job(read_pct=100, ios=5_000, queue_depth=8),
        Job(read_pct=100, duration_ns=SECOND_NS, burst_ns=100_000_000, pause_ns=100_000_000),
        Job(read_pct=100, duration_ns=SECOND_NS, offset_bytes=480_000_000, range_bytes=96_000_000),
        Job(read_pct=100, duration_ns=SECOND_NS, segments=Segments(64, 256_000_000)),
        Job(read_pct=100, duration_ns=SECOND_NS, start_delay_ns=500_000_000),
        Job(pattern="sequential", volume_bytes=500_000_000, queue_depth=32),
    ],
    ids=["duration", "volume", "ios", "bursts", "range", "segments", "delay", "writes"],
)
def test_a_step_on_a_scaled_drive_reads_as_on_the_whole(job: Job, tmp_path: Path) -> None:
    full = SimEngine(str(write_small_drive(tmp_path)))
    small = ScaledEngine(full, 4.0)
    assert small.identify() == replace(full.identify(), scale=4.0)
    everything = (Job(pattern="sequential", volume_bytes=960_000_000, queue_depth=32),)
    results = []
    for engine in (full, small):
        engine.purge()
        engine.precondition(Workload("fill", everything))
        results.append(engine.run(Workload("w", (job,))))
    whole, part = results
    assert part.elapsed_ns == pytest.approx(whole.elapsed_ns, rel=0.05)
    assert part.total() == pytest.approx(whole.total(), rel=0.05)
    assert len(part.intervals["end_ns"]) == pytest.approx(len(whole.intervals["end_ns"]), abs=1)
    columns = part.intervals
    assert int(columns["bytes"].sum()) == pytest.approx(part.total()[1], rel=0.05)
    assert counted(part) == pytest.approx(part.total("write")[1], rel=0.05)


def counted(result: StepResult) -> int:
    after, before = result.counters_after.host_write_bytes, result.counters_before.host_write_bytes
    assert after is not None
    assert before is not None
    return after - before


def test_the_state_of_a_scaled_drive_is_for_that_scale(tmp_path: Path) -> None:
    full = SimEngine(str(write_small_drive(tmp_path)))
    state = tmp_path / "state.wcs"
    small = ScaledEngine(full, 2.0)
    small.precondition(Workload("fill", (Job(pattern="sequential", volume_bytes=96_000_000),)))
    assert small.save(state)
    again = ScaledEngine(full, 2.0)
    again.restore(state)
    assert again.counters() == small.counters()
    for other in (full, ScaledEngine(full, 4.0)):
        with pytest.raises(ConfigError):
            other.restore(state)


def test_long_pilots_tell_how_long_they_may_take(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    procedure = procedure_from_mapping("wsat", {"quick": True, **SHORT["wsat"]}, simulated=True)
    lines: list[str] = []
    now_s = itertools.count(0, 3)  # Each reading of the clock is three seconds later.
    estimated = estimate(
        procedure, engine, budget_s=12.0, clock=lambda: next(now_s), log=lines.append
    )
    assert estimated is None or estimated.pilots >= 1
    assert lines[0].startswith("estimating with a pilot at 1/")
    left_s = [int(line.split()[-6]) for line in lines]
    assert left_s == sorted(left_s, reverse=True) and all(0 <= left < 60 for left in left_s)

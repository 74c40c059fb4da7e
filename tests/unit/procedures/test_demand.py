"""ECW/CBW and DIRTH: cell order, dependence on results, operating points, resuming."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine, interrupted_at
from writecliff.errors import ConfigError
from writecliff.procedures import ecw_load
from writecliff.procedures.demand_intensity import DemandProcedure
from writecliff.procedures.framework import RunInterrupted, RunOutcome, run_procedure
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.operating_points import Cell, cells_of, operating_points
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.rejudge import rejudge
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import KIB, Job

DRIVE = FakeEngine().identify()
SEVEN = [32, 16, 8, 6, 4, 2, 1]
SIX = [32, 16, 8, 4, 2, 1]
PHASES = ["precondition", "rounds", "rth-max", "rth-mid", "rth-min"]
SHORT = {
    "step_seconds": 1.0,
    "precondition_minutes": 2 / 60,
    "prewrite_minutes": 2 / 60,
    "histogram_prewrite_minutes": 3 / 60,
    "histogram_minutes": 2 / 60,
    "threads": [4, 1],
    "queue_depths": [2, 1],
}


def make(name: str, **options: object) -> DemandProcedure:
    procedure = procedure_from_mapping(name, options)
    assert isinstance(procedure, DemandProcedure)
    return procedure


def stages(name: str, **options: object) -> dict[str, Stage]:
    return {stage.phase: stage for stage in make(name, **options).stages(DRIVE)}


def job(step: Step) -> Job:
    (only,) = step.workload.jobs
    return only


def loads(steps: list[Step]) -> list[tuple[int, int]]:
    return [(job(step).threads, job(step).queue_depth) for step in steps]


def run(
    name: str, path: Path, engine: FakeEngine | None = None, *, resume: bool = False, **more: object
) -> RunOutcome:
    drive = engine or FakeEngine(capacity_bytes=200_000_000)
    return run_procedure(make(name, **SHORT, **more), drive, path, resume=resume)


@pytest.mark.parametrize("name", ["ecw", "dirth"])
def test_a_round_is_five_minutes_of_writes_and_49_cells_from_many_to_few(name: str) -> None:
    planned = stages(name)
    assert list(planned) == PHASES
    assert [stage.purge for stage in planned.values()] == [True, False, False, False, False]
    steps = list(planned["rounds"].steps(History(), 2))
    before, cells = steps[:5], steps[5:]
    assert loads(before) == [(32, 32)] * 5
    assert {job(step).read_pct for step in before} == {0}
    assert loads(cells) == [(threads, depth) for threads in SEVEN for depth in SEVEN]
    assert {job(step).duration_ns for step in steps} == {60_000_000_000}
    assert [step.name for step in steps if step.sample] == ["TC32/QD32"]
    assert len({step.workload.seed for step in steps}) == len(steps)


@pytest.mark.parametrize("name", ["ecw", "dirth"])
def test_preconditioning_tracks_the_first_of_thirty_minutes(name: str) -> None:
    stage = stages(name)["precondition"]
    steps = list(stage.steps(History(), 3))
    assert loads(steps) == [(32, 32)] * 30
    assert {job(step).read_pct for step in steps} == {0}
    assert [step.sample for step in steps] == [True] + [False] * 29
    assert steps[0].name == "minute 61"
    assert [end.name for end in stage.ends] == ["steady", "rounds"]


def test_the_other_reading_of_the_composite_has_36_cells_and_longer_writes() -> None:
    test = make("ecw", revision="2.0", reading="6x6")
    steps = {stage.phase: stage for stage in test.stages(DRIVE)}["rounds"].steps(History(), 1)
    assert loads(list(steps)[10:]) == [(threads, depth) for threads in SIX for depth in SIX]
    assert test.deviations() == ()
    assert (test.title, test.setup(DRIVE)["subtitle"]) == (
        "Composite Block Workload Test",
        "CBW - Composite RW = 40:60",
    )


def test_composite_is_jesd219_on_one_alignment() -> None:
    cell = job(list(stages("ecw")["rounds"].steps(History(), 1))[-1])
    assert (cell.read_pct, cell.align_bytes) == (40, 4 * KIB)
    assert sum(size.weight for size in cell.block_sizes) == 100
    weights = {size.bytes: size.weight for size in cell.block_sizes}
    assert (weights[512], weights[4096], weights[65536]) == (4, 67, 3)
    assert [(zone.access_pct, zone.size_pct) for zone in cell.addresses.zones] == [
        (50, 5),
        (30, 15),
        (20, 80),
    ]
    assert pytest.approx(7.635) == ecw_load.MEAN_BYTES / KIB
    assert "4 KiB boundaries" in make("ecw").setup(DRIVE)["alignment"]


def test_dirth_says_what_it_runs() -> None:
    assert make("dirth").setup(DRIVE)["subtitle"] == "DIRTH - OLTP - RND 8KiB RW = 65:35"
    other = make("dirth", block_kib=4.0, read_pct=0.0)
    assert other.setup(DRIVE)["subtitle"] == "DIRTH - RND 4KiB RW = 0:100"
    assert other.deviations() == ()
    cell = job(list(other.stages(DRIVE)[1].steps(History(), 1))[-1])
    assert (cell.block_sizes[0].bytes, cell.read_pct) == (4096, 0)


def test_histogram_stages_before_any_result_are_as_long_as_after(tmp_path: Path) -> None:
    for name in ("rth-max", "rth-mid", "rth-min"):
        steps = stages("dirth")[name].steps(History(), 0)
        assert [job(step).duration_ns for step in steps] == [60_000_000_000] * 60 + [
            600_000_000_000
        ]
    plan = make("dirth").plan(DRIVE)
    assert plan.steps_min == 5 * 30 + 5 * 54 + 3 * 61
    assert plan.device_time_min_ns == (5 * 30 + 5 * 54 + 3 * 70) * 60_000_000_000
    outcome = run("dirth", tmp_path / "run")
    for phase, stage in {s.phase: s for s in make("dirth", **SHORT).stages(DRIVE)}.items():
        if phase.startswith("rth"):
            empty = stage.steps(History(), 0)
            real = outcome.history.stages[phase].rows
            assert [job(s).duration_ns for s in empty] == [row.elapsed_ns for row in real]


def cell(threads: int, depth: int, iops: float, art_ms: float) -> Cell:
    return Cell(threads, depth, iops, art_ms * 1e6)


def test_operating_points_leave_out_slow_cells() -> None:
    cells = [
        cell(32, 32, 90_000, 11.4),
        cell(8, 32, 88_000, 2.9),
        cell(4, 32, 86_000, 1.5),
        cell(2, 8, 46_000, 0.3),
        cell(1, 2, 12_000, 0.17),
        cell(1, 1, 6_000, 0.17),
    ]
    points = operating_points(cells)
    assert {name: (p.threads, p.queue_depth) for name, p in points.items()} == {
        "max": (8, 32),
        "mid": (2, 8),  # This point is closest to (88,000 + 6,000) / 2.
        "min": (1, 1),
    }
    assert operating_points(cells, limit_ms=100)["max"].iops == 90_000


def test_no_operating_point_when_every_cell_is_slow() -> None:
    assert operating_points([cell(1, 1, 100, 5.0), cell(32, 32, 200, 160)]) == {}
    assert operating_points([cell(1, 1, 0, float("nan"))]) == {}


def test_of_equal_cells_the_faster_answer_counts() -> None:
    cells = [cell(4, 8, 9_000, 3.5), cell(2, 8, 9_000, 1.7), cell(1, 1, 8_000, 0.1)]
    points = operating_points(cells)
    assert (points["max"].threads, points["max"].queue_depth) == (2, 8)


def test_cells_are_means_over_the_rounds(tmp_path: Path) -> None:
    rows = run("dirth", tmp_path / "run").history.stages["rounds"].rows
    samples = [
        row for row in rows if (row.threads, row.queue_depth, row.label) == (1, 1, "TC1/QD1")
    ]
    assert len(samples) >= 5
    given = [replace(row, iops=float(n)) for n, row in enumerate(samples[:3], 1)]
    (cell,) = cells_of(given)
    assert (cell.threads, cell.queue_depth, cell.iops) == (1, 1, 2.0)


@pytest.mark.parametrize("source", ["window", "last"])
def test_histograms_are_taken_at_the_operating_points(tmp_path: Path, source: str) -> None:
    outcome = run("dirth", tmp_path / "run", operating_points=source)
    test = make("dirth", **SHORT, operating_points=source)
    points = test.operating_points(outcome.history)
    considered = 1 if source == "last" else 5
    rounds = outcome.history.stages["rounds"]
    last = [r.iops for r in rounds.rows if r.label == "TC1/QD1"][-considered:]
    assert points["min"].iops == pytest.approx(sum(last) / considered)
    for name in ("max", "mid", "min"):
        rows = outcome.history.stages[f"rth-{name}"].rows
        assert {(row.threads, row.queue_depth) for row in rows} == {
            (points[name].threads, points[name].queue_depth)
        }
        assert [row.label.startswith("pre-write") for row in rows] == [True] * 3 + [False]


def test_without_an_operating_point_the_run_ends_and_says_so(tmp_path: Path) -> None:
    outcome = run("dirth", tmp_path / "run", art_limit_ms=0.001)
    assert outcome.history.stages["rth-max"].rows == []
    assert any(text.startswith("no operating point") for text in outcome.warnings)


def test_a_run_stopped_in_a_histogram_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    whole = run("ecw", tmp_path / "whole")
    at = len(whole.history.rows) - 4  # This step is one of the pre-writes for the last histogram.
    stopped = FakeEngine(capacity_bytes=200_000_000, before_run=interrupted_at(at))
    with pytest.raises(RunInterrupted):
        run("ecw", tmp_path / "run", stopped)
    again = run("ecw", tmp_path / "run", FakeEngine(capacity_bytes=200_000_000), resume=True)
    assert again.history.rows == whole.history.rows
    rejudged = rejudge(RunDirectory.open(tmp_path / "run"))
    test = make("ecw", **SHORT)
    assert test.operating_points(rejudged.history) == test.operating_points(whole.history)


def test_steady_state_follows_the_largest_load_wherever_it_stands(tmp_path: Path) -> None:
    upward = {**SHORT, "threads": [1, 4], "queue_depths": [1, 2]}
    test = make("dirth", **upward)
    outcome = run_procedure(test, FakeEngine(capacity_bytes=200_000_000), tmp_path / "run")
    stage = outcome.history.stages["rounds"]
    assert stage.tracker is not None
    (values,) = stage.tracker.values.values()
    assert values == [row.iops for row in stage.rows if row.label == "TC4/QD2"]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("dirth", {"prewrite_minutes": 0.51}, "not a whole number of steps"),
        ("ecw", {"threads": []}, "no cells"),
        ("dirth", {"block_kib": 0.7}, "multiples of 0.5 KiB"),
        ("ecw", {"reading": "8x8"}, "unknown reading"),
    ],
)
def test_what_is_refused(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(name, **options)

"""HIR and XSR: bursts and pauses, the baseline without pauses, groups without gaps, recovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine, interrupted_at
from writecliff.errors import ConfigError
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.hir import Hir
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.pts import PtsProcedure
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.procedures.wsat import STIMULI
from writecliff.procedures.xsr import recovery_sample
from writecliff.workload.model import SECOND_NS, Job

DRIVE = FakeEngine().identify()
WAITS = [5, 10, 15, 25, 50]
SHORT = {
    "step_seconds": 1.0,
    "precondition_minutes": 2 / 60,
    "write_minutes": 4 / 60,
    "burst_seconds": 1.0,
    "waits_seconds": [1.0, 2.0],
    "bursts_per_step": 3,
}


def make(name: str, **options: object) -> PtsProcedure:
    return procedure_from_mapping(name, options)


def stages(name: str, **options: object) -> dict[str, Stage]:
    return {stage.phase: stage for stage in make(name, **options).stages(DRIVE)}


def job(step: Step) -> Job:
    (only,) = step.workload.jobs
    return only


def test_hir_has_a_baseline_after_each_wait() -> None:
    names = ["precondition", *(f"{kind}-{w}" for w in WAITS for kind in ("wait", "baseline"))]
    planned = stages("hir")
    assert list(planned) == names
    assert [stage.phase for stage in planned.values() if stage.purge] == ["precondition"]


@pytest.mark.parametrize("wait", WAITS)
def test_hir_writes_for_half_an_hour_in_bursts_of_five_seconds(wait: int) -> None:
    steps = stages("hir")[f"wait-{wait}"].steps(History(), 0)
    assert {(job(s).burst_ns, job(s).pause_ns) for s in steps} == {
        (5 * SECOND_NS, wait * SECOND_NS)
    }
    total_ns = sum(job(step).duration_ns or 0 for step in steps)
    assert total_ns == 360 * (5 + wait) * SECOND_NS
    assert [step.name for step in steps][:2] == ["bursts 1-36", "bursts 37-72"]
    assert {(job(s).threads, job(s).queue_depth, job(s).read_pct) for s in steps} == {(4, 32, 0)}


def test_hir_returns_to_the_baseline_without_pauses() -> None:
    steps = stages("hir")["baseline-50"].steps(History(), 0)
    assert {(job(s).burst_ns, job(s).pause_ns) for s in steps} == {(0, 0)}
    assert [job(step).duration_ns for step in steps] == [60 * SECOND_NS] * 30


def test_no_two_steps_of_hir_have_the_same_addresses() -> None:
    steps = [
        step
        for stage in stages("hir").values()
        for number in ((1, 2) if stage.ends else (0,))
        for step in stage.steps(History(), number)
    ]
    assert len({step.workload.seed for step in steps}) == len(steps)


@pytest.mark.parametrize(("sample", "position"), [("last", -1), ("first", 0)])
def test_the_sample_of_a_round_is_an_option(sample: str, position: int, tmp_path: Path) -> None:
    test = make("hir", **SHORT, sample=sample)
    steps = test.stages(DRIVE)[0].steps(History(), 1)
    assert steps[position].sample and sum(step.sample for step in steps) == 1
    outcome = run_procedure(test, FakeEngine(capacity_bytes=200_000_000), tmp_path / "run")
    stage = outcome.history.stages["precondition"]
    assert stage.tracker is not None
    (values,) = stage.tracker.values.values()
    assert values == [
        stage.round_rows(number)[position].iops for number in range(1, stage.rounds_done + 1)
    ]


def test_the_other_reading_preconditions_for_36_minutes() -> None:
    test = make("hir", reading="36-min")
    stage = test.stages(DRIVE)[0]
    assert (stage.ends, stage.tracking) == ((), ())
    assert sum(job(s).duration_ns or 0 for s in stage.steps(History(), 0)) == 36 * 60 * SECOND_NS
    assert test.deviations() == ()


def test_the_last_bursts_are_no_more_than_asked_for() -> None:
    test = make("hir", **{**SHORT, "bursts_per_step": 3})
    assert isinstance(test, Hir)
    assert [part.count for part in test.burst_steps] == [3, 1]
    steps = {stage.phase: stage for stage in test.stages(DRIVE)}["wait-2"].steps(History(), 0)
    assert [job(step).duration_ns for step in steps] == [9 * SECOND_NS, 3 * SECOND_NS]


def test_hir_resumes_after_an_interruption_between_bursts(tmp_path: Path) -> None:
    def run(name: str, engine: FakeEngine, *, resume: bool = False) -> list[object]:
        outcome = run_procedure(make("hir", **SHORT), engine, tmp_path / name, resume=resume)
        return list(outcome.history.rows)

    whole = run("whole", FakeEngine(capacity_bytes=200_000_000))
    stop = FakeEngine(capacity_bytes=200_000_000, before_run=interrupted_at(len(whole) - 5))
    with pytest.raises(RunInterrupted):
        run("run", stop)
    assert run("run", FakeEngine(capacity_bytes=200_000_000), resume=True) == whole


@pytest.mark.parametrize(("reading", "hours"), [("8-6-8", (8, 6, 8)), ("6-8-6", (6, 8, 6))])
def test_xsr_groups_and_their_hours(reading: str, hours: tuple[int, ...]) -> None:
    test = make("xsr", reading=reading)
    planned = test.stages(DRIVE)
    assert [stage.phase for stage in planned] == ["ag1", "ag2", "ag3"]
    assert [stage.purge for stage in planned] == [True, False, False]
    assert not any(stage.prepare or stage.tracking or stage.ends for stage in planned)
    for stage, length, (pattern, block) in zip(
        planned,
        hours,
        [("sequential", 1 << 20), ("random", 8192), ("sequential", 1 << 20)],
        strict=True,
    ):
        steps = stage.steps(History(), 0)
        assert sum(job(step).duration_ns or 0 for step in steps) == length * 3600 * SECOND_NS
        for step in steps:
            load = job(step)
            assert (load.pattern, load.block_sizes[0].bytes, load.read_pct) == (pattern, block, 0)
            assert (load.threads, load.queue_depth) == (1, 32)
    assert test.deviations() == ()


def test_xsr_hours_that_differ_are_disclosed() -> None:
    deviations = make("xsr", sequential_hours=1.5).deviations()
    assert [(item.option, item.standard, item.level) for item in deviations] == [
        ("sequential_hours", 8.0, "required")
    ]
    steps = stages("xsr", sequential_hours=2.5)["ag1"].steps(History(), 0)
    assert [job(step).duration_ns for step in steps] == [7200 * SECOND_NS, 1800 * SECOND_NS]


def test_recovery_is_the_first_sample_at_the_mean_of_the_first_group() -> None:
    assert recovery_sample([100, 110, 90], [20, 60, 99.9, 100, 80]) == 4
    assert recovery_sample([100, 110, 90], [20, 60, 99.9]) is None
    assert recovery_sample([100, 110, 90], [20, 60, 99.9], 0.99) == 3
    assert recovery_sample([], [1.0]) is None


@pytest.mark.parametrize("name", ["hir", "xsr", "ecw", "dirth"])
def test_shortened_forms_are_no_tests_of_the_standard(name: str) -> None:
    quick = make(name, quick=True)
    assert any(item.level == "required" for item in quick.deviations())
    plan, whole = quick.plan(DRIVE), make(name).plan(DRIVE)
    assert plan.device_time_min_ns < whole.device_time_min_ns / 25


def test_wsat_stimuli_of_revision_2() -> None:
    for name, stimulus in STIMULI.items():
        test = make("wsat", revision="2.0", stimulus=name)
        (step, *_) = test.stages(DRIVE)[0].steps(History(), 1)
        load = job(step)
        assert (load.pattern, load.read_pct) == (stimulus.pattern, stimulus.read_pct)
        assert (load.threads, load.queue_depth) == (4, 32)
        assert test.deviations() == ()
        assert test.setup(DRIVE)["subtitle"] == stimulus.subtitle
    assert [item.option for item in make("wsat", stimulus="rnd-8k-65").deviations()] == ["stimulus"]


def test_sequential_threads_of_wsat_do_not_write_the_same_blocks() -> None:
    test = make("wsat", revision="2.0", stimulus="seq-128k-90")
    load = job(test.stages(DRIVE)[0].steps(History(), 1)[0])
    assert load.range_bytes is not None
    assert load.range_bytes // 4 - 131072 <= load.thread_stride_bytes <= load.range_bytes // 4
    assert load.thread_stride_bytes % 131072 == 0
    assert "separate part of the range" in test.setup(DRIVE)["load_note"]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("hir", {"burst_seconds": 7.0}, "not a whole number"),
        ("hir", {"waits_seconds": []}, "no wait state"),
        ("hir", {"waits_seconds": [0.0]}, "waits_seconds must be at least"),
        ("xsr", {"reading": "8-8-8"}, "unknown reading"),
        ("wsat", {"stimulus": "rnd-8k"}, "unknown stimulus"),
    ],
)
def test_what_is_refused(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make(name, **options)

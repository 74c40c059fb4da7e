"""IOPS, throughput and latency: loops in the standard's order, tracking variables, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine, interrupted_at
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.framework import RunInterrupted, RunOutcome, run_procedure
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.pts import PtsProcedure
from writecliff.procedures.registry import PROCEDURES, procedure_from_mapping
from writecliff.procedures.rejudge import rejudge
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import Job

DRIVE = FakeEngine().identify()
CAPACITY = DRIVE.capacity_bytes
NATIVE_4K = replace(DRIVE, sector_bytes=4096)
MIXES = (100, 95, 65, 50, 35, 5, 0)
# Options that reduce the steps of the IOPS loop.
SHORT = {"read_pcts": [100.0, 0.0], "block_sizes_kib": [4.0, 0.5]}
SIZES = (1048576, 131072, 65536, 32768, 16384, 8192, 4096, 512)


def make(name: str, **options: object) -> PtsProcedure:
    return procedure_from_mapping(name, options)


def stages(name: str, drive: DeviceIdentity = DRIVE, **options: object) -> Sequence[Stage]:
    return make(name, **options).stages(drive)


def job(step: Step) -> Job:
    (only,) = step.workload.jobs
    return only


def cells(steps: Sequence[Step]) -> list[tuple[float, int]]:
    return [(job(step).read_pct, job(step).block_sizes[0].bytes) for step in steps]


def run(
    name: str, path: Path, engine: FakeEngine | None = None, *, resume: bool = False, **more: object
) -> RunOutcome:
    options: dict[str, object] = {"step_seconds": 1.0, **(SHORT if name == "iops" else {}), **more}
    drive = engine or FakeEngine(capacity_bytes=2_000_000_000)
    return run_procedure(make(name, **options), drive, path, resume=resume)


def deviating(name: str, **options: object) -> Mapping[str, str]:
    return {item.option: item.level for item in make(name, **options).deviations()}


def test_the_tests_come_in_the_order_of_the_standard() -> None:
    assert list(PROCEDURES)[:4] == ["iops", "tp", "lat", "wsat"]


def test_a_round_of_iops_is_56_minutes_in_the_mandatory_order() -> None:
    (stage,) = stages("iops")
    for number in (1, 2):
        steps = stage.steps(History(), number)
        assert cells(steps) == [(mix, size) for mix in MIXES for size in SIZES]
        assert {job(step).duration_ns for step in steps} == {60_000_000_000}
        assert {job(step).pattern for step in steps} == {"random"}
    assert [step.name for step in steps[:2]] == ["RND 1024KiB 100/0", "RND 128KiB 100/0"]


@pytest.mark.parametrize("name", ["iops", "tp", "lat"])
def test_every_step_of_a_test_draws_its_own_addresses(name: str) -> None:
    options = {"histogram_reads": True} if name == "lat" else {}
    seeds = [
        step.workload.seed
        for stage in stages(name, revision="2.0", **options)
        for number in ((1, 2, 3) if stage.ends else (0,))
        for step in (*(stage.prepare if number == 1 else ()), *stage.steps(History(), number))
    ]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(
    ("edition", "threads", "depth", "cache"), [("pts-e", 4, 32, False), ("pts-c", 2, 16, True)]
)
def test_iops_settings_of_the_editions(edition: str, threads: int, depth: int, cache: bool) -> None:
    test = make("iops", edition=edition)
    (stage,) = test.stages(DRIVE)
    loop = [job(step) for step in stage.steps(History(), 1)]
    assert {(step.threads, step.queue_depth) for step in loop} == {(threads, depth)}
    assert test.write_cache is cache
    assert test.deviations() == ()


@pytest.mark.parametrize("name", ["tp", "lat"])
@pytest.mark.parametrize("edition", ["pts-e", "pts-c"])
def test_tp_and_lat_have_one_thread_in_both_editions(name: str, edition: str) -> None:
    for stage in stages(name, edition=edition):
        for step in stage.steps(History(), 1):
            assert (job(step).threads, job(step).queue_depth) == (1, 32 if name == "tp" else 1)


@pytest.mark.parametrize("name", ["iops", "tp", "lat"])
def test_twice_the_capacity_is_written_after_every_purge(name: str) -> None:
    for stage in stages(name):
        (fill,) = map(job, stage.prepare)
        assert stage.purge
        assert (fill.pattern, fill.read_pct) == ("sequential", 0)
        assert fill.range_bytes == pytest.approx(CAPACITY, abs=fill.block_sizes[0].bytes)
        assert fill.volume_bytes == pytest.approx(2 * CAPACITY, abs=fill.block_sizes[0].bytes)


def test_quick_still_writes_every_address_once() -> None:
    (fill,) = map(job, stages("iops", quick=True)[0].prepare)
    assert fill.volume_bytes == pytest.approx(CAPACITY, abs=131072)
    assert deviating("iops", quick=True) == {
        "step_seconds": "required",
        "wipc_capacities": "required",
    }


def test_clients_of_revision_2_leave_a_quarter_of_the_addresses_alone() -> None:
    for name in ("iops", "tp", "lat"):
        (stage, *_) = stages(name, edition="pts-c", revision="2.0")
        for step in (*stage.prepare, *stage.steps(History(), 1)):
            assert job(step).range_bytes == pytest.approx(0.75 * CAPACITY, abs=1 << 20)
        assert deviating(name, edition="pts-c", revision="2.0") == {}


LATENCY = (["RND 4KiB 0/100 average latency"], ["RND 4KiB 0/100"])


@pytest.mark.parametrize(
    ("name", "options", "names", "samples"),
    [
        ("iops", {}, ["RND 4KiB 0/100 IOPS"], ["RND 4KiB 0/100"]),
        (
            "iops",
            {"revision": "2.0"},
            ["RND 4KiB 0/100 IOPS", "RND 64KiB 65/35 IOPS", "RND 1024KiB 100/0 IOPS"],
            ["RND 1024KiB 100/0", "RND 64KiB 65/35", "RND 4KiB 0/100"],
        ),
        ("lat", {}, *LATENCY),
        ("lat", {"revision": "2.0"}, *LATENCY),
    ],
)
def test_what_is_tracked(
    name: str, options: dict[str, object], names: list[str], samples: list[str]
) -> None:
    (stage, *_) = stages(name, **options)
    assert [variable.name for variable in stage.tracking] == names
    assert [step.name for step in stage.steps(History(), 1) if step.sample] == samples


def test_tp_is_a_test_for_each_block_size() -> None:
    both = stages("tp")
    assert [stage.phase for stage in both] == ["rounds-1024k", "rounds-128k"]
    assert [stage.prepare_phase for stage in both] == [
        "preconditioning-1024k",
        "preconditioning-128k",
    ]
    for stage, size in zip(both, (1 << 20, 1 << 17), strict=True):
        assert job(stage.prepare[0]).block_sizes[0].bytes == size
        steps = stage.steps(History(), 1)
        assert cells(steps) == [(100, size), (0, size)]
        assert {job(step).pattern for step in steps} == {"sequential"}
        assert [step.sample for step in steps] == [False, True]
        assert [(v.unit, v.name) for v in stage.tracking] == [
            ("MB/s", f"SEQ {size // 1024}KiB 0/100 throughput")
        ]


def test_clients_of_revision_1_have_large_blocks_only() -> None:
    assert [stage.phase for stage in stages("tp", edition="pts-c")] == ["rounds-1024k"]
    assert len(stages("tp", edition="pts-c", revision="2.0")) == 2
    assert deviating("tp", edition="pts-c", block_sizes_kib=[1024.0, 128.0]) == {
        "block_sizes_kib": "required"
    }


def test_a_round_of_lat_is_nine_minutes() -> None:
    (stage,) = stages("lat")
    assert cells(stage.steps(History(), 1)) == [
        (mix, size) for mix in (100, 65, 0) for size in (8192, 4096, 512)
    ]


def test_revision_2_adds_twenty_minutes_of_latencies() -> None:
    _, rth = stages("lat", revision="2.0")
    (step,) = rth.steps(History(), 0)
    assert (rth.phase, job(step).duration_ns) == ("rth", 1_200_000_000_000)
    assert (job(step).read_pct, job(step).block_sizes[0].bytes) == (0, 4096)
    assert (rth.purge, tuple(rth.ends)) == (False, ())
    _, both = stages("lat", revision="2.0", histogram_reads=True)
    assert [job(step).read_pct for step in both.steps(History(), 0)] == [0, 100]
    assert len(stages("lat", revision="2.0", histogram=False)) == 1
    assert deviating("lat", revision="2.0", histogram=False) == {"histogram": "required"}


@pytest.mark.parametrize("name", ["iops", "lat"])
def test_blocks_below_the_sector_are_left_out_and_said(name: str, tmp_path: Path) -> None:
    class Native(FakeEngine):
        def identify(self) -> DeviceIdentity:
            return replace(super().identify(), sector_bytes=4096)

    (stage, *_) = stages(name, NATIVE_4K)
    assert all(size >= 4096 for _, size in cells(stage.steps(History(), 1)))
    assert len(stage.steps(History(), 1)) == (49 if name == "iops" else 6)
    assert "0.5KiB" not in make(name).setup(NATIVE_4K)["block_sizes"]
    outcome = run(name, tmp_path / "r", Native(capacity_bytes=2_000_000_000))
    assert outcome.warnings == ("0.5KiB omitted: not a multiple of the drive's sectors",)


@pytest.mark.parametrize(
    ("name", "options", "part"),
    [
        ("iops", {"block_sizes_kib": [8.0]}, "omit RND 4KiB 0/100, which determines"),
        ("iops", {"read_pcts": [100.0]}, "omit RND 4KiB 0/100, which determines"),
        ("iops", {"revision": "2.0", "block_sizes_kib": [4.0, 1024.0]}, "RND 64KiB 65/35"),
        ("iops", {"block_sizes_kib": [4.0, 0.7]}, "multiples of 0.5 KiB, not 0.7"),
        ("iops", {"block_sizes_kib": []}, "determines steady state"),
        ("iops", {"read_pcts": [0.0, 101.0]}, "at most 100"),
        ("lat", {"block_sizes_kib": [8.0, 0.5]}, "omit RND 4KiB 0/100, which determines"),
        ("lat", {"max_latency": "windows"}, "unknown max latency"),
        ("tp", {"block_sizes_kib": []}, "is empty"),
        ("tp", {"block_sizes_kib": [0.25]}, "at least 0.5"),
        ("iops", {"max_rounds": 4}, "at least 5"),
    ],
)
def test_loops_that_cannot_be_judged_are_refused(
    name: str, options: dict[str, object], part: str
) -> None:
    with pytest.raises(ConfigError, match=part):
        make(name, **options)


def test_a_drive_that_cannot_do_what_is_tracked_is_refused() -> None:
    for name in ("iops", "lat"):
        with pytest.raises(ConfigError, match="sector size is 8192 bytes"):
            stages(name, replace(DRIVE, sector_bytes=8192))
    with pytest.raises(ConfigError, match="SEQ 2KiB"):
        stages("tp", NATIVE_4K, block_sizes_kib=[2.0])


def test_other_blocks_and_mixes_are_disclosed() -> None:
    deviations = make("iops", block_sizes_kib=[4.0], read_pcts=[0.0]).deviations()
    assert [str(item) for item in deviations] == [
        "read_pcts is 0; required by PTS IOPS: 100,95,65,50,35,5,0",
        "block_sizes_kib is 4; required by PTS IOPS: 1024,128,64,32,16,8,4,0.5",
    ]
    assert deviating("iops", threads=1) == {"threads": "recommended"}
    assert deviating("lat", queue_depth=2) == {"queue_depth": "required"}


@pytest.mark.parametrize("name", ["iops", "tp", "lat"])
def test_a_run_ends_when_steady_and_can_be_judged_again(name: str, tmp_path: Path) -> None:
    outcome = run(name, tmp_path / "r")
    assert outcome.ended_by == "steady"
    again = rejudge(RunDirectory.open(tmp_path / "r"))
    assert again.history.rows == outcome.history.rows
    for phase, stage in outcome.history.stages.items():
        assert stage.decision is not None
        assert stage.decision.rounds == tuple(range(stage.rounds_done - 4, stage.rounds_done + 1))
        assert again.history.stages[phase].decision == stage.decision
        tracked = next(iter(stage.decision.states.values()))
        samples = [row for row in stage.window_rows() if row.read_pct == 0]
        if name == "tp":
            assert tracked.values == tuple(row.bytes_per_s / 1e6 for row in samples)
    assert (name == "tp") == (len(outcome.history.stages) == 2)


@pytest.mark.parametrize("name", ["iops", "tp", "lat"])
def test_never_steady_is_a_result_after_25_rounds(name: str, tmp_path: Path) -> None:
    drive = FakeEngine(capacity_bytes=2_000_000_000, noise=0.95)
    outcome = run(name, tmp_path / "r", drive)
    assert outcome.ended_by == "rounds"
    for stage in outcome.history.stages.values():
        assert (stage.rounds_done, stage.steady_at_round) == (25, None)
        assert stage.decision is not None
        assert stage.decision.rounds == (21, 22, 23, 24, 25)
    assert all("was not reached within 25 rounds" in text for text in outcome.warnings)
    assert len(outcome.warnings) == len(outcome.history.stages)


def test_three_variables_must_be_steady_in_the_same_window(tmp_path: Path) -> None:
    loop = {"read_pcts": [100.0, 65.0, 0.0], "block_sizes_kib": [1024.0, 64.0, 4.0]}
    outcome = run("iops", tmp_path / "r", revision="2.0", **loop)
    decision = outcome.history.stages["rounds"].decision
    assert decision is not None
    assert len(decision.states) == 3
    assert all(state.steady for state in decision.states.values())


@pytest.mark.parametrize(("name", "at"), [("iops", 12), ("tp", 16), ("lat", 12)])
def test_an_interrupted_run_resumes_to_the_same_rows(name: str, at: int, tmp_path: Path) -> None:
    whole = run(name, tmp_path / "whole")
    cut = FakeEngine(capacity_bytes=2_000_000_000, before_run=interrupted_at(at))
    with pytest.raises(RunInterrupted):
        run(name, tmp_path / "cut", cut)
    rest = FakeEngine(capacity_bytes=2_000_000_000)
    outcome = run(name, tmp_path / "cut", rest, resume=True)
    assert outcome.history.rows == whole.history.rows


def test_the_header_block_says_what_was_done() -> None:
    assert make("iops").setup(DRIVE) | {} == {
        "subtitle": "IOPS - Block Size x RW Mix Matrix",
        "data_pattern": "RND",
        "active_range": "100%",
        "ar_segments": "N/A",
        "precondition": "SEQ 128KiB W",
        "precondition_toio": "TC 4/QD 32",
        "precondition_duration": "Twice User Capacity",
        "precondition_2": "IOPS Loop",
        "precondition_2_toio": "TC 4/QD 32",
        "test_stimulus": "IOPS Loop",
        "rw_mix": "100/0, 95/5, 65/35, 50/50, 35/65, 5/95, 0/100",
        "block_sizes": "1024KiB, 128KiB, 64KiB, 32KiB, 16KiB, 8KiB, 4KiB, 0.5KiB",
        "toio": "TC 4/QD 32",
    }
    assert make("tp", edition="pts-c").setup(DRIVE)["subtitle"] == "TP - SEQ 1024KiB R/W"
    assert make("lat").setup(DRIVE)["subtitle"] == "LATENCY - Response Time OIO=1"
    limited = make("lat", ar_amount_gib=8).setup(DRIVE)
    assert (limited["ar_segments"], limited["ar_amount"]) == ("2048", "100%, 8 GiB")


def test_plans_have_the_least_and_the_most_rounds() -> None:
    iops, tp, lat = (make(name).plan(DRIVE) for name in ("iops", "tp", "lat"))
    assert (iops.steps_min, iops.steps_max) == (1 + 5 * 56, 1 + 25 * 56)
    assert (tp.steps_min, tp.steps_max) == (2 * (1 + 5 * 2), 2 * (1 + 25 * 2))
    assert (lat.steps_min, lat.steps_max) == (1 + 5 * 9, 1 + 25 * 9)
    assert iops.device_time_min_ns >= 280 * 60e9
    assert iops.device_time_max_ns is None  # Preconditioning takes as long as the drive needs.

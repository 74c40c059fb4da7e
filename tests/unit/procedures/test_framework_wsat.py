"""WSAT through the framework on the fake drive: ends, sampling positions, stored rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tests.support.fake_engine import FakeEngine, failing_at, interrupted_at
from writecliff.engines.base import CacheReport, DeviceIdentity, PurgeReport
from writecliff.errors import ConfigError, EngineError
from writecliff.procedures.framework import RunInterrupted, RunOutcome, run_procedure
from writecliff.procedures.journal import GROUPED_S, stored_rows
from writecliff.procedures.model import History, Stage, Step, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.rejudge import rejudge
from writecliff.procedures.wsat import Wsat, WsatOptions
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import Job, Workload

HOUR_NS = 3600 * 10**9


def run(
    directory: Path, engine: FakeEngine | None = None, resume: bool = False, **options: object
) -> RunOutcome:
    procedure = Wsat(WsatOptions(**options))  # type: ignore[arg-type]
    return run_procedure(procedure, engine or FakeEngine(), directory, resume=resume)


def small_drive() -> FakeEngine:
    """Return a drive that reaches its write cliff after a few minutes."""
    return FakeEngine(capacity_bytes=60_000_000_000)


def test_time_ends_after_the_first_minute_that_completes_it(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", end=("time",), time_hours=0.25)
    assert outcome.ended_by == "time"
    assert len(outcome.history.rows) == 15
    assert outcome.history.elapsed_ns == 0.25 * HOUR_NS


def test_capacity_ends_with_the_step_that_reaches_four_drive_fills(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", small_drive(), end=("capacity",))
    rows = outcome.history.rows
    assert outcome.ended_by == "capacity"
    assert rows[-1].drive_fills >= 4
    assert rows[-2].drive_fills < 4


def test_a_level_drive_is_not_steady_before_its_cliff(tmp_path: Path) -> None:
    """Check that five samples in the fresh plateau meet the rule, but do not end the run."""
    early = {"end": ("steady", "time"), "round_minutes": 2, "time_hours": 20.0}
    fresh = run(tmp_path / "fresh", fresh_fills=0.0, **early).history.stages["rounds"]
    assert fresh.decision is not None
    assert fresh.rows[-1].drive_fills < 1
    past = run(tmp_path / "past", **early).history.stages["rounds"]
    assert past.tracker is not None
    assert past.tracker.decisions[0].met
    assert not past.tracker.decisions[0].steady
    first = past.round_rows((past.steady_at_round or 0) - 4)[-1]
    assert first.drive_fills >= 2
    assert past.rows[-1].iops < 0.7 * fresh.rows[-1].iops


def test_steady_ends_at_the_last_sample_of_the_measurement_window(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", small_drive(), end=("steady",), round_minutes=3)
    assert outcome.ended_by == "steady"
    history = outcome.history.stages["rounds"]
    verdict = history.decision
    assert verdict is not None
    assert verdict.steady
    assert history.steady_at_round == history.rounds_done
    assert verdict.rounds == tuple(range(history.rounds_done - 4, history.rounds_done + 1))
    assert len(history.rows) == 3 * history.rounds_done


def test_a_drive_that_never_settles_gives_up_after_25_rounds(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", FakeEngine(noise=0.6), end=("steady",), round_minutes=1)
    assert outcome.ended_by == "rounds"
    rounds = outcome.history.stages["rounds"]
    assert (rounds.rounds_done, rounds.steady_at_round) == (25, None)
    assert outcome.warnings == ("steady state was not reached",)


def test_the_first_end_reached_wins(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", time_hours=0.3)
    assert outcome.ended_by == "time"
    assert len(outcome.history.rows) == 18


def test_samples_are_the_31st_minutes(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", end=("time",), time_hours=155 / 60)
    history = outcome.history
    samples = [history.rows[i] for i in (30, 61, 92, 123, 154)]
    assert [(row.round, row.step) for row in samples] == [(r, 31) for r in range(1, 6)]
    assert [row.started_ns for row in samples] == [(31 * r - 1) * 60 * 10**9 for r in range(1, 6)]
    tracker = history.stages["rounds"].tracker
    assert tracker is not None
    assert tracker.values == {"RND 4KiB W IOPS": [row.iops for row in samples]}
    assert _average(history) == pytest.approx(sum(r.iops for r in samples) / 5)


def _average(history: History) -> float:
    decision = history.stages["rounds"].decision
    assert decision is not None
    return decision.states["RND 4KiB W IOPS"].average


def test_every_minute_writes_other_addresses(tmp_path: Path) -> None:
    (rounds,) = Wsat().stages(FakeEngine().identify())
    steps = [step for r in range(1, 26) for step in rounds.steps(History(), r)]
    seeds = {step.workload.seed for step in steps}
    assert len(seeds) == 25 * 31


def test_purge_then_cache_then_writes(tmp_path: Path) -> None:
    engine = FakeEngine()
    run(tmp_path / "r", engine, end=("time",), time_hours=1 / 60)
    assert engine.calls == ["purge", "cache off", "run minute 1"]
    client = FakeEngine()
    run(tmp_path / "c", client, edition="pts-c", end=("time",), time_hours=1 / 60)
    assert client.calls[1] == "cache on"


def test_rows_add_up(tmp_path: Path) -> None:
    engine = FakeEngine()
    rows = run(tmp_path / "r", engine, end=("time",), time_hours=0.3).history.rows
    assert rows[-1].host_write_bytes_total == engine.written_bytes
    assert sum(row.host_write_bytes for row in rows) == engine.written_bytes
    assert rows[-1].drive_fills == engine.written_bytes / engine.capacity_bytes
    for row in rows:
        assert row.latency_mean_ns is not None
        assert row.latency_p999_ns is not None
        assert row.latency_p9999_ns is not None
        assert row.latency_max_ns is not None
        assert row.latency_mean_ns < row.latency_max_ns
        assert row.latency_p999_ns <= row.latency_p9999_ns <= row.latency_max_ns
        # Little's law: outstanding I/Os = rate x mean latency.
        assert row.iops * row.latency_mean_ns / 1e9 == pytest.approx(128, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "wall_s", "expected"),
    [
        ("fio", 0.0, [1, 2, 3, 4, 5, 6]),  # Steps on a real drive cannot be repeated.
        ("sim", GROUPED_S, [1, 2, 3, 4, 5, 6]),
        ("sim", GROUPED_S / 2, [0, 2, 2, 4, 4, 6]),
        ("sim", 0.0, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_rows_are_stored_as_they_are_measured(
    tmp_path: Path, kind: Literal["sim", "fio"], wall_s: float, expected: list[int]
) -> None:
    seen: list[int] = []
    drive = FakeEngine(kind=kind, before_run=lambda _: time.advance(wall_s))
    time = Clock()

    class Watch(RunProgress):
        def step_end(self, row: StepRow, history: object, *, again: bool) -> None:
            seen.append(len(stored_rows(RunDirectory.open(tmp_path / "r"))))

    procedure = Wsat(WsatOptions(end=("time",), time_hours=0.1))
    run_procedure(procedure, drive, tmp_path / "r", Watch(), clock=time)
    assert seen == expected
    assert len(stored_rows(RunDirectory.open(tmp_path / "r"))) == 6


class Clock:
    """A wall clock that advances only when a test sets it."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        return self._now_s

    def advance(self, by_s: float) -> None:
        self._now_s += by_s


def test_engine_error_keeps_what_was_measured(tmp_path: Path) -> None:
    engine = FakeEngine(before_run=failing_at(8))
    with pytest.raises(EngineError, match="fake drive gone"):
        run(tmp_path / "r", engine)
    assert len(stored_rows(RunDirectory.open(tmp_path / "r"))) == 7
    assert RunDirectory.open(tmp_path / "r").status == "failed"
    outcome = run(tmp_path / "r", resume=True, time_hours=0.25, end=("time",))
    assert len(outcome.history.rows) == 15


def test_histogram_step_follows_the_rounds(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", end=("time",), time_hours=0.1, histogram=True)
    last = outcome.history.rows[-1]
    assert (last.phase, last.round, last.elapsed_ns) == ("rth", 0, 1200 * 10**9)
    assert outcome.history.stages["rounds"].elapsed_ns == 360 * 10**9


def test_steady_before_two_drive_fills_is_called_fresh_out_of_box(tmp_path: Path) -> None:
    engine = FakeEngine(capacity_bytes=64_000_000_000_000)
    outcome = run(tmp_path / "r", engine, end=("steady",), round_minutes=2, fresh_fills=0.0)
    assert outcome.history.stages["rounds"].rounds_done == 5
    assert "fresh-out-of-box" in outcome.warnings[0]


def test_a_directory_in_use_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.txt").write_text("precious")
    engine = FakeEngine()
    with pytest.raises(ConfigError, match="not empty"):
        run(tmp_path / "r", engine)
    assert engine.calls == []


def test_manifest_tells_what_was_done(tmp_path: Path) -> None:
    run(tmp_path / "r", edition="pts-c", end=("time",), time_hours=0.1)
    with RunDirectory.open(tmp_path / "r") as stored:
        manifest = stored.manifest
        rounds = stored.rounds()
    assert (manifest.procedure, manifest.edition, manifest.status) == (
        "wsat",
        "PTS-C 1.2",
        "complete",
    )
    assert (manifest.ended_by, manifest.reason) == ("time", "0.1 h of writes")
    assert [phase["name"] for phase in manifest.phases] == ["purge", "rounds"]
    assert manifest.purge == PurgeReport("fake purge", conformant=True)
    assert manifest.write_cache == CacheReport(True)
    assert manifest.setup["toio"] == "TC 2/QD 16"
    assert [deviation["option"] for deviation in manifest.deviations] == ["time_hours"]
    assert rounds.column("sample").to_pylist() == [False] * 6
    assert rounds.column("label").to_pylist() == [f"minute {i}" for i in range(1, 7)]


def test_partial_step_of_a_failing_drive_is_kept(tmp_path: Path) -> None:
    engine = FakeEngine()

    def die(run: int) -> None:
        if run == 3:
            engine.before_run = None
            workload = Wsat().stages(engine.identify())[0].steps(History(), 1)[2].workload
            raise EngineError("gone", partial=engine.run(workload))

    engine.before_run = die
    with pytest.raises(EngineError):
        run(tmp_path / "r", engine)
    with RunDirectory.open(tmp_path / "r") as stored:
        partial = stored.manifest.extra["partial"]
        assert stored.manifest.reason == "gone"
    assert (partial["round"], partial["step"]) == (1, 3)
    assert partial["ios"] > 0
    assert len(stored_rows(RunDirectory.open(tmp_path / "r"))) == 2


class Preconditioned(Wsat):
    """Check two stages with preconditioning, the second of which purges again."""

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        job = Job(pattern="sequential", volume_bytes=2 * identity.capacity_bytes)
        fill = (Step("2 x capacity", Workload("fill", (job,))),)
        (rounds,) = super().stages(identity)
        return (replace(rounds, prepare=fill), replace(rounds, phase="rounds-b", prepare=fill))


def test_preconditioning_counts_as_written_since_the_last_purge(tmp_path: Path) -> None:
    procedure = Preconditioned(WsatOptions(end=("time",), time_hours=0.1))
    engine = small_drive()
    history = run_procedure(procedure, engine, tmp_path / "r").history
    assert [row.phase for row in history.rows if row.step == 1] == [
        "preconditioning", "rounds", "preconditioning-b", "rounds-b",
    ]  # fmt: skip
    for phase in ("rounds", "rounds-b"):
        first = history.stages[phase].rows[0]
        assert first.drive_fills == pytest.approx(2 + first.host_write_bytes / 60e9)
    assert [call for call in engine.calls if call == "purge"] == ["purge", "purge"]
    # Each stage starts from zero, but the run's total includes both stages.
    totals = [history.stages[phase].host_write_bytes_total for phase in ("rounds", "rounds-b")]
    assert history.host_write_bytes == sum(totals)


@pytest.mark.parametrize("stop_at", [2, 5, 8, 9, 12])
def test_a_run_of_two_purges_resumes_as_if_never_stopped(tmp_path: Path, stop_at: int) -> None:
    procedure = Preconditioned(WsatOptions(end=("time",), time_hours=0.1))
    whole = run_procedure(procedure, small_drive(), tmp_path / "whole").history.rows
    engine = small_drive()
    engine.before_run = interrupted_at(stop_at)
    with pytest.raises(RunInterrupted):
        # Saving costs nothing because the clock is stopped, so every step has a checkpoint.
        run_procedure(procedure, engine, tmp_path / "r", checkpoint_interval_s=0, clock=lambda: 0.0)
    again = small_drive()
    outcome = run_procedure(procedure, again, tmp_path / "r", resume=True)
    assert outcome.history.rows == whole
    # Row 7 is the last row of the first stage, and only after this row is the second purge still
    # due.
    assert ("purge" in again.calls) is (stop_at <= 8)


def test_a_stored_run_is_judged_again_as_it_was(tmp_path: Path) -> None:
    outcome = run(tmp_path / "r", small_drive(), end=("steady",), round_minutes=3, histogram=True)
    again = rejudge(RunDirectory.open(tmp_path / "r")).history
    assert again.rows == outcome.history.rows
    assert list(again.stages) == ["rounds", "rth"]
    then, now = outcome.history.stages["rounds"], again.stages["rounds"]
    assert then.tracker is not None
    assert now.tracker is not None
    assert (now.rounds_done, now.decision) == (then.rounds_done, then.decision)
    assert now.tracker.decisions == then.tracker.decisions

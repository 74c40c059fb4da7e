"""Resumed runs: their table equals that of an uninterrupted run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_engine import FakeEngine, interrupted_at
from tests.support.kill_target import OPTIONS
from writecliff.errors import ConfigError, StoreError, TargetError
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.journal import GROUPED_S, stored_rows
from writecliff.procedures.model import History, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.wsat import Wsat
from writecliff.store.rundir import RunDirectory

ROOT = Path(__file__).resolve().parents[3]
STEPS = 12  # Six rounds of two steps each.
PROCEDURE = Wsat(replace(OPTIONS, time_hours=STEPS / 60))


def stopped_clock() -> float:
    """Check that with this clock and no interval, every step is followed by a checkpoint."""
    return 0.0


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[StepRow]:
    directory = tmp_path_factory.mktemp("whole") / "r"
    return run_procedure(PROCEDURE, FakeEngine(), directory).history.rows


@pytest.mark.parametrize("step", range(1, STEPS + 1))
@pytest.mark.parametrize("interval_s", [0.0, 1e9], ids=["checkpoints", "no checkpoint"])
def test_interrupted_at_any_step(
    tmp_path: Path, uninterrupted: list[StepRow], step: int, interval_s: float
) -> None:
    directory = tmp_path / "r"
    engine = FakeEngine(before_run=interrupted_at(step))
    with pytest.raises(RunInterrupted, match=f"{step - 1:,} complete steps? stored in") as caught:
        run_procedure(
            PROCEDURE, engine, directory, checkpoint_interval_s=interval_s, clock=stopped_clock
        )
    assert f"--resume {directory}" in str(caught.value.hint)
    assert caught.value.exit_code == 130
    assert RunDirectory.open(directory).status == "interrupted"
    assert stored_rows(RunDirectory.open(directory)) == uninterrupted[: step - 1]
    again = FakeEngine()
    outcome = run_procedure(PROCEDURE, again, directory, resume=True)
    assert outcome.history.rows == uninterrupted
    assert stored_rows(RunDirectory.open(directory)) == uninterrupted
    assert RunDirectory.open(directory).status == "complete"
    steps_run = sum(call.startswith("run ") for call in again.calls)
    assert steps_run == (STEPS - (step - 1) if interval_s == 0.0 and step > 1 else STEPS)


def test_interrupted_again_and_again(tmp_path: Path, uninterrupted: list[StepRow]) -> None:
    directory = tmp_path / "r"
    for session in range(3):
        engine = FakeEngine()
        engine.before_run = lambda run, engine=engine: _stop_after(engine, 3)
        with pytest.raises(RunInterrupted):
            run_procedure(
                PROCEDURE,
                engine,
                directory,
                resume=session > 0,
                checkpoint_interval_s=0.0,
                clock=stopped_clock,
            )
    outcome = run_procedure(PROCEDURE, FakeEngine(), directory, resume=True)
    assert outcome.history.rows == uninterrupted


def _stop_after(engine: FakeEngine, steps: int) -> None:
    if sum(call.startswith("run ") for call in engine.calls) > steps:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("look_s", "waiting", "kill_after"),
    [
        (GROUPED_S, 0, 1),
        (GROUPED_S / 8, 8, 20),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (GROUPED_S, 0, 7), (GROUPED_S, 0, 20), (GROUPED_S / 8, 8, 1), (GROUPED_S / 8, 8, 7),
            )
        ),
    ],
)  # fmt: skip
def test_kill_9_loses_only_steps_that_are_not_stored(
    tmp_path: Path, look_s: float, waiting: int, kill_after: int
) -> None:
    whole = run_procedure(Wsat(OPTIONS), FakeEngine(), tmp_path / "whole").history.rows
    directory = tmp_path / "r"
    script = [
        sys.executable,
        str(ROOT / "tests/support/kill_target.py"),
        str(directory),
        str(look_s),
    ]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    # The run has a few more steps, during which it is killed, and no end that it could reach
    # before.
    process = subprocess.Popen(
        [*script, str(kill_after + 3)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == kill_after:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    stored = stored_rows(RunDirectory.open(directory))
    assert len(stored) >= kill_after - waiting
    assert stored == whole[: len(stored)]
    assert RunDirectory.open(directory).status == "interrupted"
    subprocess.run([*script, "resume"], env=environment, check=True, capture_output=True)
    assert stored_rows(RunDirectory.open(directory)) == whole
    assert RunDirectory.open(directory).status == "complete"
    assert not list(directory.glob("checkpoint-*"))


def test_sigterm_is_an_interruption(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    engine = FakeEngine(
        before_run=lambda run: os.kill(os.getpid(), signal.SIGTERM) if run == 3 else None
    )
    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, engine, directory)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_real_drive_resumes_without_a_purge(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    drive = FakeEngine(kind="fio", before_run=interrupted_at(8), target="/dev/fake")
    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, drive, directory, checkpoint_interval_s=0.0)
    drive.before_run, drive.clock_ns, drive.calls = None, 0, []  # A new process has a new clock.
    outcome = run_procedure(PROCEDURE, drive, directory, resume=True)
    assert drive.calls[:2] == ["cache off", "run minute 8"]
    rows = outcome.history.rows
    assert len(rows) == STEPS
    assert [row.started_ns for row in rows] == [i * 60 * 10**9 for i in range(STEPS)]
    assert rows[-1].host_write_bytes_total == sum(row.host_write_bytes for row in rows)


def test_results_that_differ_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, FakeEngine(before_run=interrupted_at(9)), directory)
    with pytest.raises(StoreError, match="was repeated with a different result: ios is"):
        run_procedure(PROCEDURE, FakeEngine(noise=0.02), directory, resume=True)
    assert len(stored_rows(RunDirectory.open(directory))) == 8


def test_another_drive_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, FakeEngine(before_run=interrupted_at(9)), directory)
    other = FakeEngine(serial="OTHER")
    with pytest.raises(TargetError):
        run_procedure(PROCEDURE, other, directory, resume=True)
    assert other.calls == []


@pytest.mark.parametrize(
    ("backing", "reason"), [("loop on b at 0", "its backing is"), (None, "cannot be resumed")]
)
def test_a_drive_without_serial_number_is_known_by_what_it_stands_on(
    tmp_path: Path, backing: str | None, reason: str
) -> None:
    drive = FakeEngine(kind="fio", serial=None, target="/dev/loop0", before_run=interrupted_at(2))
    drive.backing = "loop on a at 0" if backing else None
    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, drive, tmp_path / "r")
    drive.before_run, drive.backing, drive.calls = None, backing, []
    with pytest.raises(TargetError, match=reason):
        run_procedure(PROCEDURE, drive, tmp_path / "r", resume=True)
    assert drive.calls == []


def test_a_complete_run_is_not_resumed(tmp_path: Path) -> None:
    run_procedure(PROCEDURE, FakeEngine(), tmp_path / "r")
    with pytest.raises(ConfigError, match="complete"):
        run_procedure(PROCEDURE, FakeEngine(), tmp_path / "r", resume=True)


def test_interrupted_between_steps_saves_the_drive(
    tmp_path: Path, uninterrupted: list[StepRow]
) -> None:
    class StopAfterThree(RunProgress):
        def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
            if len(history.rows) == 3:
                raise KeyboardInterrupt

    with pytest.raises(RunInterrupted):
        run_procedure(PROCEDURE, FakeEngine(), tmp_path / "r", StopAfterThree())
    again = FakeEngine()
    outcome = run_procedure(PROCEDURE, again, tmp_path / "r", resume=True)
    assert outcome.history.rows == uninterrupted
    assert again.calls[:2] == ["restore", "run minute 4"]

"""Output on stderr: no library warnings, and the progress of long steps."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from writecliff.cli import progress
from writecliff.cli.progress import ProgressView, WorkView, work_shown
from writecliff.cli.screen import Screen
from writecliff.cli.sets import SetView
from writecliff.engines.base import Progress
from writecliff.progress import WorkProgress
from writecliff.suite.children import ChildEvent, _PipeProgress

WARN = """
import logging, warnings
from writecliff.quiet import silence_libraries
silence_libraries()
warnings.warn("identical low and high ylims")
logging.getLogger("matplotlib.font_manager").warning("findfont: no such font")
"""


def stderr_of(*options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", WARN], capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def test_users_see_none() -> None:
    assert stderr_of() == ""


def test_developers_can_ask_for_them() -> None:
    assert "identical low and high ylims" in stderr_of("-W", "default")


def test_a_log_says_where_a_long_step_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = ProgressView(Screen())
    view.phase("rounds")
    view.step_begin("rounds", 0, 1, 2, "mix")
    for now_s in range(600):
        view.step_progress(Progress(elapsed_ns=now_s, ios=1, iops=1.0, fraction=now_s / 1000))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "rounds: step 1 of 2: mix  0 %"
    assert len(lines) == 26, lines  # Lines appear after 5, 15, 30, ... 300 s, then once a minute.
    assert lines[-1].startswith("rounds: step 1 of 2: mix  2")


def test_a_log_says_how_long_preconditioning_may_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = ProgressView(Screen())
    now_s = 3.0
    view.phase("preconditioning")
    view.step_begin("preconditioning", 0, 2, 2, "overwrite")
    now_s = 13.0
    view.step_progress(Progress(elapsed_ns=0, ios=1, iops=1.0, fraction=0.25))
    assert capsys.readouterr().err == (
        "preconditioning: step 2 of 2: overwrite  25 %  about 30 s left\n"
    )


class Pipe:
    """Stores what a child sends."""

    def __init__(self) -> None:
        self.sent: list[ChildEvent] = []

    def send(self, event: ChildEvent) -> None:
        self.sent.append(event)


def test_a_run_of_a_set_says_where_a_long_step_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    pipe, view = Pipe(), SetView(Screen(), ["large", "small"])
    child = _PipeProgress("large", pipe)  # type: ignore[arg-type]  # as much as it needs
    child.phase("preconditioning")
    child.step_begin("preconditioning", 0, 1, 2, "fill")
    for tenth in range(1000):
        now_s = tenth / 10
        child.step_progress(Progress(elapsed_ns=0, ios=1, iops=1.0, fraction=now_s / 100))
    # The child does not send an event at every poll.
    assert len(pipe.sent) == 99, [step_event.text for step_event in pipe.sent]
    assert all(step_event.fraction is None for step_event in pipe.sent)  # The load has not started.
    for second, event in enumerate(pipe.sent, 1):
        now_s = second
        view.log(event)
    lines = capsys.readouterr().err.splitlines()
    where = "large: preconditioning: step 1 of 2: fill"
    assert lines == [
        f"[5 s] {where}  5 %  about 1 min 35 s left",
        f"[15 s] {where}  15 %  about 1 min 25 s left",
        f"[30 s] {where}  30 %  about 1 min 10 s left",
        f"[45 s] {where}  45 %  about 55 s left",
        f"[1 min] {where}  60 %  about 40 s left",
        f"[1 min 15 s] {where}  75 %  about 25 s left",
        f"[1 min 30 s] {where}  90 %  about 10 s left",
    ]


def test_a_set_says_how_long_the_rest_may_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = SetView(Screen(), ["a", "b", "c"])
    view.log(ChildEvent("b", "progress", "load  50 %", 0.5))
    # This event reports no fraction and leaves the previous fraction unchanged.
    view.log(ChildEvent("b", "line", "round 1: steady"))
    now_s = 30.0
    view.log(ChildEvent("a", "line", "complete", 1.0))
    assert capsys.readouterr().err.splitlines() == [
        "[0 s] b: round 1: steady",
        "[30 s] a: complete; 1 of 3 runs  50 %  about 30 s left",
    ]


def test_a_log_says_how_far_a_step_without_a_view_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = WorkProgress(WorkView(Screen()), "job")
    for second in range(20):
        now_s = second
        now = Progress(elapsed_ns=0, ios=1, iops=1000.0, fraction=second / 20)
        view.done(second / 20, figures=now.figures)
    assert capsys.readouterr().err.splitlines() == [
        "[5 s] job: 1,000 IOPS  25 %  about 15 s left",
        "[15 s] job: 1,000 IOPS  75 %  about 5 s left",
    ]


def test_a_log_says_how_many_tasks_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    look = work_shown(Screen())(4)
    for second in range(20):
        now_s = second
        look(second // 15)
    assert capsys.readouterr().err.splitlines() == [
        "[5 s] 0 of 4 done",
        "[15 s] 1 of 4 done  25 %  about 45 s left",
    ]


def test_silence_lasts_15_s_in_the_first_minutes_and_a_minute_in_hours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    silence = progress.Silence()
    lines_s = []
    for now_s in range(2 * 3600):
        if silence.too_long():
            lines_s.append(now_s)
    early = [line for line in lines_s if line <= 300]
    assert early == [5, *range(15, 301, 15)]
    gaps_s = {after - before for before, after in pairwise(lines_s[len(early) :])}
    assert gaps_s == {60}

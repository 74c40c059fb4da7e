"""Progress of `writecliff lab reproduce`: finished drives, and the progress of a long load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine, Workload
from writecliff.engines.base import Progress, ProgressHook, StepResult
from writecliff.lab.commands import reproduce_view
from writecliff.published.conditions import Load
from writecliff.published.fit.progress import FitProgress
from writecliff.published.measure import ComparedDrive, MeasurementObserver, measure

WRITES = Load("sustained", "random", 4096, 0.0, 32, 0.1)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_small_drive(tmp_path)


def test_a_long_preparation_and_a_long_load_say_how_far_they_are(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(reproduce_view.time, "monotonic", lambda: now[0])
    loads = [replace(WRITES, seconds=seconds) for seconds in (10.0, 20.0)]
    view = reproduce_view.ReproduceView({str(small): loads})
    for share in (0.0, 0.5, 1.0):
        view.preparing(str(small), "sustained", share)
        now[0] += 5
    for share in (0.1, 0.5):
        view.running(str(small), loads, share)
        now[0] += 10
    lines = [re.sub(r", about .* left", "", line) for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        f"[0/1 drives, 5 s]  {small}: preparing sustained, 50 %",
        f"[0/1 drives, 15 s]  {small}: sustained, 2 loads, 10 %",
    ]


def test_the_observer_follows_a_load(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer is called halfway, because runs of a small drive are too short for progress."""
    seen: list[tuple[str, tuple[float, ...], float]] = []

    class Watching(MeasurementObserver):
        def running(self, drive: str, loads: Sequence[Load], share: float) -> None:
            seen.append((drive, tuple(load.seconds for load in loads), share))

    run = SimEngine.run

    def looked_at(engine: SimEngine, workload: Workload, on_progress: ProgressHook) -> StepResult:
        on_progress(Progress(fraction=0.5, elapsed_ns=1, ios=1, iops=1.0))
        return run(engine, workload, on_progress)

    monkeypatch.setattr(SimEngine, "run", looked_at)
    drive = ComparedDrive("small", small.read_text(), "small.toml")
    load = replace(WRITES, state="fill")
    measure(drive, [load, replace(load, seconds=0.3)], observer=Watching())
    shares = [share for drive, seconds, share in seen if (drive, seconds) == ("small", (0.1, 0.3))]
    assert len(shares) == len(seen) and len(shares) > 2
    assert shares == sorted(shares) and 0 < shares[0] < 0.1 and 0.5 < shares[-1] < 1


def test_progress_counts_drives_and_guesses_what_is_left(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(reproduce_view.time, "monotonic", lambda: now[0])
    equal = [replace(WRITES, state="fresh", seconds=10.0, outstanding=n) for n in (2, 3, 4, 5)]
    view = reproduce_view.ReproduceView({str(small): equal})
    view.log("begins")
    for load in equal[:2]:
        now[0] += 20
        view.load(str(small), load)
    view.load(str(small), equal[2])
    now[0] += 20
    view.load(str(small), equal[3])
    view.drive(str(small), 60.0)
    assert capsys.readouterr().err.splitlines() == [
        "[0/1 drives, 0 s]  begins",
        f"[0/1 drives, 40 s, about 40 s left]  {small}: 2 loads left",
        f"[1/1 drives, 1 min]  {small}: done in 1 min",
    ]


def test_a_fit_says_how_far_a_long_load_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reproduce_view.time, "monotonic", lambda: now[0])
    lines: list[str] = []
    observer = FitProgress(lines.append)
    for share in (0.1, 0.2, 0.9):
        observer.running("small", [WRITES], share)
        now[0] += 2
    assert lines == ["[4 s] 0 loads simulated, the next 90 %"]


def test_a_search_says_how_far_it_is_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reproduce_view.time, "monotonic", lambda: now[0])
    lines: list[str] = []
    observer = FitProgress(lines.append)
    for share in (0.0, 0.1, 0.2, 0.6):
        observer.searching("over-provisioning", 8, share)
        now[0] += 2
    assert lines == ["[4 s] over-provisioning: 20 % of at most 8 tries, at most 16 s left"]

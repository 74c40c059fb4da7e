"""Runs side by side: identical results, within the memory budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload, parallel
from writecliff.errors import ConfigError
from writecliff.parallel import (
    Task,
    available_memory_bytes,
    drive_memory_bytes,
    map_side_by_side,
    run_side_by_side,
    watched,
)


def test_results_are_those_of_one_after_the_other(tmp_path: Path) -> None:
    device = str(write_small_drive(tmp_path))

    def run(seed: int) -> bytes:
        job = Job(queue_depth=16, read_pct=30, ios=60_000)
        result = SimEngine(device).run(Workload("w", (job,), seed=seed))
        return result.jobs[0].operations["write"].service.to_bytes()

    tasks = [Task(f"seed {seed}", 1, partial(run, seed)) for seed in range(6)]
    assert run_side_by_side(tasks, workers=3) == run_side_by_side(tasks, workers=1)


def test_the_budget_bounds_how_many_run_at_a_time() -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def run(value: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1
        return value

    tasks = [Task(str(n), 40, partial(run, n)) for n in range(8)]
    assert run_side_by_side(tasks, memory_budget_bytes=100, workers=8) == list(range(8))
    assert most[0] == 2


def test_a_task_beyond_the_budget_is_refused_before_anything_runs() -> None:
    ran: list[int] = []
    tasks = [Task("small", 1, lambda: ran.append(1)), Task("huge", 200, lambda: ran.append(2))]
    with pytest.raises(ConfigError, match="huge requires"):
        run_side_by_side(tasks, memory_budget_bytes=100)
    assert ran == []


def test_the_first_error_is_raised_and_the_rest_not_started() -> None:
    ran: list[int] = []

    def fail() -> None:
        raise ValueError("broken")

    tasks = [Task("bad", 1, fail)] + [Task(str(n), 1, lambda: ran.append(1)) for n in range(20)]
    with pytest.raises(ValueError, match="broken"):
        run_side_by_side(tasks, workers=1)
    assert ran == []


def test_memory_of_a_drive() -> None:
    # 960 GB on 1 TiB of flash need maps of 0.94 and 1.07 GB.
    assert drive_memory_bytes(960_000_000_000, 1 << 40) == pytest.approx(2.08e9, rel=0.01)


def test_cached_files_are_not_memory_in_use(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 2000 kB\nMemFree: 100 kB\nMemAvailable: 1000 kB\n")
    assert available_memory_bytes(meminfo) == 800 * 1024
    assert available_memory_bytes(tmp_path / "absent") > 0


def test_each_case_that_is_done_is_told_with_the_time_left() -> None:
    lines: list[str] = []
    assert map_side_by_side(pow, [(n, 2) for n in range(3)], 1000, lines.append) == [0, 1, 4]
    assert [line.split(",")[0] for line in lines] == ["[1/3", "[2/3", "[3/3"]
    assert [" left]  " in line for line in lines] == [True, True, False]
    assert sorted(line.split("]  ")[1] for line in lines) == [f"{n} 2: done" for n in range(3)]


def test_who_watches_hears_how_many_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_LOOK_S", 0.01)
    half = threading.Event()
    seen: list[tuple[int, int]] = []

    def watch(count: int) -> Callable[[int], None]:
        def look(done: int) -> None:
            seen.append((done, count))
            if done == 1:
                half.set()

        return look

    with watched(watch):
        done = run_side_by_side([Task("one", 1, bool), Task("two", 1, partial(half.wait, 60))])
    assert done == [False, True]
    assert set(seen) <= {(0, 2), (1, 2)} and (1, 2) in seen
    looks = len(seen)
    run_side_by_side([Task("three", 1, partial(time.sleep, 0.05))])  # No observer is left.
    assert len(seen) == looks

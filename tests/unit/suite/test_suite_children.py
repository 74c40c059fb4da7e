"""Members of a suite: they stop on request at any time, even if the first signal is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.support.deaf_member import MARK, lose_one_interrupt, note_process
from tests.support.processes import wait_for
from tests.support.small_drive import write_small_drive
from writecliff.errors import ConfigError, EngineError, WritecliffError
from writecliff.suite import children
from writecliff.suite.children import ChildSpec, MemberProcesses, Outcome
from writecliff.suite.folder import Member

SHORT = {"drive_fills": 0.5, "sample_seconds": 1.0, "round_minutes": 0.1}


def run(folder: Path, finish: Callable[[Path], object], stop: Event) -> Outcome:
    member = Member("wsat", SHORT, f"sim:{write_small_drive(folder)}")
    spec = ChildSpec("a", member, {}, folder / "run", resume=False, finish=finish)
    with MemberProcesses() as processes:
        return processes.run(spec, lambda event: None, stop)


def test_a_stop_while_the_member_starts(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    assert run(tmp_path, str, stop) == Outcome("a", False, "stopped", None, 130)


def test_a_signal_that_is_lost_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_REPEAT_S", 0.5)
    stop = Event()

    def stop_at_the_end() -> None:
        assert wait_for((tmp_path / "run" / MARK).exists)
        stop.set()

    thread = Thread(target=stop_at_the_end)
    thread.start()
    outcome = run(tmp_path, lose_one_interrupt, stop)
    thread.join()
    assert outcome == Outcome("a", False, "stopped", None, 130)


def test_a_process_runs_member_after_member_until_one_fails(tmp_path: Path) -> None:
    target = f"sim:{write_small_drive(tmp_path)}"
    numbers = []
    with MemberProcesses() as processes:
        for name, options in (
            ("a", SHORT),
            ("b", SHORT),
            ("c", {**SHORT, "drive_fills": -1.0}),
            ("d", SHORT),
        ):
            spec = ChildSpec(name, Member("wsat", options, target), {}, tmp_path / name,
                             resume=False, finish=note_process)  # fmt: skip
            outcome = processes.run(spec, lambda event: None, Event())
            assert outcome.ok == (name != "c"), outcome
            if outcome.ok:
                numbers.append(int((tmp_path / name / MARK).read_text()))
        assert len(processes._idle) == 1
    assert numbers[0] == numbers[1] != numbers[2]
    assert not any(Path(f"/proc/{number}").exists() for number in numbers)
    tables = [(tmp_path / name / "rounds.parquet").read_bytes() for name in ("a", "b", "d")]
    assert tables[0] == tables[1] == tables[2]


@pytest.mark.parametrize(("code", "kind"), [(1, EngineError), (2, ConfigError)])
def test_what_cannot_be_run_is_no_failure_of_the_engine(
    code: int, kind: type[WritecliffError]
) -> None:
    with pytest.raises(kind, match=r"^iops: too large$") as caught:
        Outcome("iops", False, "too large", "test less", code).check()
    assert (caught.value.exit_code, caught.value.hint) == (code, "test less")
    Outcome("iops", True).check()

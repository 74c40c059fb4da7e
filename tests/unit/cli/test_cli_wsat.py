"""`writecliff test wsat` on the fake drive: dry run, run, resume, JSON, drive errors."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.support.cli import CommandLine
from tests.support.fake_engine import FakeEngine, failing_at, interrupted_at
from writecliff.errors import TargetError
from writecliff.procedures.model import History, StepRow

SHORT = "test wsat --on sim:fake --end time --time-hours 0.05"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_dry_run_writes_nothing(cli: CommandLine, drive: FakeEngine, tmp_path: Path) -> None:
    completed = cli("test wsat --on sim:fake --edition pts-c --queue-depth 8 --dry-run")
    assert (completed.code, completed.err) == (0, "")
    assert completed.out == snapshot("""\
Write Saturation Test, PTS-C 1.2 on sim:fake: Fake Formula 480 FAKE0001, 480 GB

1. purge the drive
2. write cache on (WCE)
3. random 4 KiB writes, TC 2 / QD 8, in steps of 60 s
4. one step in 31, the last of a round, is a steady-state sample
5. until steady state over 5 rounds after 2 x user capacity or 24 h of writes, whichever comes first

steps        155 to 1440
device time  2 h 35 min to 24 h
host writes  at most 51.8 TB (108.0 drive fills)
expected     within these bounds; no pilot run was possible
deviation    queue_depth is 8; recommended by PTS WSAT: 16

nothing was done (--dry-run)
""")
    assert drive.calls == []
    assert drive.closed
    assert not any(tmp_path.iterdir())


def test_dry_run_as_json(cli: CommandLine, drive: FakeEngine) -> None:
    completed = cli("test wsat --on sim:fake --end time --dry-run --json")
    plan = json.loads(completed.out)["plan"]
    assert (plan["steps_min"], plan["steps_max"]) == (1440, 1440)
    assert plan["deviations"] == []
    assert drive.calls == []


def test_run_in_lines(cli: CommandLine, tmp_path: Path) -> None:
    completed = cli(SHORT + " --output r")
    assert completed.code == 0
    assert completed.out == snapshot("""\
run           r
ended by      0.05 h of writes
steady state  not reached; ended by 0.05 h of writes
device time   3 min
written       58.9 GB (0.12 fills)
last step     80,554 IOPS
report        r/report.html
verdict       Ended by 0.05 h of writes before a round was complete. At the end 80,554 IOPS; p99.99 15.99 (2.294 to 15.99) ms; Average latency 1.590 ms
""")
    talk = re.sub("complete after .* of wall", "complete after T of wall", completed.err)
    assert talk == snapshot("""\
Write Saturation Test, PTS-E 1.1 on sim:fake: Fake Formula 480 FAKE0001, 480 GB
run directory: r
deviation: time_hours is 0.05; required by PTS WSAT: 24
purge: fake purge
write cache: off
round 1  minute 1  79,409 IOPS  mean 1.61 ms  99.99 % 16.1 ms  max 92.0 ms  WAF 1.00  0.04 drive fills
round 1  minute 2  79,855 IOPS  mean 1.60 ms  99.99 % 16.1 ms  max 83.6 ms  WAF 1.00  0.08 drive fills
round 1  minute 3  80,554 IOPS  mean 1.59 ms  99.99 % 16.0 ms  max 84.9 ms  WAF 1.00  0.12 drive fills
complete after T of wall-clock time: 0.05 h of writes
""")
    assert (tmp_path / "r").is_dir()


def test_run_as_json(cli: CommandLine) -> None:
    completed = cli(SHORT + " --output r --json --quiet")
    assert (completed.code, completed.err) == (0, "")
    outcome = json.loads(completed.out)
    assert outcome["run"] == "r"
    assert outcome["status"] == "complete"
    assert outcome["ended_by"] == "time"
    assert outcome["steps"] == 3
    assert outcome["last_step"]["iops"] > 0


def test_default_directory_names_test_and_target(cli: CommandLine, tmp_path: Path) -> None:
    assert cli(SHORT).code == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith("wsat-sim-fake-")


def test_interrupt_and_resume(cli: CommandLine, drive: FakeEngine) -> None:
    drive.before_run = interrupted_at(2)
    completed = cli(SHORT + " --output r")
    assert completed.code == 130
    assert completed.err.endswith(
        "error: stopped; 1 complete step stored in r\n"
        "hint: resume the run with `writecliff test wsat --resume r`\n"
    )
    fresh = FakeEngine()
    drive.__dict__.update(fresh.__dict__)
    completed = cli("test wsat --resume r --json")
    assert completed.code == 0
    assert json.loads(completed.out)["steps"] == 3


def test_failing_drive(cli: CommandLine, drive: FakeEngine) -> None:
    drive.before_run = failing_at(2)
    completed = cli(SHORT + " --output r --quiet")
    assert (completed.code, completed.out) == (1, "")
    assert completed.err == (
        "error: fake drive gone\n"
        "hint: 1 complete step stored; after removing the cause, "
        "resume with `writecliff test wsat --resume r`\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("test wsat --resume r --seed 5", "--seed cannot be combined with --resume"),
        ("test wsat --resume r --output s", "--output cannot be combined with --resume"),
        ("test wsat --resume r", "complete"),
        (SHORT + " --output r", "not empty"),
    ],
)
def test_refusals_about_the_directory(cli: CommandLine, words: str, message: str) -> None:
    assert cli(SHORT + " --output r --quiet").code == 0
    completed = cli(words)
    assert completed.code == 2
    assert message in completed.err


def test_damaged_run_is_one_line(cli: CommandLine, tmp_path: Path) -> None:
    assert cli(SHORT + " --output r --quiet").code == 0
    for path in (tmp_path / "r").rglob("manifest*"):
        path.write_text('{"half": ')
    completed = cli("test wsat --resume r")
    assert completed.code == 2
    assert completed.err.startswith("error: damaged: r/manifest.json: the file is not JSON")


def test_a_closed_terminal_does_not_stop_the_test(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stderr", Gone())
    completed = cli(SHORT + " --output r --json")
    assert completed.code == 0
    assert json.loads(completed.out)["status"] == "complete"


def test_full_disk_is_one_line(cli: CommandLine, drive: FakeEngine) -> None:
    def full(run: int) -> None:
        if run == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "r/rows")

    drive.before_run = full
    completed = cli(SHORT + " --output r --quiet")
    assert completed.code == 1
    assert completed.err == snapshot("""\
error: no space left on device: r/rows
hint: free some space and try again; continue an interrupted run with --resume RUN
""")


def test_live_view_shows_where_the_test_is(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from writecliff.cli.progress import ProgressView
    from writecliff.cli.screen import Screen

    console = Console(width=100, force_terminal=False, file=io.StringIO())
    screens: list[str] = []

    class Recorded(ProgressView):
        def purge_progress(self, share: float) -> None:
            super().purge_progress(share)
            with console.capture() as capture:
                console.print(self.render())
            assert capture.get().splitlines()[1].strip() == "40% done"

        def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
            super().step_end(row, history, again=again)
            with console.capture() as capture:
                console.print(self.render())
            screens.append(capture.get())

    progress = Recorded(Screen(console=console))
    monkeypatch.setattr("writecliff.cli.runner.ProgressView", lambda screen: progress)
    completed = cli(
        "test wsat --on sim:fake --end time --time-hours 0.2 --round-minutes 2 --output r"
    )
    assert completed.code == 0
    assert len(screens) == 12
    without_time_left = re.sub(r"about .* left", "about T left", screens[-1])
    screen = "\n".join(line.rstrip() for line in without_time_left.splitlines())
    assert screen == snapshot("""\
rounds ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100 % about T left
round 6, step 2 of 2: minute 12
IOPS          79,578
WAF           1.00
latency       mean 1.61 ms, 99.99 % 16.1 ms, max 83.8 ms
written       236 GB, 0.49 drive fills
device time   12 min
steady state  yes: data excursion 1.62 % (allowed: 20 %), slope excursion 0.44 % (allowed: 10 %)\
""")


def test_a_real_drive_needs_its_serial_number(
    cli: CommandLine, drive: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drive.kind, drive.target = "fio", "/dev/fake"
    monkeypatch.setattr(
        sys.modules["writecliff.engines.target"], "open_target", lambda text, **options: drive
    )
    drive.write_refusal = TargetError("this run destroys all data", hint="give --destroy FAKE0001")
    completed = cli("test wsat --on /dev/fake --end time --time-hours 0.05")
    assert completed.code == 2
    assert completed.err == snapshot("""\
error: this run destroys all data
hint: give --destroy FAKE0001
""")
    assert drive.calls == []
    assert not any(tmp_path.iterdir())
    drive.write_refusal = None
    drive.before_run = interrupted_at(2)
    completed = cli(
        "test wsat --on /dev/fake --end time --time-hours 0.05 --output r --destroy FAKE0001"
    )
    assert completed.code == 130
    assert completed.err.endswith(
        "hint: resume the run with `writecliff test wsat --resume r --destroy FAKE0001`\n"
    )
    assert "all data on /dev/fake will be lost\n" in completed.err


@pytest.mark.parametrize("command", ["test wsat --end time", "suite pts-e --tests wsat"])
def test_a_dry_run_reports_that_the_run_would_be_refused(
    cli: CommandLine, drive: FakeEngine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    drive.kind, drive.target = "fio", "/dev/fake"
    asked: list[bool] = []

    def opened(text: str, *, look_only: bool = False, **options: object) -> FakeEngine:
        asked.append(look_only)
        return drive

    monkeypatch.setattr(sys.modules["writecliff.engines.target"], "open_target", opened)
    drive.write_refusal = TargetError("/dev/fake: mounted at /", hint="unmount it")
    words = f"{command} --on /dev/fake --dry-run --destroy FAKE0001"
    plan, shown = cli(words), cli(f"{words} --json")
    assert (plan.code, shown.code) == (2, 2)
    assert "nothing was done (--dry-run)" in plan.out
    refused = "the run would be rejected: /dev/fake: mounted at /\nhint: unmount it\n"
    assert plan.err.endswith(refused) and shown.err.endswith(refused)
    expected = {"message": "/dev/fake: mounted at /", "hint": "unmount it"}
    assert json.loads(shown.out)["refusal"] == expected
    drive.write_refusal = None
    assert cli(words).code == 0
    assert json.loads(cli(f"{words} --json").out)["refusal"] is None
    assert drive.calls == [] and asked == [True] * 4


def test_a_drive_without_serial_number_is_confirmed_by_its_path(
    cli: CommandLine, drive: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive.kind, drive.target, drive.serial = "fio", "/dev/fake", None
    drive.backing = "slot 1"
    monkeypatch.setattr(
        sys.modules["writecliff.engines.target"], "open_target", lambda text, **options: drive
    )
    drive.before_run = interrupted_at(2)
    completed = cli(
        ["test", "wsat", "--on", "/dev/fake", "--end", "time", "--time-hours", "0.05"]
        + ["--output", "r 1", "--destroy", "/dev/fake"]
    )
    assert completed.err.endswith(
        "hint: resume the run with `writecliff test wsat --resume 'r 1' --destroy /dev/fake`\n"
    )
    drive.before_run = failing_at(drive.runs + 1, "fio failed: killed by SIGKILL")
    completed = cli(["test", "wsat", "--resume", "r 1", "--destroy", "/dev/fake"])
    assert completed.code == 1
    assert completed.err.endswith(
        "error: fio failed: killed by SIGKILL\n"
        "hint: 1 complete step stored; after removing the cause, "
        "resume with `writecliff test wsat --resume 'r 1' --destroy /dev/fake`\n"
    )
    drive.before_run = None
    assert cli(["test", "wsat", "--resume", "r 1", "--destroy", "/dev/fake"]).code == 0


def test_no_purge_is_a_flag_that_simulated_drives_refuse(cli: CommandLine) -> None:
    completed = cli("test wsat --on sim:fake --no-purge --dry-run")
    assert completed.code == 2
    assert (
        "--no-purge applies only to real drives, because a simulated drive is new" in completed.err
    )
    help_text = " ".join(cli("test wsat --help").out.split())
    assert (
        "--no-purge Skip the purge, and stamp the report. Use this option for a real drive"
        in help_text
    )
    assert "--no-purge" in cli("suite --help").out

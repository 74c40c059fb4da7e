"""Real sweeps and suites on a small simulated drive: in parallel, stopped, resumed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.processes import WAIT_LIMIT_S, alive, children, wait_for
from tests.support.small_drive import write_small_drive
from writecliff.store.rundir import RunDirectory

ROOT = Path(__file__).resolve().parents[3]
SHORT = ["--set", "drive_fills=2", "--set", "sample_seconds=1", "--set", "round-minutes=0.1"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "writecliff", *words]


def run(*words: str) -> dict[str, object]:
    done = subprocess.run(
        command(*words, "--json"), capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {
        path.parent.name: pq.read_table(path).to_pylist()
        for path in sorted(folder.glob("*/rounds.parquet"))
    }


def sweep(device: Path, output: Path, *more: str) -> list[str]:
    words = ["sweep", "--on", f"sim:{device}", "--vary", "queue_depth=4,32"]
    return [*words, "--output", str(output), *SHORT, *more]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sweep")
    device = write_small_drive(folder)
    answer = run(*sweep(device, folder / "both"))
    assert [entry["status"] for entry in answer["runs"]] == ["complete", "complete"]  # type: ignore[attr-defined]
    return device, folder / "both"


def test_the_manifest_of_a_member_has_the_command_of_the_sweep(made: tuple[Path, Path]) -> None:
    device, both = made
    for path in sorted(both.glob("*/manifest.json")):
        assert json.loads(path.read_text())["command"] == [
            "writecliff", *sweep(device, both), "--json"
        ]  # fmt: skip


def test_the_page_shows_every_setting(made: tuple[Path, Path]) -> None:
    page = (made[1] / "summary.html").read_text()
    start = page.index('id="writecliff-comparison">') + len('id="writecliff-comparison">')
    summary = json.loads(page[start : page.index("</script>", start)])
    assert list(summary["runs"]) == ["queue-depth-4", "queue-depth-32"]
    assert "<h2>Figures by queue depth</h2>" in page
    assert page.count('<figure id="by-setting-') == 5
    assert page.count("<figure") == 10
    assert "NOT PTS-CONFORMANT" in page
    assert 'href="./queue-depth-4/report.html"' in page


def test_a_stopped_sweep_goes_on_and_ends_the_same(made: tuple[Path, Path], tmp_path: Path) -> None:
    """Check that runs in sequence give the same results as runs in parallel."""
    device, both = made
    words = command(*sweep(device, tmp_path / "s", "--jobs", "1"))
    words[1:3] = [
        str(ROOT / "tests/support/stop_itself.py"),
        str(int(signal.SIGINT)),
        "event:rounds",
    ]
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    stopped = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    log = stopped.stderr
    assert stopped.returncode == 130, log
    assert f"writecliff sweep --resume {tmp_path / 's'}" in log
    run("sweep", "--resume", str(tmp_path / "s"), "--jobs", "1")
    assert tables(tmp_path / "s") == tables(both)
    assert (tmp_path / "s" / "summary.html").is_file()


MEMBER = b"writecliff.suite.member"
# A shell displays 130 in both cases. Python ends itself with SIGINT if the signal arrived while an
# import ran code from a string (as dataclasses do), even if a handler processed the signal.
INTERRUPTED = (130, -signal.SIGINT)
# A full-size drive takes a minute or more, so no run is complete when its sweep is stopped.
LONG = ["sweep", "--on", "sim:sata-tlc-120", "--set", "sample_seconds=1"]


@pytest.mark.parametrize("lines", [1, 9, pytest.param(4, marks=pytest.mark.long)])
def test_ctrl_c_ends_a_sweep_at_any_moment(tmp_path: Path, lines: int) -> None:
    """Press Ctrl-C on a terminal: the kernel sends SIGINT to all of the processes."""
    words = [*LONG, "--vary", "queue_depth=4,16,32"]
    process = subprocess.Popen(
        command(*words, "--output", str(tmp_path / "s"), "--jobs", "2"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for _ in range(lines):
        process.stderr.readline()
    started = children(process.pid, MEMBER) if lines > 1 else []
    os.killpg(process.pid, signal.SIGINT)
    log = process.stderr.read()
    process.wait(WAIT_LIMIT_S)
    assert process.returncode in INTERRUPTED, log
    assert "Traceback" not in log
    if lines > 1:  # The sweep itself has not started at the first line.
        assert "stopped; complete: 0 of 3" in log
    assert not any(map(alive, started))


def test_members_end_when_their_suite_is_killed(tmp_path: Path) -> None:
    words = [*LONG, "--vary", "queue_depth=4,32"]
    process = subprocess.Popen(
        command(*words, "--output", str(tmp_path / "s"), "--jobs", "2"),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "rounds" in line:
            break
    runs = [tmp_path / "s" / name for name in ("queue-depth-4", "queue-depth-32")]
    assert wait_for(lambda: all((run / "manifest.json").exists() for run in runs))
    members = children(process.pid, MEMBER)
    assert len(members) == 2
    os.kill(process.pid, signal.SIGKILL)
    process.wait(WAIT_LIMIT_S)
    try:
        assert wait_for(lambda: not any(map(alive, members)), 30)
    finally:
        for member in filter(alive, members):
            os.kill(member, signal.SIGKILL)
    for run in runs:
        assert RunDirectory.open(run).status == "interrupted"


def test_the_settings_of_a_sweep_are_compared(made: tuple[Path, Path], tmp_path: Path) -> None:
    answer = run("compare", str(made[1]), "--output", str(tmp_path / "c.html"))
    labels = [contender["label"] for contender in answer["contenders"]]  # type: ignore[attr-defined]
    assert labels == ["queue depth 4", "queue depth 32"]
    fob = next(f for f in answer["figures"] if f["key"] == "fob_iops")  # type: ignore[attr-defined]
    first = tables(made[1])["queue-depth-4"][0]
    assert fob["values"][0]["value"] == pytest.approx(first["iops"], rel=0.3)
    assert {"what": "queue depth", "values": ["4", "32"], "tests": []} in answer["differences"]  # type: ignore[operator]
    assert (tmp_path / "c.html").is_file()


def test_a_complete_sweep_has_nothing_left_to_do_and_says_its_answer(
    made: tuple[Path, Path],
) -> None:
    before = tables(made[1])
    words = command("sweep", "--resume", str(made[1]))
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=WAIT_LIMIT_S)
    assert tables(made[1]) == before
    lines = done.stdout.splitlines()
    assert any(line.startswith("p99.99 ") for line in lines)
    assert re.search("queue depth (4|32) is better at", lines[-1], re.IGNORECASE)

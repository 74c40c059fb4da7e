"""`writecliff fio`: fio's command line on the fake drive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.fake_engine import FakeEngine


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


JOB = "--name=x --rw=randwrite --bs=4k --ioengine=libaio --iodepth=4 --time_based --runtime=3"


def test_text(cli: CommandLine) -> None:
    completed = cli(f"fio --on sim:fake --quiet {JOB}")
    assert (completed.code, completed.err) == (0, "")
    assert completed.out.startswith("fio-3.41 (writecliff ")
    assert "x: (groupid=0, jobs=1): err= 0" in completed.out
    assert "  write: IOPS=79.3k, BW=310MiB/s (325MB/s)" in completed.out
    assert "Run status group 0 (all jobs):" in completed.out
    assert "Disk stats (read/write):\n  fake: ios=0/2379" in completed.out


def test_json_goes_to_a_file_and_json_plus_has_the_bins(cli: CommandLine) -> None:
    completed = cli(f"fio {JOB} --output-format=json --output=r.json --on=sim:fake --quiet")
    assert (completed.code, completed.out, completed.err) == (0, "", "")
    plain = json.loads(Path("r.json").read_text())
    full = json.loads(cli(f"fio {JOB} --output-format=json+ --on sim:fake --quiet").out)
    assert json.loads(cli(f"fio {JOB} --json --on sim:fake --quiet").out)["jobs"]
    latency = (document["jobs"][0]["write"]["clat_ns"] for document in (plain, full))
    assert [("bins" in percentiles, "percentile" in percentiles) for percentiles in latency] == [
        (False, True), (True, True)
    ]  # fmt: skip
    (disk,) = plain["disk_util"]
    assert disk["name"] == "fake" and disk["write_ios"] == plain["jobs"][0]["write"]["total_ios"]
    assert 0 < disk["util"] <= 100


def test_notes_logs_and_parse_only(cli: CommandLine, drive: FakeEngine) -> None:
    completed = cli(f"fio --on sim:fake {JOB} --write_iops_log=log --parse-only")
    assert (completed.code, completed.out) == (0, "") and drive.clock_ns == 0
    assert "note: job x: blocks may repeat within a pass" in completed.err
    completed = cli(f"fio --on sim:fake --quiet {JOB} --write_iops_log=log --aux-path=logs")
    rows = Path("logs/log_iops.1.log").read_text().splitlines()
    assert [row.split(", ")[0] for row in rows] == ["1000", "2000", "3000"]


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        ("--rw=randread", True), ("--rw=write", False), ("--rw=randread --precondition=none", False),
        ("--rw=write --name=y --stonewall --rw=randread", False),
    ],
)  # fmt: skip
def test_a_drive_is_filled_before_reads_of_the_unwritten(
    words: str, filled: bool, cli: CommandLine, drive: FakeEngine
) -> None:
    completed = cli(f"fio --on sim:fake --size=64m --bs=64k --name=x {words}")
    assert completed.code == 0
    assert ("filling the drive first" in completed.err) == filled
    assert (drive.written_bytes > drive.capacity_bytes / 2) == filled


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"fio {JOB}", "no target was specified"),
        (f"fio --on /dev/sda {JOB}", "/dev/sda is not a simulated drive"),
        ("fio --on sim:fake", "no job was specified"),
        ("fio --on sim:fake --name=x --iodpeth=4", "unknown option '--iodpeth'"),
        (f"fio --on sim:fake {JOB} --readonly", "job x writes, but --readonly was given"),
        ("fio --on sim:fake --name=a --bs=77 --name=b --ioengine=net", "2 problems"),
    ],
)
def test_mistakes(words: str, message: str, cli: CommandLine, drive: FakeEngine) -> None:
    completed = cli(words)
    assert completed.code == 2 and message in completed.err and completed.out == ""
    assert drive.clock_ns == 0


def test_version_is_fio_s_for_scripts_that_ask(cli: CommandLine) -> None:
    assert cli("fio --version").out.startswith("fio-3.41")

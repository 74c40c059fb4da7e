"""`writecliff run FILE` with fio job files on the fake drive: table, JSON, notes, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.support.cli import CommandLine
from tests.support.fake_engine import FakeEngine, interrupted_at

JOB = """\
[global]
rw=randwrite
bs=4k
direct=1
time_based
runtime=10
iodepth=32

[first]

[second]
stonewall
iodepth=1
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.fio").write_text(JOB)


def test_table(cli: CommandLine) -> None:
    said = cli("run two.fio --on sim:fake --quiet")
    assert (said.code, said.err) == (0, "")
    assert said.out == snapshot("""\
two-1
job    operation    IOPS   MB/s     mean      p50      p99    p99.9  p99.99     max
first  write      79,316  324.9  12.6 µs  13.3 µs  18.4 µs  18.4 µs  127 µs  682 µs

793,158 I/Os, 3.25 GB in 10 s of device time; WAF 1.00
two-2
job     operation    IOPS   MB/s     mean      p50      p99    p99.9  p99.99     max
second  write      79,316  324.9  12.6 µs  13.3 µs  18.4 µs  18.4 µs  127 µs  682 µs

793,158 I/Os, 3.25 GB in 10 s of device time; WAF 1.00
""")


def test_json(cli: CommandLine) -> None:
    said = cli("run two.fio --on sim:fake --json --quiet")
    assert said.code == 0
    answer = json.loads(said.out)
    assert answer["file"] == "two.fio"
    assert answer["target"] == "sim:fake"
    assert [step["workload"] for step in answer["steps"]] == ["two-1", "two-2"]
    operation = answer["steps"][0]["jobs"][0]["operations"]["write"]
    assert operation["ios"] == operation["service"]["count"] - 1
    assert operation["bytes"] == 4096 * operation["ios"]
    percentiles = operation["service"]["percentiles"]
    assert [p["pct"] for p in percentiles] == [50, 90, 99, 99.9, 99.99, 99.999]


def test_seed_of_the_command_line_counts(cli: CommandLine) -> None:
    answer = json.loads(cli("run two.fio --on sim:fake --json --quiet --seed 5").out)
    assert [step["seed"] for step in answer["steps"]] == [5, 5]


def test_interrupted(cli: CommandLine, drive: FakeEngine) -> None:
    drive.before_run = interrupted_at(2)
    said = cli("run two.fio --on sim:fake --quiet")
    assert (said.code, said.out, said.err) == (130, "", "error: interrupted\n")
    assert drive.closed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nrw=randwrit\n", "two.fio:2"),
        ("[a]\nno_such_option=1\n", "no_such_option"),
        ("", "two.fio"),
    ],
)
def test_malformed_job_files(cli: CommandLine, drive: FakeEngine, text: str, message: str) -> None:
    Path("two.fio").write_text(text)
    said = cli("run two.fio --on sim:fake")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert message in said.err.splitlines()[0]
    assert drive.calls == []
    assert drive.closed


def test_fio_json_is_for_fio_files(cli: CommandLine) -> None:
    Path("w.toml").write_text("")
    said = cli("run w.toml --on sim:fake --output-format fio-json")
    assert said.code == 2
    assert "is for fio job files" in said.err

"""`writecliff run FILE` with fio job files on the fake drive: table, JSON, notes, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.support.cli import CommandLine
from tests.support.fake_engine import FakeEngine, interrupted_at
from writecliff.workload.model import SECOND_NS

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
    completed = cli("run two.fio --on sim:fake --quiet --output r")
    assert (completed.code, completed.err) == (0, "")
    assert completed.out == snapshot("""\
two-1
job    operation    IOPS   MB/s     mean      p50      p99    p99.9  p99.99     max
first  write      79,316  324.9  12.6 µs  13.3 µs  18.4 µs  18.4 µs  127 µs  682 µs

793,158 I/Os, 3.25 GB in 10 s of device time; WAF 1.00
two-2
job     operation    IOPS   MB/s     mean      p50      p99    p99.9  p99.99     max
second  write      79,316  324.9  12.6 µs  13.3 µs  18.4 µs  18.4 µs  127 µs  682 µs

793,158 I/Os, 3.25 GB in 10 s of device time; WAF 1.00

run      r
report   r/report.html
verdict  first: 79,316 writes/s, p99.99 127 µs; second: 79,316 writes/s, p99.99 127 µs
""")


def test_json(cli: CommandLine) -> None:
    completed = cli("run two.fio --on sim:fake --json --quiet")
    assert completed.code == 0
    answer = json.loads(completed.out)
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
    completed = cli("run two.fio --on sim:fake --quiet")
    assert (completed.code, completed.out) == (130, "")
    assert completed.err.startswith("error: stopped; 1 complete step stored in runs/two-sim-fake-")
    assert drive.closed
    (run,) = Path("runs").iterdir()
    assert f"hint: resume the run with `writecliff run --resume {run}`" in completed.err
    drive.before_run = None
    resumed = json.loads(cli(f"run --resume {run} --json --quiet --on sim:fake").out)
    whole = json.loads(cli("run two.fio --on sim:fake --json --quiet").out)
    assert [step["workload"] for step in resumed["steps"]] == ["two-1", "two-2"]
    assert resumed["steps"][0] == whole["steps"][0]


def test_a_run_has_a_report_and_can_be_compared(cli: CommandLine) -> None:
    answer = json.loads(cli("run two.fio --on sim:fake --json --quiet --output r").out)
    assert (answer["run"], answer["report"], answer["precondition"]) == (
        "r",
        "r/report.html",
        "none",
    )
    assert answer["verdict"].startswith("first: 79,316 writes/s")
    summary = json.loads(cli("report r --json").out)["summary"]
    assert (summary["schema"], summary["steps"]) == ("writecliff/workload/1", answer["steps"])
    Path("a.json").write_text(json.dumps(answer))
    cli("run two.fio --on sim:fake --quiet --output s --seed 5")
    comparison = json.loads(cli("compare r s --json").out)
    assert {d["what"] for d in comparison["differences"]} == {"seed", "definition"}
    means = [f for f in comparison["figures"] if f["key"].endswith(("/iops", "/mb_per_s", "/mean"))]
    assert len(means) == 6 and {figure["noise"] for figure in means} <= {"within", "more"}
    assert json.loads(cli("compare r a.json --json").out)["figures"]


def test_a_run_ends_with_the_comparison_to_its_baseline(cli: CommandLine) -> None:
    cli("run two.fio --on sim:fake --quiet --output a")
    completed = cli("run two.fio --on sim:fake --quiet --seed 5 --output b --baseline a")
    last = completed.out.splitlines()[-1]
    compared = json.loads(cli("compare a b --json").out)
    assert last == f"compared    {compared['verdict']}"
    assert Path("b/comparison.html").is_file()
    words = "run two.fio --on sim:fake --quiet --seed 6 --output c --baseline a --json"
    comparison = json.loads(cli(words).out)["comparison"]
    assert comparison["figures"] and comparison["report"] == "c/comparison.html"
    assert json.loads(cli("report c --json").out)["summary"]["steps"]  # The page is intact.


def test_a_baseline_is_looked_at_before_anything_is_run(cli: CommandLine) -> None:
    completed = cli("run two.fio --on sim:fake --quiet --output b --baseline nowhere")
    assert (completed.code, "nowhere contains no run" in completed.err) == (2, True)
    completed = cli("run two.fio --on sim:fake --quiet --baseline . --output-format fio-json")
    assert (completed.code, "--baseline" in completed.err) == (2, True)
    assert not Path("b").exists()


def test_a_dry_run_does_nothing(cli: CommandLine, drive: FakeEngine) -> None:
    plan = json.loads(cli("run two.fio --on sim:fake --dry-run --json --precondition fill").out)
    assert plan["plan"]["phases"][0].startswith("purge, then the whole capacity once")
    assert plan["plan"]["device_time_min_ns"] == 20 * SECOND_NS
    assert drive.calls == []
    assert not Path("runs").exists()


def test_what_cannot_be_resumed_or_preconditioned(cli: CommandLine) -> None:
    for words, text in (
        ("run two.fio --resume r", "a workload cannot be combined with --resume"),
        ("run --resume r --seed 3", "--precondition, --seed or --scale cannot be combined"),
        ("run --on sim:fake", "missing argument FILE"),
        ("run two.fio --on sim:fake --precondition half", "unknown preconditioning 'half'"),
        ("run two.fio --on sim:fake --precondition used:0%", "'used:0%' requires a percentage"),
    ):
        completed = cli(words)
        assert (completed.code, text in completed.err) == (2, True), completed.err


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
    completed = cli("run two.fio --on sim:fake")
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith("error: ")
    assert message in completed.err.splitlines()[0]
    assert drive.calls == []
    assert drive.closed


def test_fio_json_is_for_fio_files(cli: CommandLine) -> None:
    Path("w.toml").write_text("")
    completed = cli("run w.toml --on sim:fake --output-format fio-json")
    assert completed.code == 2
    assert "applies only to fio job files" in completed.err


def test_a_run_on_a_smaller_drive(capsys: pytest.CaptureFixture[str]) -> None:
    cli = CommandLine(capsys)
    words = "run oltp-4k --on sim:sata-tlc-120 --precondition none --quiet --json"
    small = json.loads(cli(f"{words} --scale 20 --output small").out)
    assert small["scale"] == 16
    noted = cli("run oltp-4k --on sim:sata-tlc-120 --precondition none --scale 20 --dry-run").err
    assert "note: --scale 20 is reduced to 16, the largest factor" in noted
    completed = cli("run --resume small --scale 2")
    assert completed.code == 2 and "cannot be combined with --resume" in completed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--on sim:sata-tlc-120 --scale 0.5", "--scale must be from 1 to 1024, not 0.5"),
        ("--on file:image --size 1GB --scale 2", "--scale does not apply to file:"),
    ],
)
def test_a_scale_that_is_rejected(
    capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    completed = CommandLine(capsys)(f"run oltp-4k {words}")
    assert completed.code == 2 and message in completed.err

"""`writecliff replay` and `writecliff advise-streams`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.report import build_report
from writecliff.store.rundir import RunDirectory


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    monkeypatch.chdir(tmp_path)  # Runs are stored in the current folder.
    return CommandLine(capsys)


def _words(folder: Path, command: str, *more: str) -> list[str]:
    trace = str(folder / "store.parquet")
    return [command, trace, "--on", "sim:sata-tlc-120", "--fills", "2", *more]


def test_replay_reports_the_gain_of_streams(cli: CommandLine, trace_folder: Path) -> None:
    rules = str(trace_folder / "rules.toml")
    output = cli(_words(trace_folder, "replay", "--streams", rules, "--no-timed"))
    assert output.code == 0, output.err
    assert "write amplification" in output.out and "writer: .log" in output.out
    answer = json.loads(cli(_words(trace_folder, "replay", "--streams", rules, "--json")).out)
    assert answer["schema"] == "writecliff/replay/1"
    assert answer["assign"] == "rules" and 1.0 <= answer["waf"] < 2.0
    assert answer["reads"] > 0 and answer["read_mean_ns"] > 50_000
    assert [row["name"] for row in answer["by_stream"]][:2] == ["log", "flush"]
    assert (answer["trace"]["writeback"], answer["trace"]["write_rate_from"]) == (
        "page-cache", "trace",
    )  # fmt: skip
    assert "from the page cache: at fsync" in output.out


def test_replays_answer_in_their_last_line_and_are_compared(
    cli: CommandLine, trace_folder: Path, tmp_path: Path
) -> None:
    saved = [tmp_path / "none.json", tmp_path / "rules.json"]
    rules = ("--streams", str(trace_folder / "rules.toml"))
    for path, more in zip(saved, ((), rules), strict=True):
        path.write_text(cli(_words(trace_folder, "replay", "--no-timed", *more, "--json")).out)
    runs = [json.loads(path.read_text())["run"] for path in saved]
    last = cli(_words(trace_folder, "replay", "--no-timed", *rules)).out.splitlines()[-1]
    page = str(tmp_path / "c.html")
    answer = json.loads(cli(["compare", *map(str, saved), "--output", page, "--json"]).out)
    assert [contender["label"] for contender in answer["contenders"]] == ["none.json", "rules.json"]
    figures = {figure["key"]: figure for figure in answer["figures"]}
    assert figures["waf"]["best"] == "rules.json"
    rules_waf = figures["waf"]["values"][1]["value"]
    assert f"written in its life: WAF {rules_waf:.3f} with" in last
    assert {"what": "assign", "values": ["none", "rules"], "tests": []} in answer["differences"]
    from_runs = json.loads(cli(["compare", *runs, "--output", page, "--json"]).out)
    assert [contender["label"] for contender in from_runs["contenders"]] == [
        Path(run).name for run in runs
    ]
    assert from_runs["figures"] == [
        {**figure, "best": from_runs["figures"][number]["best"]}
        for number, figure in enumerate(answer["figures"])
    ]


def test_a_replay_is_kept_with_its_report(cli: CommandLine, trace_folder: Path) -> None:
    answer = json.loads(cli(_words(trace_folder, "replay", "--output", "r", "--json")).out)
    assert (answer["run"], answer["report"]) == ("r", "r/report.html")
    summary = json.loads(cli("report r --json").out)["summary"]
    ends = ("run", "report", "comparison", "expectations")
    assert summary["schema"] == "writecliff/trace_replay/1"
    assert summary["replay"] == {k: v for k, v in answer.items() if k not in ends}
    model = build_report(RunDirectory.open(Path("r")))
    assert [part.title for part in model.sections] == [
        "Lifetime", "Streams", "Response times", "Reference test platform",
    ]  # fmt: skip
    assert {figure.name for figure in model.figures} == {
        "waf", "percentiles", "histogram-read", "histogram-write",
    }  # fmt: skip
    again = cli(_words(trace_folder, "replay", "--output", "r"))
    assert (again.code, "r exists and is not empty" in again.err) == (2, True)


def test_replay_reports_a_file_system_without_trim(cli: CommandLine, trace_folder: Path) -> None:
    words = ("--no-trim", "--allocator", "first-fit", "--copies", "2", "--no-timed")
    words += ("--writeback", "immediate", "--writes-per-day", "1TB")
    output = cli(_words(trace_folder, "replay", *words))
    assert output.code == 0 and "first-fit, without TRIM, 2 copies" in output.out
    assert "at once, as with direct" in output.out and "years at 1 TB written a day," in output.out
    answer = json.loads(cli(_words(trace_folder, "replay", *words, "--json")).out)
    assert answer["trace"]["trim"] is False and answer["trace"]["copies"] == 2
    assert (
        answer["trace"]["mean_bytes"]
        <= answer["trace"]["peak_bytes"]
        <= answer["mapped_bytes"] * 1.2
    )
    with_trim = json.loads(cli(_words(trace_folder, "replay", "--no-timed", "--json")).out)
    assert with_trim["waf"] < answer["waf"]


def test_advise_streams_writes_a_page(cli: CommandLine, trace_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    words = (
        "--streams",
        str(trace_folder / "rules.toml"),
        "--counts",
        "2,4",
        "--output",
        str(page),
    )
    output = cli(_words(trace_folder, "advise-streams", *words, "--json"))
    assert output.code == 0, output.err
    answer = json.loads(output.out)
    assert answer["report"] == str(page)
    assert {cell["assign"] for cell in answer["cells"]} == {
        "none", "rules", "sfr", "multi-queue", "sepbit", "oracle",
    }  # fmt: skip
    text = page.read_text()
    assert answer["verdict"][0] in text and "stream-contents" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "replay nowhere.parquet --on sim:sata-tlc-120",
            "the trace nowhere.parquet does not exist",
        ),
        ("replay nowhere.parquet", "no target was specified"),
        ("advise-streams nowhere.parquet --on /dev/sda", "not simulated"),
    ],
)
def test_mistakes_are_one_clear_line(cli: CommandLine, words: str, expected: str) -> None:
    output = cli(words)
    assert output.code == 2 and expected in output.err and output.out == ""

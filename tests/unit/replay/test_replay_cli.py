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
    monkeypatch.chdir(tmp_path)  # runs are kept where a command is started
    return CommandLine(capsys)


def _words(folder: Path, command: str, *more: str) -> list[str]:
    trace = str(folder / "store.parquet")
    return [command, trace, "--on", "sim:sata-tlc-120", "--fills", "2", *more]


def test_replay_reports_the_gain_of_streams(cli: CommandLine, trace_folder: Path) -> None:
    rules = str(trace_folder / "rules.toml")
    said = cli(_words(trace_folder, "replay", "--streams", rules, "--no-timed"))
    assert said.code == 0, said.err
    assert "write amplification" in said.out and "writer: .log" in said.out
    found = json.loads(cli(_words(trace_folder, "replay", "--streams", rules, "--json")).out)
    assert found["schema"] == "writecliff/replay/1"
    assert found["assign"] == "rules" and 1.0 <= found["waf"] < 2.0
    assert found["reads"] > 0 and found["read_mean_ns"] > 50_000
    assert [row["name"] for row in found["by_stream"]][:2] == ["log", "flush"]
    assert (found["trace"]["writeback"], found["trace"]["write_rate_from"]) == (
        "page-cache", "trace",
    )  # fmt: skip
    assert "from the page cache: at fsync" in said.out


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
    found = json.loads(cli(["compare", *map(str, saved), "--output", page, "--json"]).out)
    assert [one["label"] for one in found["contenders"]] == ["none.json", "rules.json"]
    figures = {figure["key"]: figure for figure in found["figures"]}
    assert figures["waf"]["best"] == "rules.json"
    rules_waf = figures["waf"]["values"][1]["value"]
    assert f"written in its life: WAF {rules_waf:.3f} with" in last
    assert {"what": "assign", "values": ["none", "rules"], "tests": []} in found["differences"]
    kept = json.loads(cli(["compare", *runs, "--output", page, "--json"]).out)
    assert [one["label"] for one in kept["contenders"]] == [Path(run).name for run in runs]
    assert kept["figures"] == [
        {**figure, "best": kept["figures"][number]["best"]}
        for number, figure in enumerate(found["figures"])
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
    assert {figure.name for part in model.sections for figure in part.figures} == {
        "waf", "percentiles", "histogram-read", "histogram-write",
    }  # fmt: skip
    again = cli(_words(trace_folder, "replay", "--output", "r"))
    assert (again.code, "r exists and is not empty" in again.err) == (2, True)


def test_replay_reports_a_file_system_without_trim(cli: CommandLine, trace_folder: Path) -> None:
    words = ("--no-trim", "--allocator", "first-fit", "--copies", "2", "--no-timed")
    words += ("--writeback", "immediate", "--writes-per-day", "1TB")
    said = cli(_words(trace_folder, "replay", *words))
    assert said.code == 0 and "first-fit, without TRIM, 2 copies" in said.out
    assert "at once, as with direct" in said.out and "years at 1 TB written a day," in said.out
    found = json.loads(cli(_words(trace_folder, "replay", *words, "--json")).out)
    assert found["trace"]["trim"] is False and found["trace"]["copies"] == 2
    assert (
        found["trace"]["mean_bytes"] <= found["trace"]["peak_bytes"] <= found["mapped_bytes"] * 1.2
    )
    with_trim = json.loads(cli(_words(trace_folder, "replay", "--no-timed", "--json")).out)
    assert with_trim["waf"] < found["waf"]


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
    said = cli(_words(trace_folder, "advise-streams", *words, "--json"))
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["report"] == str(page)
    assert {cell["assign"] for cell in found["cells"]} == {
        "none", "rules", "sfr", "multi-queue", "sepbit", "oracle",
    }  # fmt: skip
    text = page.read_text()
    assert found["verdict"][0] in text and "stream-contents" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("replay nowhere.parquet --on sim:sata-tlc-120", "nowhere.parquet: no such trace"),
        ("replay nowhere.parquet", "no target given"),
        ("advise-streams nowhere.parquet --on /dev/sda", "not simulated"),
    ],
)
def test_mistakes_are_one_clear_line(cli: CommandLine, words: str, expected: str) -> None:
    said = cli(words)
    assert said.code == 2 and expected in said.err and said.out == ""

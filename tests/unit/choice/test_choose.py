"""`writecliff choose` on small drives: the command, its page, resuming, and changed limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.ui.series import Shelf, named

LOAD = """
name = "mixed"
precondition = "sustained"
[[job]]
name = "mixed"
read = "70 %"
queue_depth = 8
duration = "2 s"
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def drives(tmp_path: Path) -> list[str]:
    """Return the paths of three drives: normal, with slower flash, with longer life."""
    changed = {
        "usual": {},
        "slow": {"program": '["9 ms"]', "read": '["300 us", "300 us", "300 us"]'},
        "lasting": {"rated_cycles": "60000"},
    }
    for name, values in changed.items():
        folder = tmp_path / "drives"
        folder.mkdir(exist_ok=True)
        write_small_drive(folder, **values).rename(folder / f"{name}.toml")
    return [str(tmp_path / "drives" / f"{name}.toml") for name in changed]


@pytest.fixture
def load(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.toml"
    path.write_text(LOAD)
    return path


def asked(load: Path, drives: list[str], output: Path, *more: str) -> list[str]:
    words = ["choose", "--workload", str(load), "--candidates", ",".join(drives), "--json"]
    if "--jobs" not in more:
        words += ["--jobs", "1"]  # Each job is a process that loads the program.
    return [*words, "--quiet", "--output", str(output), *more]


def answered(output: Any, code: int = 0) -> dict[str, Any]:
    assert output.code == code, output.err
    answer = json.loads(output.out)
    assert isinstance(answer, dict)
    return answer


def test_the_answer_has_reasons_and_can_be_asked_again(
    load: Path, drives: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("".join(f"{path},{100 + n}\n" for n, path in enumerate(drives)))
    output = tmp_path / "choice"
    more = ["--writes-per-day", "100GB", "--prices", str(prices), "--limit", "p99.9 <= 1 s"]
    first = answered(cli(asked(load, drives, output, *more, "--what-if", "--jobs", "2")))
    ranking = first["ranking"]
    assert [row["device"] for row in ranking] == ["lasting", "usual", "slow"]
    assert [row["rank"] for row in ranking] == [1, 2, 3]
    assert all(row["passes"] for row in ranking)
    by_name = {row["device"]: row["metrics"] for row in ranking}
    assert by_name["usual"]["iops"] == by_name["lasting"]["iops"] > by_name["slow"]["iops"]
    assert by_name["usual"]["p999_ms"] < by_name["slow"]["p999_ms"]
    assert by_name["lasting"]["life_years"] > by_name["usual"]["life_years"]
    assert by_name["usual"]["price"] == 100
    assert "the first" in ranking[2]["why"] and "best" in ranking[0]["why"]
    assert first["verdict"].startswith("lasting is first of 3: ")
    unknown = [
        key
        for key in first["weights"]
        if any(row["model_error"]["by_figure"][key]["error_pct"] is None for row in ranking[:2])
    ]
    assert first["verdict"].endswith(" % behind, with a model error that is not fully known.")
    changes = {change["change"]: change for change in first["what_if"]}
    assert {"28 % over-provisioning", "twice the queue depth", "another seed"} <= set(changes)
    waf = {
        each["device"]: each["metrics"]["waf"]
        for each in changes["28 % over-provisioning"]["ranking"]
    }
    assert waf["usual"] < by_name["usual"]["waf"]
    page = (output / "choice.html").read_text()
    assert "Which drive for mixed?" in page and "slow/report.html" in page
    assert not list(output.glob("what-if/*/report.html")), "no page links to these reports"
    assert f"The model&#39;s error of {' and '.join(unknown)} is not known." in page
    assert str(tmp_path) not in page

    # New limits do not need new measurements, and no drive meets these limits.
    begun = {path: path.stat().st_mtime_ns for path in output.glob("*/*.parquet")}
    words = ["choose", "--resume", str(output), "--json", "--quiet", "--limit", "p99.9 <= 1 ns"]
    again = answered(cli(words), code=3)
    assert again["ranking"][0]["passes"] is False
    assert again["verdict"].startswith("None of 3 drives meets all limits")
    assert begun == {path: path.stat().st_mtime_ns for path in output.glob("*/*.parquet")}

    # Variants can be omitted first and added later.
    words = ["choose", "--resume", str(output), "--json", "--quiet", "--limit", "p99.9 <= 1 s"]
    assert answered(cli([*words, "--no-what-if"]))["what_if"] == []
    assert answered(cli(words))["what_if"] == []
    assert {change["change"] for change in answered(cli([*words, "--what-if"]))["what_if"]} == set(
        changes
    )


def test_the_same_question_has_the_same_answer(
    load: Path, drives: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    answers = [answered(cli(asked(load, drives[:2], tmp_path / name))) for name in ("one", "two")]
    for answer in answers:
        for key in ("folder", "report"):
            del answer[key]
        for row in answer["ranking"]:
            del row["runs"]
    assert answers[0] == answers[1]
    assert answers[0]["what_if"] == []


def test_over_provisionings_and_seeds_are_rows_and_runs(
    load: Path, drives: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    output = tmp_path / "choice"
    more = ["--overprovision", "28", "--seeds", "2", "--duration", "1s", "--exhaustive"]
    answer = answered(cli(asked(load, drives[:2], output, *more)))
    rows = {row["device"]: row for row in answer["ranking"]}
    assert set(rows) == {"usual", "usual-op28", "slow", "slow-op28"}
    assert rows["usual-op28"]["metrics"]["waf"] < rows["usual"]["metrics"]["waf"]
    assert all(len(row["runs"]) == 2 for row in rows.values())
    low, high = rows["usual"]["intervals"]["iops"]
    assert low < rows["usual"]["metrics"]["iops"] < high


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("choose", "no load was specified"),
        ("choose --workload oltp-4k --candidates pm863-480", "at least two drives"),
        (
            "choose --workload oltp-4k --overprovision many",
            "not a comma-separated list of percentages",
        ),
        ("choose --workload oltp-4k --limit fast", "'fast' is not FIGURE >= LIMIT"),
        ("choose --workload absent.toml --candidates pm863-480,pm863-960", "absent.toml"),
        ("choose --resume nowhere --seeds 2", "the load and the drives cannot be changed"),
        ("choose --resume nowhere", "was not created by `writecliff choose`"),
    ],
)
def test_errors_take_a_single_line(words: str, message: str, cli: CommandLine) -> None:
    answer = cli(words)
    assert answer.code == 2
    assert message in answer.err.splitlines()[0]


def test_a_price_list_has_all_drives(
    load: Path, drives: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("other,5\n")
    answer = cli(asked(load, drives, tmp_path / "choice", "--prices", str(prices)))
    assert answer.code == 2 and "the price list has no price for" in answer.err
    assert not (tmp_path / "choice").exists()


def test_a_trace_is_a_load(
    drives: list[str], tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begin, trace = 128_166_372_003_061_629, tmp_path / "msr.csv"
    ways = ("Read", "Read", "Write")
    trace.write_text("".join(
        f"{begin + 5000 * n},host,0,{ways[n % 3]},{(n * 7919 % 60_000) * 4096},4096,100\n"
        for n in range(300)
    ))  # fmt: skip
    more = ["--precondition", "fill"]
    answer = answered(cli(asked(trace, drives[:2], tmp_path / "choice", *more)))
    assert answer["workload"].endswith("workload.toml")
    made = tmp_path / "choice" / "synthetic"
    assert {path.name for path in made.iterdir()} == {
        "workload.toml",
        "workload.fio",
        "synthetic.html",
    }
    assert not any(path.name.endswith("-synthetic") for path in tmp_path.iterdir())
    again = answered(cli(["choose", "--resume", str(tmp_path / "choice"), "--json", "--quiet"]))
    assert again["ranking"] == answer["ranking"]
    assert [row["device"] for row in answer["ranking"]] == ["usual", "slow"]
    assert all(row["scale"] == 1 for row in answer["ranking"])
    assert "p99.99" not in answer["weights"]  # There are too few I/Os for this percentile.


def test_one_drive_may_be_asked_about_a_limit(
    load: Path, drives: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    more = ["--limit", "life >= 90 years", "--writes-per-day", "1TB"]
    answer = answered(cli(asked(load, drives[:1], tmp_path / "choice", *more)), code=3)
    assert "does not meet the limits: life is" in answer["verdict"]


LOG = """
name = "log"
precondition = "fill"
[[job]]
name = "log"
pattern = "sequential"
read = "0 %"
block_size = "16 KiB"
queue_depth = 1
rate_iops = 100
flush_every_writes = 1
duration = "20 s"
"""


def test_a_drive_with_slow_commits_is_not_preferred(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "drives").mkdir()
    made = {
        "capacitors": {"rated_cycles": "1000"},
        "volatile": {"power_loss_protection": "false", "rated_cycles": "3000"},
    }
    drives = []
    for name, values in made.items():
        path = tmp_path / "drives" / f"{name}.toml"
        write_small_drive(path.parent, **values).rename(path)
        drives.append(str(path))
    load, silent = tmp_path / "log.toml", tmp_path / "silent.toml"
    load.write_text(LOG)
    silent.write_text(LOG.replace("flush_every_writes = 1\n", ""))

    without = answered(cli(asked(silent, drives, tmp_path / "without", "--exhaustive")))
    assert [row["device"] for row in without["ranking"]] == ["volatile", "capacitors"]
    answer = answered(cli(asked(load, drives, tmp_path / "with", "--exhaustive")))
    assert all(row["passes"] for row in answer["ranking"])
    first, second = answer["ranking"]
    assert (first["device"], second["device"]) == ("capacitors", "volatile")
    assert answer["weights"]["flush/p99.9"] == 1.0
    assert (first["power_loss_protection"], second["power_loss_protection"]) == (True, False)
    assert second["metrics"]["flush_p999_ms"] > 5 * first["metrics"]["flush_p999_ms"]
    assert "Power-loss protection" in (tmp_path / "with" / "choice.html").read_text()

    between_ms = (first["metrics"]["flush_p999_ms"] * second["metrics"]["flush_p999_ms"]) ** 0.5
    words = ["choose", "--resume", str(tmp_path / "with"), "--json", "--quiet"]
    limited = answered(cli([*words, "--limit", f"flush/p99.9 <= {between_ms} ms"]))
    assert [row["passes"] for row in limited["ranking"]] == [True, False]
    assert limited["ranking"][1]["why"].startswith("flush/p99.9 is ")


def test_flushes_of_a_smaller_drive_have_the_rate_of_the_whole_drive(
    tmp_path: Path, cli: CommandLine
) -> None:
    load = tmp_path / "log.toml"
    load.write_text(LOG.replace('"20 s"', '"40 s"'))
    more = ["--scale", "4", "--limit", "flush/iops >= 90"]
    (row,) = answered(cli(asked(load, ["sata-tlc-120"], tmp_path / "choice", *more)))["ranking"]
    assert row["scale"] == 4
    assert row["metrics"]["iops"] == pytest.approx(100, rel=0.01)
    assert row["metrics"]["flush_iops"] == pytest.approx(100, rel=0.01)
    series = Shelf().series("choice", Path(row["runs"][0]))
    line = named(series, "latency_mean.flush")
    assert line is not None and line.x[-1] == pytest.approx(series.span_s[1], rel=0.03)


def test_a_dry_run_lists_drives_levels_time_and_memory(
    cli: CommandLine, drives: list[str], load: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "result"
    asked = ["choose", "--workload", str(load), "--on", ",".join(drives), "--overprovision", "50",
             "--seeds", "2", "--jobs", "2", "--output", str(folder), "--dry-run"]  # fmt: skip
    planned = json.loads(cli([*asked, "--json"]).out)
    assert planned["schema"] == "writecliff/choose-plan/1"
    assert [Path(drive).stem for drive in planned["drives"]] == ["usual", "slow", "lasting"]
    first = planned["levels"][0]
    assert (first["drives"], first["runs"]) == (6, 12)
    assert 12 * 0.3 / 2 <= first["time_s"] == planned["first_ranking_s"] <= planned["longest_s"]
    assert planned["memory_bytes"] >= 2 * 300 * 2**20  # Two processes at a time.
    assert planned["budget_s"] == 300
    text = cli(asked).out
    assert "3 drives on" in text and "nothing was done (--dry-run)" in text
    assert not folder.exists()


def test_a_dry_run_of_a_stored_choice_is_rejected(cli: CommandLine, tmp_path: Path) -> None:
    refused = cli(["choose", "--resume", str(tmp_path), "--dry-run"])
    assert refused.code == 2 and "cannot be combined with --resume" in refused.err

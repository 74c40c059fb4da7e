"""Limits on figures: syntax, evaluation, results, exit code 3, JUnit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.cli import CommandLine
from tests.support.run_store import make_run
from writecliff.api import load_run
from writecliff.errors import ConfigError
from writecliff.procedures.registry import procedure_from_mapping
from writecliff.report.comparison.judgement import overall
from writecliff.report.expectations import (
    check_figures,
    check_members,
    figures_of_procedure,
    judge,
    judge_members,
    judge_run,
    parse_expectation,
)
from writecliff.report.headline import Headline, Interval
from writecliff.report.workload import figure_units
from writecliff.store.manifest import read_manifest
from writecliff.workload.load import LoadStep
from writecliff.workload.model import Job, Workload

FIGURES = [
    Headline(key="/mix/reads/iops", label="", value=100.0, unit="IOPS",
             interval=Interval(90.0, 110.0, "rounds")),
    Headline(key="/mix/writes/iops", label="", value=50.0, unit="IOPS", steady=False),
    Headline(key="/mix/reads/p99.9", label="", value=2.0, unit="ms"),
    Headline(key="/waf", label="", value=1.5, unit=""),
]  # fmt: skip
TEST = "test wsat --on sim:fake --end time --time-hours 0.02 --quiet"


@pytest.mark.parametrize(
    ("text", "result", "certain", "note"),
    [
        ("reads/iops >= 100", "met", False, "interval"),
        ("reads/iops > 100", "missed", False, "interval"),
        ("reads/iops>=80", "met", True, ""),
        ("/mix/reads/iops < 120", "met", True, ""),
        ("mix/reads/iops <= 1e2 IOPS", "met", False, "interval"),
        ("writes/iops >= 50", "met", None, "not in steady state"),
        ("p99.9 <= 2 ms", "met", None, ""),
        ("p99.9 <= 1999 us", "missed", None, ""),
        ("p99.9 < 0.0021 s", "met", None, ""),
        ("waf <= 1.4", "missed", None, ""),
        ("iops >= 1", "unknown", None, "not one figure but several: mix/reads/iops, mix/writes"),
        ("reads/iops >= 0.1k", "met", False, "interval"),
        ("rads/iops >= 1", "unknown", None, "did you mean 'mix/reads/iops'?"),
        ("waf <= 2 ms", "unknown", None, "it is in no unit, not in ms"),
        ("reads/iops >= 1 ms", "unknown", None, "it is in IOPS, not in ms"),
    ],
)
def test_judging(text: str, result: str, certain: bool | None, note: str) -> None:
    judged = judge(parse_expectation(text), FIGURES)
    assert (judged.result, judged.certain) == (result, certain)
    assert note in judged.note
    assert judged.met is (result == "met")


@pytest.mark.parametrize(
    "text", ["", "iops", "iops = 5", "iops >= ", "iops >= x", ">= 5", "a >= nan"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not FIGURE >= LIMIT"):
        parse_expectation(text)


def test_a_limit_of_one_test_of_a_suite() -> None:
    limit = parse_expectation("wsat.waf <= 2", ["wsat", "iops"])
    assert (limit.test, limit.figure) == ("wsat", "waf")
    assert parse_expectation("p99.9 <= 2", ["wsat"]).figure == "p99.9"


def test_limits_of_a_suite_go_where_the_figure_is(tmp_path: Path) -> None:
    paths = {name: make_run(tmp_path / name) for name in ("a", "b")}
    members = {name: ("wsat", path) for name, path in paths.items()}
    texts = ("a.waf <= 100", "waf >= 0", "nothing >= 0")
    judged = judge_members(members, [parse_expectation(text, ["a", "b", "wsat"]) for text in texts])
    assert {name: [result.text for result in results] for name, results in judged.items()} == {
        "a": ["a.waf <= 100", "waf >= 0"],
        "b": ["waf >= 0"],
        "": ["nothing >= 0"],
    }
    assert judged[""][0].result == "unknown"
    assert [e["text"] for e in read_manifest(paths["b"]).expectations] == ["waf >= 0"]
    assert "All are met." in (paths["b"] / "report.html").read_text()


def test_results_are_in_manifest_and_report(tmp_path: Path) -> None:
    from writecliff.report import write_report

    path = make_run(tmp_path / "run")
    updated = read_manifest(path).updated
    judge_run(path, [parse_expectation("waf <= 0.5")])
    assert read_manifest(path).expectations[0]["result"] == "missed"
    assert read_manifest(path).updated == updated
    page = write_report(path).read_text()
    assert "1 of 1 is not met." in page
    assert "Limit missed: waf" in page


def cases(path: Path) -> dict[str, str | None]:
    root = ElementTree.parse(path).getroot()
    failures = {case.get("name") or "": case.find("failure") for case in root.iter("testcase")}
    assert root.get("tests") == str(len(list(root.iter("testcase"))))
    assert root.get("failures") == str(sum(failure is not None for failure in failures.values()))
    return {
        name: None if failure is None else failure.get("message")
        for name, failure in failures.items()
    }


@pytest.mark.parametrize(("limit", "code"), [("waf <= 99", 0), ("waf <= 0.1", 3)])
def test_a_missed_limit_is_exit_code_3(
    cli: CommandLine, tmp_path: Path, limit: str, code: int
) -> None:
    output = cli(
        [*TEST.split(), "--output", "run", "--expect", limit, "--junit", "ci.xml", "--json"]
    )
    assert output.code == code
    (judged,) = json.loads(output.out)["expectations"]
    assert (judged["result"] == "met") is (code == 0)
    assert read_manifest(tmp_path / "run").status == "complete"
    results = cases(tmp_path / "ci.xml")
    assert results["measured"] is None
    assert (results[limit] is None) is (code == 0)
    (listed,) = json.loads(cli(["runs", "list", "--json"]).out)["runs"]
    assert listed["limits_met"] is (code == 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--expect", "iops"], "'iops' is not FIGURE >= LIMIT"), (["--junit", "no/x.xml"], "--junit")],
)
def test_a_wrong_limit_is_refused_before_anything(
    cli: CommandLine, tmp_path: Path, words: list[str], message: str
) -> None:
    for command in (TEST, "suite pts-e --on sim:fake", "sweep queue-depth --on sim:fake"):
        output = cli([*command.split(), *words])
        assert output.code == 2
        assert message in output.err
    assert list(tmp_path.iterdir()) == []


def test_a_worse_baseline_is_exit_code_3(
    cli: CommandLine, tmp_path: Path, monkeypatch: Any
) -> None:
    assert cli(f"{TEST} --output base").code == 0
    assert cli(f"{TEST} --output same --baseline base --junit same.xml").code == 0
    assert set(cases(tmp_path / "same.xml").values()) == {None}
    from writecliff.api import outcome

    def judged(self: Any) -> Any:
        yield "IOPS", "worse", "IOPS is worse: 1, in the baseline \x002"

    monkeypatch.setattr(outcome.BaselineComparison, "judged", judged)
    assert cli(f"{TEST} --output worse --baseline base --junit worse.xml").code == 3
    assert cases(tmp_path / "worse.xml")["IOPS"] == "IOPS is worse: 1, in the baseline \ufffd2"


def test_limits_of_a_workload_file(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text(
        'name = "w"\n[[job]]\nname = "r"\nread = "0 %"\nduration = "2 s"\n'
        '[expect]\n"writes/iops" = ">= 1e9"\n'
    )
    output = cli("run w.toml --on sim:fake --precondition none --quiet --json --output r")
    assert (output.code, json.loads(output.out)["expectations"][0]["result"]) == (3, "missed")
    assert read_manifest(tmp_path / "r").options["expect"] == ["writes/iops >= 1e9"]


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (("better", "equal", "cannot tell"), "better"),
        (("worse", "equal"), "worse"),
        (("better", "worse"), "cannot tell"),
        (("equal", "equal"), "equal"),
        (("equal", "cannot tell"), "cannot tell"),
        ((), "cannot tell"),
    ],
)
def test_all_figures_in_one_word(words: Any, whole: str) -> None:
    assert overall(words) == whole


def test_a_figure_that_a_workload_cannot_have_is_refused_before_it_runs(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "w.toml").write_text('name = "w"\n[[job]]\nname = "r"\nduration = "2 s"\n')
    words = [
        "run",
        "w.toml",
        "--on",
        "sim:fake",
        "--precondition",
        "none",
        "--quiet",
        "--output",
        "r",
    ]
    output = cli([*words, "--expect", "writes/iosp >= 1"])
    assert (output.code, output.err.splitlines()) == (2, [
        "error: 'writes/iosp >= 1': unknown figure 'writes/iosp'",
        output.err.splitlines()[1],
    ])  # fmt: skip
    assert output.err.splitlines()[1].startswith("hint: the figures are r/writes/iops, ")
    assert "waf" in output.err and "r/writes/service/p99.9" in output.err
    refused = {
        "reads/iops >= 1": "unknown figure 'reads/iops'",
        "iops >= 1 parsec": "r/writes/iops is in IOPS, not in parsec",
        "p99.9 <= 2 GB/s": "r/writes/p99.9 is in ms, not in GB/s",
        "iops =< 5": "unknown relation '=<'",
        "p99.9 == 5": "unknown relation '=='",
        "p100 <= 5": "unknown figure 'p100'",
        "iops >= 1,00": "is not FIGURE >= LIMIT",
    }
    for text, why in refused.items():
        for more in ([], ["--dry-run"]):
            output = cli([*words, "--expect", text, *more])
            assert output.code == 2 and why in output.err, (text, output.err)
    assert not (tmp_path / "r").exists()
    assert cli([*words, "--expect", "writes/p99.9 >= 0", "--json"]).code == 0
    units = figure_units((LoadStep(Workload("w", (Job(name="r"),))),))
    assert {
        figure.key: figure.unit for figure in load_run(tmp_path / "r").figures
    }.items() <= units.items()
    wanted = ["writes/p99.5 <= 1 s", "p99.99999 <= 1 s"]
    output = cli([*words[:-1], "r2", "--expect", wanted[0], "--expect", wanted[1], "--json"])
    first, second = json.loads(output.out)["expectations"]
    assert (first["figure"], first["result"]) == ("r/writes/p99.5", "met")
    assert second["result"] == "unknown"
    done = json.loads(output.out)["steps"][0]["jobs"][0]["operations"]["write"]["service"]["count"]
    assert second["note"] == f"not enough samples: {done:,} I/Os"


@pytest.mark.parametrize(
    ("text", "limit", "unit"),
    [
        ("iops >= 100k", 100_000.0, ""),
        ("iops >= 100,000", 100_000.0, ""),
        ("iops >= 1.5M IOPS", 1_500_000.0, "IOPS"),
        ("iops >= 2kIOPS", 2000.0, "IOPS"),
        ("p99.9 <= 2ms", 2.0, "ms"),
        ("p99.9<=250 us", 250.0, "us"),
        ("p99.9 ≤ 1,250.5 µs", 1250.5, "µs"),
        ("mb_per_s >= 1 GB/s", 1.0, "GB/s"),
        ("waf <= .5e1", 5.0, ""),
    ],
)
def test_numbers_of_limits(text: str, limit: float, unit: str) -> None:
    expectation = parse_expectation(text)
    assert (expectation.limit, expectation.unit) == (limit, unit)


MIXED = figure_units((LoadStep(Workload("w", (Job(name="a", read_pct=50), Job(name="a")))),))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("p99.99 <= 1", "specify one of a/reads/p99.99, a/writes/p99.99, a (2)/writes/p99.99"),
        ("writes/p99.5 <= 1", "specify one of a/writes/p99.5, a (2)/writes/p99.5"),
        ("a/writes/service/p9 <= 1", None),
        ("reads/p99.5 <= 1", None),
        ("readz/iops >= 1", "the figures are a/reads/iops, "),
    ],
)
def test_a_figure_of_several_jobs_or_operations_is_refused(text: str, hint: str | None) -> None:
    if hint is None:
        check_figures([parse_expectation(text)], MIXED)
        return
    with pytest.raises(ConfigError) as error:
        check_figures([parse_expectation(text)], MIXED)
    assert str(error.value.hint).startswith(hint)


def test_too_few_writes_do_not_make_a_percentile_that_of_reads() -> None:
    missing = {"/mix/writes/p99.9": "not enough samples: 12 I/Os"}
    judged = judge(parse_expectation("p99.9 <= 2 ms"), FIGURES, missing)
    assert judged.result == "unknown" and "not one figure but several" in judged.note
    judged = judge(parse_expectation("writes/p99.9 <= 2 ms"), FIGURES, missing)
    assert (judged.result, judged.note) == ("unknown", "not enough samples: 12 I/Os")


def test_a_limit_that_no_run_of_a_set_has_is_refused() -> None:
    members = {"wsat": ("wsat", {"waf": ""}), "x": ("iops", {"iops_4k_0_100": "IOPS"})}
    tests = ["wsat", "iops", "x"]

    def check(text: str) -> None:
        check_members([parse_expectation(text, tests)], members)

    check("waf <= 2")
    check("x.iops_4k_0_100 >= 5k")
    for text in ("iops.waf <= 2", "x.waf <= 2", "nothing <= 2", "waf <= 2 ms"):
        with pytest.raises(ConfigError):
            check(text)
    check_members([parse_expectation("nothing <= 2")], {"new": ("new", None)})


def test_tests_name_their_figures_before_they_run(tmp_path: Path, cli: CommandLine) -> None:
    for name in ("wsat", "iops", "tp", "lat", "hir", "xsr", "ecw", "dirth"):
        output = cli(f"test {name} --on sim:sata-tlc-120 --dry-run --expect nothing>=1".split())
        assert output.code == 2 and "unknown figure 'nothing'" in output.err, (name, output.err)
    run = load_run(make_run(tmp_path / "r"))
    units = figures_of_procedure(procedure_from_mapping("wsat", run.directory.manifest.options))
    assert {figure.key: figure.unit for figure in run.figures}.items() <= (units or {}).items()
    output = cli(
        ["suite", "pts-e", "--on", "sim:sata-tlc-120", "--dry-run", "--expect", "nothing>=1"]
    )
    assert output.code == 2 and "unknown figure 'nothing'" in output.err
    output = cli(
        ["choose", "--workload", "oltp-4k", "--candidates", "pm863-960", "--limit", "rads/p99<=2ms"]
    )
    assert output.code == 2 and "reads/p99" in output.err and not (tmp_path / "choices").exists()


def test_a_replay_has_limits_too(cli: CommandLine, tmp_path: Path) -> None:
    from tests.support.small_drive import write_small_drive
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import synthetic_table

    table = synthetic_table(table_bytes=1 << 20, chunk_bytes=4096, logged_bytes=1 << 25)
    write_trace(tmp_path / "t.parquet", table, {"command": ["synthetic store"]})
    drive = write_small_drive(tmp_path)
    words = f"replay t.parquet --on sim:{drive} --repeat 1 --no-timed --output r --json".split()
    output = cli([*words, "--expect", "waf <= 0.5", "--junit", "ci.xml"])
    assert output.code == 3, output.err
    assert [entry["result"] for entry in json.loads(output.out)["expectations"]] == ["missed"]
    assert cases(tmp_path / "ci.xml")["waf <= 0.5"] is not None
    assert read_manifest(tmp_path / "r").procedure == "trace_replay"
    assert cli("runs list --status complete").code == 0

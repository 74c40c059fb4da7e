"""`writecliff runs`: output, errors and effects of the commands."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.cli import CommandLine, CommandOutput
from tests.support.run_store import aged, make_run
from writecliff.cli import cmd_runs
from writecliff.runs.place import LocalPlace
from writecliff.store.files import FolderLock
from writecliff.store.manifest import now
from writecliff.suite.folder import Member, SuiteFolder


@pytest.fixture
def runs(cli: CommandLine, store: Path) -> Any:
    """Run `runs("list")` on the store."""

    def call(words: str | list[str]) -> CommandOutput:
        given = words.split() if isinstance(words, str) else words
        return cli(["runs", *given, "--store", str(store)])

    return call


def names(output: CommandOutput) -> list[str]:
    return [row["run"] for row in json.loads(output.out)["runs"]]


def test_a_list_shows_the_latest_first(runs: Any, store: Path) -> None:
    output = runs("list")
    assert (output.code, output.err) == (0, "")
    lines = output.out.splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["runs/third", "interrupted", "wsat"],
        ["runs/second", "complete", "wsat"],
        ["runs/first", "complete", "wsat"],
    ]
    assert lines[-1] == "3 runs"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--status complete", ["second", "first"]),
        ("--test wsat --limit 1", ["third"]),
        ("--test hir", []),
        ("--since 2026-03-02", ["third", "second"]),
        ("--since 2026-03-02T10:00:01+00:00", ["third"]),
        ("--device SATA-TLC", ["third", "second", "first"]),
        ("--device nvme", []),
        ("--sort seed", ["first", "second", "third"]),
        ("--sort=-seed --limit 2", ["third", "second"]),
        (["--where", "seed in (1, 3) -- odd ones"], ["third", "first"]),
        (["--where", "run in (select run from figures where unit = 'IOPS')", "--sort", "seed"],
         ["first", "second", "third"]),
        ("--tag x", ["first"]),
        ("--tag x --tag y", []),
    ],
)  # fmt: skip
def test_filters(runs: Any, words: str | list[str], expected: list[str]) -> None:
    runs("tag first +x")
    given = words.split() if isinstance(words, str) else words
    assert names(runs(["list", *given, "--json"])) == [f"runs/{name}" for name in expected]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("list --sort sed", "--sort: unknown column 'sed'", "did you mean 'seed'?"),
        ("list --since yesterday", "--since 'yesterday' is not a date", "for example"),
        ("list --where nonsense=1", "query failed: Binder Error", ""),
        ("list --limit -1", "--limit must be 0 or more, not -1", ""),
        ("list --status done", "invalid value 'done' for --status", "known: complete"),
        ("show fist", "does not contain a run 'fist'", "did you mean 'first'?"),
        (
            "show runs",
            "'runs' matches the names of 3 runs: runs/first, runs/second, runs/third",
            "",
        ),
        ("tag first x", "'x' is not a tag change", "use +x"),
        ("tag first +", "a tag must have 1 to 100 characters", ""),
        (["tag", "first", "+a\nb"], "'a\\nb' is not a valid tag", "printable"),
        (["tag", "first", "+a\x1b[2J"], "is not a valid tag", "printable"),
        (["tag", "first", "+ a"], "is not a valid tag", "blanks"),
        ("delete", "no runs specified", "--test"),
        ("delete first", "refusing to delete 1 runs without confirmation", "--yes"),
        ("sql selct", "query failed: Parser Error", ""),
        (
            ["sql", "select * from run"],
            "Table with name run does not exist",
            "did you mean 'runs'?",
        ),
        (["sql", "from histogram"], "name histogram does not exist", "did you mean 'histograms'?"),
        (["sql", "from elsewhere"], "name elsewhere does not exist", "known: runs, figures, tags"),
        (["sql", "select rum from runs"], '"rum" not found', 'candidate bindings: "run"'),
        (["sql", "from 'secret.csv'"], "Cannot access file", "runs sql --allow-files"),
        (
            ["list", "--where", "1=1); copy (select 1) to 'x'; select * from runs where (1=1"],
            "Cannot access file",
            "queries can only access the views",
        ),
        ("sql --csv --json select", "--csv and --json are mutually exclusive", ""),
        ("export first --output x.rar", "x.rar does not have the suffix of an archive", ".zip"),
        ("import absent", "absent does not exist", ""),
        ("diff first", "missing argument SECOND", ""),
    ],
)
def test_mistakes(runs: Any, words: Any, message: str, hint: str) -> None:
    output = runs(words)
    assert (output.code, output.out) == (2, "")
    # On slow machines, progress output precedes the error.
    text = output.err[max(0, output.err.find("error:")) :]
    first, *more = text.splitlines()
    assert message in first
    assert hint in "".join(more)
    assert "Traceback" not in output.err


def test_showing_a_run(runs: Any) -> None:
    text = runs("show fir").out
    assert "run  " in text
    assert "runs/first" in text
    details = json.loads(runs("show runs/first --json").out)
    assert details["run"]["created_utc"] == "2026-03-01T10:00:00+00:00"
    assert {figure["key"] for figure in details["figures"]} >= {"waf"}
    assert all(figure["low"] is None or figure["low"] <= figure["value"] <= figure["high"]
               for figure in details["figures"])  # fmt: skip


def test_tags_are_added_and_removed(runs: Any, store: Path) -> None:
    assert runs("tag first +b +a").out == "a, b\n"
    assert runs("tag first -b -c +d").out == "a, d\n"
    assert json.loads(runs("tag first --json").out)["tags"] == ["a", "d"]
    shutil.rmtree(store / ".writecliff")
    assert names(runs("list --tag d --json")) == ["runs/first"]


def test_hostile_text_reaches_no_terminal(cli: CommandLine, tmp_path: Path) -> None:
    root = tmp_path / "s"
    make_run(root / "runs" / "\x1b[2J\nx", title="\x1b]0;t\x07", reason="\u202e\x9b")
    for words in (["list"], ["show", "runs/\x1b[2J\nx"], ["sql", "select * from runs"],
                  ["tag", "runs/\x1b[2J\nx"], ["show", "\x1b[2J\ny"]):  # fmt: skip
        output = cli(["runs", *words, "--store", str(root)])
        text = (output.out + output.err).replace("\n", "")
        assert text.isprintable(), text


def test_sql_as_table_json_and_csv(runs: Any) -> None:
    query = "select run, seed, created_utc, tags from runs where seed < 3 order by seed"
    runs("tag first +x")
    answer = json.loads(runs(["sql", query, "--json"]).out)
    assert [column["name"] for column in answer["columns"]] == [
        "run",
        "seed",
        "created_utc",
        "tags",
    ]
    assert answer["rows"][0] == {
        "run": "runs/first",
        "seed": 1,
        "created_utc": "2026-03-01T10:00:00+00:00",
        "tags": ["x"],
    }
    rows = list(csv.reader(io.StringIO(runs(["sql", query, "--csv"]).out)))
    assert rows[1] == ["runs/first", "1", "2026-03-01T10:00:00+00:00", '["x"]']
    assert runs(["sql", query]).out.splitlines()[1].split()[:2] == ["runs/first", "1"]


def test_sql_reads_and_writes_files_only_where_it_is_allowed(runs: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    copy = f"copy (select run, ios from rounds) to '{out}'"
    assert runs(["sql", copy]).code == 2
    assert not out.exists()
    assert runs(["sql", copy, "--allow-files"]).code == 0
    assert out.read_text().startswith("run,ios\n")
    rows = json.loads(runs(["sql", f"from '{out}'", "--allow-files", "--json"]).out)["rows"]
    assert len(rows) == 36


def test_sql_over_steps_of_all_runs(runs: Any, store: Path) -> None:
    query = ["sql", "select run, count(*) as n, sum(ios)::bigint as ios from rounds group by run "
             "order by run", "--json"]  # fmt: skip
    before = json.loads(runs(query).out)["rows"]
    assert [row["n"] for row in before] == [12, 12, 12]
    make_run(store / "runs" / "fourth")
    assert runs("delete runs/second --yes").code == 0
    after = json.loads(runs(query).out)["rows"]
    assert [row["run"] for row in after] == ["runs/first", "runs/fourth", "runs/third"]
    assert [row for row in after if row in before] == [before[0], before[2]]
    joined = "select count(*) as n from intervals join histograms using (run, seq)"
    assert json.loads(runs(["sql", joined, "--json"]).out)["rows"][0]["n"] > 0


def test_deleting(runs: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs("delete first --yes").out == "runs/first\n"
    assert not (store / "runs" / "first").exists()
    # The deletion is killed halfway.
    monkeypatch.setattr(shutil, "rmtree", lambda path, **options: None)
    assert runs("delete --status complete --yes").code == 0
    monkeypatch.undo()
    assert [path.name for path in (store / "runs").iterdir() if path.name.startswith(".deleted")]
    assert names(runs("list --json")) == ["runs/third"]


def test_what_a_killed_deletion_left_is_swept(store: Path) -> None:
    left = store / "runs" / ".deleted-999999999-1"
    # The folder belongs to a process that is still running.
    living = store / "runs" / f".deleted-{1}-1"
    left.mkdir()
    living.mkdir()
    LocalPlace(store).sweep()
    assert (left.exists(), living.exists()) == (False, True)


def test_a_run_that_is_being_written_is_not_deleted(runs: Any, store: Path) -> None:
    lock = FolderLock(store / "runs" / "third")
    output = runs("delete first third --yes")
    lock.release()
    assert output.code == 1
    assert "runs/third is being written" in output.err
    assert (store / "runs" / "first").exists()


def test_a_suite_goes_as_a_whole_or_not_at_all(cli: CommandLine, tmp_path: Path) -> None:
    root = tmp_path / "s"
    members = {name: Member("wsat", {}, "sim:fake") for name in ("one", "two")}
    folder = SuiteFolder.create(root / "suites" / "all", "suite", "pts-e", members)
    for name in members:
        make_run(folder.run_directory(name))
    lock = FolderLock(folder.run_directory("two"))
    output = cli(f"runs delete all --yes --store {root}")
    lock.release()
    assert (output.code, folder.run_directory("one").exists()) == (1, True)
    assert cli(f"runs export all --output x.tar --store {root}").code == 0
    assert cli(f"runs delete all --yes --store {root}").out == "suites/all\n"
    assert list((root / "suites").iterdir()) == []
    assert cli(f"runs import x.tar --store {root}").out == "imports/all\n"
    rows = json.loads(cli(f"runs list --store {root} --json").out)["runs"]
    assert {row["member_of"] for row in rows} == {"imports/all"}
    assert len(rows) == 2


def test_of_a_link_the_link_is_deleted(runs: Any, store: Path, tmp_path: Path) -> None:
    (store / "runs" / "first").rename(tmp_path / "elsewhere")
    (store / "runs" / "first").symlink_to(tmp_path / "elsewhere")
    assert runs("delete first --yes").code == 0
    assert (tmp_path / "elsewhere" / "manifest.json").is_file()
    assert sorted(path.name for path in (store / "runs").iterdir()) == ["second", "third"]


def test_deleting_asks(runs: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for answer, left in (("n\n", True), ("", True), ("y\n", False)):
        monkeypatch.setattr(cmd_runs.sys, "stdin", Terminal(answer))
        output = runs("delete first")
        assert "delete 1 from" in output.err
        assert (store / "runs" / "first").exists() is left


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz", "tar.xz"])
def test_what_is_exported_can_be_imported(
    runs: Any, cli: CommandLine, tmp_path: Path, suffix: str
) -> None:
    runs("tag first +kept")
    assert runs(f"export first third --output x.{suffix}").code == 0
    output = cli(f"runs import x.{suffix} --tag new --store other --json")
    assert json.loads(output.out)["runs"] == ["imports/first", "imports/third"]
    assert cli("runs import x.zip --store other").code == (0 if suffix == "zip" else 2)
    rows = {
        row["run"]: row for row in json.loads(cli("runs list --store other --json").out)["runs"]
    }
    assert rows["imports/first"]["tags"] == ["kept", "new"]
    assert rows["imports/third"]["status"] == "interrupted"


def test_tables_as_files(runs: Any, tmp_path: Path) -> None:
    assert runs("export first second --tables parquet --output t").code == 0
    assert pq.read_table(tmp_path / "t" / "rounds.parquet").num_rows == 24
    assert set(pq.read_table(tmp_path / "t" / "runs.parquet")["seed"].to_pylist()) == {1, 2}
    assert runs("export --where seed=2 --tables csv --output c").code == 0
    rows = list(csv.DictReader((tmp_path / "c" / "rounds.csv").open()))
    assert {row["run"] for row in rows} == {"runs/second"}


@pytest.mark.parametrize("name", ["../out", "/absolute/out", "a/../../out"])
def test_an_archive_stays_in_its_folder(cli: CommandLine, tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(name, "x")
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        member = tarfile.TarInfo(name)
        tar.addfile(member, io.BytesIO())
    for path in ("x.zip", "x.tar"):
        output = cli(f"runs import {path} --store s")
        assert output.code == 2
        assert output.err.startswith("error: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.tar", "x.zip"]


def test_garbage_is_no_archive(cli: CommandLine, tmp_path: Path) -> None:
    for name in ("x.zip", "x.tar.gz", "x.json"):
        (tmp_path / name).write_bytes(b"\x00garbage")
        assert cli(f"runs import {name} --store s").code == 2


def test_what_differs(runs: Any, store: Path) -> None:
    make_run(store / "runs" / "slow", seed=1, iops=5_000.0, host={"cpu": "Other CPU"})
    answer = json.loads(runs("diff first slow --json").out)
    assert answer["runs"] == ["runs/first", "runs/slow"]
    assert {"what": "cpu", "values": ["Example CPU, 2 threads", "Other CPU"]} in answer[
        "environment"
    ]
    words = {figure["key"]: figure["judgement"] for figure in answer["figures"]}
    assert "worse" in words.values()
    assert "better" not in words.values()
    assert answer["judgement"] == "worse"
    back = json.loads(runs("diff slow first --json").out)
    assert back["judgement"] == "better"
    same = json.loads(runs("diff first first --json").out)
    assert (same["judgement"], same["differences"], same["environment"]) == ("equal", [], [])
    assert runs("diff first slow").out.endswith("B in all: worse\n")


def test_the_index(runs: Any, store: Path) -> None:
    (store / "runs" / "first" / "manifest.json").write_text("{}")
    answer = json.loads(runs("index --tables --json").out)
    assert (answer["runs"], answer["read"], answer["gone"]) == (3, 3, 0)
    assert [run["run"] for run in answer["damaged"]] == ["runs/first"]
    assert (store / ".writecliff" / "rounds-1.json").is_file()
    assert json.loads(runs("index --rebuild --json").out)["read"] == 3
    assert not (store / ".writecliff" / "rounds-1.json").exists()


def test_the_environment_names_the_store(
    cli: CommandLine, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRITECLIFF_STORE", str(store))
    assert len(names(cli("runs list --json"))) == 3
    made = cli("test wsat --on sim:fake --end time --time-hours 0.02 --quiet")
    assert made.code == 0
    aged(store)
    (latest,) = names(cli(f"runs list --since {now()} --json")) or names(
        cli("runs list --limit 1 --json")
    )
    assert latest.startswith("runs/wsat-sim-fake-")

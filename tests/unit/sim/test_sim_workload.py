"""User workloads on a small simulated drive: preconditioning, steps, steady state, resumption."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.engines.sim import SimEngine
from writecliff.procedures.framework import RunInterrupted, run_procedure
from writecliff.procedures.journal import stored_rows
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.workload import FOR_READS, WorkloadRun
from writecliff.report import build_report, report_of
from writecliff.store.rundir import RunDirectory
from writecliff.workload.load import load_workload

READS = """\
name = "reads"
[[job]]
read = "100 %"
queue_depth = 4
ios = 2000
"""
STEPS = """\
name = "aged"
precondition = "used:40%"

[[step]]
name = "overwrite"
measure = false
[[step.job]]
range = "40 %"
queue_depth = 8
volume = "20 %"

[[step]]
rest = "2 s"

[[step]]
name = "mix"
until = "steady"
[[step.job]]
name = "mixed"
read = "50 %"
range = "40 %"
queue_depth = 8
duration = "200 ms"

[[step]]
name = "log"
[[step.job]]
name = "log"
pattern = "sequential"
block_size = "128 KiB"
range = "10 %"
duration = "100 ms"
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    write_small_drive(tmp_path)
    Path("reads.toml").write_text(READS)
    Path("steps.toml").write_text(STEPS)


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(write_small_drive(tmp_path))


def procedure(target: str, file: str) -> tuple[WorkloadRun, SimEngine]:
    engine = SimEngine(target)
    load = load_workload(file, capacity_bytes=engine.identify().capacity_bytes)
    return WorkloadRun.of(load, engine.identify()), engine


def test_reads_of_a_new_drive_find_it_filled(
    capsys: pytest.CaptureFixture[str], target: str
) -> None:
    cli = CommandLine(capsys)
    output = cli(["run", "reads.toml", "--on", f"sim:{target}", "--json"])
    filled = json.loads(output.out)
    assert (filled["precondition"], filled["precondition_because"]) == ("fill", FOR_READS)
    assert "--precondition none" in output.err
    insist = ["--precondition", "none", "--json"]
    as_it_is = json.loads(cli(["run", "reads.toml", "--on", f"sim:{target}", *insist]).out)
    assert "had never been written" in as_it_is["steps"][0]["warnings"][0]
    assert filled["steps"][0]["warnings"] == []
    means = [
        answer["steps"][0]["jobs"][0]["operations"]["read"]["service"]["mean_ns"]
        for answer in (filled, as_it_is)
    ]
    assert means[0] > 2 * means[1], "flash takes longer than a look into the map"


def test_steps_rests_and_rounds(target: str) -> None:
    test, engine = procedure(target, "steps.toml")
    rows = run_procedure(test, engine, Path("r")).history.rows
    overwrite, rest, *rounds, log = rows
    assert (overwrite.elapsed_ns, overwrite.drive_fills) == (0, pytest.approx(1.4, rel=0.01))
    assert (rest.ios, round(rest.elapsed_ns / 1e9, 2)) == (1, 2.0)
    assert RunDirectory.open(Path("r")).rounds().column("warnings").to_pylist() == [[]] * len(rows)
    assert len({row.phase for row in rounds}) == 1 and len(rounds) >= 5
    assert log.label == "log"
    report = report_of(RunDirectory.open(Path("r")))
    mix, last = report.summary()["steps"]
    assert (mix["workload"], mix["steady_state"]["state"]) == ("mix", "steady")
    window = [row for row in rounds if row.round in mix["steady_state"]["window_rounds"]]
    operations = mix["jobs"][0]["operations"]
    for name, size in (("read", sum(row.read_bytes for row in window)),
                       ("write", sum(row.host_write_bytes for row in window))):  # fmt: skip
        assert operations[name]["bytes"] == size
        assert operations[name]["service"]["count"] == operations[name]["ios"] == size // 4096
    assert last["steady_state"] is None
    figures = {figure.key: figure for figure in report.headlines()}
    assert figures["mix/mixed/reads/iops"].interval is not None
    assert {"mix/mixed/writes/p99.9", "log/log/writes/mb_per_s", "mix/waf"} <= figures.keys()
    page = build_report(RunDirectory.open(Path("r")))
    titles = [part.title for part in page.sections]
    assert titles[:2] == ["Results", "Over time"] and "mixed" in titles and "log" in titles
    assert "reads/s" in report.answer() and "writes/s" in report.answer()


def test_a_start_delay_is_not_in_the_rates_of_the_csv_of_steps(target: str) -> None:
    Path("late.toml").write_text(
        'name = "late"\n[[job]]\nread = "0 %"\nblock_size = "4 KiB"\nrate = "1000 IOPS"\n'
        'start_delay = "300 ms"\nduration = "200 ms"\n'
    )
    test, engine = procedure(target, "late.toml")
    run_procedure(test, engine, Path("r"))
    file = report_of(RunDirectory.open(Path("r"))).data.steps_file
    *_, row = csv.DictReader(file.text.splitlines())
    assert (row["ios"], row["elapsed_ns"]) == ("200", "500000000")
    assert float(row["iops"]) == pytest.approx(1000)
    assert float(row["bytes_per_s"]) == pytest.approx(1000 * 4096)


class _StopAt(RunProgress):
    def __init__(self, label: str) -> None:
        self.label = label

    def step_begin(self, phase: str, round_number: int, step: int, steps: int, name: str) -> None:
        if name == self.label:
            raise KeyboardInterrupt


@pytest.mark.parametrize("label", ["step 2", "mix, round 3", "log"])
def test_an_interrupted_run_ends_the_same(target: str, label: str) -> None:
    test, engine = procedure(target, "steps.toml")
    whole = run_procedure(test, engine, Path("whole")).history.rows
    with pytest.raises(RunInterrupted, match="stopped"):
        run_procedure(test, SimEngine(target), Path("r"), _StopAt(label))
    manifest = RunDirectory.open(Path("r")).manifest
    again = WorkloadRun.from_mapping(manifest.options)
    assert again == test
    run_procedure(again, SimEngine(target), Path("r"), resume=True)
    assert stored_rows(RunDirectory.open(Path("r"))) == whole

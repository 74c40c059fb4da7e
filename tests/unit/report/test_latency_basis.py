"""The basis of latency figures: from the intended arrival.

Service time has separate keys, `service/...`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.choice.measured import figures_of
from writecliff.choice.question import Question
from writecliff.devices import show_device
from writecliff.latency_basis import histogram_of
from writecliff.report import build_report, report_of
from writecliff.report.expectations import matching
from writecliff.report.loads import step_headlines
from writecliff.report.workload import WorkloadRunReport
from writecliff.store.rundir import RunDirectory
from writecliff.store.tables import TableName
from writecliff.workload.model import IoLog, Job

OPEN_LOAD = """
name = "orders"
[[job]]
name = "orders"
read = "50 %"
rate = "12000 IOPS"
arrival = "poisson"
queue_depth = 1
duration = "1 s"
"""
CLOSED_LOAD = """
name = "closed"
[[job]]
name = "closed"
read = "50 %"
queue_depth = 4
duration = "300 ms"
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def run(cli: CommandLine, folder: Path, load: str) -> tuple[dict[str, Any], WorkloadRunReport]:
    """Return the output of a run on a small drive, and its report."""
    drive = write_small_drive(folder)
    file = folder / "load.toml"
    file.write_text(load)
    words = ["run", str(file), "--on", f"sim:{drive}", "--output", str(folder / "run"), "--json"]
    text = cli([*words, "--quiet", "--expect", "reads/p99 <= 1 s", "--expect",
                "reads/service/p99 <= 1 s"])  # fmt: skip
    assert text.code == 0, text.err
    report = report_of(RunDirectory.open(folder / "run"))
    assert isinstance(report, WorkloadRunReport)
    return json.loads(text.out), report


def percentile_ms(latency: dict[str, Any], pct: float) -> float:
    (value,) = (entry["value_ns"] / 1e6 for entry in latency["percentiles"] if entry["pct"] == pct)
    return float(value)


def test_run_choose_and_json_mean_the_same_under_a_rate(cli: CommandLine, tmp_path: Path) -> None:
    answer, report = run(cli, tmp_path, OPEN_LOAD)
    (read, write) = (answer["steps"][0]["jobs"][0]["operations"][n] for n in ("read", "write"))
    assert read["latency"] == read["response"] != read["service"]
    assert percentile_ms(read["latency"], 99) > percentile_ms(read["service"], 99)
    figures = {figure.key: figure.value for figure in report.headlines()}
    for prefix, block in (("", "latency"), ("service/", "service")):
        for name, done in (("reads", read), ("writes", write)):
            key = f"/orders/{name}/{prefix}p99"
            assert figures[key] == pytest.approx(percentile_ms(done[block], 99))
    first, second = answer["expectations"]
    assert first["value"] == pytest.approx(percentile_ms(read["latency"], 99))
    assert second["value"] == pytest.approx(percentile_ms(read["service"], 99))
    device = show_device(str(write_small_drive(tmp_path)))
    question = Question(workload="load.toml", candidates=("drive",))
    chosen = figures_of(report.loads, device, question, None)
    assert chosen["reads/p99"].value == pytest.approx(first["value"])
    assert chosen["reads/service/p99"].value == pytest.approx(second["value"])
    page = build_report(report.data.run)
    files = {file.name: file.text for file in page.data}
    head, first_row = (line.split(",") for line in files["results.csv"].splitlines()[:2])
    row = dict(zip(head, first_row, strict=True))
    assert float(row["latency_p99_ns"]) / 1e6 == pytest.approx(first["value"])
    assert float(row["service_p99_ns"]) / 1e6 == pytest.approx(second["value"])
    assert "reads, service time" in [
        row[1] for part in page.sections for table in part.tables for row in table.rows
    ]
    assert '"read, service time"' in files["histograms-1.csv"]


def test_without_a_rate_both_keys_are_one_figure(cli: CommandLine, tmp_path: Path) -> None:
    answer, report = run(cli, tmp_path, CLOSED_LOAD)
    done = answer["steps"][0]["jobs"][0]["operations"]["read"]
    assert done["latency"] == done["service"] and done["response"] is None
    first, second = answer["expectations"]
    assert first["value"] == second["value"] == pytest.approx(percentile_ms(done["service"], 99))
    assert not [figure for figure in report.headlines() if "service" in figure.key]


def test_the_plot_over_time_names_the_latency_that_it_shows(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check engines such as fio, which measure from issue and omit the wait after arrival."""
    _, report = run(cli, tmp_path, OPEN_LOAD)
    assert _titles(report) == ["Response time over time"]
    table = RunDirectory.table

    def without_arrival(self: RunDirectory, name: TableName) -> pa.Table:
        rows = table(self, name)
        return rows.drop_columns([c for c in rows.column_names if c.startswith("response_")])

    monkeypatch.setattr(RunDirectory, "table", without_arrival)
    assert _titles(report_of(RunDirectory.open(tmp_path / "run"))) == ["Service time over time"]


def _titles(report: object) -> list[str]:
    assert isinstance(report, WorkloadRunReport)
    figures = [figure for section in report.sections() for figure in section.figures]
    return [figure.title for figure in figures if figure.name == "time-latency"]


def test_a_name_without_service_never_means_service_time() -> None:
    keys = ["/a/reads/p99.9", "/a/reads/service/p99.9", "/a/flush/p99.9"]
    assert matching("p99.9", keys) == matching("reads/p99.9", keys) == keys[:1]
    assert matching("service/p99.9", keys) == matching("reads/service/p99.9", keys) == keys[1:2]
    assert matching("flush/p99.9", keys) == keys[2:]
    assert matching("service/p99.9", keys[:1]) == []


@pytest.mark.parametrize(
    ("job", "scheduled"),
    [
        (Job(), False),
        (Job(rate_iops=10.0), True),
        (Job(rate_bytes_per_s=10.0), True),
        (Job(log=IoLog("r", (0,), (4096,))), False),
        (Job(log=IoLog("r", (0,), (4096,), (0,))), True),
    ],
)
def test_an_open_load_is_scheduled(job: Job, scheduled: bool) -> None:
    assert job.is_scheduled is scheduled


def test_fio_has_no_latency_from_arrival(tmp_path: Path) -> None:
    """Check that a rate paced by fio has only service times, which do not replace latencies."""
    assert histogram_of("arrival", service=1, response=None, scheduled=True) is None
    assert histogram_of("service", service=1, response=None, scheduled=True) == 1
    times = {"mean_ns": 5e5, "max_ns": 1_000_000, "percentiles": []}
    done = {"iops": 1.0, "bytes_per_s": 1.0, "service": times, "response": None, "latency": None}
    step: dict[str, Any] = {
        "workload": "w", "waf": None, "warnings": [],
        "jobs": [{"name": "j", "scheduled": True, "operations": {"read": done}}],
    }  # fmt: skip
    keys = {figure.key for figure in step_headlines(step, many=False)}
    assert "/j/reads/service/mean" in keys and "/j/reads/mean" not in keys
    # Earlier versions wrote a warning instead of `scheduled`.
    del step["jobs"][0]["scheduled"]
    step["warnings"] = ["job j: no response times: fio measures from the issue of an I/O"]
    assert {figure.key for figure in step_headlines(step, many=False)} == keys
    step["warnings"] = []
    assert "/j/reads/mean" in {figure.key for figure in step_headlines(step, many=False)}

"""Flushes: separate latencies, from the drive to every form of the results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.engines.base import JobResult
from writecliff.engines.sim import SimEngine
from writecliff.report import report_of
from writecliff.store.rundir import RunDirectory
from writecliff.workload.model import Job, Workload

LOG = """
name = "log"
[[job]]
name = "log"
pattern = "sequential"
read = "0 %"
block_size = "4 KiB"
duration = "5 s"
flush_every_writes = 1
"""


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a drive without power-loss protection, so that a flush waits for the flash."""
    folder = tmp_path_factory.mktemp("drive")
    return write_small_drive(folder, power_loss_protection="false")


def measured(drive: Path, job: Job, *, attributed: bool = False) -> tuple[JobResult, float]:
    """Return the result of a job that writes, and the IOPS of the step."""
    engine = SimEngine(str(drive), attribute_latency=attributed)
    result = engine.run(Workload("log", (job,)))
    return result.jobs[0], result.iops()


def writer(**options: int | bool) -> Job:
    return Job(name="log", pattern="sequential", read_pct=0, ios=500, **options)  # type: ignore[arg-type]


def test_a_log_takes_as_long_as_its_writes_and_flushes(drive: Path) -> None:
    job, iops = measured(drive, writer(flush_every_writes=1))
    write, flush = job.operations["write"], job.flush
    # No flush follows the last write.
    assert flush is not None and flush.service.count == flush.ios == 499
    assert flush.bytes == 0 and write.ios == 500
    assert write.service.mean_ns is not None and flush.service.mean_ns is not None
    # A flush takes the program time of a page.
    assert flush.service.mean_ns > 10 * write.service.mean_ns
    assert (write.service.mean_ns + flush.service.mean_ns) * iops == pytest.approx(1e9, rel=0.01)


@pytest.mark.parametrize(("every", "number"), [(3, 166), (100, 4), (1000, 0)])
def test_flushes_are_counted_by_their_interval(drive: Path, every: int, number: int) -> None:
    job, _ = measured(drive, writer(flush_every_writes=every))
    assert (job.flush.ios if job.flush is not None else 0) == number
    assert set(job.operations) == {"write"}


def test_a_durable_write_includes_its_flush(drive: Path) -> None:
    flushed, _ = measured(drive, writer(flush_every_writes=1))
    durable, iops = measured(drive, writer(dsync=True))
    assert durable.flush is None and flushed.flush is not None
    parts = [flushed.operations["write"].service.mean_ns, flushed.flush.service.mean_ns]
    mean_ns = durable.operations["write"].service.mean_ns
    assert mean_ns == pytest.approx(sum(part or 0 for part in parts), rel=0.01)
    assert iops * (mean_ns or 0) == pytest.approx(1e9, rel=0.001)


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("options", [{"dsync": True}, {"flush_every_writes": 2}])
def test_causes_add_up_to_the_latencies(
    drive: Path, options: dict[str, int | bool], depth: int
) -> None:
    job, _ = measured(drive, writer(queue_depth=depth, **options), attributed=True)
    for operation in job.timed.values():
        assert operation.causes is not None
        total_ns = (operation.service.mean_ns or 0) * operation.service.count
        assert operation.causes.spent_ns.sum() == pytest.approx(total_ns, rel=1e-9)


def test_durable_writes_with_a_rate_count_from_their_arrival(drive: Path) -> None:
    job, _ = measured(drive, writer(dsync=True, rate_iops=100))
    write = job.operations["write"]
    assert write.response is not None and write.service.mean_ns == write.response.mean_ns


@pytest.fixture(scope="module")
def run(drive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of the log."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "log.toml").write_text(LOG)
    words = ["run", str(folder / "log.toml"), "--on", f"sim:{drive}", "--quiet"]
    assert main([*words, "--output", str(folder / "r"), "--expect", "flush/p99 <= 1 s"]) == 0
    return folder / "r"


def test_a_run_directory_tells_flushes_from_writes(run: Path) -> None:
    stored = RunDirectory.open(run)
    writes, flushes = stored.histogram(), stored.histogram(operation="flush")
    assert writes is not None and flushes is not None
    assert writes.count == stored.rounds()["ios"][0].as_py()
    assert (flushes.min_ns or 0) > 10 * (writes.max_ns or 0)
    assert set(stored.histograms_by_operation([1])) == {(0, "write"), (0, "flush")}
    (by_job,) = stored.histograms_by_job(1).values()
    assert by_job.count == writes.count


def test_every_form_of_the_results_has_them(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(RunDirectory.open(run))
    flush = report.results()["steps"][0]["jobs"][0]["operations"]["flush"]
    figures = {item.key: item.value for item in report.headlines()}
    assert figures["/log/flush/iops"] == pytest.approx(flush["iops"])
    assert figures["/log/flush/mean"] == pytest.approx(flush["service"]["mean_ns"] / 1e6)
    assert figures["/log/flush/p99"] == pytest.approx(flush["service"]["percentiles"][2]["value_ns"]
                                                      / 1e6)  # fmt: skip
    assert "/log/flush/mb_per_s" not in figures
    page = (run / "report.html").read_text()
    assert "Response times of flushes" in page and "flushs" not in page
    capsys.readouterr()
    assert main(["report", str(run), "--csv", str(run.parent / "csv")]) == 0
    rows = (run.parent / "csv" / "results.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows[1:]] == ["write", "flush"]


def test_the_json_of_fio_has_them(
    drive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "log.fio"
    job.write_text("[log]\nrw=write\nbs=4k\nsize=2m\nfdatasync=4\npercentile_list=50:99\n")
    words = ["run", str(job), "--on", f"sim:{drive}", "--quiet", "--output", str(tmp_path / "r")]
    assert main([*words, "--output-format", "fio-json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["jobs"]
    latency = shown["sync"]["lat_ns"]
    assert shown["write"]["total_ios"] == 512
    assert shown["sync"]["total_ios"] == latency["N"] == 127
    assert list(latency["percentile"]) == ["50.000000", "99.000000"]
    assert latency["min"] <= latency["percentile"]["50.000000"] <= latency["max"]

"""Runs imported from fio's JSON output: they have the figures that fio reported."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from writecliff.api import load_run
from writecliff.engines.fio.finished import COMPLETION, NO_BINS, finished_steps
from writecliff.errors import ConfigError


def _latency(bins: dict[str, int] | None, mean: float, largest: int) -> dict[str, Any]:
    statistics: dict[str, Any] = {"min": 10, "max": largest, "mean": mean, "stddev": 5.0,
                             "N": sum((bins or {"0": 100}).values())}  # fmt: skip
    return statistics | ({"bins": bins} if bins is not None else {})


def _direction(ios: int, **latencies: Any) -> dict[str, Any]:
    return {"io_bytes": 4096 * ios, "total_ios": ios, "runtime": 2000, **latencies}


def document(*, bins: bool = True, lat: bool = False, second: str = "stonewall") -> dict[str, Any]:
    """Return fio's output for two jobs: 100 reads of 100 µs each, then 100 writes."""
    counted = {"100352": 90, "200704": 10} if bins else None
    clat, empty = _latency(counted, 110_000.0, 201_000), _latency({}, 0.0, 0)
    plain = _latency(counted if lat else None, 111_000.0, 202_000)
    done = _direction(100, lat_ns=plain, clat_ns=clat)
    nothing = _direction(0, lat_ns=empty, clat_ns=empty)
    jobs = [
        {"jobname": "r", "groupid": 0, "error": 0, "read": done, "write": nothing, "trim": nothing,
         "job options": {"rw": "randread", "bs": "4k", "iodepth": "8"}},
        {"jobname": "w", "groupid": 1, "error": 5, "read": nothing, "write": done, "trim": nothing,
         "job options": {"rw": "write", "bs": "4k", second: ""}},
    ]  # fmt: skip
    return {
        "fio version": "fio-3.33",
        "timestamp": 1_772_000_000,
        "global options": {"filename": "/dev/sdq", "size": "1g"},
        "jobs": jobs,
    }


def test_groups_are_steps_and_jobs_of_one_group_run_together() -> None:
    first, second = finished_steps(document(), "x")
    assert [job.name for job in first.workload.jobs + second.workload.jobs] == ["r", "w"]
    assert (first.workload.jobs[0].read_pct, second.workload.jobs[0].read_pct) == (100, 0)
    assert first.workload.jobs[0].queue_depth == 8
    assert first.result.iops() == 50.0
    assert second.result.started_ns == first.result.elapsed_ns == 2_000_000_000
    assert second.result.warnings == (COMPLETION, "job w ended with error 5")
    (both,) = finished_steps(document(second="new_group"), "x")
    assert [job.name for job in both.workload.jobs] == ["r", "w"]


@pytest.mark.parametrize(
    ("shape", "mean", "note"),
    [
        ({"lat": True}, 111_000.0, ()),
        ({}, 110_000.0, (COMPLETION,)),
        ({"bins": False}, None, (NO_BINS,)),
    ],
)
def test_latencies_are_those_that_have_bins(shape: Any, mean: float | None, note: Any) -> None:
    step = finished_steps(document(**shape), "x")[0]
    service = step.result.jobs[0].operations["read"].service
    assert step.result.warnings == note
    assert (service.mean_ns if service.count else None) == mean
    if mean is not None:
        assert 200_704 <= (service.quantile(0.99).value_ns or 0) <= 203_000


@pytest.mark.parametrize("wrong", [{}, {"jobs": 1}, {"jobs": [{}]}, {"jobs": []}])
def test_other_documents_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        finished_steps(wrong, "x")


def test_a_result_of_fio_becomes_a_run(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text("fio: a message before it\n" + json.dumps(document(lat=True)))
    output = cli(f"runs import {path} --store s --json")
    assert json.loads(output.out)["runs"] == ["imports/old"]
    run = load_run(tmp_path / "s" / "imports" / "old")
    figures = {figure.key: figure.value for figure in run.figures}
    assert figures["old-1/r/reads/iops"] == figures["old-2/w/writes/iops"] == 50.0
    assert figures["old-1/r/reads/mean"] == pytest.approx(0.111)
    assert run.directory.manifest.device.target == "/dev/sdq"
    assert run.directory.manifest.versions["fio"] == "fio-3.33"
    assert (tmp_path / "s" / "imports" / "old" / "report.html").is_file()
    (listed,) = json.loads(cli("runs list --store s --json").out)["runs"]
    assert listed["created_utc"] == "2026-02-25T06:13:20+00:00"


def test_the_capacity_must_be_known(cli: CommandLine, tmp_path: Path) -> None:
    without = document(lat=True)
    del without["global options"]["size"]
    (tmp_path / "x.json").write_text(json.dumps(without))
    output = cli("runs import x.json --store s")
    assert (output.code, "--capacity" in output.err) == (2, True)
    assert cli("runs import x.json --store s --capacity 960GB").code == 0


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_a_real_result_of_fio(cli: CommandLine, tmp_path: Path) -> None:
    words = ("fio --name=a --rw=randrw --bs=4k --size=1m --filename=f --output-format=json+ "
             "--output=a.json --name=b --stonewall --rw=write --bs=64k --size=1m")  # fmt: skip
    subprocess.run(words.split(), cwd=tmp_path, check=True, capture_output=True)
    fio = json.loads((tmp_path / "a.json").read_text())
    assert cli("runs import a.json --store s").code == 0
    figures = {f.key: f.value for f in load_run(tmp_path / "s" / "imports" / "a").figures}
    for step, job in enumerate(fio["jobs"], 1):
        for operation in ("read", "write"):
            if (total := job[operation]["total_ios"]) and (took := job[operation]["runtime"]):
                key = f"a-{step}/{job['jobname']}/{operation}s/max"
                assert round(figures[key] * 1e6) == job[operation]["clat_ns"]["max"]
                rate = figures[f"a-{step}/{job['jobname']}/{operation}s/iops"]
                assert rate <= 1000 * total / took * 1.001

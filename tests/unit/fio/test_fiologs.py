"""fio's log files and fio's text, generated from measurements."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.engines.base import JobResult, StepResult
from writecliff.engines.counters import Counters
from writecliff.engines.fiologs import write_logs
from writecliff.engines.fiotext import fio_text, number
from writecliff.workload.fiojob import FioJobFile, load_fio_job

FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")
MS = 1_000_000


def _job_file(folder: Path, text: str) -> FioJobFile:
    (folder / "job.fio").write_text(text)
    return load_fio_job(folder / "job.fio", device_capacity_bytes=1 << 30)


def _rows(*rows: tuple[int, int, int, int, int, float, int]) -> StepResult:
    """Return columns of rows (end_ms, job, operation, ios, bytes, mean ns, max ns)."""
    names = ("end_ns", "job", "operation", "ios", "bytes", "latency_mean_ns", "latency_max_ns")
    columns = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True),
                                                              strict=True)}  # fmt: skip
    columns["end_ns"] = columns["end_ns"] * MS
    jobs = tuple(JobResult(f"j{n}", 2500 * MS, {}) for n in range(max(columns["job"]) + 1))
    return StepResult(0, 2500 * MS, jobs, columns, Counters(), Counters())


STEP = _rows(
    (500, 0, 0, 10, 40960, 100.0, 300), (500, 0, 1, 0, 0, float("nan"), 0),
    (1000, 0, 0, 30, 122880, 200.0, 900), (1000, 0, 1, 5, 20480, 50.0, 60),
    (2500, 0, 0, 20, 81920, 400.0, 500), (2500, 1, 0, 8, 32768, 10.0, 10),
)  # fmt: skip


def test_logs_have_a_row_for_each_window_and_operation(tmp_path: Path) -> None:
    job_file = _job_file(
        tmp_path,
        "[a]\nrw=randrw\nsize=1m\nlog_avg_msec=1000\nwrite_bw_log=out\nwrite_iops_log\n"
        "[b]\nsize=1m\nlog_avg_msec=500\nwrite_lat_log=b\nlog_window_value=both\nper_job_logs=0\n",
    )
    names = [path.name for path in write_logs(job_file, [STEP], tmp_path / "logs")]
    assert names == ["out_bw.1.log", "a_iops.1.log", "b_lat.log", "b_clat.log"]
    read = {name: (tmp_path / "logs" / name).read_text() for name in names}
    assert read["out_bw.1.log"] == "1000, 160, 0, 0, 0\n1000, 20, 1, 0, 0\n2500, 160, 0, 0, 0\n"
    assert read["a_iops.1.log"] == "1000, 40, 0, 0, 0\n1000, 5, 1, 0, 0\n2500, 40, 0, 0, 0\n"
    assert read["b_lat.log"] == read["b_clat.log"] == "2500, 10, 10, 0, 0, 0\n"


@needs_fio
def test_names_and_columns_are_those_of_fio(tmp_path: Path) -> None:
    text = (
        "[global]\nioengine=null\nsize=1m\nrate_iops=500\nlog_avg_msec=100\n"
        "[a]\nwrite_bw_log=out\nwrite_lat_log=l\n[b]\nrw=write\nwrite_iops_log\n"
    )
    job_file = _job_file(tmp_path, text)
    assert FIO is not None
    subprocess.run(
        [FIO, "job.fio"], cwd=tmp_path, capture_output=True, timeout=WAIT_LIMIT_S, check=True
    )
    theirs = {path.name: path.read_text() for path in tmp_path.glob("*.log")}
    ours = write_logs(job_file, [STEP], tmp_path / "logs")
    # A simulated drive has no submission time, so slat is missing.
    assert {path.name for path in ours} == {name for name in theirs if "_slat" not in name}
    for path in ours:
        columns = [
            {line.count(",") for line in text.splitlines()}
            for text in (path.read_text(), theirs[path.name])
        ]
        assert columns[0] == columns[1], path.name


@pytest.mark.parametrize(
    ("value", "base", "text"),
    [(0, 1000, "0"), (9999, 1000, "9999"), (10_000, 1000, "10.0k"), (123_456, 1000, "123k"),
     (123_500, 1000, "124k"), (8191, 1024, "8191"), (81_920_000, 1024, "78.1Mi")],
)  # fmt: skip
def test_numbers_have_four_figures(value: int, base: int, text: str) -> None:
    assert number(value, base) == text


@needs_fio
def test_the_text_is_that_of_fio(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(
        "[global]\nioengine=null\niodepth=8\nsize=64m\nruntime=1\ntime_based\n"
        "[mix]\nrw=randrw\nrate_iops=9000,4000\n[seq]\nstonewall\nrw=write\nbs=128k\n"
        "rate_iops=700\ndescription=big blocks\n"
    )
    assert FIO is not None
    fio_output = subprocess.run(
        [FIO, "--output-format=normal,json+", "--eta=never", "job.fio"],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    ).stdout  # fmt: skip
    begin, end = fio_output.index("\n{"), fio_output.rindex("\n}") + 2
    document = json.loads(fio_output[begin:end])
    theirs = fio_output[:begin].splitlines()[3:] + fio_output[end:].splitlines()

    def plain(lines: list[str]) -> list[str]:
        """Return text without process numbers, zone resets, blank lines and fio's headers."""
        text = "\n".join(lines).replace("; 0 zone resets", "")
        text = re.sub(r"pid=\d+", "pid=0", text)
        figure_lines = [
            line for line in text.split("\n") if line.startswith((" ", "Run", "mix:", "seq:"))
        ]
        return [line for line in figure_lines if "(g=" not in line and "Starting" not in line]

    ours, expected = plain(fio_text(document).splitlines()), plain(theirs)
    assert len(ours) == len(expected)
    different = [pair for pair in zip(ours, expected, strict=True) if pair[0] != pair[1]]
    # The JSON contains rounded means and rates, so the last digit of a few figures may differ.
    assert len(different) <= 6, different
    for mine, real in different:
        assert re.sub(r"[\d.]+", "#", mine) == re.sub(r"[\d.]+", "#", real)

"""Log files in fio's format: `write_bw_log`, `write_iops_log`, `write_lat_log`.

File names and rows follow "Log File Formats" in fio's HOWTO: `NAME_bw.1.log` has a row `time (ms),
value, operation, 0, 0` for each window and operation that has I/Os. The window is `log_avg_msec`,
or the interval of the measured series. If `log_avg_msec` is not set, fio would instead log
individual I/Os.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from writecliff.engines.base import StepResult
from writecliff.output_files import open_part, part_of
from writecliff.workload.fiojob import FioJobFile, FioSection, FioStep
from writecliff.workload.fiojob.options import named_after_job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

_MS = 1_000_000


@dataclass(frozen=True)
class _Window:
    """Figures for one operation of a job in a window."""

    end_ms: int
    operation: int
    ios: float
    bytes: float
    seconds: float
    latency_mean_ns: float
    latency_max_ns: float


def write_logs(
    job_file: FioJobFile, results: Sequence[StepResult], folder: Path = Path()
) -> list[Path]:
    """Write the log files that a job file requests, and return the paths in order."""
    written: dict[Path, list[str]] = {}
    number = 1  # fio's thread number, which counts the threads in all steps.
    for result, step in zip(results, job_file.steps, strict=False):
        for section in step.sections:
            for index in section.jobs:
                for name, rows in _logs(section, step, result, index):
                    path = folder / _file_name(section, name, number)
                    written.setdefault(path, []).extend(rows)
                number += step.workload.jobs[index].threads
    for path, rows in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = part_of(path)
        with os.fdopen(open_part(part), "w", encoding="ascii") as file:
            file.writelines(f"{row}\n" for row in rows)
        part.replace(path)
    return list(written)


def _file_name(section: FioSection, name: str, number: int) -> str:
    settings = section.settings
    option = {"bw": "write_bw_log", "iops": "write_iops_log"}.get(name, "write_lat_log")
    prefix = named_after_job(getattr(settings, option), section.name)
    return f"{prefix}_{name}.{number}.log" if settings.per_job_logs else f"{prefix}_{name}.log"


def _logs(
    section: FioSection, step: FioStep, result: StepResult, index: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield (kind, rows) for each of a job's logs."""
    settings = section.settings
    windows = list(_windows(section, step, result, index))
    if settings.write_bw_log is not None:
        yield "bw", [_row(window, [window.bytes / 1024 / window.seconds]) for window in windows]
    if settings.write_iops_log is not None:
        yield "iops", [_row(window, [window.ios / window.seconds]) for window in windows]
    if settings.write_lat_log is not None:
        rows = [_row(window, _latencies(window, settings.log_window_value)) for window in windows]
        yield from (("lat", rows), ("clat", rows))


def _latencies(window: _Window, wanted: str) -> list[float]:
    both = [window.latency_mean_ns, window.latency_max_ns]
    return {"avg": both[:1], "max": both[1:]}.get(wanted, both)


def _row(window: _Window, values: list[float]) -> str:
    return ", ".join(map(str, (window.end_ms, *map(int, values), window.operation, 0, 0)))


def _windows(
    section: FioSection, step: FioStep, result: StepResult, index: int
) -> Iterator[_Window]:
    """Yield a job's non-empty windows, sorted by time and then by operation."""
    rows = result.intervals
    if not rows or not len(rows["end_ns"]):
        return
    interval_ns = step.workload.interval_ns
    width = max(section.settings.log_avg_msec * _MS, interval_ns)
    job = step.workload.jobs[index]
    start = result.jobs[index].began_ns if job.ramp_ns else job.start_delay_ns
    selected = (rows["job"] == index) & (rows["ios"] > 0)
    ends = rows["end_ns"][selected].astype(np.int64)
    # Windows start at the job start and have the length of the series interval.
    numbers = np.maximum(0, -(-(ends - start) // width) - 1)
    kinds = rows["operation"][selected].astype(np.int64)
    ios, size, mean, most = (
        rows[name][selected].astype(np.float64)
        for name in ("ios", "bytes", "latency_mean_ns", "latency_max_ns")
    )
    done = result.jobs[index]
    elapsed = done.began_ns + done.elapsed_ns - start
    for number in np.unique(numbers):
        end = min((int(number) + 1) * width, max(elapsed, 1))
        for kind in np.unique(kinds[numbers == number]):
            at = (numbers == number) & (kinds == kind)
            count = float(ios[at].sum())
            yield _Window(
                end_ms=-(-end // _MS),
                operation=int(kind),
                ios=count,
                bytes=float(size[at].sum()),
                seconds=max(end - int(number) * width, 1) / 1e9,
                latency_mean_ns=float((mean[at] * ios[at]).sum()) / count,
                latency_max_ns=float(most[at].max()),
            )

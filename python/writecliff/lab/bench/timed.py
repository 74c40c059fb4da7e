"""Benchmark of timed I/O, which replays a fixed-rate trace with the issuer and with fio.

The device is a loop device on an in-memory file without an I/O scheduler, which completes I/Os
within microseconds. Late I/Os are therefore caused by the program or the machine. fio replays the
same trace as an I/O log of version 3, and reports the duration of its replay, but not the lateness
of I/Os.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from writecliff.errors import ConfigError, EngineError
from writecliff.lab.bench.capture import memory_loop

IOPS = 50_000
SECONDS = 5.0
_BLOCK = 4096
_COLUMNS = "time=t:ns,operation=op,offset=at,length=n"


@dataclass(frozen=True)
class Pair:
    """A trace, issued by both programs in direct succession."""

    late_p50_us: float | None  # Time from an I/O's due time until the issuer submits it.
    late_p99_us: float | None
    late_max_us: float
    length_error_pct: float
    cpu_s: float  # CPU time of this process.
    fio_length_error_pct: float
    load: float  # One-minute load average of the machine before the run.
    processors: int


def check(seconds: float, pairs: int, iops: int) -> None:
    """Check the options.

    Raises:
        ConfigError: If an option is out of range.
    """
    if not 0.5 <= seconds <= 600:
        raise ConfigError(f"--seconds is {seconds:g}; it must be 0.5 to 600")
    if not 1 <= pairs <= 100:
        raise ConfigError(f"--pairs is {pairs}; it must be 1 to 100")
    if not 1 <= iops <= 2_000_000:
        raise ConfigError(f"--iops is {iops}; it must be 1 to 2,000,000")


def run(*, seconds: float = SECONDS, pairs: int = 3, iops: int = IOPS) -> Iterator[Pair]:
    """Run the pairs.

    Raises:
        ConfigError: If an option is out of range.
        TargetError: If the user is not root, or loop devices or fio are missing.
        EngineError: If a replay failed.
    """
    check(seconds, pairs, iops)
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as text, memory_loop() as device:
        Path("/sys/block", device.name, "queue/scheduler").write_text("none")
        folder = Path(text)
        trace, log = _traces(folder, device, seconds, iops)
        for _ in range(pairs):
            yield _pair(trace, log, device, folder)


def _traces(folder: Path, device: Path, seconds: float, iops: int) -> tuple[Path, Path]:
    """Write Poisson-distributed random reads as a table and as an fio I/O log (times in µs)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = round(seconds * iops)
    random = np.random.default_rng(1)
    at_ns = np.cumsum(random.exponential(1e9 / iops, count)).astype(np.int64)
    offset = random.integers(0, _blocks(device), count) * _BLOCK
    table, log = folder / "trace.parquet", folder / "trace.log"
    columns = {"t": at_ns, "op": pa.array(["read"] * count), "at": offset,
               "n": np.full(count, _BLOCK)}  # fmt: skip
    pq.write_table(pa.table(columns), table)
    with log.open("w") as file:
        file.write(f"fio version 3 iolog\n0 {device} add\n0 {device} open\n")
        for at_us, where in zip((at_ns // 1000).tolist(), offset.tolist(), strict=True):
            file.write(f"{at_us} {device} read {where} {_BLOCK}\n")
        file.write(f"{at_ns[-1] // 1000} {device} close\n")
    return table, log


def _blocks(device: Path) -> int:
    sectors = int(Path("/sys/class/block", device.name, "size").read_text())
    return sectors * 512 // _BLOCK


def _pair(trace: Path, log: Path, device: Path, folder: Path) -> Pair:
    from writecliff.replay.timed_trace import TimedTrace, replay_timed
    from writecliff.traces.source import open_trace

    load, cpu = os.getloadavg()[0], time.process_time()
    done = replay_timed(TimedTrace(lambda: open_trace(trace, columns=_COLUMNS)), str(device))
    cpu_s = time.process_time() - cpu
    late = done.timing["lateness_ns"]
    return Pair(
        late_p50_us=_us(late["p50"]),
        late_p99_us=_us(late["p99"]),
        late_max_us=late["max"] / 1e3,
        length_error_pct=done.timing["length_error_pct"],
        cpu_s=cpu_s,
        fio_length_error_pct=_fio(log, folder, done.timing["intended_ns"]),
        load=load,
        processors=os.cpu_count() or 1,
    )


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e3


def _fio(log: Path, folder: Path, intended_ns: int) -> float:
    """Excess of fio's replay time over the trace length, in percent."""
    answer = folder / "fio.json"
    words = [
        "fio", "--name=replay", f"--read_iolog={log}", "--ioengine=libaio", "--direct=1",
        "--iodepth=256", "--output-format=json", f"--output={answer}",
    ]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"fio failed: {(done.stderr or done.stdout).strip()}")
    text = answer.read_text()
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    return 100.0 * (float(job["read"]["runtime"]) * 1e6 / intended_ns - 1)

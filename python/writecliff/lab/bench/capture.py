"""Benchmark of block device capture, which runs fio at a fixed rate with and without it.

The device is a loop device on an in-memory file, which completes I/Os within microseconds. Two
costs are measured separately: the CPU time of the capture, and the time that the tracepoints add to
each fio I/O, whose thread passes two of the three tracepoints. Other programs on the machine affect
both costs, especially the time added to each I/O.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import ConfigError, EngineError, TargetError

IOPS = 50_000
_SIZE_BYTES = 128 << 20
_MEMORY = Path("/dev/shm")
_SECONDS_MIN = 1.0


@dataclass(frozen=True)
class Pair:
    """A run without capture and a run with capture, in direct succession."""

    bare_iops: float
    captured_iops: float
    bare_cpu_us: float  # fio's CPU time per I/O.
    captured_cpu_us: float
    capture_cpu_pct: float  # Usage of one processor during the capture.
    machine_cpu_pct: float  # Usage of all processors.
    requests: int
    lost_events: int
    trace_bytes: int

    @property
    def tracepoints_us(self) -> float:
        """CPU time that the capture adds to each fio I/O, in µs."""
        return self.captured_cpu_us - self.bare_cpu_us


def check(seconds: float, pairs: int, iops: int) -> None:
    """Check the options.

    Raises:
        ConfigError: If an option is out of range.
    """
    if not _SECONDS_MIN <= seconds <= 3600:
        raise ConfigError(f"--seconds is {seconds:g}; it must be {_SECONDS_MIN:g} to 3600")
    if not 1 <= pairs <= 100:
        raise ConfigError(f"--pairs is {pairs}; it must be 1 to 100")
    if not 1 <= iops <= 10_000_000:
        raise ConfigError(f"--iops is {iops}; it must be 1 to 10,000,000")


def run(*, seconds: float, pairs: int, iops: int = IOPS) -> Iterator[Pair]:
    """Run the pairs.

    Raises:
        ConfigError: If an option is out of range.
        TargetError: If the user is not root, or loop devices or fio are missing.
        EngineError: If fio or the capture failed.
    """
    check(seconds, pairs, iops)
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as text, memory_loop() as device:
        folder = Path(text)
        _fio(device, folder, 1.0, iops)  # The first run is a warm-up.
        for _ in range(pairs):
            yield _pair(device, folder, seconds, iops)


def _pair(device: Path, folder: Path, seconds: float, iops: int) -> Pair:
    from writecliff.capture.block.run import capture_device

    bare_iops, bare_us = _fio(device, folder, seconds, iops)
    trace, answer = folder / "trace.parquet", folder / "fio.json"
    done = capture_device(device, trace, command=_command(device, answer, seconds, iops))
    captured_iops, captured_us = _read(answer)
    metadata = done.metadata
    overhead = metadata["overhead"]
    return Pair(
        bare_iops=bare_iops,
        captured_iops=captured_iops,
        bare_cpu_us=bare_us,
        captured_cpu_us=captured_us,
        capture_cpu_pct=overhead["cpu_pct"],
        machine_cpu_pct=overhead["machine_cpu_pct"],
        requests=sum(metadata["requests"].values()),
        lost_events=metadata["lost_events"],
        trace_bytes=trace.stat().st_size,
    )


@contextmanager
def memory_loop() -> Iterator[Path]:
    """Create a loop device on an in-memory file."""
    if os.geteuid() != 0:
        raise TargetError(
            "a loop device requires root", hint="run the command as root, for example with sudo"
        )
    for program in ("losetup", "fio"):
        if shutil.which(program) is None:
            raise TargetError(f"{program} is not installed")
    place = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.NamedTemporaryFile(dir=place, prefix="writecliff-bench-") as image:
        os.posix_fallocate(image.fileno(), 0, _SIZE_BYTES)
        words = ["losetup", "--find", "--show", image.name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"losetup: {done.stderr.strip()}")
        device = done.stdout.strip()
        try:
            yield Path(device)
        finally:
            subprocess.run(["losetup", "--detach", device], check=False)


def _command(device: Path, answer: Path, seconds: float, iops: int) -> list[str]:
    return [
        "fio", "--name=load", f"--filename={device}", "--rw=randread", "--bs=4k", "--direct=1",
        "--ioengine=libaio", "--iodepth=16", "--time_based", f"--runtime={seconds:g}",
        f"--rate_iops={iops}", "--output-format=json", f"--output={answer}",
    ]  # fmt: skip


def _fio(device: Path, folder: Path, seconds: float, iops: int) -> tuple[float, float]:
    answer = folder / "fio.json"
    words = _command(device, answer, seconds, iops)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EngineError(f"fio failed: {(done.stderr or done.stdout).strip()}")
    return _read(answer)


def _read(answer: Path) -> tuple[float, float]:
    """IOPS and CPU time per I/O in microseconds, parsed from fio's output."""
    text = answer.read_text()
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    share = (job["usr_cpu"] + job["sys_cpu"]) / 100
    wall_us = job["read"]["runtime"] * 1000
    return float(job["read"]["iops"]), share * wall_us / max(1, job["read"]["total_ios"])

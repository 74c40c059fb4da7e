"""State of the machine around a drive: CPU time, throttled CPUs, and kernel I/O counts.

The module reads /proc/stat, the CPU throttling counters, the CPU clock, and a disk's `stat` file
and I/O scheduler. `engines.disturbance` compares two samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from writecliff.engines.base import Operation
from writecliff.engines.blockdev.topology import SECTOR, System, read_int, read_text


@dataclass(frozen=True)
class CpuTimes:
    """Ticks on all CPUs since boot, where `busy` excludes idle, I/O wait and stolen time."""

    busy: int
    waiting: int  # Idle ticks while an I/O was outstanding.
    stolen: int  # Ticks that the hypervisor gave to another guest.
    total: int


@dataclass(frozen=True)
class DiskIo:
    """Bytes that a disk and its partitions have transferred, by operation.

    Request counts are not used, because the kernel splits large I/Os and merges small ones.
    """

    bytes: Mapping[Operation, int]


@dataclass(frozen=True)
class Sample:
    """A sample of the machine's counters, where missing counters are `None`."""

    cpu: CpuTimes | None = None
    cpu_throttles: int | None = None
    cpu_mhz: float | None = None
    disk: DiskIo | None = None
    io_scheduler: str | None = None  # `none`, `mq-deadline`, `kyber`, `bfq`


def take_sample(system: System, disk_directory: Path | None) -> Sample:
    """Take a sample within milliseconds, and send no commands to the drive."""
    cpus = sorted((system.sys / "devices/system/cpu").glob("cpu[0-9]*"))
    return Sample(
        cpu=_cpu_times(system.proc / "stat"),
        cpu_throttles=_throttles(cpus),
        cpu_mhz=_mhz(cpus),
        disk=_disk_io(disk_directory / "stat") if disk_directory is not None else None,
        io_scheduler=_io_scheduler(disk_directory) if disk_directory is not None else None,
    )


def _cpu_times(path: Path) -> CpuTimes | None:
    line = (read_text(path) or "").partition("\n")[0].split()
    if len(line) < 9 or line[0] != "cpu":
        return None
    user, nice, kernel, idle, waiting, hard, soft, stolen = (int(word) for word in line[1:9])
    busy = user + nice + kernel + hard + soft  # User and nice ticks already include guest time.
    return CpuTimes(busy, waiting, stolen, busy + idle + waiting + stolen)


def _throttles(cpus: list[Path]) -> int | None:
    counts = [
        count
        for cpu in cpus
        for name in ("core_throttle_count", "package_throttle_count")
        if (count := read_int(cpu / "thermal_throttle" / name)) is not None
    ]
    return sum(counts) if counts else None


def _mhz(cpus: list[Path]) -> float | None:
    clocks = [
        clock
        for cpu in cpus
        # The clock rate is in kHz.
        if (clock := read_int(cpu / "cpufreq/scaling_cur_freq")) is not None
    ]
    return sum(clocks) / len(clocks) / 1000 if clocks else None


def _disk_io(path: Path) -> DiskIo | None:
    words = [int(word) for word in (read_text(path) or "").split() if word.isdigit()]
    if len(words) < 8:
        return None
    sectors: dict[Operation, int] = {"read": words[2], "write": words[6]}
    if len(words) >= 15:
        sectors["trim"] = words[13]
    return DiskIo({name: count * SECTOR for name, count in sectors.items()})


def _io_scheduler(disk_directory: Path) -> str | None:
    """Return the active scheduler, which sysfs shows in brackets."""
    text = read_text(disk_directory / "queue/scheduler") or ""
    return next((word[1:-1] for word in text.split() if word.startswith("[")), None)

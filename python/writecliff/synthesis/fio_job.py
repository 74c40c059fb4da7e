"""As much of a trace as the language of fio's job files can say, and what it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from writecliff import units

IODEPTH = 64
_SPLITS_MAX = 64  # entries of a list in a job file
_OPERATIONS = (("read", "read"), ("write", "write"), ("discard", "trim"))
NOTES = (
    "arrivals are a Poisson process at the mean rate: bursts, idle periods and demand over time "
    "are not said",
    "each operation is a job of its own: which I/O follows which is not said",
    "how hot areas are is said by zones of the range; how soon data are used or written again is "
    "not",
    "sequential I/O is one run of each operation that random I/O interrupts: several runs at a "
    "time and their lengths are not said",
)


def fio_job_text(measures: Mapping[str, Any], name: str, range_bytes: int) -> str:
    """The job file; `measures` are those of the trace."""
    seconds = max(measures["duration_s"], 1e-3)
    lines = [
        f"; Made by `writecliff trace synthesise` from {name}. fio's language does not say:",
        *(f"; - {note}" for note in NOTES),
        "[global]",
        "; its data are overwritten",
        "filename=${DRIVE}",
        "direct=1",
        "ioengine=libaio",
        f"iodepth={IODEPTH}",
        f"size={range_bytes}",
        "norandommap=1",
        "randrepeat=1",
        "rate_process=poisson",
    ]
    for operation, kind in _OPERATIONS:
        ios = measures["operations"][operation]["ios"]
        if ios:
            lines += ["", f"[{kind}s]", *_section(measures, operation, kind, ios, seconds)]
    return "\n".join(lines) + "\n"


def _section(
    measures: Mapping[str, Any], operation: str, kind: str, ios: int, seconds: float
) -> list[str]:
    lines = [
        f"rw=rand{kind}",
        f"number_ios={ios}",
        f"io_size={2 * measures['operations'][operation]['bytes'] + (1 << 20)}",
        f"rate_iops={max(1, round(ios / seconds))}",
        f"; {ios:,} I/Os in {units.duration(seconds * 1e9)}",
    ]
    if operation == "discard":
        mean = measures["operations"][operation]["bytes"] / ios
        return [*lines, f"bs={max(4096, round(mean / 4096) * 4096)}"]
    sizes: dict[int, int] = {}
    for row in measures["streams"]:
        if row["operation"] == operation:
            sizes[row["size_bytes"]] = sizes.get(row["size_bytes"], 0) + row["ios"]
    if not sizes:  # none of its streams is among the most frequent ones
        mean = measures["operations"][operation]["bytes"] / ios
        sizes[max(4096, round(mean / 4096) * 4096)] = ios
    shares = _percentages(list(sizes.values()))
    split = [f"{size}/{share}" for size, share in zip(sizes, shares, strict=True) if share]
    lines.append(f"bssplit={':'.join(split[:_SPLITS_MAX])}")
    lines.append(f"blockalign={_alignment(measures)}")
    sequential = measures["sequential"][f"{operation}_pct"] or 0.0
    lines.append(f"percentage_random={100 - round(sequential)}")
    zones = _zones(measures["hottest"], f"{operation}_pct")
    if zones:
        lines.append(f"random_distribution=zoned:{zones}")
    flushes = measures["operations"]["flush"]["ios"]
    if operation == "write" and flushes:
        lines.append(f"fsync={max(1, round(ios / flushes))}")
    return lines


def _percentages(counts: Sequence[float]) -> list[int]:
    """Whole percentages that are 100 together: those with the largest rest are rounded up."""
    total = sum(counts) or 1
    exact = [100 * count / total for count in counts]
    found = [int(one) for one in exact]
    by_rest = sorted(range(len(exact)), key=lambda n: found[n] - exact[n])
    for n in by_rest[: 100 - sum(found)]:
        found[n] += 1
    return found


def _alignment(measures: Mapping[str, Any]) -> int:
    """The largest power of two that nearly all I/Os are aligned to, 4 KiB at most."""
    aligned = [row["bytes"] for row in measures["alignment"] if (row["ios_pct"] or 0) >= 99]
    return int(min(max(aligned, default=512), 4096))


def _zones(hottest: Sequence[Mapping[str, Any]], key: str) -> str:
    """Zones from the Lorenz curve: shares of accesses and of the range."""
    points = [(row["blocks_pct"], row[key]) for row in hottest if row["blocks_pct"] >= 1]
    if any(traffic is None for _, traffic in points):
        return ""
    sizes = [b - a for a, b in zip((0, *(p[0] for p in points)), (p[0] for p in points),
                                   strict=False)]  # fmt: skip
    uses = [b - a for a, b in zip((0, *(p[1] for p in points)), (p[1] for p in points),
                                  strict=False)]  # fmt: skip
    zones = zip(_percentages(uses), _percentages(sizes), strict=True)
    return ":".join(f"{access}/{size}" for access, size in zones)

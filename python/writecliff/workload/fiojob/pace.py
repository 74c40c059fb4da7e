"""How fast a job arrives: rates of its threads and operations, and pauses.

fio paces every thread and every operation on its own (init.c `__setup_rate`, backend.c
`usec_for_io`, io_u.c `rate_ddir`): with rates on reads and on writes the two rates, not rwmixread,
are what decides the mix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from writecliff.workload.fiojob.blocks import Blocks, Operations, pick
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.model import Arrival, Job

_US = 1000


@dataclass(frozen=True)
class Pace:
    """Rates of one thread, over its operations."""

    rate_iops: float | None = None
    rate_bytes_per_s: float | None = None
    arrival: Arrival = "linear"
    rate_read_pct: float | None = None  # share of the reads; None for a single operation
    ignores_think: bool = False


def pace(settings: Settings, ops: Operations, blocks: Blocks) -> Pace:
    """The rate of one thread. Raises for limits on only one of two operations."""
    by_bytes = pick(settings.rate, ops.used)
    by_ios = pick(settings.rate_iops, ops.used)
    if any(settings.rate.items()) and any(settings.rate_iops.items()):
        raise settings.error("rate_iops", "rate and rate_iops exclude each other", "keep one")
    option, rates = ("rate_iops", by_ios) if any(by_ios) else ("rate", by_bytes)
    if not any(rates):
        return Pace()
    if not all(rates):
        raise settings.error(
            option,
            f"{option}: a limit on only one of {' and '.join(ops.used)} is not available",
            "limit both, or use two jobs",
        )
    if settings.flow:
        raise settings.error("flow", "flow: rates determine the shares of jobs already", "keep one")
    arrival: Arrival = settings.rate_process
    is_mix = ops.used == ("read", "write")
    if is_mix:
        _note_shares(settings, ops, blocks, option, rates)
    in_ios = option == "rate_iops"
    amounts = [float(rate) for rate in rates]
    if not in_ios and arrival == "poisson":
        # fio draws gaps for I/Os of the smallest size, whatever their size is.
        amounts = [rate / _smallest(blocks, op) for rate, op in zip(rates, ops.used, strict=False)]
        in_ios = True
    elif in_ios and blocks.is_mix and arrival == "linear":
        settings.note("rate_iops counts I/Os of the smallest block size, as in fio")
        amounts = [
            float(rate * _smallest(blocks, op)) for rate, op in zip(rates, ops.used, strict=False)
        ]
        in_ios = False
    total = sum(amounts)
    return Pace(
        total if in_ios else None,
        None if in_ios else total,
        arrival,
        rate_read_pct=100 * amounts[0] / total if is_mix else None,
        ignores_think=bool(settings.thinktime and settings.rate_ignore_thinktime),
    )


def _note_shares(
    settings: Settings, ops: Operations, blocks: Blocks, option: str, rates: list[int]
) -> None:
    """Add a note if the rates of reads and writes make another mix than rwmixread."""
    ios = [
        rate / blocks.mean(op) if option == "rate" else rate
        for rate, op in zip(rates, ops.used, strict=True)
    ]
    read_pct = 100 * ios[0] / sum(ios)
    if abs(read_pct - ops.read_pct) > 0.5:
        settings.note(
            f"{option} makes {read_pct:.3g} % reads; rwmixread={ops.read_pct:g} decides only"
            " while both are behind their rates, as in fio"
        )


def _smallest(blocks: Blocks, operation: str) -> int:
    own = blocks.by_operation.get(operation, blocks.common)
    return min(size.bytes for size in own.block_sizes)


def with_pauses(job: Job, settings: Settings) -> Job:
    """The job of a thread with its pauses: after a number of I/Os, or after a time of I/O.

    Raises ConfigError for a time of I/O together with what a `Job` cannot combine with it.
    """
    pause_ns, burst_ns = settings.thinktime * _US, settings.thinktime_iotime * _US
    if not pause_ns or not burst_ns:
        return replace(job, think_ns=pause_ns, think_after_ios=settings.thinktime_blocks)
    for other in ("thinktime_blocks", "rate", "rate_iops"):
        if settings.given(other):
            message = f"thinktime_iotime and {other} are not available together"
            raise settings.error("thinktime_iotime", message, "keep one")
    return replace(job, burst_ns=burst_ns, pause_ns=pause_ns)

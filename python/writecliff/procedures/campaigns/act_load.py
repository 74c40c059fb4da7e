"""Rates and jobs of the Aerospike certification test (ACT), from its configuration.

ACT has two load models (according to its source code and release notes):

    6.x  since 2020: a record is rounded up to 16 bytes; service threads issue reads (and, with
         commit-to-device, writes), each on its own schedule; latency is that of the drive alone
    3.x  2014 to 2018: a record is rounded up to 128 bytes; a generator puts reads into queues,
         whose threads issue them; the latency "trans" counts from the generator, "device" from the
         issue. Configurations of 2.x, which state `large-block-ops-per-sec` and
         `read-req-num-512-blocks` directly, also use this model

"1x" is 2,000 record reads and 1,000 record writes per second. Written records are collected into
large blocks. Space is reclaimed by reading large blocks and rewriting their valid records: with a
low-water mark of p percent, every byte is written 100 / (100 - p) times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from writecliff.procedures.campaigns.act_config import ActOptions
from writecliff.workload.model import KIB, SECOND_NS, BlockSize, Job

READS_PER_S, WRITES_PER_S = 2000, 1000  # Rates of the "1x" load.
READS, LARGE_READS, LARGE_WRITES = "reads", "large-block-reads", "large-block-writes"
TOMB_RAIDER = "tomb-raider"
_STORED_UNIT = {"6.x": 16, "3.x": 128}
_SECTOR = 512


@dataclass(frozen=True)
class Rates:
    """The rates that ACT derives from its configuration for a load, per second."""

    stored_bytes: int  # Size of the smallest record, rounded up.
    stored_bytes_max: int
    reads: float
    writes: float  # Rate of single-record writes; 0 without commit-to-device.
    large_reads: float
    large_writes: float


def rates_of(o: ActOptions, factor: float = 1.0) -> Rates:
    """Return the rates that the options `o` define, times `factor`."""
    reads, writes = o.read_reqs_per_sec * factor, o.write_reqs_per_sec * factor
    unit = _STORED_UNIT[o.model]
    stored = _up(o.record_bytes, unit)
    stored_max = _up(o.record_bytes_range_max, unit) if o.record_bytes_range_max else stored
    if o.read_req_num_512_blocks:
        stored = stored_max = o.read_req_num_512_blocks * _SECTOR
    large = o.large_block_op_kbytes * KIB
    # Number of whole records per large block at the average record size (all sizes are equally
    # likely).
    original = o.replication_factor * writes / (large // ((stored + stored_max) // 2))
    amplification = 100 / (100 - o.defrag_lwm_pct)
    large_reads = large_writes = original * amplification
    if o.large_block_ops_per_sec:
        large_reads = large_writes = o.large_block_ops_per_sec * factor
    single = 0.0
    if o.commit_to_device:
        large_writes = original * (amplification - 1)
        single = float(o.replication_factor * writes)
    if o.no_defrag_reads:
        large_reads = 0.0
    return Rates(
        stored, stored_max, reads + writes * o.update_pct / 100, single, large_reads, large_writes
    )


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def jobs_of(o: ActOptions, rates: Rates, *, sector_bytes: int, seconds: float) -> tuple[Job, ...]:
    """Return the jobs for a step of `seconds`. An I/O type whose rate is 0 has no job."""
    large = o.large_block_op_kbytes * KIB
    dsync = not o.disable_odsync
    ends = {"duration_ns": round(seconds * SECOND_NS), "compressible_pct": 100.0 - o.compress_pct}
    block: dict[str, Any] = {"block_sizes": (BlockSize(large),), **ends}
    reads = Job(name=LARGE_READS, read_pct=100.0, rate_iops=rates.large_reads, **block)
    writes = Job(name=LARGE_WRITES, rate_iops=rates.large_writes, dsync=dsync, **block)
    tombs = Job(
        name=TOMB_RAIDER,
        pattern="sequential",
        read_pct=100.0,
        think_ns=o.tomb_raider_sleep_usec * 1000,
        **block,
    )
    return (
        *([_records(o, rates, sector_bytes, ends)] if rates.reads + rates.writes else []),
        *([reads] if rates.large_reads else []),
        *([writes] if rates.large_writes else []),
        *([tombs] if o.tomb_raider else []),
    )


def _records(o: ActOptions, rates: Rates, sector_bytes: int, ends: dict[str, Any]) -> Job:
    """Return the job that reads records, and also writes them if they are committed singly."""
    total = rates.reads + rates.writes
    threads, depth = o.service_threads, 1
    if o.model == "3.x":
        threads, depth = o.num_queues, o.threads_per_queue
    return Job(
        name=READS,
        read_pct=100 * rates.reads / total,
        block_sizes=record_sizes(rates, sector_bytes),
        align_bytes=sector_bytes,
        # At less than one I/O per second, a service thread would issue no I/O in a short step.
        threads=max(1, min(threads, math.floor(total))),
        queue_depth=depth,
        rate_iops=total,
        dsync=bool(rates.writes) and not o.disable_odsync,
        **ends,
    )


def record_sizes(rates: Rates, sector_bytes: int) -> tuple[BlockSize, ...]:
    """Return the sizes of record reads in whole sectors, uniformly distributed in the range."""
    low = _up(rates.stored_bytes, sector_bytes)
    high = _up(rates.stored_bytes_max, sector_bytes)
    return tuple(BlockSize(size) for size in range(low, high + 1, sector_bytes))

"""The load of ACT, the Aerospike certification test: from its configuration to rates and jobs.

Two load models (ACT's own sources and release notes):

    6.x  since 2020: a record is rounded up to 16 bytes; reads (and writes in the mode
         commit-to-device) are issued by service threads, each on a schedule of its own; latency is
         that of the drive alone
    3.x  2014 to 2018: a record is rounded up to 128 bytes; a generator puts reads into queues,
         whose threads issue them; the latency "trans" counts from the generator, "device" from the
         issue. Configurations of 2.x give `large-block-ops-per-sec` and `read-req-num-512-blocks`
         themselves, and are of this model too

"1x" is 2,000 reads and 1,000 writes of records a second. Written records are gathered into large
blocks, and space is reclaimed by reading large blocks and writing what is still needed: with a low
water mark of p percent every byte is written 100 / (100 - p) times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from writecliff.workload.model import KIB, SECOND_NS, BlockSize, Job

MODELS = ("6.x", "3.x")
READS_PER_S, WRITES_PER_S = 2000, 1000  # of "1x"
READS, LARGE_READS, LARGE_WRITES = "reads", "large-block-reads", "large-block-writes"
TOMB_RAIDER = "tomb-raider"
_STORED_UNIT = {"6.x": 16, "3.x": 128}
_SECTOR = 512


@dataclass(frozen=True)
class Rates:
    """What ACT derives from its configuration, for one load. Rates are per second."""

    stored_bytes: int  # of a record, the smallest
    stored_bytes_max: int
    reads: float
    writes: float  # of single records: only with commit-to-device
    large_reads: float
    large_writes: float


def rates_of(options: Any, factor: float = 1.0) -> Rates:
    """The rates of `options` (of `ActOptions`), times `factor`."""
    o = options
    reads, writes = o.read_reqs_per_sec * factor, o.write_reqs_per_sec * factor
    unit = _STORED_UNIT[o.model]
    stored = _up(o.record_bytes, unit)
    stored_max = _up(o.record_bytes_range_max, unit) if o.record_bytes_range_max else stored
    if o.read_req_num_512_blocks:
        stored = stored_max = o.read_req_num_512_blocks * _SECTOR
    large = o.large_block_op_kbytes * KIB
    # Whole records in a large block, of the average size (sizes are equally likely).
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


def jobs_of(options: Any, rates: Rates, *, sector_bytes: int, seconds: float) -> tuple[Job, ...]:
    """The jobs of one step; a rate of 0 is no job."""
    o = options
    large = o.large_block_op_kbytes * KIB
    flush = 0 if o.disable_odsync else 1
    ends = {"duration_ns": round(seconds * SECOND_NS), "compressible_pct": 100.0 - o.compress_pct}
    jobs = [_records(o, rates, sector_bytes, ends)] if rates.reads + rates.writes else []
    for name, rate, read_pct in (
        (LARGE_READS, rates.large_reads, 100.0),
        (LARGE_WRITES, rates.large_writes, 0.0),
    ):
        if rate:
            jobs.append(
                Job(
                    name=name,
                    read_pct=read_pct,
                    block_sizes=(BlockSize(large),),
                    rate_iops=rate,
                    flush_every_writes=0 if read_pct else flush,
                    **ends,
                )
            )
    if o.tomb_raider:
        jobs.append(
            Job(
                name=TOMB_RAIDER,
                pattern="sequential",
                read_pct=100.0,
                block_sizes=(BlockSize(large),),
                think_ns=o.tomb_raider_sleep_usec * 1000,
                **ends,
            )
        )
    return tuple(jobs)


def _records(o: Any, rates: Rates, sector_bytes: int, ends: dict[str, Any]) -> Job:
    """Reads of records, and their writes where each is committed by itself."""
    total = rates.reads + rates.writes
    threads, depth = o.service_threads, 1
    if o.model == "3.x":
        threads, depth = o.num_queues, o.threads_per_queue
    return Job(
        name=READS,
        read_pct=100 * rates.reads / total,
        block_sizes=record_sizes(rates, sector_bytes),
        align_bytes=sector_bytes,
        # A service thread at less than one I/O a second would never come to it in a short step.
        threads=max(1, min(threads, math.floor(total))),
        queue_depth=depth,
        rate_iops=total,
        flush_every_writes=0 if o.disable_odsync or not rates.writes else 1,
        **ends,
    )


def record_sizes(rates: Rates, sector_bytes: int) -> tuple[BlockSize, ...]:
    """What is read for a record: whole sectors, all sizes of the range equally likely."""
    low = _up(rates.stored_bytes, sector_bytes)
    high = _up(rates.stored_bytes_max, sector_bytes)
    return tuple(BlockSize(size) for size in range(low, high + 1, sector_bytes))

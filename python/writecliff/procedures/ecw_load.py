"""The composite enterprise workload: a mix of block sizes over three zones of addresses.

Shares of sizes and zones are those of JESD219, the JEDEC endurance workloads, as the PTS uses them
for its composite tests: 40 % reads and 60 % writes, half of the accesses to the first 5 % of the
addresses, 30 % to the next 15 % and 20 % to the remaining 80 %.

Blocks below 4 KiB begin on 4 KiB boundaries, like all others: one alignment for the whole mix, as
in the example that fio ships for this workload. Tests disclose it (`DISCLOSURE`).
"""

from __future__ import annotations

from writecliff.workload.model import KIB, Addresses, BlockSize, Job, Zone

READ_PCT = 40.0
SIZES = (  # bytes, percent of the accesses
    (512, 4.0),
    (1024, 1.0),
    (1536, 1.0),
    (2048, 1.0),
    (2560, 1.0),
    (3072, 1.0),
    (3584, 1.0),
    (4 * KIB, 67.0),
    (8 * KIB, 10.0),
    (16 * KIB, 7.0),
    (32 * KIB, 3.0),
    (64 * KIB, 3.0),
)
ZONES = (Zone(50, 5), Zone(30, 15), Zone(20, 80))  # percent of accesses, of addresses
ALIGN_BYTES = 4 * KIB
LARGEST_BYTES = max(size for size, _ in SIZES)
MEAN_BYTES = sum(size * share for size, share in SIZES) / sum(share for _, share in SIZES)
NAME = "Composite 0.5-64KiB"
DISCLOSURE = "blocks of every size begin on 4 KiB boundaries"


def composite_job(
    name: str,
    *,
    read_pct: float,
    threads: int,
    queue_depth: int,
    range_bytes: int,
    compressible_pct: float,
    duration_ns: int,
) -> Job:
    """The composite at one read/write mix."""
    return Job(
        name=name,
        pattern="random",
        read_pct=read_pct,
        block_sizes=tuple(BlockSize(size, share) for size, share in SIZES),
        threads=threads,
        queue_depth=queue_depth,
        range_bytes=range_bytes,
        align_bytes=ALIGN_BYTES,
        addresses=Addresses("zoned", zones=ZONES),
        compressible_pct=compressible_pct,
        duration_ns=duration_ns,
    )

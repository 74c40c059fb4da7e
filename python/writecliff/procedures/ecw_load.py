"""The composite enterprise workload: a mix of block sizes over three address zones.

Block sizes and zones are those of JESD219, the JEDEC endurance workloads, which the PTS uses for
its composite tests: 40 % reads and 60 % writes, with half of the accesses in the first 5 % of the
addresses, 30 % in the next 15 % and 20 % in the remaining 80 %.

Blocks smaller than 4 KiB start on 4 KiB boundaries, like all other blocks, because the mix has a
single alignment, as in fio's example of this workload. Tests disclose the alignment (`DISCLOSURE`).
"""

from __future__ import annotations

from typing import Any

from writecliff.workload.model import KIB, Addresses, BlockSize, Zone

READ_PCT = 40.0
SIZES = (  # Block size in bytes, and percentage of the accesses.
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
ZONES = (Zone(50, 5), Zone(30, 15), Zone(20, 80))  # Percentages of accesses and of addresses.
ALIGN_BYTES = 4 * KIB
LARGEST_BYTES = max(size for size, _ in SIZES)
MEAN_BYTES = sum(size * share for size, share in SIZES) / sum(share for _, share in SIZES)
NAME = "Composite 0.5-64KiB"
DISCLOSURE = "blocks of every size begin on 4 KiB boundaries"
JOB_FIELDS: dict[str, Any] = {  # Fields of a `Job` that runs this workload.
    "block_sizes": tuple(BlockSize(size, share) for size, share in SIZES),
    "align_bytes": ALIGN_BYTES,
    "addresses": Addresses("zoned", zones=ZONES),
}

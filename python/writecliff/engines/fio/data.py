"""What a job writes, in fio's options: random data, new for each write wherever that is possible.

`refill_buffers` generates the data of each write in the thread that issues it: 1.7 GB/s in blocks
of 128 KiB on a virtual server processor, which would cap a fast drive. `scramble_buffers` fills
each buffer once and writes offset and time into each sector: 32 GB/s. No sector is like another,
but a sixth of it has little entropy (10 % compressible, by zlib), and a buffer that soon comes
back makes near copies of itself. So only large blocks on fast drives, with enough buffers, are
scrambled.
"""

from __future__ import annotations

from writecliff.engines.fio.section import Section
from writecliff.workload.model import KIB

LARGE_BYTES = 64 * KIB
BUFFERS_BYTES = 1 << 20  # of a thread; beyond what a controller compresses together


def add_data(section: Section, *, fast: bool) -> None:
    """Add the options of the data of a job that writes."""
    job = section.job
    smallest = min(size.bytes for size in job.block_sizes_of("write"))
    random_data = not job.compressible_pct and not job.duplicate_pct
    enough = smallest >= LARGE_BYTES and smallest * job.queue_depth >= BUFFERS_BYTES
    if fast and random_data and enough:
        section.add("scramble_buffers", 1)
        section.warn(
            "data are random, made once for each of its buffers and then changed in every sector"
            " for every write (about 10 % compressible): a thread that generates all data would"
            " cap this drive"
        )
        return
    section.add("refill_buffers")
    for name, option, value in (
        ("compressible_pct", "buffer_compress_percentage", job.compressible_pct),
        ("duplicate_pct", "dedupe_percentage", job.duplicate_pct),
    ):
        if value:
            section.add(option, section.whole_percent(name, value))

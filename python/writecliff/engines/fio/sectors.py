"""Block-size mixes on drives whose sector is larger than some of their sizes.

Such sizes are raised to the sector, and a warning says so. The composite loads of JESD219 contain
sizes of 512 bytes to 3.5 KiB, which a drive of 4 KiB sectors cannot execute. Only mixes are raised:
a job of a single size that does not fit is refused, because its result would be that of another.
"""

from __future__ import annotations

from dataclasses import replace

from writecliff.engines.fio.section import Section
from writecliff.workload.model import BlockSize


def raise_to_sectors(section: Section, sector_bytes: int) -> None:
    """Raise the sizes and the alignment of a mix to whole sectors."""
    job = section.job
    if len(job.block_sizes) < 2 or any(size.bytes <= 0 for size in job.block_sizes):
        return
    if raised := [size for size in job.block_sizes if size.bytes % sector_bytes]:
        weights: dict[int, float] = {}
        for size in job.block_sizes:
            whole = -(-size.bytes // sector_bytes) * sector_bytes
            weights[whole] = weights.get(whole, 0.0) + size.weight
        total = sum(size.weight for size in job.block_sizes) or 1.0
        share = 100 * sum(size.weight for size in raised) / total
        section.warn(
            f"block sizes that are not multiples of the {sector_bytes} B sector were raised to it:"
            f" {', '.join(str(size.bytes) for size in raised)} B ({share:g} % of the I/Os)"
        )
        sizes = tuple(BlockSize(size, weight) for size, weight in sorted(weights.items()))
        section.job = replace(section.job, block_sizes=sizes)
    if job.align_bytes is not None and job.align_bytes > 0 and job.align_bytes % sector_bytes:
        align = -(-job.align_bytes // sector_bytes) * sector_bytes
        section.warn(
            f"addresses are aligned to the {sector_bytes} B sector, not to {job.align_bytes} B"
        )
        section.job = replace(section.job, align_bytes=align)

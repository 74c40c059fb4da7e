"""Block-size mixes on drives whose sector is larger than some of their sizes.

Owns: raising such sizes to the sector, and saying so. The composite loads of JESD219 contain sizes
of 512 bytes to 3.5 KiB, which a drive of 4 KiB sectors cannot be asked for. Only mixes are raised:
a job of a single size that does not fit is refused, because its result would be that of another.
"""

from __future__ import annotations

from dataclasses import replace

from writecliff.workload.model import BlockSize, Job


def on_sectors(job: Job, sector_bytes: int, warnings: list[str]) -> Job:
    """The job with the sizes and the alignment of a mix raised to whole sectors."""
    if len(job.block_sizes) < 2 or any(size.bytes <= 0 for size in job.block_sizes):
        return job
    weights: dict[int, float] = {}
    raised = [size for size in job.block_sizes if size.bytes % sector_bytes]
    for size in job.block_sizes:
        fits = -(-size.bytes // sector_bytes) * sector_bytes
        weights[fits] = weights.get(fits, 0.0) + size.weight
    align = job.align_bytes
    if align is not None and align > 0 and align % sector_bytes:
        align = -(-align // sector_bytes) * sector_bytes
    if raised:
        total = sum(size.weight for size in job.block_sizes) or 1.0
        share = 100 * sum(size.weight for size in raised) / total
        warnings.append(
            f"job {job.name}: block sizes that are no multiple of the sector of {sector_bytes} B"
            f" were raised to one: {', '.join(str(size.bytes) for size in raised)} B"
            f" ({share:g} % of the I/Os)"
        )
    sizes = tuple(BlockSize(size, weight) for size, weight in sorted(weights.items()))
    if not raised:
        sizes = job.block_sizes
    if align != job.align_bytes:
        warnings.append(
            f"job {job.name}: addresses are aligned to the sector of {sector_bytes} B,"
            f" not to {job.align_bytes} B"
        )
    return replace(job, block_sizes=sizes, align_bytes=align)

"""Where a job's I/Os go, in fio's options: range, alignment, thread offsets, distributions;
and block-size mixes on drives whose sector is larger than some of their sizes."""

from __future__ import annotations

import math
from dataclasses import replace

from writecliff.engines.fio.section import Section
from writecliff.workload.model import BlockSize, Zone

# fio rotates a distribution by a random amount in each thread; a fixed centre keeps the hot
# blocks of all threads the same, which is what one distribution over one range means.
_CENTRE = "0.5"
_FIO_ZONES_MAX = 256


def add_addresses(section: Section, capacity_bytes: int, sector_bytes: int) -> None:
    """Add range and addresses; warn of, or refuse, what fio does not do that way."""
    job = section.job
    size = _range(section, capacity_bytes, sector_bytes)
    section.add("offset", job.offset_bytes)
    _add_size(section, size)
    _add_alignment(section, sector_bytes)
    if job.pattern == "random":
        _add_distribution(section, size)
    elif job.addresses.kind != "uniform":
        section.refuse(f"addresses {job.addresses.kind}: only random jobs have a distribution")


def _add_alignment(section: Section, sector_bytes: int) -> None:
    """Add `blockalign`, as a list where operations differ."""
    job = section.job
    own = [(one.block_sizes, one.align_bytes) for one in (job.writes, job.trims) if one]
    given = [(job.block_sizes, job.align_bytes), *own]
    for sizes, align in given:
        if align is None and job.pattern == "random" and len(sizes) > 1:
            smallest = min(block.bytes for block in sizes)
            section.refuse(
                "fio aligns a mix of block sizes to one size, not each I/O to its own",
                f"set align_bytes = {smallest}",
            )
        if align is not None and (align % sector_bytes or align <= 0):
            section.refuse(f"align_bytes {align}: not a multiple of {sector_bytes}")
    if not any(align for _, align in given):
        return
    of = {"read": (job.block_sizes, job.align_bytes)}
    for name, one in (("write", job.writes), ("trim", job.trims)):
        of[name] = of["read"] if one is None else (one.block_sizes, one.align_bytes)
    aligns = [str(align or sizes[0].bytes) for sizes, align in of.values()]
    section.add("blockalign", aligns[0] if len(set(aligns)) == 1 else ",".join(aligns))


def _range(section: Section, capacity_bytes: int, sector_bytes: int) -> int:
    """Size of the job's range, checked: fio itself wraps silently where it leaves the device."""
    job = section.job
    if job.offset_bytes < 0 or job.offset_bytes % sector_bytes:
        section.refuse(f"offset_bytes {job.offset_bytes}: not a multiple of {sector_bytes}")
    size = capacity_bytes - job.offset_bytes if job.range_bytes is None else job.range_bytes
    end = job.offset_bytes + size
    if size <= 0 or end > capacity_bytes:
        section.refuse(
            f"range {job.offset_bytes} to {end} is not within the target ({capacity_bytes} bytes)"
        )
    largest = max(block.bytes for block in job.all_block_sizes)
    if size < largest:
        section.refuse(f"range of {size} bytes is smaller than its block size {largest}")
    return size


def _add_size(section: Section, size: int) -> None:
    job = section.job
    stride = job.thread_stride_bytes
    if not stride or job.threads == 1 or job.pattern == "random":
        section.add("size", size)  # a start has no meaning for random addresses
        return
    if stride * job.threads > size:
        section.refuse(
            f"{job.threads} threads at a stride of {stride} bytes leave the range of {size} bytes",
            f"at most {size // job.threads} bytes are possible",
        )
    per_thread = None if job.volume_bytes is None else job.volume_bytes // job.threads
    if per_thread is None or per_thread > stride:
        section.warn(f"in fio each thread stays within its own stride of {stride} bytes")
    section.add("size", stride)
    section.add("offset_increment", stride)


def _add_distribution(section: Section, size: int) -> None:
    addresses = section.job.addresses
    kind, theta, zones = addresses.kind, addresses.theta, addresses.zones
    if kind == "once":  # fio's own default
        return
    section.add("norandommap", "")
    if kind == "uniform":
        return
    if kind in ("sequence", "sprandom"):
        section.refuse(
            f"addresses {kind}: only simulated drives",
            "newer versions of fio have it: run fio itself",
        )
    if addresses.scatter_seed or addresses.scatter_bytes is not None:
        section.refuse(
            f"fio cannot scatter {kind} addresses: its zones are contiguous",
            "give the job a rate, so that writecliff issues its I/Os, or use a simulated drive",
        )
    if kind == "zipf":
        if addresses.ranks is not None:
            section.refuse("fio cannot set the number of zipf ranks")
        if addresses.generator == "exact":
            section.warn(
                "fio's zipf is more skewed than the law of the same theta: beyond 10 million "
                "blocks it accesses its two hottest blocks too often, and its hash maps several "
                "ranks to a block (generator = 'fio' simulates this)"
            )
        if theta is None or theta <= 0:
            section.refuse(f"zipf needs a theta above 0, not {theta}")
        if theta == 1.0:
            section.refuse("fio has no zipf with theta 1", "use 0.99 or 1.01")
        section.add("random_distribution", f"zipf:{theta:g}:{_CENTRE}")
        return
    if kind == "pareto":
        section.add("random_distribution", f"pareto:{(addresses.hot_pct or 0) / 100:g}:{_CENTRE}")
        return
    if kind == "normal":
        section.add("random_distribution", f"normal:{_normal_spread(section):g}:{_CENTRE}")
        return
    if kind == "hot_cold":
        if len(zones) != 1:
            section.refuse("hot_cold takes one zone, the hot one")
        hot = zones[0]
        zones = (hot, Zone(100 - hot.access_pct, 100 - hot.size_pct))
    section.add("random_distribution", _zoned(section, zones, size))


def _normal_spread(section: Section) -> float:
    """fio's parameter for a standard deviation: it adds a uniform spread to a mean of twelve
    uniform numbers, whose own deviation is a twelfth of the range."""
    deviation = section.job.addresses.deviation_pct or 0.0
    own = 100 / 12
    if deviation < own:
        section.refuse(f"fio has no normal addresses with a deviation below {own:.2f} %")
    return math.sqrt(12 * (deviation**2 - own**2))


def _zoned(section: Section, zones: tuple[Zone, ...], size: int) -> str:
    for what, total in (
        ("access_pct", sum(zone.access_pct for zone in zones)),
        ("size_pct", sum(zone.size_pct for zone in zones)),
    ):
        if abs(total - 100) > 1e-6:
            section.refuse(f"the {what} of its zones add up to {total:g}, not to 100")
    if len(zones) > _FIO_ZONES_MAX:
        section.refuse(f"{len(zones)} zones; fio takes {_FIO_ZONES_MAX}")
    accesses = [section.whole_percent("access_pct", zone.access_pct) for zone in zones]
    if 0 in accesses:
        section.refuse("fio has no zones without accesses", "shorten the range instead")
    kind, lengths = "zoned", [round(zone.size_pct) for zone in zones]
    if any(abs(zone.size_pct - round(zone.size_pct)) >= 1e-6 for zone in zones):
        kind, lengths = "zoned_abs", _zone_lengths(section, zones, size)
    pairs = zip(accesses, lengths, strict=True)
    return f"{kind}:" + ":".join(f"{access}/{length}" for access, length in pairs)


def _zone_lengths(section: Section, zones: tuple[Zone, ...], size: int) -> list[int]:
    """Zone sizes in bytes on block boundaries; together exactly the whole blocks of the range."""
    block = section.job.align_bytes or section.job.block_sizes[0].bytes
    ends, total = [], 0.0
    for zone in zones:
        total += zone.size_pct
        ends.append(round(size // block * min(total, 100.0) / 100) * block)
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def raise_to_sectors(section: Section, sector_bytes: int) -> None:
    """Raise the sizes and the alignment of a mix to whole sectors, and warn of it.

    The composite loads of JESD219 contain sizes of 512 bytes to 3.5 KiB, which a drive of 4 KiB
    sectors cannot execute. Only mixes are raised: a job of a single size that does not fit is
    refused, because its result would be that of another.
    """
    job = section.job
    own = job.writes is not None or job.trims is not None  # not published loads
    if own or len(job.block_sizes) < 2 or any(size.bytes <= 0 for size in job.block_sizes):
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

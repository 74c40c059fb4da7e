"""Where a job's I/Os go, in fio's options: range, alignment, thread offsets, distributions."""

from __future__ import annotations

from writecliff.engines.fio.refuse import refuse, whole_percent
from writecliff.workload.model import Job, Zone

Option = tuple[str, str]

# fio rotates a zipf distribution by a random amount in each thread; a fixed centre keeps the hot
# blocks of all threads the same, which is what one distribution over one range means.
_ZIPF_CENTRE = "0.5"
_FIO_ZONES_MAX = 256


def options(job: Job, capacity_bytes: int, sector_bytes: int, warnings: list[str]) -> list[Option]:
    """Options for range and addresses. Warns of, or refuses, what fio does not do that way."""
    size = _range(job, capacity_bytes, sector_bytes)
    chosen = [("offset", str(job.offset_bytes)), *_thread_offsets(job, size, warnings)]
    if job.align_bytes is not None:
        if job.align_bytes % sector_bytes or job.align_bytes <= 0:
            refuse(job.name, f"align_bytes {job.align_bytes}: not a multiple of {sector_bytes}")
        chosen.append(("blockalign", str(job.align_bytes)))
    elif job.pattern == "random" and len(job.block_sizes) > 1:
        smallest = min(block.bytes for block in job.block_sizes)
        refuse(
            job.name,
            "fio aligns a mix of block sizes to one size, not each I/O to its own",
            hint=f"say so: align_bytes = {smallest}",
        )
    if job.pattern == "random":
        chosen += _distribution(job, size)
    elif job.addresses.kind != "uniform":
        refuse(job.name, f"addresses {job.addresses.kind}: only random jobs have a distribution")
    return chosen


def _range(job: Job, capacity_bytes: int, sector_bytes: int) -> int:
    """Size of the job's range, checked: fio itself wraps silently where it leaves the device."""
    if job.offset_bytes < 0 or job.offset_bytes % sector_bytes:
        refuse(job.name, f"offset_bytes {job.offset_bytes}: not a multiple of {sector_bytes}")
    size = capacity_bytes - job.offset_bytes if job.range_bytes is None else job.range_bytes
    end = job.offset_bytes + size
    if size <= 0 or end > capacity_bytes:
        refuse(
            job.name,
            f"range {job.offset_bytes} to {end} is not within the target ({capacity_bytes} bytes)",
        )
    largest = max(block.bytes for block in job.block_sizes)
    if size < largest:
        refuse(job.name, f"range of {size} bytes is smaller than its block size {largest}")
    return size


def _thread_offsets(job: Job, size: int, warnings: list[str]) -> list[Option]:
    stride = job.thread_stride_bytes
    if not stride or job.threads == 1 or job.pattern == "random":
        return [("size", str(size))]  # a start has no meaning for random addresses
    if stride * job.threads > size:
        refuse(
            job.name,
            f"{job.threads} threads at a stride of {stride} bytes leave the range of {size} bytes",
            hint=f"at most {size // job.threads} bytes are possible",
        )
    per_thread = None if job.volume_bytes is None else job.volume_bytes // job.threads
    if per_thread is None or per_thread > stride:
        warnings.append(
            f"job {job.name}: in fio each thread stays within its own stride of {stride} bytes"
        )
    return [("size", str(stride)), ("offset_increment", str(stride))]


def _distribution(job: Job, size: int) -> list[Option]:
    kind = job.addresses.kind
    if kind == "uniform":
        return []
    if kind == "zipf":
        return [("random_distribution", f"zipf:{_zipf_theta(job):g}:{_ZIPF_CENTRE}")]
    zones = job.addresses.zones
    if kind == "hot_cold":
        if len(zones) != 1:
            refuse(job.name, "hot_cold takes one zone, the hot one")
        hot = zones[0]
        zones = (hot, Zone(100 - hot.access_pct, 100 - hot.size_pct))
    return [("random_distribution", _zoned(job, zones, size))]


def _zipf_theta(job: Job) -> float:
    theta = job.addresses.theta
    if theta is None or theta <= 0:
        refuse(job.name, f"zipf needs a theta above 0, not {theta}")
    if theta == 1.0:
        refuse(job.name, "fio has no zipf with theta 1", hint="use 0.99 or 1.01")
    return theta


def _zoned(job: Job, zones: tuple[Zone, ...], size: int) -> str:
    for what, total in (
        ("access_pct", sum(zone.access_pct for zone in zones)),
        ("size_pct", sum(zone.size_pct for zone in zones)),
    ):
        if abs(total - 100) > 1e-6:
            refuse(job.name, f"the {what} of its zones add up to {total:g}, not to 100")
    if len(zones) > _FIO_ZONES_MAX:
        refuse(job.name, f"{len(zones)} zones; fio takes {_FIO_ZONES_MAX}")
    accesses = [whole_percent(job.name, "access_pct", zone.access_pct) for zone in zones]
    if 0 in accesses:
        refuse(job.name, "fio has no zones without accesses", hint="shorten the range instead")
    if all(abs(zone.size_pct - round(zone.size_pct)) < 1e-6 for zone in zones):
        pairs = zip(accesses, zones, strict=True)
        return "zoned:" + ":".join(f"{access}/{round(zone.size_pct)}" for access, zone in pairs)
    return "zoned_abs:" + ":".join(
        f"{access}/{length}"
        for access, length in zip(accesses, _zone_lengths(job, zones, size), strict=True)
    )


def _zone_lengths(job: Job, zones: tuple[Zone, ...], size: int) -> list[int]:
    """Zone sizes in bytes on block boundaries; together exactly the whole blocks of the range."""
    block = job.align_bytes or job.block_sizes[0].bytes
    ends, total = [], 0.0
    for zone in zones:
        total += zone.size_pct
        ends.append(round(size // block * min(total, 100.0) / 100) * block)
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]

"""Active-range segments in fio's options: `zonemode=strided`.

fio has no random choice among thousands of segments: its zoned distribution takes 256 zones, in
whole percents of the accesses. Its strided zones are of equal size and distance. With a zone size
of a sector a thread moves to the next one after each I/O, whose address within the zone is random;
with that of the segment a sequential stream passes through all of it before it moves on. So the
addresses are those of equal segments that span the range; that the segments are evenly spaced, and
with random addresses visited in turn, is disclosed. Reads and writes of one job share its zone, so
sequential mixes are run as a job for each (`mix.py`).

On a block device fio starts over only where the device ends, whatever the size of the job (fio 3.33
on a loop device; on a regular file it keeps to the size). So the range has to end there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from writecliff.engines.fio.section import Section

_SECTOR_BYTES = 512
_LARGEST_STEP = 1 << 20


@dataclass(frozen=True)
class Zones:
    """The zones of a job's segments, in bytes."""

    count: int
    size: int
    pitch: int  # from one to the next


def place_segments(section: Section, capacity_bytes: int) -> Zones | None:
    """The zones of a job's segments, None if it has none; the job then begins at the segment that
    `start_bytes` is the begin of. Refuses what does not fit, and mixes of sizes."""
    job = section.job
    segments = job.segments
    if segments is None:
        return None
    what = f"active-range segments ({segments.count})"
    if len(job.all_block_sizes) > 1:
        section.refuse(
            f"{what}: a block of a mix of sizes would leave its segment in fio",
            "use one block size, or the simulated drive",
        )
    if job.addresses.kind != "uniform":
        section.refuse(f"{what}: fio has them with uniform addresses only")
    if job.pattern == "sequential" and job.threads > 1 and job.thread_stride_bytes:
        section.refuse(
            f"{what}: fio's threads would not keep to their parts of them", "use one thread"
        )
    (block,) = job.block_sizes
    unit = max(block.bytes, job.align_bytes or 0)
    size = segments.length(unit)
    if not size:
        section.refuse(f"{what}: less than a block of {block.bytes} bytes each")
    rest = capacity_bytes - job.offset_bytes
    length = rest if job.range_bytes is None else job.range_bytes
    pitch = _pitch(rest, length, segments.count, size)
    if not pitch:
        section.refuse(
            f"{what}: {segments.count} of {size} bytes do not fit into the {length} bytes from"
            f" {job.offset_bytes} on, up to the end of the target",
            "fio starts over only at the end of a device: let the range end there",
        )
    first, inside = divmod(job.start_bytes, size)
    if not inside and first < segments.count:
        offset, left = first * pitch, length - first * pitch
        section.job = replace(
            job, offset_bytes=job.offset_bytes + offset, range_bytes=left, start_bytes=0
        )
    return Zones(segments.count, size, pitch)


def add_segments(section: Section, zones: Zones | None) -> None:
    """Add the options of `zones`."""
    if zones is None:
        return
    sequential = section.job.pattern == "sequential"
    section.add("zonemode", "strided")
    section.add("zonerange", zones.size)
    section.add("zonesize", zones.size if sequential else _SECTOR_BYTES)
    section.add("zoneskip", zones.pitch - zones.size)
    section.warn(
        f"in fio the {zones.count} segments are evenly spaced"
        + ("" if sequential else ", and each thread accesses them in turn")
    )


def _pitch(rest: int, length: int, count: int, size: int) -> int:
    """Bytes from segment to segment, so that `count` of them reach the end of the `rest` of the
    target and the last one ends within `length`; 0 if there is none."""
    step = _LARGEST_STEP
    while step >= _SECTOR_BYTES:
        pitch = -(-rest // (count * step)) * step
        if pitch > size and (count - 1) * pitch + size <= length:
            return pitch
        step //= 2
    return 0

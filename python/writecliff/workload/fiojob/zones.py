"""Convert `zonemode=zbd`: sequential writes within zones, as in fio on a drive without zones.

fio 3.42, zbd.c: The conversion follows fio's `init_zone_info` (a drive without zones),
`zbd_verify_sizes` (the range consists of whole zones) and `zbd_setup_files` (limits). The job file
sets the zone size. Job files for zoned drives may omit the zone size, but simulated drives do not
report a zone size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from writecliff.workload.fiojob.blocks import SECTOR_BYTES, Blocks, Operations
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.values import Size
from writecliff.workload.model import HostZones, Job

_DEFAULT_BYTES = 256 << 20  # Zone size of zoned hard disks and of fio's examples.
_ZONES_MAX = 1 << 20  # Maximum number of zones in the native crate.


def zone_bytes(settings: Settings) -> int:
    """Return the zone size, or 0 if there are no zones."""
    return settings.zonesize or (_DEFAULT_BYTES if settings.zonemode == "zbd" else 0)


def resolve(settings: Settings) -> bool:
    """Convert sizes in zones (`8z`) to bytes; raise ConfigError if the zone size is unknown."""
    for name in ("size", "io_size", "offset", "offset_increment"):
        value = getattr(settings, name)
        if isinstance(value, Size) and value.zones is not None:
            size = zone_bytes(settings)
            if not size:
                raise settings.error(
                    name,
                    f"{name} is a number of zones, but the zone size is unknown",
                    "specify zonesize",
                )
            setattr(settings, name, Size(bytes=value.zones * size))
    return True


def host_zones(
    settings: Settings, ops: Operations, blocks: Blocks, drive_bytes: int
) -> HostZones | None:
    """Return a zonemode=zbd job's zones; raise ConfigError if fio or the model cannot run it."""
    if settings.zonemode != "zbd":
        return None
    _check_course(settings, ops)
    size = zone_bytes(settings)
    capacity = settings.zonecapacity or size
    _check_sizes(settings, ops, blocks, size, capacity)
    if drive_bytes // size > _ZONES_MAX:
        raise settings.error(
            "zonesize",
            f"zonesize {size} divides the drive into more than {_ZONES_MAX} zones",
            "increase zonesize",
        )
    if not settings.zonesize:
        settings.notes.append(
            f"zonesize is not set, as for a drive that reports its zone size: zones are "
            f"{size >> 20} MiB"
        )
    if ops.used == ("trim",):
        settings.note(
            "trims are sent to the drive, whereas fio only resets its own zones on drives without "
            "zones"
        )
    frequency = settings.zone_reset_frequency
    return HostZones(
        size_bytes=size,
        capacity_bytes=capacity if capacity < size else None,
        max_open=settings.max_open_zones,
        max_open_per_thread=settings.job_max_open_zones,
        read_unwritten=settings.read_beyond_wp,
        short_writes=settings.write_zone_remainder,
        reset_above_pct=100 * settings.zone_reset_threshold,
        reset_every_writes=int(1 / frequency) if frequency else 0,
    )


def _check_course(settings: Settings, ops: Operations) -> None:
    for name, given in (
        ("zoneskip", settings.zoneskip),
        ("nrfiles", settings.nrfiles > 1),
        ("zonerange", settings.zonerange not in (0, settings.zonesize)),
        ("rw", ops.hole_bytes or ops.trim_first),
        ("write_mode", ops.one_position),
    ):
        if given:
            value = getattr(settings, name)
            shown = f"{name}={value}" if isinstance(value, str | int) else name
            raise settings.error(
                name,
                f"{shown} is not supported with zonemode=zbd",
                "use a separate job for each part",
            )
    if settings.job_max_open_zones and not settings.max_open_zones:
        raise settings.error(
            "job_max_open_zones",
            "job_max_open_zones requires max_open_zones, as in fio",
            "add max_open_zones",
        )


def _check_sizes(
    settings: Settings, ops: Operations, blocks: Blocks, size: int, capacity: int
) -> None:
    for name, value in (("zonesize", size), ("zonecapacity", capacity)):
        if value % SECTOR_BYTES:
            raise settings.error(
                name,
                f"{name} is not a multiple of the sector size of {SECTOR_BYTES} bytes",
                "use a multiple of 512",
            )
    if capacity > size:
        raise settings.error(
            "zonecapacity", f"zonecapacity {capacity} exceeds the zone size of {size} bytes"
        )
    if ops.used == ("trim",) and {block.bytes for block in blocks.sizes} != {size}:
        raise settings.error(
            "bs", f"trims reset whole zones, so bs must be {size}", "use bs=zonesize for trims"
        )
    if blocks.largest > capacity and ops.used != ("trim",):
        raise settings.error(
            "zonesize zonecapacity",
            f"a block of {blocks.largest} bytes exceeds the zone capacity of {capacity} bytes",
            "use a larger zone capacity or a smaller bs",
        )


def whole_zones(
    settings: Settings, ops: Operations, blocks: Blocks, start: int, length: int
) -> tuple[int, int, int]:
    """Return (start, length, bytes per pass) in whole zones; ConfigError without a zone."""
    size = zone_bytes(settings)
    begin, end = -(-start // size) * size, (start + length) // size * size
    if begin >= end:
        raise settings.error(
            "size filesize offset zonesize",
            f"{length} bytes from offset {start} do not contain a whole zone of {size} bytes",
            "use a larger size or a smaller zonesize",
        )
    if (begin, end) != (start, start + length):
        settings.note(f"the range is whole zones, as in fio: {end - begin} bytes from {begin}")
    one_pass = end - begin
    if ops.pattern == "sequential" and ops.used != ("trim",):
        capacity = settings.zonecapacity or size
        if not settings.write_zone_remainder or ops.used == ("read",):
            capacity -= capacity % blocks.smallest
        one_pass = one_pass // size * capacity
    return begin, end - begin, one_pass


def check_shared(sections: Iterable[tuple[Settings, tuple[Job, ...]]]) -> None:
    """Raise ConfigError if jobs in a step disagree about the zones that they share."""
    first: HostZones | None = None
    for settings, jobs in sections:
        for zones in filter(None, (job.host_zones for job in jobs)):
            first = first or zones
            for name, same in (
                ("zonesize", zones.size_bytes == first.size_bytes),
                ("zonecapacity", zones.capacity_bytes == first.capacity_bytes),
                ("max_open_zones", zones.max_open == first.max_open),
            ):
                if not same:
                    raise settings.error(
                        name,
                        f"{name} differs between jobs that run together and share the zones",
                        "set the option in [global]",
                    )


def with_state(jobs: Iterable[Job], *, written: bool, notes: list[str]) -> tuple[Job, ...]:
    """Return a step's jobs, whose zones are initially full if jobs require existing data.

    Zones are full if an earlier step wrote (`written`), or if a job requires data but does not
    write.
    """
    every = tuple(jobs)
    zoned = [job for job in every if job.host_zones is not None]
    needs = any(
        job.read_pct == 100 or job.trim_pct == 100
        for job in zoned
        if job.host_zones is not None and not job.host_zones.read_unwritten
    )
    if not zoned or not (written or needs):
        return every
    notes.append(
        "zones are initially full if a job only reads or trims them, and in later steps; fio "
        "starts with empty zones"
    )
    return tuple(
        job
        if job.host_zones is None
        else replace(job, host_zones=replace(job.host_zones, begin_full=True))
        for job in every
    )

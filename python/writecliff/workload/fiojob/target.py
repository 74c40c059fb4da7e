"""Conversion of a job's host options: engine, queue depth, files, data and streams."""

from __future__ import annotations

import re

from writecliff.errors import did_you_mean
from writecliff.workload.fiojob.blocks import Operations
from writecliff.workload.fiojob.engines import ASYNCHRONOUS, NOT_A_DRIVE, SYNCHRONOUS
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.write_modes import becomes

_NO_DRIVES = ("/dev/null", "/dev/zero")  # Any drive can replace these pseudo-devices.
_HINT_STREAMS = {"none": 0, "short": 2, "medium": 3, "long": 4, "extreme": 5}


def drive_engine(settings: Settings) -> str:
    """Return the I/O engine; raise ConfigError for engines that do not use a drive."""
    engine = settings.ioengine.partition(":")[0]
    if engine in SYNCHRONOUS | ASYNCHRONOUS or engine.startswith(("external", "/", "./")):
        return engine
    if engine in NOT_A_DRIVE:
        raise settings.error(
            "ioengine",
            f"ioengine={engine} {NOT_A_DRIVE[engine]}",
            "use libaio, io_uring or psync to load a drive",
        )
    every = (*SYNCHRONOUS, *ASYNCHRONOUS, *NOT_A_DRIVE)
    raise settings.error(
        "ioengine",
        f"ioengine={engine} is unknown",
        did_you_mean(engine, every, "use libaio, io_uring or psync"),
    )


def queue_depth(settings: Settings, ops: Operations) -> int:
    """Return the queue depth; raise ConfigError for options that do not keep the queue full."""
    engine, depth = drive_engine(settings), settings.iodepth
    if engine in SYNCHRONOUS and settings.io_submit_mode == "offload":
        raise settings.error(
            "io_submit_mode",
            f"io_submit_mode=offload is not supported with the synchronous engine {engine}",
            "use ioengine=libaio or io_uring",
        )
    _check_refill(settings, depth)
    if depth == 1:
        return 1
    if engine in SYNCHRONOUS:
        default = "" if settings.given("ioengine") else " (fio's default)"
        settings.note(
            f"iodepth={depth} has no effect with the synchronous engine {engine}{default}, as in "
            f"fio; use ioengine=libaio for a deep queue"
        )
        return 1
    if ops.used == ("trim",):
        settings.note(
            f"iodepth={depth} has no effect on trims, as in fio, which issues one at a "
            f"time per thread"
        )
        return 1
    return depth


def _check_refill(settings: Settings, depth: int) -> None:
    low = settings.iodepth_low
    if low and low < depth:
        raise settings.error(
            "iodepth_low",
            f"iodepth_low={low}: letting the queue run low before refilling it is not supported",
            "omit iodepth_low: the queue then stays full",
        )
    batch = settings.iodepth_batch_complete_min
    if batch > 1 and depth > 1:
        raise settings.error(
            "iodepth_batch_complete_min",
            f"iodepth_batch_complete_min={batch}: waiting for several I/Os at once is not "
            f"supported",
            "use iodepth_batch_complete_min=1: the queue then stays full",
        )


def named_file(settings: Settings) -> str | None:
    """Return a job's file or drive; raise ConfigError if the job has several."""
    filename = settings.filename
    if filename is None or filename in _NO_DRIVES:
        return None
    if len(re.split(r"(?<!\\):", filename)) > 1:
        raise settings.error(
            "filename",
            f"filename={filename} names several drives, but a run uses a single drive",
            "use a separate job file for each drive",
        )
    return str(filename)


def compressible_pct(settings: Settings) -> float:
    """Return the compressible percentage of the data: 0 for random data, 100 for zeros."""
    declared = _own_compressible_pct(settings)
    return declared + (100 - declared) * becomes(settings).zeros_pct / 100


def _own_compressible_pct(settings: Settings) -> float:
    given = float(settings.buffer_compress_percentage)
    if given:
        return given
    if settings.given("buffer_pattern"):
        settings.note("buffer_pattern: a repeated pattern counts as fully compressible")
        return 100.0
    return 100.0 if settings.zero_buffers else 0.0


def dsync(settings: Settings, ops: Operations) -> bool:
    """Return `True` if each write must be on the media when it completes."""
    if "write" not in ops.used:
        return False
    if settings.sync != "none":
        option = f"sync={settings.sync}"
    elif becomes(settings).on_media:
        option = f"sg_write_mode={settings.sg_write_mode}"
    elif settings.writefua:
        option = "writefua=1"
    else:
        return False
    settings.note(
        f"{option}: on a simulated drive, a flush follows every write, and the write latency "
        f"includes the flush"
    )
    return True


def flush_every_writes(settings: Settings, ops: Operations) -> int:
    """Return the number of writes between flushes, or 0 without separate flushes."""
    if "write" not in ops.used:
        return 0
    for name in ("end_fsync", "fsync_on_close"):
        if getattr(settings, name):
            settings.note(f"{name}: the drive is not flushed at the end of the job")
    asked = {count for count in (settings.fsync, settings.fdatasync) if count}
    if settings.sync != "none" or settings.writefua or becomes(settings).on_media:
        return 0
    if len(asked) > 1:
        raise settings.error(
            "fdatasync",
            "fsync and fdatasync specify different intervals",
            "remove either fsync or fdatasync",
        )
    return next(iter(asked), 0)


def streams(settings: Settings, ops: Operations) -> tuple[int, ...]:
    """Return the streams used by writes; raise ConfigError if options contradict each other."""
    chosen: dict[str, tuple[int, ...]] = {}
    if settings.write_hint != "none":
        chosen["write_hint"] = (_HINT_STREAMS[settings.write_hint],)
    if settings.stream_id:
        chosen["stream_id"] = (settings.stream_id,)
    if (settings.dataplacement or "none") != "none":
        chosen["plids"] = _placement_ids(settings)
    if len(set(chosen.values())) > 1:
        names = ", ".join(chosen)
        raise settings.error(
            " ".join(chosen), f"{names} request different streams", "remove one of these options"
        )
    return next(iter(chosen.values()), (0,)) if "write" in ops.used else (0,)


def _placement_ids(settings: Settings) -> tuple[int, ...]:
    if settings.plid_select == "scheme":
        raise settings.error(
            "plid_select",
            "plid_select=scheme: data placement by address is not supported",
            "use a separate job with its own plids for each address range",
        )
    if not settings.plids:
        raise settings.error(
            "plids dataplacement",
            "plids is missing: writing to all placement identifiers is not supported",
            "list the placement identifiers, for example plids=0-3",
        )
    return settings.plids

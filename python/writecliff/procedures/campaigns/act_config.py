"""ACT's options and configuration files.

A file is parsed into options, and options are formatted in the way ACT logs them. Each line of a
file is `name: value`; `#` starts a comment. `--on` selects the drive, and `device-names` is only
compared with this drive. The parser accepts the names of all versions from 2.x to 6.x, and skips
names that have no effect here (I/O schedulers, types of buffers), with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError
from writecliff.input_files import read_text, shortened, whole_number
from writecliff.procedures.campaigns.base import CampaignOptions
from writecliff.procedures.options import (
    PERCENT,
    QUEUE_DEPTH,
    SECONDS,
    THREADS,
    Within,
    campaign_option,
    option,
)

MODELS = ("6.x", "3.x")
RATE = Within(0, 1e9)
CPUS = 8  # CPU count assumed for an unknown host; ACT starts five service threads per CPU.


@dataclass(frozen=True, kw_only=True)
class _TestOptions(CampaignOptions):
    """Options that do not occur in configuration files."""

    model: str = option(
        "6.x",
        "load model: 6.x for ACT 6.x, or 3.x for ACT 3.x and 2.x",
        choices=MODELS,
    )
    load: str = option("1x", "load as a multiple of 2,000 reads and 1,000 writes per second")
    search: bool = option(False, "search for the highest load that passes, starting at --load")
    search_max: int = option(
        96,
        "highest load to try in a search, as a multiple of the base rates of --load",
        within=Within(1, 10_000),
    )
    state: str = campaign_option("act", "initial state of the drive", choices=tuple(RECIPES))
    slice_sec: float = campaign_option(
        3600.0,
        "duration in seconds of each slice of the results table, and of each test in a search",
        within=SECONDS,
        quick=20.0,
    )


@dataclass(frozen=True, kw_only=True)
class ActItems:
    """Entries of a configuration file, in the order of ACT's log."""

    service_threads: int = option(5 * CPUS, "number of service threads (model 6.x)", within=THREADS)
    num_queues: int = option(2, "number of transaction queues (model 3.x)", within=THREADS)
    threads_per_queue: int = option(
        8, "number of threads per queue (model 3.x)", within=QUEUE_DEPTH
    )
    test_duration_sec: float = campaign_option(
        86400.0, "duration of the test, in seconds", within=SECONDS, quick=60.0
    )
    report_interval_sec: float = option(
        None,
        "duration of each step, in seconds; histograms are logged after each step (ACT: 1)",
        within=SECONDS,
        quick=5.0,
        unset="60, at most the duration of the test",
    )
    microsecond_histograms: bool = option(False, "log histograms in µs instead of ms")
    read_reqs_per_sec: int = option(
        None, "number of records to read per second", within=RATE, unset="derived from --load"
    )
    write_reqs_per_sec: int = option(
        None, "number of records to write per second", within=RATE, unset="derived from --load"
    )
    record_bytes: int = option(1536, "record size in bytes", within=Within(1, 8 << 20))
    record_bytes_range_max: int = option(
        0,
        "maximum record size in bytes; sizes from record-bytes to this maximum are equally likely",
        within=Within(0, 8 << 20),
    )
    large_block_op_kbytes: int = option(128, "large-block size in KiB", within=Within(1, 8 << 10))
    replication_factor: int = option(
        1, "number of copies of each written record", within=Within(1, 1000)
    )
    update_pct: float = option(
        0.0, "percentage of writes that read their record first", within=PERCENT
    )
    defrag_lwm_pct: float = option(
        50.0, "low-water mark of defragmentation, in percent", within=Within(0, 99)
    )
    no_defrag_reads: bool = option(False, "omit large-block reads")
    compress_pct: float = option(
        100.0, "compressed size of the data, as a percentage of the original size", within=PERCENT
    )
    disable_odsync: bool = option(False, "write without O_DSYNC, so that writes are not flushed")
    commit_to_device: bool = option(False, "write each record in a separate I/O")
    tomb_raider: bool = option(False, "also read the whole drive sequentially, in the background")
    tomb_raider_sleep_usec: int = option(
        0, "pause between tomb-raider reads, in µs", within=Within(0, 1e9)
    )
    max_lag_sec: float = option(
        10.0,
        "stop the test if it lags behind by more than this many seconds (0: no limit)",
        within=Within(0, 1e6),
    )
    large_block_ops_per_sec: float = option(
        0.0,
        "large-block reads per second, which is also the large-block write rate (2.x; 0: derived "
        "from the record rates)",
        within=RATE,
    )
    read_req_num_512_blocks: int = option(
        0,
        "read size in 512-byte sectors (2.x; 0: derived from record-bytes)",
        within=Within(0, 1 << 14),
    )


@dataclass(frozen=True, kw_only=True)
class ActOptions(ActItems, _TestOptions):
    """Options of the ACT test. Omitted options have ACT's default values."""


ITEMS = {item.name.replace("_", "-"): item for item in fields(ActItems)}
SWITCHES = {name for name, item in ITEMS.items() if isinstance(item.default, bool)}
# Configuration entries without an effect in writecliff, with the reason.
WITHOUT_EFFECT = {
    "scheduler-mode": "the kernel's I/O scheduler is not changed",
    "use-valloc": "the load generator allocates the buffers",
    "num-write-buffers": "written data are random",
    "queue-per-device": "a test has a single drive",
    "max-reqs-queued": "max-lag-sec limits the queue",
    "commit-min-bytes": "records are committed in whole sectors",
    "file-size-mbytes": "give the size with --on file:PATH --size",
}
DEVICES = "device-names"
OLD = {"num-queues", "threads-per-queue", "large-block-ops-per-sec", "read-req-num-512-blocks",
       "num-write-buffers", "queue-per-device", "use-valloc"}  # fmt: skip


@dataclass(frozen=True)
class ActFile:
    """The contents of a configuration file, as options of the test `act`."""

    options: Mapping[str, Any]
    devices: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def read_config(path: Path) -> ActFile:
    """Read a configuration file.

    Raises:
        ConfigError: If a name is unknown or a value is invalid. The message names the file and
            line.
    """
    text = read_text(path)
    options: dict[str, Any] = {}
    devices: tuple[str, ...] = ()
    notes, old = [], False
    for number, line in enumerate(text.splitlines(), 1):
        name, value = _split(line)
        if not name:
            continue
        where = f"{path}:{number}"
        if name == DEVICES:
            devices = tuple(value.replace(";", " ").replace(",", " ").split())
            continue
        old = old or name in OLD
        if name in WITHOUT_EFFECT:
            notes.append(f"{where}: {name} has no effect: {WITHOUT_EFFECT[name]}")
            continue
        options[name.replace("-", "_")] = _value(name, value, where)
    if len(devices) > 1:
        raise ConfigError(
            f"{path} specifies {len(devices)} devices",
            hint="rates are totals over all devices, so test each device separately with its "
            "portion of the rates",
        )
    if old:
        options["model"] = "3.x"
    return ActFile(options, devices, tuple(notes))


def _split(line: str) -> tuple[str, str]:
    """Return a line's name and value without its comment, or ("", "") for an empty line."""
    content = line.partition("#")[0].strip()
    name, colon, value = content.partition(":")
    if not colon:
        name, _, value = content.partition(" ")
    return name.strip(), value.strip()


def _value(name: str, text: str, where: str) -> Any:
    word = text.split(maxsplit=1)[0] if text.split() else ""
    if name not in ITEMS:
        names = sorted({*ITEMS, *WITHOUT_EFFECT, DEVICES})
        raise ConfigError.unknown("item", name, names, where=where)
    if name in SWITCHES:
        if word not in ("yes", "no"):
            raise ConfigError(f"{where}: {name} must be yes or no, not '{shortened(text)}'")
        return word == "yes"
    value = whole_number(word)
    if value is None:
        raise ConfigError(f"{where}: {name} must be a whole number, not '{shortened(text)}'")
    return value


def config_lines(options: ActOptions, device: str) -> list[str]:
    """Return the options as the configuration lines in ACT's log."""
    left_out = {"service-threads"} if options.model == "3.x" else OLD
    left_out = left_out | {"large-block-ops-per-sec", "read-req-num-512-blocks"}
    names = [name for name in ITEMS if name not in left_out]
    items = [f"{name}: {_text(getattr(options, ITEMS[name].name))}" for name in names]
    return [f"{DEVICES}: {device}", "num-devices: 1", *items]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value or 0)

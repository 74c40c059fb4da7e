"""Benchmark of the simulator's CPU cost for fixed cases on this machine.

Times are CPU times (user and system), which other programs hardly affect. Compare ratios within a
run instead of absolute figures. `docs/performance.md` describes the cases.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.parallel import SLOT_BYTES

if TYPE_CHECKING:
    from writecliff.capture.rules import Rules

DEVICE = "nvme-tlc-960"

Row = Mapping[str, str | float | int | None]


# Cases on a drive, in the order that needs the least preconditioning. `growth-*` create their own
# drives.
DRIVE_CASES = (
    "limit-960",
    "ff-960",
    "read-qd32",
    "write-steady",
    "mix-70-30",
    "mix-256",
    "save-restore-960",
    "day-15k",
    "growth-60",
    "growth-3840",
    "replay",
)


def cases() -> list[str]:
    """Return the names of all cases, in suite order."""
    return [*DRIVE_CASES, *CASES]


def chosen(names: str | None) -> list[str]:
    """Return the cases in a comma-separated list, or all cases for None, in suite order.

    Raises:
        ConfigError: If a case is unknown.
    """
    if names is None:
        return cases()
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in cases():
            raise ConfigError.unknown("benchmark case", name, cases())
    return [name for name in cases() if name in wanted]


def run(names: list[str], *, device: str = DEVICE, scale: float = 1.0) -> Iterator[Row]:
    """Run cases one after another on a device, and yield a row for each.

    Raises:
        ConfigError: If `scale` is out of range, or the device cannot be used.
    """
    if not 0.0 < scale <= 100.0:
        raise ConfigError(f"--scale is {scale:g}; it must be above 0 and at most 100")
    opened = open_device(*read_device_file(device))
    describe(opened).flash_bytes("the benchmark")
    bench = _DriveBench(opened, scale)
    for name in names:
        if name in CASES:
            continue
        with as_user_errors():
            yield bench.run(name)
    yield from run_replay([name for name in names if name in CASES], device=device, scale=scale)


# -- cases on a drive ------------------------------------------------------------------------------

_CLOSED_IOS = 20e6  # I/O count at scale 1, which takes a few seconds.
_DAY_NS = 86_400e9
# Bytes logged by the store of the replayed trace at scale 1; it writes about 20 times as much.
_REPLAY_LOGGED_BYTES = 1 << 30
_REPLAY_MIN_BYTES = 1 << 27
_PAGE_TYPES = {"SLC": 1, "MLC": 2, "TLC": 3, "QLC": 4}
# Other seeds than that of the measured loads, which would else access the same addresses in the
# order in which they are on flash.
_FILL_SEED, _OVERWRITE_SEED = 1001, 1002

Step = Mapping[str, Any]  # Step result of `_native.Drive.run`.


class _Meter:
    """CPU and wall time since its creation."""

    def __init__(self) -> None:
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()

    def elapsed(self) -> tuple[float, float]:
        """Return the CPU and the wall time in seconds."""
        return time.process_time() - self._cpu_s, time.monotonic() - self._wall_s

    def row(self, case: str, host_ios: int, slots: int, **more: float) -> dict[str, Any]:
        """Return the cost of a case that programmed `slots` slots."""
        cpu_s, wall_s = self.elapsed()
        return {
            "case": case,
            "host_ios": host_ios,
            "cpu_s": cpu_s,
            "wall_s": wall_s,
            "ios_per_cpu_s": host_ios / cpu_s,
            "ns_per_host_io": cpu_s * 1e9 / host_ios if host_ios else None,
            "ns_per_page_program": cpu_s * 1e9 / slots if slots else None,
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **more,
        }


class _DriveBench:
    """Cases on one device; those on the unmodified device share a preconditioned drive.

    `scale` is the length of the measured part, not of the preconditioning.
    """

    def __init__(self, device: _native.Device, scale: float) -> None:
        self._device, self._scale = device, scale
        self._drive: _native.Drive | None = None
        self._limit_cpu_s: float | None = None

    def run(self, case: str) -> Row:
        """Return the cost of a case of `DRIVE_CASES`."""
        ios = math.ceil(_CLOSED_IOS * self._scale)
        match case:
            case "limit-960":
                return self._limit()
            case "ff-960":
                return self._fast_forward()
            case "read-qd32":
                return _timed(self._ready(), case, read_pct=100.0, ios=ios)
            case "write-steady":
                return _timed(self._ready(), case, ios=ios)
            case "mix-70-30":
                return _timed(self._ready(), case, read_pct=70.0, ios=ios)
            case "mix-256":  # This queue depth keeps a drive with many dies busy.
                return _timed(self._ready(), case, read_pct=70.0, ios=ios, queue_depth=256)
            case "save-restore-960":
                return self._save_restore()
            case "day-15k":
                day = {"rate_iops": 15_000.0, "duration_ns": math.ceil(_DAY_NS * self._scale)}
                return _timed(self._ready(), case, read_pct=70.0, **day)
            case "growth-60":
                return self._growth(case, 60_000_000_000, channels=2, dies=1)
            case "growth-3840":
                return self._growth(case, 3_840_000_000_000, channels=8, dies=16)
        return self._replay()

    def _ready(self) -> _native.Drive:
        if self._drive is None:
            self._fast_forward()
            assert self._drive is not None
        return self._drive

    def _fast_forward(self) -> Row:
        """Write the capacity once in sequence and twice at random, on a new drive."""
        self._drive = None
        meter = _Meter()
        drive = _native.Drive(self._device, 1)
        steps = _precondition(drive, self._device.describe()["capacity_bytes"], overwrites=2.0)
        row = meter.row("ff-960", *_work(steps), waf=_waf(steps[-1]) or math.nan)
        if self._limit_cpu_s is not None:
            row["times_limit"] = row["cpu_s"] / self._limit_cpu_s
        self._drive = drive
        return row

    def _limit(self) -> Row:
        """Do the work of `ff-960` on the minimal FTL of the limit study."""
        self._drive = None
        meter = _Meter()
        written = _native.ftl_limit(self._device, 2.0, _OVERWRITE_SEED)
        if written is None:
            raise ConfigError(
                "limit-960 requires more than 10 reclaim units of spare flash; leave it out with "
                "--case"
            )
        host_slots, moved_slots = written
        row = meter.row("limit-960", host_slots, host_slots + moved_slots)
        self._limit_cpu_s = row["cpu_s"]
        return row

    def _save_restore(self) -> Row:
        drive = self._ready()
        with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
            path = Path(folder) / "state"
            meter = _Meter()
            drive.save(str(path))
            save_cpu_s, save_s = meter.elapsed()
            drive.restore(str(path))
            row = meter.row("save-restore-960", 0, 0, save_cpu_s=save_cpu_s, save_s=save_s)
            restore = {
                "restore_cpu_s": row["cpu_s"] - save_cpu_s,
                "restore_s": row["wall_s"] - save_s,
            }
            return row | restore | {"state_bytes": path.stat().st_size}

    def _changed(self, capacity_bytes: int, **geometry: int) -> _native.Device:
        """Return the device with another capacity and geometry; it drops the shared drive."""
        self._drive = None
        values = {f"flash.{key}": str(value) for key, value in geometry.items()}
        values["user_capacity"] = f'"{capacity_bytes} B"'
        changes: list[tuple[str, str, str | None]] = [(*item, None) for item in values.items()]
        name = self._device.file_name
        return _native.Device(_native.toml_changed(self._device.text, name, changes), name)

    def _growth(self, case: str, capacity_bytes: int, *, channels: int, dies: int) -> Row:
        """Write at random on the device with another number of dies."""
        device = self._changed(capacity_bytes, channels=channels, dies_per_channel=dies)
        drive = _native.Drive(device, 1)
        _precondition(drive, capacity_bytes, overwrites=1.0)
        return _timed(drive, case, ios=math.ceil(_CLOSED_IOS * self._scale))

    def _replay(self) -> Row:
        """Fast-forward the trace of an LSM tree store in 4 KiB writes with its streams.

        The device has its word lines reduced until the store fills it. Each host I/O is a write of
        4 KiB.
        """
        logged = max(int(_REPLAY_LOGGED_BYTES * self._scale), _REPLAY_MIN_BYTES)
        rows = _native.synthetic_trace(1 << 20, SLOT_BYTES, logged, 1)
        origins = np.arange(len(rows["origins"]), dtype=np.uint16)
        trace = _native.FileTrace()
        trace.add(
            rows["op"].astype(np.int32),
            rows["file"].astype(np.int32),
            rows["offset_bytes"].astype(np.int64),
            rows["length_bytes"].astype(np.int64),
            rows["origin"].astype(np.uint32),
            np.arange(6, dtype=np.uint8),
            origins,
            origins,
        )
        device = self._filled_by(trace.footprint("immediate")["peak_bytes"] // SLOT_BYTES * 10 // 9)
        facts = device.describe()
        meter = _Meter()
        blocks = trace.lay_out(facts["capacity_bytes"], "immediate", repeats=1)
        done = blocks.replay(device, "rules", facts["streams"])
        writes, programs = (
            int(done[key][-1]) // SLOT_BYTES for key in ("host_bytes", "nand_bytes")
        )
        host_ios = blocks.written_bytes // SLOT_BYTES
        return meter.row("replay", host_ios, programs // SLOT_BYTES, waf=programs / writes)

    def _filled_by(self, slots: int) -> _native.Device:
        """Return the device with word lines reduced to about `slots` slots.

        Blocks, dies and over-provisioning stay as they are.
        """
        facts = self._device.describe()
        keys = {key: value for key, value, _, _ in facts["rows"]}
        pages, types = int(keys["flash.pages_per_block"]), _PAGE_TYPES[facts["nand_type"]]
        share = slots / (facts["capacity_bytes"] // SLOT_BYTES)
        lines = max(round(pages // types * share), 1)
        scaled = facts["capacity_bytes"] * (lines * types / pages)
        capacity_bytes = int(scaled / SLOT_BYTES) * SLOT_BYTES
        return self._changed(capacity_bytes, pages_per_block=lines * types)


def _workload(job: Mapping[str, object], seed: int = 1) -> str:
    return json.dumps({"name": "bench", "jobs": [job], "seed": seed})


def _precondition(drive: _native.Drive, capacity_bytes: int, *, overwrites: float) -> list[Step]:
    """Fill the drive in 128 KiB and overwrite it at random in 4 KiB."""
    sizes = [{"bytes": 131_072, "weight": 1.0, "sequential_pct": 0.0}]
    fill = {"pattern": "sequential", "block_sizes": sizes, "volume_bytes": capacity_bytes}
    overwrite = {"queue_depth": 32, "volume_bytes": int(capacity_bytes * overwrites)}
    return [
        drive.fast_forward(_workload(fill, _FILL_SEED)),
        drive.fast_forward(_workload(overwrite, _OVERWRITE_SEED)),
    ]


def _timed(drive: _native.Drive, case: str, **job: float) -> Row:
    """Run random I/Os of 4 KiB on the timed clock."""
    meter = _Meter()
    step = drive.run(_workload({"queue_depth": 32, **job}))
    host_ios, programs = _work([step])
    virtual_s = step["elapsed_ns"] / 1e9
    waf = _waf(step)
    row = meter.row(case, host_ios, programs, **({} if waf is None else {"waf": waf}))
    rates = {"iops_virtual": host_ios / virtual_s, "times_life": virtual_s / row["cpu_s"]}
    return row | rates


def _bytes(step: Step, counter: str) -> int:
    return int(step["after"][counter] - step["before"][counter])


def _work(steps: Sequence[Step]) -> tuple[int, int]:
    """Return the I/Os of the host and the programmed slots of all steps."""
    ios = sum(sum(job["thread_ios"]) for step in steps for job in step["jobs"])
    return ios, sum(_bytes(step, "nand_write_bytes") for step in steps) // SLOT_BYTES


def _waf(step: Step) -> float | None:
    written = _bytes(step, "host_write_bytes")
    return _bytes(step, "nand_write_bytes") / written if written else None


# -- replay ----------------------------------------------------------------------------------------

# Benchmark of a whole replay, from a trace file to write amplification.
#
# The `replay` case starts with events in memory. In contrast, this benchmark's trace is a
# Parquet file with the full schema. The times include everything that `writecliff replay` does: it
# reads and checks the trace, assigns writes to streams by rules, passes the trace columns on,
# prepares the trace for a drive that it fills to 85 %, and replays it once. The times exclude file
# creation, library loading and printing. The `replay-file` case has a stream per kind of file and
# no garbage collection. The `replay-file-collect` case has small tables, all in one stream.

# Bytes per table of the store by case, and `True` if the store's writes are assigned to streams.
CASES = {"replay-file": (1 << 20, True), "replay-file-collect": (1 << 17, False)}
_LOGGED_BYTES = 1 << 28  # Bytes logged at scale 1; the store writes about 20 times this volume.
_MIN_BYTES = 1 << 26


def run_replay(names: list[str], *, device: str, scale: float) -> Iterator[Row]:
    """Yield a row for each of `names`, on a drive sized for the trace.

    Raises:
        ConfigError: If the device cannot be used.
    """
    from writecliff.capture.rules import parse_rules
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import RULES, synthetic_table

    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
        path = Path(folder) / "store.parquet"
        logged = max(round(_LOGGED_BYTES * scale), _MIN_BYTES)
        rules = parse_rules(RULES, "bench.toml")
        for name in names:
            table = synthetic_table(
                table_bytes=CASES[name][0], chunk_bytes=SLOT_BYTES, logged_bytes=logged
            )
            write_trace(path, table, {"command": ["synthetic store"]})
            del table
            if name == names[0]:
                # The first run loads libraries, so it is not timed.
                _case(name, path, rules, device)
            yield _case(name, path, rules, device)


def _case(name: str, path: Path, rules: Rules, device: str) -> Row:
    from writecliff.capture.trace import read_trace
    from writecliff.replay.columns import file_io
    from writecliff.replay.model import Sizing, lay_out, replay

    streams = CASES[name][1]
    wall, begin = time.monotonic(), time.process_time()
    trace = read_trace(path)
    read = time.process_time()
    io = file_io(trace.table, rules)
    converted = time.process_time()
    setup = lay_out(io, f"sim:{device}", Sizing(repeats=1))
    laid_out = time.process_time()
    done = replay(setup, "rules" if streams else "none", setup.simulated.streams if streams else 1)
    cpu_s = time.process_time() - begin
    writes = setup.blocks.written_bytes // SLOT_BYTES
    programs = int(done.nand_bytes[-1]) // SLOT_BYTES
    return {
        "case": name,
        "host_ios": writes,
        "cpu_s": cpu_s,
        "wall_s": time.monotonic() - wall,
        "ios_per_cpu_s": writes / cpu_s,
        "ns_per_host_io": cpu_s * 1e9 / writes,
        "ns_per_page_program": cpu_s * 1e9 / programs,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "waf": programs / writes,
        "rows": trace.rows,
        "read_cpu_s": read - begin,
        "convert_cpu_s": converted - read,
        "lay_out_cpu_s": laid_out - converted,
        "replay_cpu_s": begin + cpu_s - laid_out,
    }


# -- command ---------------------------------------------------------------------------------------

# Benchmark of a whole command in a separate process, timed from the start of Python.
#
# The command runs as if it were installed, with Python's cache of compiled modules. Some
# environments disable this cache (PYTHONDONTWRITEBYTECODE), and each start would then recompile all
# modules.


@dataclass(frozen=True)
class Ran:
    """A finished command; `cpu_s` includes all its processes."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float


def measured(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Ran:
    """Run `writecliff` with `words`; `environment` is added to this process's environment."""
    ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, begin_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "writecliff", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**ours, **(environment or {})},
    )
    wall_s, after = time.monotonic() - begin_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(done.returncode, done.stdout, done.stderr, wall_s, cpu_s)

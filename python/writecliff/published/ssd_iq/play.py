"""Loads of SSD-iq on simulated drives.

Drives are simulated smaller (`scaled`), with ranges and zones in proportion. Between timed windows
the drive is fast-forwarded, which takes it through the same states. Every load begins on a copy of
the state that it needs. A source averages over a window of a run's time; a first pass finds which
bytes are written in it, from what the flash programs for them.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from writecliff.devices import describe_device, open_device
from writecliff.engines.base import StepResult
from writecliff.engines.sim import SimEngine
from writecliff.parallel import Task, drive_memory_bytes, run_side_by_side
from writecliff.published.measure import LARGEST_IO_BYTES
from writecliff.published.sheet_check import fitting_scale
from writecliff.published.ssd_iq.conditions import (
    KIB,
    Load,
    OpenLoop,
    RandomWrites,
    Spread,
    ZoneWrites,
)
from writecliff.workload.model import Addresses, BlockSize, IoLog, Job, Workload, Zone

if TYPE_CHECKING:
    from writecliff._native import Histogram

PAGE = 4 * KIB
SMALL_BYTES = 4e9  # of the drive that is simulated, at least
_WINDOWS = 4  # timed parts of a run, evenly spaced
_PASS_STEPS = 24  # of the pass that finds the windows
_WINDOW_SHARE, _WARM_SHARE = 0.08, 0.01  # of the used range, written in each
_FILL_BLOCK = 128 * KIB
# Of an open loop: p99.999 of the 5,000 reads a second of the usual probe needs 20 s.
_SECONDS, _WARM_SECONDS = 22.0, 1.0
_SEED = 5001
# To weigh loads against each other: seconds of a slot that is fast-forwarded, and of a timed I/O.
_FAST_S, _TIMED_S = 1.6e-7, 8e-7
_GUESSED_IOPS = 100_000.0

Log = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """Figures of one load: write rates per second, write amplification if something was written,
    and the service times of the probe's reads and writes in an open loop."""

    write_iops: float
    write_bytes_per_s: float
    waf: float | None
    times: Mapping[str, Histogram] = field(default_factory=dict)  # by operation


@dataclass(frozen=True)
class SmallDrive:
    """A derived drive as it is simulated: `scale` times smaller than the whole one."""

    name: str
    text: str  # of the device file of the smaller drive
    scale: float
    capacity_bytes: int  # of the whole drive
    device_hash: str  # of the whole drive

    @classmethod
    def of(cls, name: str, text: str, least_bytes: float | None = None) -> SmallDrive:
        """The drive of a device file, simulated with `least_bytes` or more (default: some GB).

        Raises ConfigError: a malformed file."""
        file_name = f"{name}.toml"
        whole = describe_device(text, file_name)
        scale = fitting_scale(text, file_name, least_bytes or SMALL_BYTES)
        scale = max(scale, whole.least_scale)
        small = open_device(text, file_name)
        if scale > 1:
            exact = small.nearest_scale(scale)
            small, scale = small.scaled(exact, LARGEST_IO_BYTES), exact
        return cls(name, small.text, scale, whole.capacity_bytes, whole.device_hash)

    def open(self) -> SimEngine:
        """A new engine of the smaller drive."""
        return SimEngine.from_text(self.text, f"{self.name}.toml")


class Watcher:
    """Progress of all loads. Its methods are called from several threads."""

    def __init__(self, log: Log = lambda text: None) -> None:
        self._log = log
        self._lock = Lock()
        self._began_s = self._said_s = time.monotonic()
        self._whole = self._left = 0.0
        self._loads = self._done = 0

    def expect(self, drive: SmallDrive, loads: Iterable[Load]) -> None:
        """Add loads to the work that is to be done."""
        for load in loads:
            self._loads += 1
            self._whole += work_s(drive, load)
        self._left = self._whole

    def done(self, drive: SmallDrive, load: Load) -> None:
        """Report a load that has been measured."""
        with self._lock:
            self._done += 1
            self._left -= work_s(drive, load)
            now = time.monotonic()
            last = self._done == self._loads
            if now - self._said_s < _SILENCE_S and not last:
                return
            self._said_s = now
            elapsed = now - self._began_s
            left = elapsed * self._left / max(self._whole - self._left, 1e-9)
            ahead = "" if last else f", about {left:.0f} s left"
            head = f"[{self._done}/{self._loads} loads, {elapsed:.0f} s{ahead}]"
            self._log(f"{head}  {drive.name}: {load.label}")


_SILENCE_S = 5.0


def work_s(drive: SmallDrive, load: Load, share: float = 1.0) -> float:
    """Estimated seconds of a load."""
    slots = drive.capacity_bytes / drive.scale / PAGE
    if isinstance(load, RandomWrites):
        used = slots * _used(drive, load)
        timed = used * _WINDOWS * (_WINDOW_SHARE + _WARM_SHARE) * share
        return used * load.capacities * 2 * _FAST_S + timed * _TIMED_S
    if isinstance(load, ZoneWrites):
        return slots * load.capacities * _FAST_S
    rate = min(load.rate_iops, _GUESSED_IOPS) + load.probe_iops
    return rate * _SECONDS * share * _TIMED_S


def _used(drive: SmallDrive, load: RandomWrites) -> float:
    """Share of the drive that a load uses."""
    if load.range_bytes is None:
        return 1.0
    share = load.range_bytes / drive.capacity_bytes
    return 1.0 if share > 0.999 else share


@dataclass
class _Player:
    """One drive and its loads of one kind, which share a prepared state."""

    drive: SmallDrive
    loads: Sequence[Load]
    time_share: float
    watcher: Watcher
    engine: SimEngine = field(init=False)
    ready: SimEngine = field(init=False)
    _state: object = None

    def play(self) -> dict[Load, Measured]:
        self.engine, self.ready = self.drive.open(), self.drive.open()
        found: dict[Load, Measured] = {}
        for load in self.loads:
            if isinstance(load, RandomWrites):
                found[load] = self._random_writes(load)
            elif isinstance(load, ZoneWrites):
                found[load] = self._zone_writes(load)
            else:
                found[load] = self._open_loop(load)
            self.watcher.done(self.drive, load)
        return found

    @property
    def capacity_bytes(self) -> int:
        return self.engine.identify().capacity_bytes

    def _bring(self, state: object, steps: Sequence[Workload]) -> None:
        """Bring the engine to the state after `steps`, which `state` identifies."""
        if state != self._state:
            self.ready.renew()
            for step in steps:
                self.ready.precondition(step)
            self._state = state
        self.engine.copy_from(self.ready)

    def _fill(self, range_bytes: int | None) -> Workload:
        """Sequential writes over the range."""
        job = Job(
            pattern="sequential",
            block_sizes=(BlockSize(_FILL_BLOCK),),
            queue_depth=32,
            range_bytes=range_bytes,
            volume_bytes=range_bytes or self.capacity_bytes,
        )
        return Workload("fill", (job,), seed=_SEED)

    # -- closed loops -----------------------------------------------------------------------

    def _random_writes(self, load: RandomWrites) -> Measured:
        size, block = self.capacity_bytes, load.block_bytes
        share = _used(self.drive, load)
        used = None
        if share < 1:
            used = max(_FILL_BLOCK, round(size * share / _FILL_BLOCK) * _FILL_BLOCK)
            used = min(used, size // _FILL_BLOCK * _FILL_BLOCK)
        self._bring(("fill", used), [self._fill(used)])
        job = Job(
            block_sizes=(BlockSize(block),),
            addresses=addresses_of(load.spread, _pages(self.drive, load)),
            threads=load.threads,
            queue_depth=load.queue_depth,
            range_bytes=used,
        )
        total = load.capacities * (used or size)

        def writes(seed: int, volume: float, name: str) -> Workload:
            volume_bytes = max(load.threads, round(volume / block)) * block
            return Workload(name, (replace(job, volume_bytes=volume_bytes),), seed=_SEED + seed)

        return self._windows(load.window, total, used or size, writes)

    def _windows(
        self,
        window: tuple[float, float],
        total: float,
        used: float,
        writes: Callable[[int, float, str], Workload],
    ) -> Measured:
        """Rates of timed parts of a run of `total` bytes, and write amplification of all of it
        between the shares of `window` of its time. Begins in the prepared state."""
        begin, end = self._volumes(window, total, writes)
        parts = _WINDOWS
        step = (end - begin) / parts
        warm = min(used * _WARM_SHARE, step / 4)
        timed = min(used * _WINDOW_SHARE * self.time_share, step - warm)
        seed, ios, size, seconds = 1, 0, 0, 0.0
        if begin >= PAGE:
            self.engine.precondition(writes(seed, begin, "to the window"))
        before = self.engine.counters()
        for _ in range(parts):
            seed += 3
            self.engine.run(writes(seed, warm, "warm"))
            result = self.engine.run(writes(seed + 1, timed, "measured"))
            done = result.total("write")
            ios, size = ios + done[0], size + done[1]
            seconds += result.measured_ns / 1e9
            if (rest := step - warm - timed) >= PAGE:
                self.engine.precondition(writes(seed + 2, rest, "between windows"))
        waf = self.engine.counters().write_amplification_since(before)
        return Measured(ios / seconds, size / seconds, waf)

    def _volumes(
        self,
        window: tuple[float, float],
        total: float,
        writes: Callable[[int, float, str], Workload],
    ) -> tuple[float, float]:
        """Bytes that have been written at the two shares of the time of a run of `total` bytes.
        Time is in proportion to what the flash programs: a drive that slows down spends most of it
        on its last bytes."""
        step, programmed = total / _PASS_STEPS, [0.0]
        for at in range(_PASS_STEPS):
            before = self.engine.counters()
            self.engine.precondition(writes(-1 - at, step, "to find the window"))
            waf = self.engine.counters().write_amplification_since(before)
            programmed.append(programmed[-1] + step * (waf or 1.0))
        self.engine.copy_from(self.ready)
        begin, end = (volume_at(share, programmed) * total for share in window)
        return begin, end

    # -- zones ------------------------------------------------------------------------------

    def _zone_writes(self, load: ZoneWrites) -> Measured:
        size, block = self.capacity_bytes, load.block_bytes
        blocks = max(1, round(load.zone_bytes / self.drive.scale / block))
        count = size // (blocks * block)
        active = min(load.active, count)
        self._bring(("fill", None), [self._fill(None)])
        log = _zone_log(count, blocks, block, active, round(load.capacities * count * blocks))
        begin, end = (round(share * len(log[0])) for share in load.window)
        job = Job(block_sizes=(BlockSize(block),), queue_depth=load.queue_depth)
        self.engine.precondition(_logged(job, log, 0, begin))
        before = self.engine.counters()
        result = self.engine.run(_logged(job, log, begin, end))
        ios, written = result.total("write")
        seconds = result.measured_ns / 1e9
        waf = result.counters_after.write_amplification_since(before)
        return Measured(ios / seconds, written / seconds, waf)

    # -- open loops -------------------------------------------------------------------------

    def _open_loop(self, load: OpenLoop) -> Measured:
        aged = Job(
            queue_depth=128,
            volume_bytes=max(1, round(load.aged_capacities * self.capacity_bytes / PAGE)) * PAGE,
        )
        steps = [self._fill(None)]
        if load.aged_capacities:
            steps.append(Workload("aged", (aged,), seed=_SEED + 1))
        self._bring(("aged", load.aged_capacities), steps)
        block = (BlockSize(load.block_bytes),)
        jobs = (
            Job(
                name="load",
                read_pct=100 - load.write_pct,
                block_sizes=block,
                threads=load.threads,
                queue_depth=load.queue_depth,
                rate_iops=load.rate_iops,
                arrival="poisson",
            ),
            Job(
                name="probe",
                read_pct=load.probe_read_pct,
                block_sizes=block,
                queue_depth=load.queue_depth,
                rate_iops=load.probe_iops,
            ),
        )

        def run(name: str, seconds: float, seed: int) -> StepResult:
            timed = tuple(job.with_duration_s(seconds) for job in jobs)
            return self.engine.run(Workload(name, timed, seed=seed))

        run("warm", _WARM_SECONDS * self.time_share, _SEED + 2)
        result = run("measured", _SECONDS * self.time_share, _SEED + 3)
        main, probe = result.jobs
        seconds, written = main.elapsed_ns / 1e9, main.operations.get("write")
        times = {str(way): done.service for way, done in probe.operations.items()}
        return Measured(
            0.0 if written is None else written.ios / seconds,
            0.0 if written is None else written.bytes / seconds,
            result.waf,
            times,
        )


def volume_at(share: float, programmed: Sequence[float]) -> float:
    """Share of the bytes of a run that are written after `share` of its time. `programmed`: what
    flash has programmed after equal parts of the bytes, from 0, in proportion to the time."""
    wanted = share * programmed[-1]
    at = max(1, bisect_left(programmed, wanted))
    low, high = programmed[at - 1 : at + 1]
    return (at - 1 + (wanted - low) / (high - low)) / (len(programmed) - 1)


def _pages(drive: SmallDrive, load: RandomWrites) -> int:
    """Blocks of the range that a load uses on the whole drive."""
    return max(1, round(drive.capacity_bytes * _used(drive, load) / load.block_bytes))


def addresses_of(spread: Spread, pages: int) -> Addresses:
    """The addresses of a distribution over `pages` of the whole drive; hot pages are scattered one
    by one over the range."""
    if spread.theta is not None:
        return Addresses("zipf", theta=spread.theta, ranks=pages)
    if not spread.zones:
        return Addresses()
    zones = tuple(Zone(access_pct=writes, size_pct=pages) for pages, writes in spread.zones)
    return Addresses("zoned", zones=zones, scatter_bytes=PAGE if spread.is_scattered else None)


Operations = tuple[list[str], list[int], list[int]]


def _zone_log(count: int, blocks: int, block: int, active: int, writes: int) -> Operations:
    """Operations, offsets and lengths of writes to `active` of `count` zones, each trimmed before
    it is written again; the zone of a write is one of the active ones at random."""
    draws = random.Random(_SEED)
    zone_bytes = blocks * block
    spare = list(range(count))
    draws.shuffle(spare)
    open_zones = [spare.pop() for _ in range(active)]
    written = [0] * active
    letters: list[str] = []
    offsets: list[int] = []
    lengths: list[int] = []
    for _ in range(writes):
        at = draws.randrange(active)
        if written[at] == 0:
            letters.append("t")
            offsets.append(open_zones[at] * zone_bytes)
            lengths.append(zone_bytes)
        letters.append("w")
        offsets.append(open_zones[at] * zone_bytes + written[at] * block)
        lengths.append(block)
        written[at] += 1
        if written[at] == blocks:
            written[at] = 0
            if spare:
                other = draws.randrange(len(spare))
                open_zones[at], spare[other] = spare[other], open_zones[at]
    return letters, offsets, lengths


def _logged(job: Job, log: Operations, begin: int, end: int) -> Workload:
    letters, offsets, lengths = log
    chosen = IoLog(
        "".join(letters[begin:end]), tuple(offsets[begin:end]), tuple(lengths[begin:end])
    )
    return Workload("zones", (replace(job, log=chosen, ios=chosen.ios),), seed=_SEED)


def play_all(
    wanted: Mapping[SmallDrive, Iterable[Load]],
    *,
    workers: int | None = None,
    time_share: float = 1.0,
    log: Log = lambda text: None,
) -> dict[SmallDrive, dict[Load, Measured]]:
    """The metrics of each load on its drive, drives and kinds of loads side by side. Rates are per
    second, latencies in ns. Raises ConfigError, EngineError."""
    watcher = Watcher(log)
    tasks: list[tuple[float, Task[tuple[SmallDrive, dict[Load, Measured]]]]] = []
    for drive, loads in wanted.items():
        groups: dict[object, list[Load]] = {}
        for load in dict.fromkeys(loads):
            groups.setdefault(_group(load), []).append(load)
            watcher.expect(drive, [load])
        size = describe_device(drive.text, f"{drive.name}.toml")
        memory = 2 * drive_memory_bytes(size.capacity_bytes, size.mapped_bytes)
        for own in groups.values():
            player = _Player(drive, own, time_share, watcher)
            work = sum(work_s(drive, load) for load in own)
            tasks.append((work, Task(drive.name, memory, partial(_played, player))))
    tasks.sort(key=lambda pair: -pair[0])  # the longest first, so that none is left alone
    found: dict[SmallDrive, dict[Load, Measured]] = {drive: {} for drive in wanted}
    for drive, metrics in run_side_by_side([task for _, task in tasks], workers=workers):
        found[drive] |= metrics
    return found


def _played(player: _Player) -> tuple[SmallDrive, dict[Load, Measured]]:
    return player.drive, player.play()


def _group(load: Load) -> object:
    """Loads that begin in the same state."""
    if isinstance(load, RandomWrites):
        return ("random", load.range_bytes)
    return ("open", load.aged_capacities) if isinstance(load, OpenLoop) else "zones"

"""SSD-iq's loads on simulated drives.

Drives are scaled down, with ranges and zones in proportion. Between timed windows, the drive is
fast-forwarded through the same states. Every load starts on a copy of the preconditioned state. The
paper averages over a window within a run's duration. A first pass determines the bytes written in
that window, based on the volume that the flash programs.
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
from writecliff.errors import ConfigError, EngineError
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
SMALL_BYTES = 4e9  # Minimum capacity of a scaled drive, in bytes.
_WINDOWS = 4  # Number of timed windows in a run, evenly spaced.
_PASS_STEPS = 24  # Number of steps in the first pass, which determines the window.
# Fractions of the used range that are written during, and just before, each timed window.
_WINDOW_SHARE, _WARM_SHARE = 0.08, 0.01
_FILL_BLOCK = 128 * KIB
# Open-loop duration; the p99.999 of a probe at 5,000 reads per second needs 20 s.
SECONDS, _WARM_SECONDS = 22.0, 1.0
_SEED = 5001
# Estimated cost for scheduling loads, in seconds per fast-forwarded slot and per timed I/O.
_FAST_S, _TIMED_S = 1.6e-7, 8e-7
_GUESSED_IOPS = 100_000.0  # Maximum open-loop rate for the estimate.

Log = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """Figures of a load on a drive."""

    write_iops: float
    write_bytes_per_s: float
    waf: float | None  # Write amplification; `None` if the load wrote nothing.
    times: Mapping[str, Histogram] = field(default_factory=dict)  # Probe latencies by operation.


Played = dict[Load, Measured | str]  # Figures by load, or the error that prevents them.


@dataclass(frozen=True)
class SmallDrive:
    """A derived drive, scaled down by `scale`."""

    name: str
    text: str  # Device file text for the scaled drive.
    scale: float
    capacity_bytes: int  # Drive capacity at full size, in bytes.
    device_hash: str  # Device hash at full size.

    @classmethod
    def of(cls, name: str, text: str, least_bytes: float | None = None) -> SmallDrive:
        """Return the drive of a device file, scaled to `least_bytes` or more.

        Args:
            name: Drive name, for use in messages.
            text: Device file of the drive at full size.
            least_bytes: Minimum capacity in bytes (default: `SMALL_BYTES`).

        Raises:
            ConfigError: If the device file is malformed.
        """
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
        """Return a new engine for the scaled drive."""
        return SimEngine.from_text(self.text, f"{self.name}.toml")


class Watcher:
    """Progress of all loads. `done` is thread-safe."""

    def __init__(self, log: Log = lambda text: None) -> None:
        """Start the clock, and pass lines of progress to `log`."""
        self._log = log
        self._lock = Lock()
        self._started_s = self._logged_s = time.monotonic()
        self._whole = self._left = 0.0
        self._loads = self._done = 0

    def expect(self, drive: SmallDrive, loads: Iterable[Load]) -> None:
        """Add loads to the planned work."""
        for load in loads:
            self._loads += 1
            self._whole += work_s(drive, load)
        self._left = self._whole

    def done(self, drive: SmallDrive, load: Load) -> None:
        """Record that a load was measured, and periodically log the progress."""
        with self._lock:
            self._done += 1
            self._left -= work_s(drive, load)
            now = time.monotonic()
            last = self._done == self._loads
            if now - self._logged_s < _LOG_INTERVAL_S and not last:
                return
            self._logged_s = now
            elapsed = now - self._started_s
            left = elapsed * self._left / max(self._whole - self._left, 1e-9)
            remaining = "" if last else f", about {left:.0f} s left"
            head = f"[{self._done}/{self._loads} loads, {elapsed:.0f} s{remaining}]"
            self._log(f"{head}  {drive.name}: {load.label}")


_LOG_INTERVAL_S = 5.0


def work_s(drive: SmallDrive, load: Load, share: float = 1.0) -> float:
    """Estimate how many seconds a load takes."""
    slots = drive.capacity_bytes / drive.scale / PAGE
    if isinstance(load, RandomWrites):
        used = slots * _used(drive, load)
        timed = used * _WINDOWS * (_WINDOW_SHARE + _WARM_SHARE) * share
        return used * load.capacities * 2 * _FAST_S + timed * _TIMED_S
    if isinstance(load, ZoneWrites):
        return slots * load.capacities * _FAST_S
    rate = min(load.rate_iops, _GUESSED_IOPS) + load.probe_iops
    return rate * SECONDS * share * _TIMED_S


def _used(drive: SmallDrive, load: RandomWrites) -> float:
    """Return the fraction of the drive that a load uses."""
    if load.range_bytes is None:
        return 1.0
    share = load.range_bytes / drive.capacity_bytes
    return 1.0 if share > 0.999 else share


@dataclass
class _Player:
    """A drive, and the loads that share one of its preconditioned states."""

    drive: SmallDrive
    loads: Sequence[Load]
    time_share: float
    watcher: Watcher
    engine: SimEngine = field(init=False)
    ready: SimEngine = field(init=False)
    _state: object = None

    def play(self) -> Played:
        """Return each load's figures, or the error that prevented the measurement."""
        self.engine, self.ready = self.drive.open(), self.drive.open()
        measured: Played = {}
        for load in self.loads:
            try:
                measured[load] = self._measured(load)
            except (ConfigError, EngineError) as error:
                measured[load] = f"cannot simulate the load: {error}"
            self.watcher.done(self.drive, load)
        return measured

    def _measured(self, load: Load) -> Measured:
        if isinstance(load, RandomWrites):
            return self._random_writes(load)
        return self._zone_writes(load) if isinstance(load, ZoneWrites) else self._open_loop(load)

    @property
    def capacity_bytes(self) -> int:
        return self.engine.identify().capacity_bytes

    def _prepare(self, state: object, steps: Sequence[Workload]) -> None:
        """Bring the engine to the state after `steps`, which the key `state` identifies."""
        if state != self._state:
            self._state = None  # The state stays `None` until all steps are complete.
            self.ready.renew()
            for step in steps:
                self.ready.precondition(step)
            self._state = state
        self.engine.copy_from(self.ready)

    def _fill(self, range_bytes: int | None) -> Workload:
        """Return sequential writes over the range, or over the whole drive for None."""
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
        self._prepare(("fill", used), [self._fill(used)])
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
        """Return the rates of a window's timed parts, and the window's write amplification.

        The run starts in the preconditioned state.

        Args:
            window: Start and end of the window, as fractions of the run's duration.
            total: Bytes that the run writes.
            used: Size of the range in bytes.
            writes: Function that returns the workload for a seed, a volume in bytes and a name.
        """
        start, end = self._volumes(window, total, writes)
        parts = _WINDOWS
        step = (end - start) / parts
        warm = min(used * _WARM_SHARE, step / 4)
        timed = min(used * _WINDOW_SHARE * self.time_share, step - warm)
        seed, ios, size, seconds = 1, 0, 0, 0.0
        if start >= PAGE:
            self.engine.precondition(writes(seed, start, "to the window"))
        before = self.engine.counters()
        for _ in range(parts):
            seed += 3
            self.engine.run(writes(seed, warm, "warm"))
            result = self.engine.run(writes(seed + 1, timed, "measured"))
            written = result.total("write")
            ios, size = ios + written[0], size + written[1]
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
        """Return the bytes written up to the start and end of a window of a run's time.

        The time is assumed to be proportional to the volume that the flash programs, because a
        drive that slows down spends most of the time on its last bytes.
        """
        step, programmed = total / _PASS_STEPS, [0.0]
        for at in range(_PASS_STEPS):
            before = self.engine.counters()
            self.engine.precondition(writes(-1 - at, step, "first pass"))
            waf = self.engine.counters().write_amplification_since(before)
            programmed.append(programmed[-1] + step * (waf or 1.0))
        self.engine.copy_from(self.ready)
        start, end = (volume_at(share, programmed) * total for share in window)
        return start, end

    # -- zones ------------------------------------------------------------------------------

    def _zone_writes(self, load: ZoneWrites) -> Measured:
        size, block = self.capacity_bytes, load.block_bytes
        blocks = max(1, round(load.zone_bytes / self.drive.scale / block))
        count = size // (blocks * block)
        if not count:
            raise ConfigError("a zone is larger than the drive")
        active = min(load.active, count)
        self._prepare(("fill", None), [self._fill(None)])
        log = _zone_log(count, blocks, block, active, round(load.capacities * count * blocks))
        start, end = (round(share * len(log[0])) for share in load.window)
        # A log belongs to a single thread, which issues the outstanding I/Os of all threads.
        job = Job(block_sizes=(BlockSize(block),), queue_depth=load.queue_depth * load.threads)
        self.engine.precondition(_logged(job, log, 0, start))
        before = self.engine.counters()
        result = self.engine.run(_logged(job, log, start, end))
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
        self._prepare(("aged", load.aged_capacities), steps)
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
        result = run("measured", SECONDS * self.time_share, _SEED + 3)
        main, probe = result.jobs
        seconds, written = main.elapsed_ns / 1e9, main.operations.get("write")
        times = {str(name): totals.service for name, totals in probe.operations.items()}
        return Measured(
            0.0 if written is None else written.ios / seconds,
            0.0 if written is None else written.bytes / seconds,
            result.waf,
            times,
        )


def volume_at(share: float, programmed: Sequence[float]) -> float:
    """Return the fraction of a run's bytes that are written after `share` of its time.

    Args:
        share: Fraction of the time, 0 to 1.
        programmed: Volume that the flash has programmed after each of several equal parts of the
            bytes, starting with 0. This volume is proportional to the elapsed time.
    """
    wanted = share * programmed[-1]
    at = max(1, bisect_left(programmed, wanted))
    low, high = programmed[at - 1 : at + 1]
    return (at - 1 + (wanted - low) / (high - low)) / (len(programmed) - 1)


def _pages(drive: SmallDrive, load: RandomWrites) -> int:
    """Return the number of blocks in a load's range at full size."""
    return max(1, round(drive.capacity_bytes * _used(drive, load) / load.block_bytes))


def addresses_of(spread: Spread, pages: int) -> Addresses:
    """Return the addresses of a distribution. `pages` is the number of zipf ranks at full size."""
    if spread.theta is not None:
        return Addresses("zipf", theta=spread.theta, ranks=pages)
    if not spread.zones:
        return Addresses()
    zones = tuple(Zone(access_pct=writes, size_pct=pages) for pages, writes in spread.zones)
    return Addresses("zoned", zones=zones, scatter_bytes=PAGE if spread.is_scattered else None)


Operations = tuple[list[str], list[int], list[int]]


def _zone_log(count: int, blocks: int, block: int, active: int, writes: int) -> Operations:
    """Return operations, offsets and lengths of `writes` writes to `active` of `count` zones.

    Each write goes to a random active zone. A zone is trimmed before its first write.
    """
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


def _logged(job: Job, log: Operations, start: int, end: int) -> Workload:
    letters, offsets, lengths = log
    chosen = IoLog(
        "".join(letters[start:end]), tuple(offsets[start:end]), tuple(lengths[start:end])
    )
    return Workload("zones", (replace(job, log=chosen, ios=chosen.ios),), seed=_SEED)


def play_all(
    wanted: Mapping[SmallDrive, Iterable[Load]],
    *,
    workers: int | None = None,
    time_share: float = 1.0,
    log: Log = lambda text: None,
) -> dict[SmallDrive, Played]:
    """Measure each load on its drive. Drives and kinds of loads run in parallel.

    If a load cannot be simulated, the result contains the reason instead of figures.

    Args:
        wanted: Loads by drive.
        workers: Maximum number of parallel tasks; None allows as many as cores and memory permit.
        time_share: Factor for the length of the timed parts.
        log: Function that receives lines of progress.

    Raises:
        ConfigError: If a drive needs more memory than is available.
    """
    watcher = Watcher(log)
    tasks: list[tuple[float, Task[tuple[SmallDrive, Played]]]] = []
    for drive, loads in wanted.items():
        groups: dict[object, list[Load]] = {}
        for load in dict.fromkeys(loads):
            groups.setdefault(_group(load), []).append(load)
            watcher.expect(drive, [load])
        size = describe_device(drive.text, f"{drive.name}.toml")
        memory = 2 * drive_memory_bytes(size.capacity_bytes, size.mapped_bytes)
        for group in groups.values():
            player = _Player(drive, group, time_share, watcher)
            work = sum(work_s(drive, load) for load in group)
            tasks.append((work, Task(drive.name, memory, partial(_played, player))))
    # Start the longest task first, so that no task runs alone at the end.
    tasks.sort(key=lambda pair: -pair[0])
    measured: dict[SmallDrive, Played] = {drive: {} for drive in wanted}
    for drive, figures in run_side_by_side([task for _, task in tasks], workers=workers):
        measured[drive] |= figures
    return measured


def _played(player: _Player) -> tuple[SmallDrive, Played]:
    return player.drive, player.play()


def _group(load: Load) -> object:
    """Return the key of the loads that start in the same state."""
    if isinstance(load, RandomWrites):
        return ("random", load.range_bytes)
    return ("open", load.aged_capacities) if isinstance(load, OpenLoop) else "zones"

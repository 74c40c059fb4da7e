"""`fms-fio`: the multi-stream demonstration of the Flash Memory Summit 2016, rebuilt.

Four sequential writers (`lifetimes.py`) and six random readers run 70 % reads and 30 % writes by
volume, once with all writes in one stream and once with a stream per writer. The experiment has two
parts:

* **Write amplification** on a flat drive with 4094 circulating reclaim units of 256 slots,
  fast-forwarded: every range is written once, one after the other, then 20 capacities by the four
  writers, then 10 capacities that are measured. Both readings are run with interleaves of 4 and
  128 KiB, three ways to relocate valid data, and greedy and FIFO collection. The tables also list
  all stable FIFO values, and another simulator's figures (`reference_waf`).
* **Throughput and latency** on the simulated drive `sas-ms-480` at a fraction of its size, with its
  user capacity set for each over-provisioning: the same preconditioning, then the highest load with
  30 % writes that it sustains, found by bisection from the same saved state.

The values of the slide's bars are not available as text, so only its claim, more than twice the
lifetime, is compared. The slide does not state block sizes either, so all I/Os here are 128 KiB.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from writecliff import _native
from writecliff.devices import describe, describe_device, open_device, read_device_file
from writecliff.devices.edit import with_values
from writecliff.engines.base import StepResult
from writecliff.engines.scaled import SLOT_BYTES
from writecliff.engines.sim import SimEngine
from writecliff.lab.experiments.lifetimes import (
    READINGS,
    Reading,
    fifo_fixed_points,
    reference_waf,
    writers,
)
from writecliff.native_errors import as_user_errors
from writecliff.parallel import drive_memory_bytes, map_side_by_side
from writecliff.workload.model import BlockSize, Job, Workload

DEVICE = "sas-ms-480"
OVERPROVISIONS = (0.07, 0.127, 0.145, 0.20, 0.28)
UNITS, SLOTS_PER_RECLAIM_UNIT = 4098, 256  # Four units remain idle, so 4094 circulate.
WARM_UP, MEASURED = 20, 10  # Written volumes, in capacities.
SCALE = 32.0
QUICK: Mapping[str, Any] = {"scale": 96.0, "passes": (4, 2)}  # Arguments of `run` with --quick.
READERS, READ_QUEUE = 6, 8
WRITE_PCT = 30.0
REQUEST_BYTES = 128 * 1024
# Garbage collection on the flat drive: victim selection, destination and pacing of relocations.
Drive = tuple[str, str, str]
DRIVES: tuple[Drive, ...] = (
    ("greedy", "host-unit", "per-victim"),
    ("greedy", "host-unit", "incremental"),
    ("greedy", "per-stream", "incremental"),
    ("fifo", "host-unit", "per-victim"),
)
CLAIM = "more than 2x lifetime (Samsung, Flash Memory Summit 2016)"
_WINDOW_NS = 3_000_000_000
_BISECTIONS = 10
_MAX_RATE = 1.0e9  # Write rate in bytes/s, near the link's maximum.


@dataclass(frozen=True)
class Amplification:
    """Write amplification of the flat drive with and without streams."""

    reading: Reading
    overprovision: float
    request_bytes: int
    policy: str
    gc_destination: str  # "host-unit" for the host's open unit, or "per-stream" for separate units.
    # "per-victim" for a whole victim at once, or "incremental" for a small portion per write.
    gc_pacing: str
    waf_off: float
    waf_on: float
    reference: float | None  # Value of `waf_off` from another simulator.
    fifo_fixed_points: tuple[float, ...]

    @property
    def lifetime_ratio(self) -> float:
        """Lifetime with streams divided by lifetime without streams."""
        return self.waf_off / self.waf_on

    @property
    def reference_error_pct(self) -> float | None:
        """Deviation of `waf_off` from the other simulator's value, or None without a reference."""
        return None if self.reference is None else 100 * (self.waf_off / self.reference - 1)


@dataclass(frozen=True)
class Speed:
    """The timed drive at its highest load with 30 % writes; throughput is in bytes/s."""

    reading: Reading
    overprovision: float
    streams: bool
    waf: float  # Write amplification during the measurement.
    waf_preconditioned: float  # Write amplification over the capacities written after the warm-up.
    read_bytes_per_s: float
    write_bytes_per_s: float
    read_mean_ns: float | None
    read_p99_ns: int | None  # 99th percentile in ns; `None` if there are too few samples.
    read_p9999_ns: int | None
    data_placement: Mapping[str, Any]  # Data placement status, with counts for the measurement.


@dataclass(frozen=True)
class Result:
    """All measurements of the experiment."""

    precondition: str
    scale: float
    passes: tuple[int, int]
    amplification: tuple[Amplification, ...]
    speed: tuple[Speed, ...]


def run(
    *,
    scale: float = SCALE,
    passes: tuple[int, int] = (WARM_UP, MEASURED),
    log: Callable[[str], None] = lambda text: None,
) -> Result:
    """Run all measurements, which take several minutes.

    Args:
        scale: Factor by which the timed drive is scaled down.
        passes: Capacities written to warm up, and while write amplification is measured.
        log: Function called with progress messages.
    """
    flat_bytes = UNITS * SLOTS_PER_RECLAIM_UNIT * SLOT_BYTES
    flat_memory = drive_memory_bytes(flat_bytes, flat_bytes)
    variants = [
        (reading, op, request, policy, gc_destination, gc_pacing)
        for policy, gc_destination, gc_pacing in DRIVES
        for reading in READINGS
        for op in OVERPROVISIONS
        for request in (SLOT_BYTES, REQUEST_BYTES)
        if policy == "greedy" or request == REQUEST_BYTES
    ]
    with as_user_errors():
        small = open_device(*read_device_file(DEVICE)).scaled(scale, SLOT_BYTES)
    raw_bytes = describe(small).flash_bytes("the experiment")
    timed = [(r, op, on) for r in READINGS for op in OVERPROVISIONS for on in (False, True)]
    log(f"{len(timed)} timed drives, then write amplification of {len(variants)} untimed ones")
    memory_bytes = drive_memory_bytes(raw_bytes, raw_bytes)
    speed = map_side_by_side(partial(_speed, scale, passes), timed, memory_bytes, log)
    flat = map_side_by_side(partial(amplification, passes=passes), variants, flat_memory, log)
    return Result(precondition(passes), scale, passes, tuple(flat), tuple(speed))


def precondition(passes: tuple[int, int] = (WARM_UP, MEASURED)) -> str:
    """Describe the precondition, which is part of every output of this experiment."""
    return (
        "empty drive; every range written once, one after the other; then "
        f"{passes[0]} capacities by the four writers, then {passes[1]} capacities over which write "
        "amplification is measured; untimed"
    )


# -- write amplification ------------------------------------------------------------------------


def amplification(
    reading: Reading,
    op: float,
    request_bytes: int = REQUEST_BYTES,
    policy: str = "greedy",
    gc_destination: str = "host-unit",
    gc_pacing: str = "incremental",
    passes: tuple[int, int] = (WARM_UP, MEASURED),
) -> Amplification:
    """Return the flat drive's write amplification at the over-provisioning `op`, a fraction."""

    def waf(streams: bool) -> float:
        measured, _ = _native.validate_data_placement(
            reading, op, streams=streams, gc_destination=gc_destination, gc_pacing=gc_pacing,
            policy=policy, request=request_bytes // SLOT_BYTES,
            pages_per_block=SLOTS_PER_RECLAIM_UNIT, blocks=UNITS,
            warm_up=passes[0], measured=passes[1],
        )  # fmt: skip
        return measured

    same = (gc_destination, gc_pacing, passes) == ("host-unit", "per-victim", (WARM_UP, MEASURED))
    return Amplification(
        reading, op, request_bytes, policy, gc_destination, gc_pacing, waf(False), waf(True),
        reference_waf(reading, op, policy, request_bytes) if same else None,
        fifo_fixed_points(writers(reading), op),
    )  # fmt: skip


# -- throughput and latency ---------------------------------------------------------------------


def drive(overprovision: float, scale: float) -> _native.Device:
    """Open the drive with an over-provisioning of (flash - user) / user, scaled down by `scale`."""
    text, file_name = read_device_file(DEVICE)
    raw = describe_device(text, file_name).flash_bytes("the experiment")
    user = round(raw / (1 + overprovision) / REQUEST_BYTES) * REQUEST_BYTES
    text = with_values(text, {"user_capacity": (f'"{user} B"', None)})
    name = f"{DEVICE}, OP {100 * overprovision:g} %"
    return open_device(text, name).scaled(scale, SLOT_BYTES)


def _jobs(reading: Reading, capacity_bytes: int, streams: bool) -> list[Job]:
    """The four writer jobs, without rates or volumes."""
    jobs = []
    start = 0
    for number, writer in enumerate(writers(reading)):
        size = int(writer.data * capacity_bytes) // REQUEST_BYTES * REQUEST_BYTES
        jobs.append(
            Job(
                name=f"writer {number + 1}",
                pattern="sequential",
                block_sizes=(BlockSize(REQUEST_BYTES),),
                offset_bytes=start,
                range_bytes=size,
                stream=number if streams else 0,
            )
        )
        start += size
    return jobs


def _write(reading: Reading, jobs: list[Job], volume_bytes: float) -> Workload:
    """Jobs of the writers at their rates, with a total volume of about `volume_bytes`."""
    shares = [writer.writes for writer in writers(reading)]
    return Workload(
        "writers",
        tuple(
            replace(
                job,
                rate_bytes_per_s=share * _MAX_RATE,
                volume_bytes=max(1, round(share * volume_bytes / REQUEST_BYTES)) * REQUEST_BYTES,
            )
            for job, share in zip(jobs, shares, strict=True)
        ),
    )


def _mix(reading: Reading, jobs: list[Job], rate: float, duration_ns: int) -> Workload:
    """Writers at `rate` bytes/s in total, and readers at full speed over the written data."""
    used = sum(job.range_bytes or 0 for job in jobs)
    load = [
        replace(job, rate_bytes_per_s=writer.writes * rate, duration_ns=duration_ns, queue_depth=64)
        for job, writer in zip(jobs, writers(reading), strict=True)
    ]
    reader = Job(
        name="readers",
        read_pct=100.0,
        block_sizes=(BlockSize(REQUEST_BYTES),),
        range_bytes=used,
        threads=READERS,
        queue_depth=READ_QUEUE,
        duration_ns=duration_ns,
    )
    return Workload("70/30", (*load, reader), interval_ns=duration_ns)


@contextmanager
def _saved(engine: SimEngine) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="writecliff-") as folder:
        path = Path(folder) / "state"
        engine.save(path)
        yield path


def _speed(
    scale: float, passes: tuple[int, int], reading: Reading, op: float, streams: bool
) -> Speed:
    engine = SimEngine.from_device(drive(op, scale))
    capacity = engine.identify().capacity_bytes
    jobs = _jobs(reading, capacity, streams)
    for job in jobs:
        engine.precondition(Workload("fill", (replace(job, volume_bytes=job.range_bytes),)))
    engine.precondition(_write(reading, jobs, passes[0] * capacity))
    before = engine.counters()
    engine.precondition(_write(reading, jobs, passes[1] * capacity))
    waf = engine.counters().write_amplification_since(before)
    with _saved(engine) as state:
        result = _highest(engine, state, reading, jobs)
    reads = next(job for job in result.jobs if job.name == "readers").operations["read"].service
    seconds = result.elapsed_ns / 1e9
    assert result.data_placement is not None  # The drive supports stream control.
    before_it, after = result.data_placement
    measured = result.waf
    return Speed(
        reading=reading,
        overprovision=op,
        streams=streams,
        waf=measured if measured is not None else float("nan"),
        waf_preconditioned=waf if waf is not None else float("nan"),
        read_bytes_per_s=result.total("read")[1] / seconds,
        write_bytes_per_s=result.total("write")[1] / seconds,
        read_mean_ns=reads.mean_ns,
        read_p99_ns=reads.quantile(0.99).value_ns,
        read_p9999_ns=reads.quantile(0.9999).value_ns,
        data_placement=after.mapping(before_it),
    )


def _highest(engine: SimEngine, state: Path, reading: Reading, jobs: list[Job]) -> StepResult:
    """Step from `state` in which writes are closest to 30 % of the total throughput."""
    low, high = 0.0, _MAX_RATE
    closest: tuple[float, StepResult] | None = None
    for _ in range(_BISECTIONS):
        rate = 0.5 * (low + high)
        engine.restore(state)
        result = engine.run(_mix(reading, jobs, rate, _WINDOW_NS))
        read, written = result.total("read")[1], result.total("write")[1]
        excess_pct = 100 * written / (read + written) - WRITE_PCT
        if closest is None or abs(excess_pct) < closest[0]:
            closest = (abs(excess_pct), result)
        if excess_pct < 0:
            low = rate
        else:
            high = rate
    assert closest is not None
    return closest[1]

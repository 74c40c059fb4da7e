"""Die failure, with random reads before and after it, with and without die parity.

The full drive is read throughout. If the drive has parity, the failed die's data are rebuilt from
the other dies in the stripe until the data are relocated. If the drive has no parity, the failed
die's data are lost. A smaller drive needs proportionally less time, and the plots show the full
drive's time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from writecliff.devices import describe_device, open_device
from writecliff.devices.edit import value_of
from writecliff.devices.quantities import size_bytes
from writecliff.engines.base import StepResult
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.lab.reliability.cell_care import CARE, ECC
from writecliff.lab.reliability.drive import opened, variant, with_section
from writecliff.lab.reliability.model import Check, Curve, Finding, Plot, Result, Setting
from writecliff.parallel import map_side_by_side
from writecliff.workload.model import Job, Workload

VARIANTS = ("parity across dies", "no parity")
LOST = 0  # Index of the failed die.
STRIPE_MAX = 16
INTERVAL_MS = 10.0
BEFORE, AFTER = 10, 50  # Numbers of steps before and after the failure.
BEYOND = 3.0  # Simulated time after the failure, relative to the estimated relocation time.
QUEUE_DEPTH = 4
LATENCY_READS = 4000
MONTHS = 3
SHARE = 0.9  # Used fraction of the flash that remains without parity and the failed die.
WRITE = 128 * 1024


@dataclass(frozen=True)
class Course:
    """Reads over time on the full drive's scale, relative to the die failure."""

    seconds: list[float]
    latency_us: list[float]
    rebuilt_pct: list[float]
    failed_pct: list[float]
    relocated_bytes: int
    parity_share: float  # Parity fraction of the programmed bytes.
    uber: float  # Expected UBER after some months.
    # Latencies of single reads before and after the failure, without relocation.
    alone_us: tuple[float, float]
    # Fraction of reads that are rebuilt after the failure, without relocation.
    rebuilt_share: float


def _filled(text: str, file_name: str, scale: float) -> SimEngine:
    engine = opened(text, file_name, scale, io_bytes=WRITE)
    capacity = engine.identify().capacity_bytes
    fill = Job(name="fill", pattern="sequential", block_size=WRITE, volume_bytes=capacity)
    engine.precondition(Workload("fill", (fill,)))
    return engine


def _reads(
    engine: SimEngine,
    seed: int,
    depth: int,
    *,
    ios: int | None = None,
    duration_ns: int | None = None,
) -> StepResult:
    job = Job(name="reads", read_pct=100, block_size=4096, queue_depth=depth, ios=ios,
              duration_ns=duration_ns)  # fmt: skip
    return engine.run(Workload("reads", (job,), seed=seed))


def _mean_us(step: StepResult) -> float:
    service = step.service()
    return (service.mean_ns or 0.0) / 1e3 if service else 0.0


def _pct(step: StepResult, name: str) -> float:
    return 100 * float(step.counted[name] or 0) / max(step.total("read")[0], 1)


def _uber(text: str, file_name: str, scale: float) -> float:
    """The expected UBER of data stored for some months at the rated wear."""
    text = with_section(text, "ecc", ECC)[0]
    text = with_section(text, "cell_care", CARE)[0]
    engine = _filled(variant(text, {"cell_care.refresh_rber": "0.5"}), file_name, scale)
    retention_ns = round(MONTHS * 30 * 86_400 * 1e9)
    rare = Job(
        name="rare", read_pct=100, block_size=4096, rate_iops=0.001, duration_ns=retention_ns
    )
    engine.run(Workload("kept", (rare,), interval_ns=retention_ns))
    return float(engine.counters().uber or 0.0)


def _alone(text: str, file_name: str, scale: float) -> tuple[tuple[float, float], float]:
    """Mean latency of single reads before and after the failure, before any relocation.

    The function also returns the fraction of reads after the failure that were rebuilt.
    """
    engine = _filled(variant(text, {"die_parity.relocate_interval": '"1 h"'}), file_name, scale)
    before = _reads(engine, 1, 1, ios=LATENCY_READS)
    engine.lose_die(LOST)
    after = _reads(engine, 1, 1, ios=LATENCY_READS)
    return (_mean_us(before), _mean_us(after)), _pct(after, "rebuilt_reads") / 100


def _course(text: str, file_name: str, scale: float, step_ns: int) -> Course:
    engine = _filled(text, file_name, scale)
    filled = engine.counters()
    steps = [_reads(engine, n, QUEUE_DEPTH, duration_ns=step_ns) for n in range(BEFORE)]
    engine.lose_die(LOST)
    later = range(BEFORE, BEFORE + AFTER)
    steps += [_reads(engine, n, QUEUE_DEPTH, duration_ns=step_ns) for n in later]
    alone, rebuilt_share = _alone(text, file_name, scale)
    return Course(
        [(n + 0.5 - BEFORE) * step_ns * scale / 1e9 for n in range(len(steps))],
        [_mean_us(step) for step in steps],
        [_pct(step, "rebuilt_reads") for step in steps],
        [_pct(step, "unrecovered_reads") for step in steps],
        round((engine.counters().die_relocated_bytes or 0) * scale),
        (filled.parity_write_bytes or 0) / (filled.nand_write_bytes or 1),
        _uber(text, file_name, scale),
        alone,
        rebuilt_share,
    )


def _relocation_ns(text: str, file_name: str, scale: float, dies: int) -> float:
    """Estimate the time to relocate the data of a die.

    This time is limited by the drive's write speed, by reads of all dies of a stripe over the
    channels, and by the interval between reclaim units.
    """
    engine = opened(text, file_name, scale, io_bytes=WRITE)
    share = engine.identify().capacity_bytes / dies
    volume = max(1, round(share / WRITE)) * WRITE
    job = Job(name="writes", pattern="sequential", block_size=WRITE, queue_depth=32,
              volume_bytes=volume)  # fmt: skip
    writes = engine.run(Workload("writes", (job,))).elapsed_ns
    units = describe_device(text, file_name).reclaim_units or 1
    flash = tomllib.loads(text)["flash"]
    read = share * _stripe_of(text, dies) / (int(flash["channels"]) * _bus(text))
    return max(writes, 1e9 * read, units * INTERVAL_MS * 1e6 / scale)


def _scale(text: str, file_name: str, stripe: int) -> float:
    """Largest scale at which every die has both parity rows and data rows."""
    scales = [1.0, *open_device(text, file_name).scales()]
    return max(scale for scale in scales if scale <= max(1.0, max(scales) / stripe))


def _stripe_of(text: str, dies: int) -> int:
    """The drive's stripe, or the widest usual stripe that divides its dies."""
    widest = max(n for n in range(1, min(dies, STRIPE_MAX) + 1) if dies % n == 0)
    return int(tomllib.loads(text).get("die_parity", {}).get("stripe", widest))


def _bus(text: str) -> float:
    """Channel throughput in bytes per second."""
    return size_bytes(str(value_of(text, "flash.bus")).removesuffix("/s"))


_NOTES = (
    "A read of a failed die without parity counts as failed; the drive returns an error at once.",
    "UBER is the expectation for the data on flash after the last retry. With parity a codeword "
    "is lost only together with another codeword of its stripe.",
    "Closed form of a rebuilt read: the other dies of the stripe sense in parallel, and those of a "
    "channel transfer one after the other.",
)


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Let a die of both drives fail.

    Raises:
        ConfigError: If the drive has too few dies for parity.
    """
    shape = tomllib.loads(text)["flash"]
    dies = int(shape["channels"]) * int(shape["dies_per_channel"])
    if (stripe := _stripe_of(text, dies)) < 2:
        raise ConfigError(
            f"the drive has {dies} dies and a stripe of {stripe}: parity needs two or more",
            hint="specify a drive with more dies, or a larger stripe in its [die_parity]",
        )
    section = {
        "stripe": (str(stripe), "assumed: the widest up to 16 that divides the dies"),
        "relocate_interval": (f'"{INTERVAL_MS:g} ms"', "assumed: a reclaim unit at a time"),
    }
    left = describe_device(text, file_name).flash_bytes("die-failure") * SHARE
    left *= (1 - 1 / stripe) * (1 - 1 / dies)
    whole = size_bytes(str(value_of(text, "user_capacity")))
    capacity = min(whole, round(left) // 4096 * 4096)
    text = variant(text, {"user_capacity": f'"{capacity} B"'})
    text, settings = with_section(text, "die_parity", section)
    device = describe_device(text, file_name)
    scale = _scale(text, file_name, stripe)
    without = variant(text, {"die_parity.stripe": "1"})
    step_ns = round(BEYOND * _relocation_ns(text, file_name, scale, dies) / AFTER)
    log(f"two drives, 1/{scale:g} of the capacity, {dies} dies")
    memory = 8 * device.flash_bytes("die-failure") // 4096
    cases = [(drive_text, file_name, scale, step_ns) for drive_text in (text, without)]
    courses = map_side_by_side(_course, cases, memory)
    with_, gone = courses
    rebuilt = with_.alone_us[0] + (with_.alone_us[1] - with_.alone_us[0]) / max(
        with_.rebuilt_share, 1e-9
    )
    raw = describe_device(without, file_name).raw_bytes or 1
    return Result(
        name="die-failure",
        title="Die failure: parity across dies",
        drive=device.name,
        scale=scale,
        intro=f"Random 4 KiB reads of a full drive, {QUEUE_DEPTH} outstanding; at 0 s one of its "
        f"{dies} dies fails.",
        verdict=f"With one die of {stripe} for parity no read fails: a read of the failed die "
        f"takes {rebuilt:.0f} us instead of {with_.alone_us[0]:.0f}, until its "
        f"{with_.relocated_bytes / 1e9:.2f} GB are relocated. Without parity "
        f"{gone.failed_pct[-1]:.1f} % of the reads fail from then on.",
        variants=VARIANTS,
        findings=_findings(courses),
        plots=tuple(
            Plot(name.replace("_", "-"), title, "Time since the die was lost (s)", label,
                 [Curve(which, course.seconds, getattr(course, name))
                  for which, course in zip(VARIANTS, courses, strict=True)])
            for name, title, label in (
                ("latency_us", "Mean latency of random reads", "Latency (us)"),
                ("rebuilt_pct", "Reads that were rebuilt from the stripe", "Share of reads (%)"),
                ("failed_pct", "Reads that failed", "Share of reads (%)"),
            )
        ),
        settings=(*settings, Setting("user_capacity", f"{capacity} B",
                                 f"of the campaign: {SHARE:.0%} of what is left without the die"),
                  Setting("die_parity.stripe without it", "1", "variant")),
        checks=(
            Check("parity, of what is programmed", with_.parity_share, 1 / stripe),
            Check("flash that is left for data", (device.raw_bytes or 0) / raw, 1 - 1 / stripe),
            Check("read of the lost die, alone (us)", rebuilt,
                  with_.alone_us[0] + _longer_us(text, stripe)),
        ),
        notes=_NOTES,
    )  # fmt: skip


def _findings(courses: Sequence[Course]) -> tuple[Finding, ...]:
    return (
        Finding("reads that fail at the end (%)", [
            round(course.failed_pct[-1], 2) for course in courses]),
        Finding("reads that were rebuilt, at most (%)", [
            round(max(course.rebuilt_pct), 2) for course in courses]),
        Finding("mean read latency before (us)", [
            round(sum(course.latency_us[:BEFORE]) / BEFORE, 1) for course in courses]),
        Finding("mean read latency after, at most (us)", [
            round(max(course.latency_us[BEFORE:]), 1) for course in courses]),
        Finding("relocated from the die (GB)", [
            round(course.relocated_bytes / 1e9, 2) for course in courses]),
        Finding("parity, of what is programmed (%)", [
            round(100 * course.parity_share, 2) for course in courses]),
        Finding(f"UBER to expect after {MONTHS} months at the rated wear", [
            course.uber for course in courses]),
    )  # fmt: skip


def _longer_us(text: str, stripe: int) -> float:
    """Additional time of a rebuilt read over a read of one die, due to extra transfers."""
    flash = tomllib.loads(text)["flash"]
    channels = int(flash["channels"])
    used = [(LOST // stripe * stripe + n) % channels for n in range(stripe)]
    used.remove(LOST % channels)
    most = max(used.count(channel) for channel in used)
    return (most - 1) * 4096 / _bus(text) * 1e6

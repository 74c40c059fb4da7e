"""Thermal throttling of sequential writes in a hot enclosure, and cooling when idle.

A smaller drive has proportionally less heat capacity, so time shrinks with the drive. The plots
show the full drive's time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from writecliff.devices import describe_device
from writecliff.engines.base import OperationNumber, StepResult
from writecliff.errors import ConfigError
from writecliff.lab.reliability.drive import opened, scale_for, variant, with_section
from writecliff.lab.reliability.model import Check, Curve, Finding, Plot, Result, Setting
from writecliff.parallel import map_side_by_side
from writecliff.workload.model import Job, Workload

POWER = {
    "idle": ('"1.2 W"', "assumed: SATA drives of the class idle at 1 to 1.5 W"),
    "active": ('"0.8 W"', "assumed"),
    "program": ('"0.2 W"', "assumed: per die, about 60 mA at 3.3 V with its charge pumps"),
    "read": ('"0.08 W"', "assumed: per die, 25 mA at 3.3 V"),
    "erase": ('"0.08 W"', "assumed: as read"),
    "transfer": ('"0.1 W"', "assumed: per channel"),
}
THERMAL = {
    "ambient": ('"55 C"', "assumed: a hot enclosure, at the limit of enterprise use (JESD218)"),
    "resistance": ('"6 C/W"', "assumed: a 2.5-inch case in still air"),
    "capacity": ('"40 J/C"', "assumed: 50 g of mostly aluminium"),
    "throttle_at": ('["66 C", "70 C"]', "assumed: the operating limit that data sheets state, and "
                                        "a light stage before it"),
    "recover_at": ('["64 C", "68 C"]', "assumed: 2 degrees below"),
    "throttle_factor": ("[1.5, 6]", "assumed: two thirds, and a sixth, of the speed"),
}  # fmt: skip
VARIANTS = ("with throttling", "without throttling")
SLOTS_MAX = 250_000
CONSTANTS = 6.0  # Duration of the load and of the idle time, in thermal time constants.
POINTS = 150


@dataclass(frozen=True)
class Course:
    """Temperature and throughput over time on the full drive's scale."""

    minutes: list[float]
    celsius: list[float]
    mb_per_s: list[float]
    watts: list[float]
    step: StepResult


def _course(text: str, file_name: str, scale: float, seconds: float) -> Course:
    engine = opened(text, file_name, scale, io_bytes=128 * 1024)
    load = Job(
        name="writes",
        pattern="sequential",
        block_size=128 * 1024,
        queue_depth=32,
        duration_ns=round(seconds * 1e9),
    )
    idle = Job(
        name="idle",
        read_pct=100,
        block_size=4096,
        rate_iops=POINTS / seconds * 2,
        start_delay_ns=round(seconds * 1e9),
        duration_ns=round(seconds * 1e9),
    )
    interval = round(2 * seconds * 1e9 / POINTS)
    result = engine.run(Workload("throttling", (load, idle), interval_ns=interval))
    columns = result.intervals
    ends = np.unique(columns["end_ns"])
    is_write = columns["operation"] == OperationNumber.WRITE
    written = [float(columns["bytes"][is_write & (columns["end_ns"] == end)].sum()) for end in ends]
    first = [int(np.argmax(columns["end_ns"] == end)) for end in ends]
    return Course(
        [float(end) * scale / 60e9 for end in ends],
        [float(columns["temperature_c"][index]) for index in first],
        [size / interval * 1e3 for size in written],
        [float(columns["watts"][index]) for index in first],
        result,
    )  # fmt: skip


def _findings(
    courses: Sequence[Course],
    peaks: Sequence[float],
    sustained: Sequence[float],
    begins: float | None,
    stages: int,
    scale: float,
) -> tuple[Finding, ...]:
    """Figures for both drives, where `begins` is the minute of the first throttling."""
    return (
        Finding("highest temperature (C)", [round(peak, 1) for peak in peaks]),
        Finding("sustained write throughput (MB/s)", [round(rate) for rate in sustained]),
        Finding("time throttled, cooling included (min)", [
            _minutes(c.step.counted.throttled_ns, scale) if c is courses[0] else 0
            for c in courses]),
        *(() if stages == 1 else (Finding(f"of it in stage {stages} (min)", [
            _minutes(c.step.counted.throttled_most_ns, scale) for c in courses]),)),
        Finding("first throttled after (min)", [begins and round(begins, 1), None]),
        Finding("energy (J per GB written)", [
            round((c.step.counted.energy_j or 0) / (c.step.written_bytes / 1e9), 1)
            for c in courses]),
    )  # fmt: skip


def run(text: str, file_name: str, log: Callable[[str], None]) -> Result:
    """Heat both drives under load, then let them cool.

    Raises:
        ConfigError: If the drive does not get hot enough to throttle.
    """
    text, settings = with_section(text, "power", POWER)
    text, more = with_section(text, "thermal", THERMAL)
    device = describe_device(text, file_name)
    section = tomllib.loads(text)["thermal"]
    values = {key: _numbers(section[key]) for key in THERMAL}
    stages = len(values["throttle_at"])
    scale = scale_for(text, file_name, SLOTS_MAX)
    seconds = CONSTANTS * values["resistance"][0] * values["capacity"][0] / scale
    last = {key: f'"{values[key][-1]:g} C"' for key in ("throttle_at", "recover_at")}
    without = variant(
        text,
        {f"thermal.{key}": value for key, value in last.items()} | {"thermal.throttle_factor": "1"},
    )
    log(
        f"two drives, 1/{scale:g} of the capacity, {2 * seconds * scale / 60:.0f} min of drive time"
    )
    memory = 8 * device.flash_bytes("thermal-throttling") // 4096
    cases = [(drive_text, file_name, scale, seconds) for drive_text in (text, without)]
    courses = map_side_by_side(_course, cases, memory)
    peaks = [max(course.celsius) for course in courses]
    if peaks[1] <= values["throttle_at"][0]:
        raise ConfigError(
            f"the drive's temperature reaches at most {peaks[1]:.0f} C, below its throttle_at",
            hint="lower throttle_at or raise ambient in [thermal] of the drive's device file",
        )
    half = POINTS // 2
    sustained = [float(np.mean(course.mb_per_s[half // 2 : half - 1])) for course in courses]
    begins = next((m for m, c in zip(courses[0].minutes, courses[0].celsius, strict=True)
                   if c > values["throttle_at"][0]), None)  # fmt: skip
    return Result(
        name="thermal-throttling",
        title="Thermal throttling: temperature and throughput",
        drive=device.name,
        scale=scale,
        intro=f"Sequential writes for {CONSTANTS:g} thermal time constants at an ambient "
        f"temperature of {values['ambient'][0]:g} C, then nearly idle for the same time.",
        verdict=f"With throttling the drive stays at {peaks[0]:.1f} C and sustains "
        f"{sustained[0]:.0f} MB/s; without it reaches {peaks[1]:.1f} C at {sustained[1]:.0f} MB/s.",
        variants=VARIANTS,
        findings=_findings(courses, peaks, sustained, begins, stages, scale),
        plots=tuple(
            Plot(name, title, "Time (min)", label,
                 [Curve(which, course.minutes, getattr(course, name.replace("-", "_")))
                  for which, course in zip(VARIANTS, courses, strict=True)],
                 limits=limits, from_zero=not limits)
            for name, title, label, limits in (
                ("celsius", "Temperature of the drive", "Temperature (C)",
                 _limits(values)),
                ("mb-per-s", "Write throughput", "Throughput (MB/s)", ()),
                ("watts", "Power", "Power (W)", ()),
            )
        ),
        settings=(*settings, *more, Setting("throttle_factor without it", "1", "variant")),
        checks=(_check(courses[1], values),),
        notes=(
            "The firmware decides at the end of each period. "
            + ("It has one stage of throttling, which is on or off." if stages == 1 else
               f"It has {stages} stages of throttling. A stage starts above its upper limit and "
               f"ends below its lower limit."),
        ),
    )  # fmt: skip


def _minutes(time_ns: int | None, scale: float) -> float:
    return round((time_ns or 0) * scale / 60e9, 1)


def _numbers(value: object) -> list[float]:
    """Parse a quantity or a list of quantities, such as "70 C" or ["66 C", "70 C"]."""
    parts = value if isinstance(value, list) else [value]
    return [float(str(part).split()[0]) for part in parts]


def _limits(values: dict[str, list[float]]) -> tuple[tuple[str, float], ...]:
    """The limits of each throttling stage, as plot lines."""
    several = len(values["throttle_at"]) > 1
    pairs = zip(values["throttle_at"], values["recover_at"], strict=True)
    return tuple(
        limit
        for number, (at, recover) in enumerate(pairs, 1)
        for limit in (
            (f"stage {number} above" if several else "throttles above", at),
            (f"stage {number} until below" if several else "recovers below", recover),
        )
    )


def _check(course: Course, values: dict[str, list[float]]) -> Check:
    """Temperature at the end of the load, and steady-state temperature at its mean power."""
    loaded = POINTS // 2 - 1
    power = float(np.mean(course.watts[loaded // 2 : loaded]))
    return Check(
        "temperature without throttling, settled (C)",
        course.celsius[loaded - 1],
        values["ambient"][0] + power * values["resistance"][0],
    )

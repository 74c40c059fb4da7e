"""XSR, cross stimulus recovery: from sequential to random writes and back (PTS-E 1.1).

Purge, no preconditioning, then three groups of writes with one thread and 32 outstanding I/Os:
sequential 1024 KiB, random 8 KiB, sequential 1024 KiB. Nothing is tracked: the durations are fixed,
one-minute samples show how the drive changes over. Sources disagree about the durations:

    8-6-8   hours of the three groups (the default)
    6-8-6

The change-over must be without a gap and sequential writes must go round the drive, so a step is as
long as can be borne (two hours: what an interruption costs); samples are taken from the series
inside the steps. On a drive that is not filled in a step, sequential writes begin at its first
address again with each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import (
    HOURS,
    Within,
    option,
    queue_depth_option,
    required_option,
    threads_option,
)
from writecliff.procedures.pts import PtsOptions, PtsProcedure, beginning, block_text, toio_text
from writecliff.workload.model import KIB, Pattern

CLAUSE = "PTS-E XSR"
READINGS = ("8-6-8", "6-8-6")


@dataclass(frozen=True)
class Group:
    """An access group of the test."""

    name: str  # "AG1"; its phase in lower case
    pattern: Pattern
    block_bytes: int
    hours: float

    @property
    def phase(self) -> str:
        return self.name.lower()

    @property
    def text(self) -> str:
        """As the standard names it: "SEQ 1024KiB"."""
        return f"{cells.LETTERS[self.pattern]} {block_text(self.block_bytes)}"


@dataclass(frozen=True, kw_only=True)
class XsrOptions(PtsOptions):
    """Options of XSR. None stands for the value of the edition."""

    reading: str = option(
        "8-6-8", "hours of the three groups, where sources disagree", choices=READINGS
    )
    threads: int | None = threads_option(CLAUSE, {"*": 1}, "required")
    queue_depth: int | None = queue_depth_option(CLAUSE, {"*": 32}, "required")
    sequential_hours: float | None = required_option(
        CLAUSE,
        {"6-8-6": 6.0, "*": 8.0},
        "hours of sequential writes, before and after the random ones",
        within=HOURS,
        quick=0.02,
    )
    random_hours: float | None = required_option(
        CLAUSE, {"6-8-6": 8.0, "*": 6.0}, "hours of random writes", within=HOURS, quick=0.02
    )
    sample_seconds: float | None = required_option(
        CLAUSE, {"*": 60.0}, "length of a sample", within=Within(1, 86400.0), quick=1.0
    )
    step_hours: float = option(
        2.0, "hours that are run without a chance to stop in between", within=HOURS
    )


class Xsr(PtsProcedure):
    """The cross stimulus recovery test, its options settled and checked (else ConfigError)."""

    name = "xsr"
    subtitle = "XSR - SEQ 1024KiB - RND 8KiB - SEQ 1024KiB"
    options_type = XsrOptions

    @property
    def groups(self) -> tuple[Group, ...]:
        o = self.options
        return (
            Group("AG1", "sequential", 1024 * KIB, o.sequential_hours),
            Group("AG2", "random", 8 * KIB, o.random_hours),
            Group("AG3", "sequential", 1024 * KIB, o.sequential_hours),
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        toio = toio_text(o.threads, o.queue_depth)
        first, second, third = self.groups
        return {
            **super().setup(identity),
            "precondition": "None",
            "precondition_2": "None",
            "test_stimulus": f"{first.text} W",
            "rw_mix": "0/100",
            "block_sizes": f"{block_text(first.block_bytes)}, {block_text(second.block_bytes)}",
            "toio": toio,
            "duration": f"{first.hours:g} h, and {third.hours:g} h again",
            "test_stimulus_2": f"{second.text} W",
            "toio_2": toio,
            "duration_2": f"{second.hours:g} h",
            "reading": o.reading,
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        return tuple(self._stage(identity, group) for group in self.groups)

    def _stage(self, identity: DeviceIdentity, group: Group) -> Stage:
        return Stage(
            phase=group.phase,
            title=f"{group.name}, {group.text} W for {group.hours:g} h",
            steps=lambda history, number: self._steps(identity, group),
            purge=group.name == "AG1",
        )

    def _steps(self, identity: DeviceIdentity, group: Group) -> Sequence[Step]:
        o = self.options
        steps: list[Step] = []
        left = group.hours
        while left > 1e-9:
            hours = min(left, o.step_hours)
            number = len(steps) + 1
            steps.append(
                self.cell(
                    identity,
                    f"{group.text} W, part {number}",
                    group.phase,
                    number,
                    seconds=hours * 3600,
                    threads=o.threads,
                    queue_depth=o.queue_depth,
                    pattern=group.pattern,
                    block_bytes=group.block_bytes,
                )
            )
            left -= hours
        return steps

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        toio = toio_text(o.threads, o.queue_depth)
        return (
            *beginning(o),
            *(f"{group.name}: {group.text} writes, {toio}, {group.hours:g} h"
              for group in self.groups),
        )  # fmt: skip


def recovery_sample(
    before: Sequence[float], after: Sequence[float], share: float = 1.0
) -> int | None:
    """The first sample of AG3 (from 1) whose throughput is at least the mean of AG1, or `share` of
    it; None: the drive has not recovered."""
    if not before:
        return None
    mean = sum(before) / len(before)
    return next((number for number, value in enumerate(after, 1) if value >= share * mean), None)

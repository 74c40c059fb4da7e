"""XSR, cross stimulus recovery from sequential to random writes and back (PTS-E 1.1).

The drive is purged but not preconditioned. Three groups of writes then run with one thread and 32
outstanding I/Os: sequential 1024 KiB, random 8 KiB, and sequential 1024 KiB. The durations are
fixed, and there is no tracking variable. One-minute samples show how the drive adapts. Sources
disagree about the durations:

    8-6-8   hours of the three groups (the default)
    6-8-6

Sequential writes must wrap around the drive without a gap. On a real drive, a group is one load,
cut into two-hour steps (an interruption loses the current step). On a simulated drive, each step
continues the previous step's stream (`framework.py`). Samples are taken from the time series
recorded in the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import HOURS, Within, option, required_option
from writecliff.procedures.pts import (
    LoadOptions,
    LoadProcedure,
    block_text,
    queue_depth_option,
    threads_option,
)
from writecliff.procedures.sources import Choice
from writecliff.workload.model import KIB, Pattern

CLAUSE = "PTS-E XSR"
READINGS = ("8-6-8", "6-8-6")


@dataclass(frozen=True)
class Group:
    """An access group of the test."""

    name: str  # Name, such as "AG1"; the phase is this name in lower case.
    pattern: Pattern
    block_bytes: int
    hours: float

    @property
    def phase(self) -> str:
        """Phase name of the group's rows in the store."""
        return self.name.lower()

    @property
    def text(self) -> str:
        """The access in the standard's notation, such as "SEQ 1024KiB"."""
        return f"{cells.LETTERS[self.pattern]} {block_text(self.block_bytes)}"


@dataclass(frozen=True, kw_only=True)
class XsrOptions(LoadOptions):
    """Options of the XSR test. Omitted options have the edition's values."""

    reading: str = option(
        "8-6-8",
        "hours of sequential, random and then sequential writes, on which descriptions of the "
        "standard disagree",
        choices=READINGS,
    )
    threads: int = threads_option(CLAUSE, 1, "required")
    queue_depth: int = queue_depth_option(CLAUSE, 32, "required")
    sequential_hours: float = required_option(
        CLAUSE,
        {"6-8-6": 6.0, "*": 8.0},
        "duration of each sequential write phase, before and after the random writes, in hours",
        within=HOURS,
        quick=0.02,
    )
    random_hours: float = required_option(
        CLAUSE,
        {"6-8-6": 8.0, "*": 6.0},
        "duration of the random writes, in hours",
        within=HOURS,
        quick=0.02,
    )
    sample_seconds: float = required_option(
        CLAUSE, 60.0, "sampling interval, in seconds", within=Within(1, 86400.0), quick=1.0
    )
    step_hours: float = option(
        2.0,
        "duration of each step, in hours; an interrupted run resumes at the last complete step",
        within=HOURS,
    )


class Xsr(LoadProcedure[XsrOptions]):
    """The cross stimulus recovery test. Raises ConfigError if an option is invalid."""

    name = "xsr"
    subtitle = "XSR - SEQ 1024KiB - RND 8KiB - SEQ 1024KiB"
    options_type = XsrOptions

    @property
    def groups(self) -> tuple[Group, ...]:
        """The access groups, in order."""
        o = self.options
        return (
            Group("AG1", "sequential", 1024 * KIB, o.sequential_hours),
            Group("AG2", "random", 8 * KIB, o.random_hours),
            Group("AG3", "sequential", 1024 * KIB, o.sequential_hours),
        )

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (groups, durations and reading)."""
        o = self.options
        first, second, third = self.groups
        return {
            **super().setup(identity),
            "precondition": "None",
            "precondition_2": "None",
            "test_stimulus": f"{first.text} W",
            "rw_mix": "0/100",
            "block_sizes": f"{block_text(first.block_bytes)}, {block_text(second.block_bytes)}",
            "toio": self.toio,
            "duration": f"{first.hours:g} h, and {third.hours:g} h again",
            "test_stimulus_2": f"{second.text} W",
            "toio_2": self.toio,
            "duration_2": f"{second.hours:g} h",
            "reading": o.reading,
        }

    def choices(self) -> tuple[Choice, ...]:
        """Add the choice of durations, which sources disagree about."""
        hours = "/".join(f"{group.hours:g}" for group in self.groups)
        durations = Choice("durations of the groups", "8/6/8 h; 6/8/6 h", f"{hours} h", "--reading")
        return (*super().choices(), durations)

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each group."""
        return [
            Stage.once(
                group.phase,
                f"{group.name}, {group.text} W for {group.hours:g} h",
                self._steps(identity, group),
                purge=group.name == "AG1",
                continuous=True,
            )
            for group in self.groups
        ]

    def _steps(self, identity: DeviceIdentity, group: Group) -> Sequence[Step]:
        steps: list[Step] = []
        left = group.hours
        while left > 1e-9:
            hours = min(left, self.options.step_hours)
            number = len(steps) + 1
            steps.append(
                self.cell(
                    identity,
                    f"{group.text} W, part {number}",
                    group.phase,
                    number,
                    seconds=hours * 3600,
                    pattern=group.pattern,
                    block_bytes=group.block_bytes,
                )
            )
            left -= hours
        return steps

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the access groups in order."""
        groups = (
            f"{group.name}: {group.text} writes, {self.toio}, {group.hours:g} h"
            for group in self.groups
        )
        return (*self.beginning, *groups)


def recovery_sample(
    before: Sequence[float], after: Sequence[float], share: float = 1.0
) -> int | None:
    """Return the number of the first AG3 sample, counted from 1, at which the drive has recovered.

    The drive has recovered if its throughput is at least `share` of the mean of AG1.

    Returns:
        The sample number, or `None` if the drive has not recovered.
    """
    if not before:
        return None
    mean = sum(before) / len(before)
    return next((number for number, value in enumerate(after, 1) if value >= share * mean), None)

"""Model of an experiment with a real application, and statistics of its trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Protocol

MIB = 1 << 20
# Two-sided 95 % points of Student's t distribution by degrees of freedom. Larger degrees of freedom
# use the normal distribution.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL_95 = 1.960


@dataclass(frozen=True)
class Part:
    """A range of the drive that has its own file system.

    `holds` describes the part's files. If streams are on, the part is written with `stream`.
    """

    name: str
    holds: str
    size_bytes: int
    stream: int


@dataclass(frozen=True)
class Client:
    """Measurements by the application's client, in wall time."""

    operations: int
    seconds: float
    latency_ns: Mapping[str, float]  # Write latency statistics: mean, p50, p99, p99_9 and max.


class Application(Protocol):
    """An application and its client. Folders are the parts' folders, by name."""

    name: str
    title: str
    claim: str
    # Claimed ratio of the lifetime with streams to the lifetime without streams.
    claimed_lifetime: float
    claimed_io: float | None  # Claimed ratio of the client's operation rates.
    about: str  # Version and workload, in a sentence.
    parts: tuple[Part, ...]
    unit_bytes: int  # Approximate reclaim unit size in bytes.
    slow_down: float
    client: str  # Description of the client's measurement.
    notes: tuple[str, ...]  # Limitations, as sentences.

    def check(self) -> None:
        """Check that the machine has everything the application needs.

        Raises:
            TargetError: If a program or package is missing.
        """

    def prepare(self, folders: Mapping[str, Path], work: Path, seed: int) -> None:
        """Create and age the database.

        Raises:
            WritecliffError: If the application failed.
        """

    def measure(self, folders: Mapping[str, Path], work: Path, seed: int) -> Client:
        """Run the client to completion and return its figures.

        Raises:
            WritecliffError: If the application failed.
        """


@dataclass(frozen=True)
class Condition:
    """Conditions of a trial, where `trim` means that file systems are mounted with `discard`."""

    trim: bool
    streams: bool


@dataclass(frozen=True)
class Trial:
    """A measurement. `session` is the summary in the run directory `run` (see `serve.session`)."""

    condition: Condition
    repeat: int
    position: int  # Number in trial order, starting at 1.
    client: Client
    session: Mapping[str, Any]
    run: str

    @property
    def throughput(self) -> float:
        """The client's operations per second of drive time."""
        return self.client.operations / self.client.seconds * float(self.session["slow_down"])

    @property
    def waf(self) -> float:
        """Write amplification of the session."""
        return float(self.session["waf"])

    @property
    def late(self) -> float:
        """Lateness of replies, relative to the drive's own latency."""
        return float(self.session["lateness_share"] or 0.0)

    @property
    def outstanding(self) -> float:
        """Mean number of outstanding writes on the drive over the session.

        A value below 1 means that the drive was often idle, and the machine limited the load.
        """
        write = self.session["operations"]["write"]
        drive_ns = self.session["wall_s"] * 1e9 / self.session["slow_down"]
        return float(write["requests"] * (write["latency"]["mean_ns"] or 0.0) / drive_ns)

    def latency_ns(self, point: str) -> float:
        """Return a latency of the client's writes, in drive time."""
        return self.client.latency_ns[point] / float(self.session["slow_down"])


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of the pairs' ratios, with its 95 % confidence interval.

    The interval uses Student's t on the logarithms, and has no bounds if there is a single pair.
    """

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Ratio:
        """Compute the mean and interval.

        Raises:
            ValueError: `ratios` is empty.
        """
        logs = [math.log(ratio) for ratio in ratios]
        middle = fmean(logs)
        if len(logs) == 1:
            return cls(math.exp(middle), None, None)
        free = len(logs) - 1
        point = _T_95[free - 1] if free <= len(_T_95) else _NORMAL_95
        half = point * stdev(logs) / math.sqrt(len(logs))
        return cls(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def reaches(self, claimed: float) -> str:
        """Describe the result of comparing the ratio with a claim."""
        if self.low is None or self.high is None:
            return "reached, in one pair" if self.mean >= claimed else "not reached, in one pair"
        if self.low >= claimed:
            return "reached"
        return "not reached" if self.high < claimed else "neither reached nor ruled out"


@dataclass(frozen=True)
class Comparison:
    """Streams on compared with streams off under a set of conditions."""

    trim: bool
    lifetime: Ratio  # Ratio of the bytes that the client can write before the flash is worn out.
    throughput: Ratio
    # Ratios of the client's write latencies; values below 1 are better.
    latency: Mapping[str, Ratio]


@dataclass(frozen=True)
class Result:
    """All trials of an experiment. `device_file` is the path of the drive's device file."""

    application: Application
    device: str
    device_file: str
    capacity_bytes: int
    unit_bytes: float
    units: int
    spare_pct: float
    trials: tuple[Trial, ...]

    @property
    def precondition(self) -> str:
        """Description of the drive's state before each measurement."""
        return (
            "every address written once, then the application's files created and overwritten "
            "without timing"
        )

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons of consecutive trials, by condition."""
        trims = dict.fromkeys(trial.condition.trim for trial in self.trials)
        return tuple(self._comparison(trim) for trim in trims)

    def _comparison(self, trim: bool) -> Comparison:
        sides: dict[int, dict[bool, Trial]] = {}
        for trial in self.trials:
            if trial.condition.trim == trim:
                sides.setdefault(trial.repeat, {})[trial.condition.streams] = trial
        pairs = [(both[False].client, both[True].client) for both in sides.values()]
        trials = [(both[False], both[True]) for both in sides.values()]
        points = pairs[0][0].latency_ns
        return Comparison(
            trim=trim,
            lifetime=Ratio.of([off.waf / on.waf for off, on in trials]),
            throughput=Ratio.of([on.throughput / off.throughput for off, on in trials]),
            latency={
                point: Ratio.of([on.latency_ns[point] / off.latency_ns[point] for off, on in pairs])
                for point in points
            },
        )

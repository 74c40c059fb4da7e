"""What an experiment with a real program consists of, and what its trials say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Protocol

MIB = 1 << 20
# Two-sided 95 % points of Student's t distribution, by degrees of freedom; beyond: normal.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL_95 = 1.960


@dataclass(frozen=True)
class Part:
    """A range of the drive with a file system of its own. `holds`: in words; `stream`: what it is
    written with when streams are on.
    """

    name: str
    holds: str
    size_bytes: int
    stream: int


@dataclass(frozen=True)
class Client:
    """What the program's client has measured, in wall time."""

    operations: int
    seconds: float
    latency_ns: Mapping[str, float]  # mean, p50, p99, p99_9 and max of a write


class Application(Protocol):
    """A program and its client. Folders are those of the parts, by name."""

    name: str
    title: str
    claim: str
    claimed_lifetime: float  # with streams, in lifetimes without
    claimed_io: float | None  # the same of the client's operations
    about: str  # version and load, in a sentence
    parts: tuple[Part, ...]
    unit_bytes: int  # about; of a reclaim unit
    slow_down: float
    client: str  # what measures, in words
    notes: tuple[str, ...]  # what the reader must know, in sentences

    def check(self) -> None:
        """Raises TargetError for what is missing on this machine."""

    def prepare(self, folders: Mapping[str, Path], work: Path, seed: int) -> None:
        """Make the database and age it. Raises WritecliffError if the program fails."""

    def measure(self, folders: Mapping[str, Path], work: Path, seed: int) -> Client:
        """Run the client to its end. Raises WritecliffError if the program fails."""


@dataclass(frozen=True)
class Condition:
    """`trim`: file systems are mounted with `discard`."""

    trim: bool
    streams: bool


@dataclass(frozen=True)
class Trial:
    """One measurement. `session`: as in the run directory `run`; see `serve.session`."""

    condition: Condition
    repeat: int
    position: int  # in the order of the trials, from 1
    client: Client
    session: Mapping[str, Any]
    run: str

    @property
    def throughput(self) -> float:
        """The client's operations a second of the drive's time."""
        return self.client.operations / self.client.seconds * float(self.session["slow_down"])

    @property
    def waf(self) -> float:
        return float(self.session["waf"])

    @property
    def late(self) -> float:
        """Lateness of replies, as a share of the drive's own latency."""
        return float(self.session["lateness_share"] or 0.0)

    @property
    def outstanding(self) -> float:
        """Mean number of the drive's writes outstanding, over the session. Below 1 the drive was
        often idle, and the machine limited the load.
        """
        write = self.session["operations"]["write"]
        drive_ns = self.session["wall_s"] * 1e9 / self.session["slow_down"]
        return float(write["requests"] * (write["latency"]["mean_ns"] or 0.0) / drive_ns)

    def latency_ns(self, point: str) -> float:
        """Of the client's writes, in the drive's time."""
        return self.client.latency_ns[point] / float(self.session["slow_down"])


@dataclass(frozen=True)
class Ratio:
    """Geometric mean of the ratios of pairs, with its 95 % confidence interval (Student's t on the
    logarithms); without bounds if there is one pair.
    """

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Ratio:
        """Raises ValueError without ratios."""
        logs = [math.log(ratio) for ratio in ratios]
        middle = fmean(logs)
        if len(logs) == 1:
            return cls(math.exp(middle), None, None)
        free = len(logs) - 1
        point = _T_95[free - 1] if free <= len(_T_95) else _NORMAL_95
        half = point * stdev(logs) / math.sqrt(len(logs))
        return cls(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    def reaches(self, claimed: float) -> str:
        """Whether a claim holds, in words."""
        if self.low is None or self.high is None:
            return "reached, in one pair" if self.mean >= claimed else "not reached, in one pair"
        if self.low >= claimed:
            return "reached"
        return "not reached" if self.high < claimed else "neither reached nor ruled out"


@dataclass(frozen=True)
class Comparison:
    """Streams on against off under one set of conditions."""

    trim: bool
    lifetime: Ratio  # of bytes that the client may write until the flash is worn out
    throughput: Ratio
    latency: Mapping[str, Ratio]  # of the client's writes; below 1 is better


@dataclass(frozen=True)
class Result:
    """All trials of an experiment. `device_file`: the drive, as text."""

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
        return (
            "every address written once, then the program's files made and overwritten while the "
            "drive's time stands still"
        )

    def comparisons(self) -> tuple[Comparison, ...]:
        """Pairs of trials that follow each other, by condition."""
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

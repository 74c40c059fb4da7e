"""The parts a test procedure is made of: steps, tracking variables, ends, totals, plans.

A procedure (see `Procedure`) only *declares*: what it writes before the rounds, which steps a round
has, what is tracked and what may end it. The driver in `framework.py` owns the control flow, and
`store/` owns what is kept. Nothing here does I/O.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from writecliff.procedures.steady import Decision, SteadyStateTracker

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity
    from writecliff.procedures.options import Deviation
    from writecliff.workload.model import Workload

Phase = Literal["preconditioning", "rounds", "rth"]  # as the store names them


@dataclass(frozen=True)
class Step:
    """One workload of a procedure. `name` is what tables and progress lines call it."""

    name: str
    workload: Workload
    sample: bool = False  # a steady-state sample: a tracking variable is read here


@dataclass(frozen=True)
class StepRow:
    """What is kept of one step in the table of results; the store keeps histograms beside it.

    Latencies are service times in nanoseconds over all operations of the step; None where the
    sample is too small to support the figure. Totals count from the purge, and include this step.
    """

    phase: Phase
    round: int  # from 1; 0 outside the rounds
    step: int  # from 1 within its round or phase
    name: str
    started_ns: int  # device time since the first step of the rounds
    elapsed_ns: int
    ios: int
    bytes: int
    iops: float
    latency_mean_ns: float | None
    latency_p999_ns: int | None
    latency_p9999_ns: int | None
    latency_p99999_ns: int | None
    latency_max_ns: int | None
    host_write_bytes: int  # in this step
    total_write_bytes: int  # since the purge (the standard's TGBW, in bytes)
    drive_fills: float
    waf: float | None

    @property
    def ended_ns(self) -> int:
        return self.started_ns + self.elapsed_ns


@dataclass(frozen=True)
class TrackingVariable:
    """A figure that must be steady; `value` reads it from the rows of one complete round."""

    name: str
    unit: str
    value: Callable[[Sequence[StepRow]], float]


@dataclass
class History:
    """What has happened since the purge, as end conditions and procedures see it."""

    tracking: Sequence[TrackingVariable]
    rows: list[StepRow] = field(default_factory=list)
    rounds_done: int = 0
    total_write_bytes: int = 0
    _elapsed_ns: int = 0

    def __post_init__(self) -> None:
        self.tracker = SteadyStateTracker([variable.name for variable in self.tracking])

    def add(self, row: StepRow) -> None:
        self.rows.append(row)
        self.total_write_bytes = row.total_write_bytes
        if row.phase == "rounds":
            self._elapsed_ns += row.elapsed_ns

    def round_complete(self, round_number: int) -> Decision | None:
        """Judge the round that is now complete; None before the fifth."""
        rows = self.round_rows(round_number)
        values = {variable.name: variable.value(rows) for variable in self.tracking}
        self.tracker.add(values, round_number)
        self.rounds_done = round_number
        return self.tracker.current

    @property
    def steady_at_round(self) -> int | None:
        """The round after which steady state was found for the first time."""
        first = self.tracker.first_steady
        return None if first is None else first.round

    @property
    def elapsed_ns(self) -> int:
        """Device time spent in the steps of the rounds."""
        return self._elapsed_ns

    def round_rows(self, round_number: int) -> list[StepRow]:
        return [row for row in self.rows if row.phase == "rounds" and row.round == round_number]


@dataclass(frozen=True)
class End:
    """A condition that ends the rounds.

    `reached` is asked after every step, or, with `per_round`, after every complete round.
    """

    name: str  # as the option `--end` and the manifest call it
    text: str  # for people: "4 drive fills written"
    reached: Callable[[History], bool]
    per_round: bool = False
    fraction: Callable[[History], float] | None = None  # of the way to this end; None: unknown


@dataclass(frozen=True)
class Plan:
    """What a run will do, before it does it. None: no bound can be given."""

    title: str
    phases: tuple[str, ...]  # one sentence each, in order
    steps_min: int
    steps_max: int | None
    device_time_min_ns: int
    device_time_max_ns: int | None
    write_bytes_min: int
    write_bytes_max: int | None
    drive_fills_max: float | None
    deviations: tuple[Deviation, ...] = ()


class Procedure(ABC):
    """A test of the standard with its options settled. Stateless: the driver holds the state."""

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]

    @property
    @abstractmethod
    def edition(self) -> str:
        """As reports print it: "PTS-E 1.1"."""

    @abstractmethod
    def options_mapping(self) -> dict[str, Any]:
        """All options as plain values, enough to build the same procedure again."""

    @abstractmethod
    def deviations(self) -> tuple[Deviation, ...]: ...

    @abstractmethod
    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Parameters for the report's header block: data pattern, active range, TC/QD, ..."""

    @property
    @abstractmethod
    def write_cache(self) -> bool: ...

    @property
    @abstractmethod
    def seed(self) -> int: ...

    def preconditioning(self, identity: DeviceIdentity) -> Sequence[Step]:
        """Workload-independent preconditioning; none unless the procedure says so."""
        return ()

    @abstractmethod
    def round_steps(self, identity: DeviceIdentity, round_number: int) -> Sequence[Step]: ...

    @abstractmethod
    def tracking(self) -> Sequence[TrackingVariable]: ...

    @abstractmethod
    def ends(self, identity: DeviceIdentity) -> Sequence[End]: ...

    def after_steps(self, identity: DeviceIdentity) -> Sequence[Step]:
        """Steps after the rounds, such as a response-time histogram."""
        return ()

    @abstractmethod
    def plan(self, identity: DeviceIdentity) -> Plan: ...

    def warnings(self, history: History) -> Sequence[str]:
        """What the reader of the results must know; asked when the run ends."""
        return ()


def step_seed(seed: int, *place: object) -> int:
    """A seed for the step at `place` of a run with `seed`; 63 bits, stable across versions.

    Every minute needs its own: with one seed for all, each would write the same addresses again.
    """
    text = "/".join([str(seed), *map(str, place)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1

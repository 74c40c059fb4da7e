"""The parts of a test procedure: stages, steps, tracking variables, ends, histories, plans.

A procedure (see `Procedure`) only declares its stages in order, and for each of them what comes
before its rounds, which steps a round has, what is tracked and what may end it. The driver in
`framework.py` owns the control flow, `store/` owns what is kept. Nothing here does I/O.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from writecliff.errors import ConfigError
from writecliff.procedures.steady import Decision, SteadyStateTracker

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, StepResult
    from writecliff.procedures.bounds import Speeds
    from writecliff.procedures.options import Deviation
    from writecliff.workload.model import Workload


@dataclass(frozen=True)
class Step:
    """One workload of a procedure; tables and progress lines call it `name`.

    `figures` reads figures that only this procedure needs out of the measurement; they are stored
    with the row. An `untimed` step matters for the drive's state, not for its speed: a simulated
    drive may do it without simulating time. The sequential streams of a step that `continues` begin
    where the earlier ones of its stage left them (`framework.py`).
    """

    name: str
    workload: Workload
    sample: bool = False  # a steady-state sample: a tracking variable is read here
    figures: Callable[[StepResult], Mapping[str, float]] | None = None
    untimed: bool = False
    role: str = ""  # purpose of the step within its stage: "pre-write"
    batches: bool = False  # `True` to store its batches, from which reports estimate intervals
    continues: bool = False


class StepPosition(NamedTuple):
    """Where a step is in its run."""

    phase: str  # of its stage; the steps that prepare a stage have their own phase
    round: int  # from 1; 0 outside the rounds
    step: int  # from 1 within its round or phase


@dataclass(frozen=True)
class StepRow:
    """One step in the table of results; the store keeps its histograms beside it.

    Latencies are service times in nanoseconds over all operations of the step; None where the
    sample is too small for the figure. Totals count from the purge and include this step.
    """

    phase: str  # this and the next two: see `StepPosition`
    round: int
    step: int
    label: str
    pattern: str | None  # this and the next four: see `workload.model.Access`
    block_bytes: int | None
    read_pct: float | None
    threads: int | None
    queue_depth: int | None
    started_ns: int  # device time since the first step of the rounds
    elapsed_ns: int
    ios: int
    bytes: int
    read_bytes: int
    iops: float
    latency_mean_ns: float | None
    latency_p999_ns: int | None
    latency_p9999_ns: int | None
    latency_p99999_ns: int | None
    latency_max_ns: int | None
    host_write_bytes: int  # in this step
    host_write_bytes_total: int  # since the purge (the standard's TGBW, in bytes)
    drive_fills: float
    cpu_busy_pct: float | None  # of the host; None for simulated drives
    waf: float | None
    figures: Mapping[str, float] = field(default_factory=dict)  # of its `Step`
    role: str = ""  # role of its `Step`; not stored

    @property
    def ended_ns(self) -> int:
        """Device time at its end, on the clock of `started_ns`."""
        return self.started_ns + self.elapsed_ns

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, over the same time as `iops`."""
        return self.bytes * self.iops / self.ios if self.ios else 0.0


@dataclass(frozen=True)
class TrackingVariable:
    """A figure that must be steady; `value` reads it from the rows of one complete round."""

    name: str
    unit: str
    value: Callable[[Sequence[StepRow]], float]


@dataclass
class StageHistory:
    """What has been measured in one stage, as its end conditions see it."""

    phase: str
    tracking: Sequence[TrackingVariable] = ()
    rows: list[StepRow] = field(default_factory=list)
    rounds_done: int = 0
    max_rounds: int | None = None
    fresh_fills: float = 0.0  # of the stage
    _elapsed_ns: int = 0

    def __post_init__(self) -> None:
        names = [variable.name for variable in self.tracking]
        self.tracker = SteadyStateTracker(names, max_rounds=self.max_rounds) if names else None

    def add(self, row: StepRow) -> None:
        self.rows.append(row)
        self._elapsed_ns += row.elapsed_ns

    def round_complete(self, round_number: int) -> Decision | None:
        """Judge a round that is now complete. None before the fifth, or if nothing is tracked."""
        self.rounds_done = round_number
        if self.tracker is None:
            return None
        rows = self.round_rows(round_number)
        values = {variable.name: variable.value(rows) for variable in self.tracking}
        self.tracker.add(values, round_number, fresh=rows[-1].drive_fills < self.fresh_fills)
        return self.tracker.current

    @property
    def steady_at_round(self) -> int | None:
        """The round after which the stage was steady for the first time; None: not yet."""
        first = self.tracker.first_steady if self.tracker is not None else None
        return None if first is None else first.round

    @property
    def decision(self) -> Decision | None:
        """The window to report: the last steady one, otherwise the last one; None: no window."""
        if self.tracker is None:
            return None
        return self.tracker.last_steady or self.tracker.current

    @property
    def elapsed_ns(self) -> int:
        """Device time spent in the steps of the stage."""
        return self._elapsed_ns

    @property
    def host_write_bytes_total(self) -> int:
        """Since the purge."""
        return self.rows[-1].host_write_bytes_total if self.rows else 0

    def round_rows(self, round_number: int) -> list[StepRow]:
        return [row for row in self.rows if row.round == round_number]

    def window_rows(self) -> list[StepRow]:
        """The rows of the reported window; without a window, of the last round."""
        decision = self.decision
        rounds = decision.rounds if decision is not None else (self.rounds_done,)
        return [row for row in self.rows if row.round in rounds]


@dataclass
class History:
    """What has been measured since the run began."""

    rows: list[StepRow] = field(default_factory=list)
    stages: dict[str, StageHistory] = field(default_factory=dict)  # by phase, in order
    host_write_bytes_total: int = 0  # since the last purge

    def begin(self, stage: Stage) -> StageHistory:
        """Add a stage, to which the rows of its phase go from now on."""
        self.stages[stage.phase] = StageHistory(
            stage.phase,
            stage.tracking,
            max_rounds=stage.rounds_max,
            fresh_fills=stage.fresh_fills,
        )
        return self.stages[stage.phase]

    def add(self, row: StepRow) -> None:
        self.rows.append(row)
        self.host_write_bytes_total = row.host_write_bytes_total
        if row.phase in self.stages:
            self.stages[row.phase].add(row)

    @property
    def host_write_bytes(self) -> int:
        """Bytes that the host wrote in all steps, those before other purges included."""
        return sum(row.host_write_bytes for row in self.rows)

    @property
    def current(self) -> StageHistory:
        """The stage that began last."""
        return next(reversed(self.stages.values()))

    @property
    def elapsed_ns(self) -> int:
        """Device time spent in all steps."""
        return sum(row.elapsed_ns for row in self.rows)


@dataclass(frozen=True)
class End:
    """A condition that ends the rounds of a stage.

    `reached` is called after every step, or with `per_round` after every complete round.
    """

    name: str  # in the option `--end` and the manifest
    text: str  # in reports: "4 drive fills written"
    reached: Callable[[StageHistory], bool]
    per_round: bool = False
    fraction: Callable[[StageHistory], float] | None = None  # done so far; None: unknown


@dataclass(frozen=True)
class Bounds:
    """Limits of what steps cost; None: there is no limit."""

    steps: int | None = 0
    seconds: float | None = 0.0
    write_bytes: float | None = 0.0

    def __add__(self, other: Bounds) -> Bounds:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Bounds(*(None if None in pair else sum(pair) for pair in pairs))

    def __mul__(self, times: int | None) -> Bounds:
        if times is None:
            return Bounds(None, None, None)
        return Bounds(*(None if one is None else one * times for one in vars(self).values()))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a procedure: rounds that repeat until one of `ends`, or a single pass of steps.

    With `purge` the stage begins on a purged drive: purge, write cache, then the steps of `prepare`
    (workload-independent preconditioning), stored under their own phase.

    `state` (with `purge`) are workloads that lead to the state that the stage begins in. A
    simulated drive is brought there once, without simulating time, and the state is shared by all
    runs that need it (`engines.preconditioned`). A real drive runs them as steps before `prepare`.
    """

    phase: str  # of its rows in the store; unique within the procedure
    title: str  # in reports: "rounds", "response-time histogram"
    steps: Callable[[History, int], Sequence[Step]]  # of a round, from 1; of a single pass: 0
    tracking: Sequence[TrackingVariable] = ()
    ends: Sequence[End] = ()
    rounds_max: int | None = None  # rounds after which steady state is "not achieved"
    fresh_fills: float = 0.0  # user capacities written until a drive is no longer fresh
    continuous: bool = False  # successive steps of one load follow each other without a gap
    purge: bool = False
    state: Sequence[Workload] = ()
    prepare: Sequence[Step] = ()
    # Least and most of all rounds on a drive of such speeds; None: by `rounds_max`.
    bounds: Callable[[Speeds], tuple[Bounds, Bounds]] | None = None

    @classmethod
    def once(cls, phase: str, title: str, steps: Sequence[Step], **more: Any) -> Self:
        """A single pass of `steps`, which do not depend on what was measured before."""
        return cls(phase=phase, title=title, steps=lambda history, number: steps, **more)

    def preparation(self, *, simulated: bool) -> Sequence[Step]:
        """The steps before those of the stage, as a run stores them."""
        state = () if simulated else self.state
        return [*(Step(load.name, load) for load in state), *self.prepare]

    @property
    def prepare_phase(self) -> str:
        """The phase of `preparation`: "preconditioning-128k" for "rounds-128k". Stages that begin
        in different states have different names.
        """
        _, dash, label = self.phase.partition("-")
        if self.state and not dash:
            return f"preconditioning-{self.phase}"
        return f"preconditioning{dash}{label}"


@dataclass(frozen=True)
class Estimate:
    """What a run will cost, by pilots at down to 1/`scale` of size and time (`estimate.py`)."""

    device_time_ns: int  # of all steps
    write_bytes: int
    read_bytes: int
    drive_fills: float  # written, over the whole run
    steps: int
    rounds: Mapping[str, int]  # by phase, for stages that have rounds
    wall_time_s: float  # of the run on this machine, roughly
    scale: float
    pilots: int
    took_s: float  # processor time of the pilots
    apart_pct: float | None  # difference of the last two pilots in time or volume; None: one pilot


@dataclass(frozen=True)
class Plan:
    """What a run will do and cost. None: there is no bound."""

    title: str
    phases: tuple[str, ...]  # a sentence each, in order
    steps_min: int
    steps_max: int | None
    device_time_min_ns: int
    device_time_max_ns: int | None
    write_bytes_min: int
    write_bytes_max: int | None
    drive_fills_max: float | None
    deviations: tuple[Deviation, ...] = ()
    estimate: Estimate | None = None
    write_bytes_likely: int | None = None  # the bound of writes at the measured speed of the drive


class Procedure(ABC):
    """A test with its options. Stateless: the driver holds the state."""

    name: ClassVar[str]  # that of its entry in the registry

    @classmethod
    @abstractmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """The procedure whose `options_mapping` was `data`, as a manifest has it."""

    @property
    def command(self) -> Sequence[str]:
        """The words of the command that runs and resumes it."""
        return ("writecliff", "test", self.name)

    @property
    @abstractmethod
    def title(self) -> str:
        """The title as reports print it: "Write Saturation Test"."""

    @property
    @abstractmethod
    def edition(self) -> str:
        """The edition as reports print it: "PTS-E 1.1"."""

    @abstractmethod
    def options_mapping(self) -> dict[str, Any]:
        """All options as JSON values, from which the same procedure can be built."""

    @abstractmethod
    def deviations(self) -> tuple[Deviation, ...]:
        """The options that differ from what the standard or campaign says."""

    @abstractmethod
    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Parameters for the header of the report: data pattern, active range, TC/QD, ..."""

    @property
    @abstractmethod
    def write_cache(self) -> bool:
        """Whether the volatile write cache is on during the test."""

    @property
    def active_range_pct(self) -> float | None:
        """The active range of all steps, in percent of the addresses; None if they differ."""
        return None

    def load_of(self, phase: str) -> Workload | None:
        """Return the load of all steps of a phase; None if it differs from step to step."""
        return None

    @property
    def purges(self) -> bool:
        """Whether the drive is purged where a stage asks for it."""
        return True

    def check_purge(self, *, simulated: bool) -> None:
        """Raises ConfigError for a simulated drive that is not to be purged."""
        if simulated and not self.purges:
            raise ConfigError(
                "--no-purge is for real drives: a simulated drive is new when a test begins",
                hint="drop --no-purge",
            )

    @property
    @abstractmethod
    def seed(self) -> int:
        """The seed from which the seeds of all steps are derived."""

    @property
    def quick(self) -> bool:
        """Whether it may take a short cut: a smaller simulated drive, or shorter steps."""
        return False

    @property
    def scale(self) -> float | None:
        """How many times smaller a simulated drive is made; None: as much as a quick test may."""
        return None

    @property
    def is_short(self) -> bool:
        """Whether its steps are shorter than they have to be for what the test is to show."""
        return False

    @abstractmethod
    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """The stages of the test in order; the first one purges."""

    def plan(
        self,
        identity: DeviceIdentity,
        speed_limit: Callable[[Workload], float | None] | None = None,
    ) -> Plan:
        """Bounds of what a run will do; `speed_limit` is that of the engine. Raises ConfigError if
        the drive does not suit it.
        """
        from writecliff.procedures.bounds import plan_of

        self.check_purge(simulated=identity.simulated)
        return plan_of(self, identity, speed_limit)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """What will be done, a sentence per phase."""
        return [stage.title for stage in self.stages(identity)]

    def warnings(self, history: History) -> Sequence[str]:
        """What readers of the results must know, once the run has ended."""
        return ()


def step_seed(seed: int, *seed_path: object) -> int:
    """A 63-bit seed for one step of a run with `seed`, the same in all versions.

    `seed_path` tells the step from all others of the run: with one seed for all of them, every
    minute would write the same addresses again.
    """
    text = "/".join([str(seed), *map(str, seed_path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1

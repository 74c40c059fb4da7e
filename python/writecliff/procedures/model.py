"""Building blocks of test procedures: stages, steps, tracking variables, histories, plans.

A procedure (see `Procedure`) declares its stages in order. For each stage, it declares the
preparation, the steps of a round, the tracking variables and the end conditions. The driver in
`framework.py` contains the control flow, and `store/` the stored data. This module performs no I/O.
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
    """A workload that a procedure runs as a step. Tables and progress lines show `name`.

    `figures` extracts additional figures from the measurement, which are stored with the row. The
    speed of an `untimed` step is not reported, so a simulated drive may run the step without
    simulating time. The sequential streams of a step with `continues` start where earlier steps of
    the stage ended (`framework.py`).
    """

    name: str
    workload: Workload
    sample: bool = False  # `True` for a steady-state sample, which tracking variables use.
    figures: Callable[[StepResult], Mapping[str, float]] | None = None
    untimed: bool = False
    role: str = ""  # Purpose of the step within its stage, such as "pre-write".
    batches: bool = False  # `True` to store batches, which reports need to estimate intervals.
    continues: bool = False


class StepPosition(NamedTuple):
    """Position of a step in its run."""

    phase: str  # Stage phase; the preparation has a separate phase.
    round: int  # Round number from 1; 0 outside the rounds.
    step: int  # Number from 1 within the step's round or phase.


@dataclass(frozen=True)
class StepRow:
    """A step as a row of the results, whose histograms are stored separately.

    Latencies are service times in nanoseconds over all operations of the step, or `None` if the
    sample is too small for the figure. Totals are counted from the purge, and include this step.
    """

    phase: str  # This field and the next two fields are described in `StepPosition`.
    round: int
    step: int
    label: str
    # This field and the next four fields are described in `workload.model.Access`.
    pattern: str | None
    block_bytes: int | None
    read_pct: float | None
    threads: int | None
    queue_depth: int | None
    started_ns: int  # Device time since the first step of the rounds.
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
    host_write_bytes: int  # Bytes written in this step.
    host_write_bytes_total: int  # Bytes written since the purge (the standard's TGBW).
    drive_fills: float
    cpu_busy_pct: float | None  # CPU use of the host; `None` for simulated drives.
    waf: float | None
    # Additional figures of the row's `Step`.
    figures: Mapping[str, float] = field(default_factory=dict)
    role: str = ""  # Role of the row's `Step`; not stored.

    @property
    def ended_ns(self) -> int:
        """Device time at the end of the step, on the same clock as `started_ns`."""
        return self.started_ns + self.elapsed_ns

    @property
    def bytes_per_s(self) -> float:
        """Throughput over the same time as `iops`."""
        return self.bytes * self.iops / self.ios if self.ios else 0.0


@dataclass(frozen=True)
class TrackingVariable:
    """A figure that must be steady; `value` computes it from the rows of a complete round."""

    name: str
    unit: str
    value: Callable[[Sequence[StepRow]], float]


@dataclass
class StageHistory:
    """Results of a stage so far, in the form that end conditions use."""

    phase: str
    tracking: Sequence[TrackingVariable] = ()
    rows: list[StepRow] = field(default_factory=list)
    rounds_done: int = 0
    max_rounds: int | None = None
    fresh_fills: float = 0.0  # Fills until a drive is no longer fresh (see `Stage.fresh_fills`).
    _elapsed_ns: int = 0

    def __post_init__(self) -> None:
        """Create the steady-state tracker, if the stage has tracking variables."""
        names = [variable.name for variable in self.tracking]
        self.tracker = SteadyStateTracker(names, max_rounds=self.max_rounds) if names else None

    def add(self, row: StepRow) -> None:
        """Add the row of the next step."""
        self.rows.append(row)
        self._elapsed_ns += row.elapsed_ns

    def round_complete(self, round_number: int) -> Decision | None:
        """Judge a complete round, or return `None` before the fifth round or without variables."""
        self.rounds_done = round_number
        if self.tracker is None:
            return None
        rows = self.round_rows(round_number)
        values = {variable.name: variable.value(rows) for variable in self.tracking}
        self.tracker.add(values, round_number, fresh=rows[-1].drive_fills < self.fresh_fills)
        return self.tracker.current

    @property
    def steady_at_round(self) -> int | None:
        """Round at which the stage first became steady, or `None` if it is not steady yet."""
        first = self.tracker.first_steady if self.tracker is not None else None
        return None if first is None else first.round

    @property
    def decision(self) -> Decision | None:
        """Window to report, which is the last steady window, or else the last window, or `None`."""
        if self.tracker is None:
            return None
        return self.tracker.last_steady or self.tracker.current

    @property
    def elapsed_ns(self) -> int:
        """Device time of the stage's steps."""
        return self._elapsed_ns

    @property
    def host_write_bytes_total(self) -> int:
        """Bytes written since the purge."""
        return self.rows[-1].host_write_bytes_total if self.rows else 0

    def round_rows(self, round_number: int) -> list[StepRow]:
        """Return the rows of a round, in execution order."""
        return [row for row in self.rows if row.round == round_number]

    def window_rows(self) -> list[StepRow]:
        """Return the rows of the reported window or, if there is no window, of the last round."""
        decision = self.decision
        rounds = decision.rounds if decision is not None else (self.rounds_done,)
        return [row for row in self.rows if row.round in rounds]


@dataclass
class History:
    """Results of a run so far."""

    rows: list[StepRow] = field(default_factory=list)
    # Stage histories by phase, in execution order.
    stages: dict[str, StageHistory] = field(default_factory=dict)
    host_write_bytes_total: int = 0  # Bytes written since the last purge.

    def begin(self, stage: Stage) -> StageHistory:
        """Add a stage, which then receives the rows of its phase."""
        self.stages[stage.phase] = StageHistory(
            stage.phase,
            stage.tracking,
            max_rounds=stage.rounds_max,
            fresh_fills=stage.fresh_fills,
        )
        return self.stages[stage.phase]

    def add(self, row: StepRow) -> None:
        """Add the row of the next step, both to the run and to its stage."""
        self.rows.append(row)
        self.host_write_bytes_total = row.host_write_bytes_total
        if row.phase in self.stages:
            self.stages[row.phase].add(row)

    @property
    def host_write_bytes(self) -> int:
        """Bytes that the host wrote in all steps, including those before the last purge."""
        return sum(row.host_write_bytes for row in self.rows)

    @property
    def current(self) -> StageHistory:
        """The most recently started stage."""
        return next(reversed(self.stages.values()))

    @property
    def elapsed_ns(self) -> int:
        """Device time of all steps."""
        return sum(row.elapsed_ns for row in self.rows)


@dataclass(frozen=True)
class End:
    """An end condition for the rounds of a stage.

    `reached` is called after every step or, if `per_round` is set, after every complete round.
    """

    name: str  # Name in the option `--end` and in the manifest.
    text: str  # Text in reports, such as "4 drive fills written".
    reached: Callable[[StageHistory], bool]
    per_round: bool = False
    # Progress, from 0 to 1; `None` if unknown.
    fraction: Callable[[StageHistory], float] | None = None


@dataclass(frozen=True)
class Bounds:
    """Bounds on the cost of steps, where `None` means unbounded."""

    steps: int | None = 0
    seconds: float | None = 0.0
    write_bytes: float | None = 0.0

    def __add__(self, other: Bounds) -> Bounds:
        """Return the bounds of two sets of steps that run in sequence."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Bounds(*(None if None in pair else sum(pair) for pair in pairs))

    def __mul__(self, times: int | None) -> Bounds:
        """Return the bounds of `times` repetitions, where `None` means unbounded."""
        if times is None:
            return Bounds(None, None, None)
        return Bounds(*(None if limit is None else limit * times for limit in vars(self).values()))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of a procedure, with rounds that repeat until one of `ends`, or a single pass.

    If `purge` is set, the stage starts with a purge, the write cache setting, and the steps in
    `prepare` (workload-independent preconditioning), which are stored as a separate phase.

    `state` (with `purge`) contains the workloads that create the stage's initial state. A simulated
    drive runs these workloads once, without simulating time, and all runs that need the state share
    it (`engines.preconditioned`). A real drive runs these workloads as steps before `prepare`.
    """

    phase: str  # Phase of the stage's rows in the store; unique within the procedure.
    title: str  # Title in reports: "rounds", "response-time histogram".
    # Steps of a round (numbered from 1), or of a single pass (0).
    steps: Callable[[History, int], Sequence[Step]]
    tracking: Sequence[TrackingVariable] = ()
    ends: Sequence[End] = ()
    rounds_max: int | None = None  # Number of rounds after which steady state is "not achieved".
    fresh_fills: float = 0.0  # User capacities written until a drive is no longer fresh.
    continuous: bool = False  # `True` if there is no gap between steps of a load.
    purge: bool = False
    state: Sequence[Workload] = ()
    prepare: Sequence[Step] = ()
    # Lower and upper bounds on all rounds at the given speeds; `None` to compute them from
    # `rounds_max`.
    bounds: Callable[[Speeds], tuple[Bounds, Bounds]] | None = None

    @classmethod
    def once(cls, phase: str, title: str, steps: Sequence[Step], **more: Any) -> Self:
        """Return a single pass of `steps`, which do not depend on earlier results."""
        return cls(phase=phase, title=title, steps=lambda history, number: steps, **more)

    def preparation(self, *, simulated: bool) -> Sequence[Step]:
        """Return the steps that precede the stage's own steps, as a run stores them."""
        state = () if simulated else self.state
        return [*(Step(load.name, load) for load in state), *self.prepare]

    @property
    def prepare_phase(self) -> str:
        """The phase of `preparation`, such as "preconditioning-128k" for "rounds-128k".

        Stages with different initial states have different names.
        """
        _, dash, label = self.phase.partition("-")
        if self.state and not dash:
            return f"preconditioning-{self.phase}"
        return f"preconditioning{dash}{label}"


@dataclass(frozen=True)
class Estimate:
    """A run's estimated cost, from pilot runs at down to 1/`scale` of its size and time."""

    device_time_ns: int  # Device time of all steps.
    write_bytes: int
    read_bytes: int
    drive_fills: float  # Bytes written during the whole run, as a multiple of the drive capacity.
    steps: int
    rounds: Mapping[str, int]  # Number of rounds by phase, for stages that have rounds.
    wall_time_s: float  # Approximate time of the run on this machine.
    scale: float
    pilots: int
    took_s: float  # CPU time of the pilot runs.
    # Difference between the last two pilot runs; `None` after a single pilot run.
    apart_pct: float | None


@dataclass(frozen=True)
class Plan:
    """The phases of a run, and bounds on its cost. None: unbounded."""

    title: str
    phases: tuple[str, ...]  # One sentence per phase, in execution order.
    steps_min: int
    steps_max: int | None
    device_time_min_ns: int
    device_time_max_ns: int | None
    write_bytes_min: int
    write_bytes_max: int | None
    drive_fills_max: float | None
    deviations: tuple[Deviation, ...] = ()
    estimate: Estimate | None = None
    write_bytes_likely: int | None = None  # Bound on writes at the drive's measured speed.


class Procedure(ABC):
    """A test with its options. The class is stateless; the driver holds the state of the run."""

    name: ClassVar[str]  # Name of the procedure's entry in the registry.

    @classmethod
    @abstractmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """Return the procedure whose `options_mapping` was `data`, as stored in a manifest."""

    @property
    def command(self) -> Sequence[str]:
        """The command that runs and resumes the test, as a list of words."""
        return ("writecliff", "test", self.name)

    @property
    @abstractmethod
    def title(self) -> str:
        """The title in reports, such as "Write Saturation Test"."""

    @property
    @abstractmethod
    def edition(self) -> str:
        """The edition in reports, such as "PTS-E 1.1"."""

    @abstractmethod
    def options_mapping(self) -> dict[str, Any]:
        """Return all options as JSON values that `from_mapping` recreates the procedure from."""

    @abstractmethod
    def deviations(self) -> tuple[Deviation, ...]:
        """Return the options that deviate from the values of the standard or campaign."""

    @abstractmethod
    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the parameters for the report header, such as data pattern and active range."""

    @property
    @abstractmethod
    def write_cache(self) -> bool:
        """`True` if the volatile write cache is enabled during the test."""

    @property
    def active_range_pct(self) -> float | None:
        """The active range of all steps in percent of the addresses, or `None` if it varies."""
        return None

    def load_of(self, phase: str) -> Workload | None:
        """Return the load of all steps in a phase, or `None` if it differs from step to step."""
        return None

    @property
    def purges(self) -> bool:
        """`True` if the drive is purged when a stage requires a purge."""
        return True

    def check_purge(self, *, simulated: bool) -> None:
        """Check that a simulated drive is purged.

        Raises:
            ConfigError: If the option --no-purge is set, but the drive is simulated.
        """
        if simulated and not self.purges:
            raise ConfigError(
                "--no-purge applies only to real drives, because a simulated drive is new at the "
                "start of a test",
                hint="omit --no-purge",
            )

    @property
    @abstractmethod
    def seed(self) -> int:
        """Base seed for the seeds of all steps."""

    @property
    def quick(self) -> bool:
        """`True` if the test may be shortened, by a smaller simulated drive or by shorter steps."""
        return False

    @property
    def scale(self) -> float | None:
        """Factor to scale a simulated drive down by, or `None` for as far as `quick` allows."""
        return None

    @property
    def is_short(self) -> bool:
        """`True` if the steps are too short for meaningful results."""
        return False

    @abstractmethod
    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the stages of the test in order; the first stage purges the drive."""

    def plan(
        self,
        identity: DeviceIdentity,
        speed_limit: Callable[[Workload], float | None] | None = None,
    ) -> Plan:
        """Return the bounds of a run, where `speed_limit` is taken from the engine.

        Raises:
            ConfigError: If the drive does not suit the test.
        """
        from writecliff.procedures.bounds import plan_of

        self.check_purge(simulated=identity.simulated)
        return plan_of(self, identity, speed_limit)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the run in one sentence per phase."""
        return [stage.title for stage in self.stages(identity)]

    def warnings(self, history: History) -> Sequence[str]:
        """Return, after the run, warnings for readers of the results."""
        return ()


def step_seed(seed: int, *seed_path: object) -> int:
    """Return a 63-bit seed for a step of a run with `seed`, which is equal in all versions.

    `seed_path` distinguishes the step from all other steps in the run, because with a single seed,
    every minute would write the same addresses again.
    """
    text = "/".join([str(seed), *map(str, seed_path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1

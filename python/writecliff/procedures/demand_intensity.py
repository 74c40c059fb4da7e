"""Preconditioning, demand variation and histograms, shared by ECW/CBW and DIRTH.

PTS-E 1.1 (ECW, DIRTH) and PTS 2.0 (CBW). The steps run in this order:

    precondition   rounds of 30 minutes of writes at TC 32/QD 32 until steady; the first minute of
                   a round is its sample
    rounds         5 minutes of writes at TC 32/QD 32, then every thread count (outer loop) with
                   every queue depth, from many outstanding I/Os to few, a minute each; steady
                   state is that of the IOPS of the first of these cells
    rth-max, rth-mid, rth-min
                   at each operating point (`operating_points.py`): an hour of writes, then ten
                   minutes whose response times make the histogram

A test defines its accesses by `block_bytes`, `load` and `read_pct`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import History, Stage, Step, StepRow, TrackingVariable
from writecliff.procedures.operating_points import (
    ART_LIMIT_MS,
    NAMES,
    Cell,
    Name,
    cells_of,
    operating_points,
    rows_considered,
)
from writecliff.procedures.options import (
    MINUTES,
    QUEUE_DEPTH,
    THREADS,
    Within,
    option,
    required_option,
)
from writecliff.procedures.periods import numbered, round_steps, unit_name, whole_steps
from writecliff.procedures.pts import (
    LoadPoint,
    PtsOptions,
    PtsProcedure,
    max_rounds_option,
    mix_text,
    rounds_until_steady,
    step_option,
)
from writecliff.procedures.sources import Choice
from writecliff.procedures.steady import WINDOW_ROUNDS

CLAUSE = "PTS demand variation"
SEVEN = (32, 16, 8, 6, 4, 2, 1)
SIX = (32, 16, 8, 4, 2, 1)
FEW = (32, 8, 2, 1)
PRECONDITION, ROUNDS_PHASE = "precondition", "rounds"
PREWRITE = "pre-write"  # Role of the pre-write steps, and prefix of their names.


@dataclass(frozen=True, kw_only=True)
class DemandOptions(PtsOptions):
    """Options of ECW/CBW and DIRTH. Omitted options have the edition's values."""

    threads: tuple[int, ...] = required_option(
        CLAUSE,
        {"6x6": SIX, "*": SEVEN},
        "thread counts (TC) of the outer loop, in order",
        within=THREADS,
        quick=FEW,
    )
    queue_depths: tuple[int, ...] = required_option(
        CLAUSE,
        {"6x6": SIX, "*": SEVEN},
        "numbers of outstanding I/Os per thread (QD) in the inner loop, in order",
        within=QUEUE_DEPTH,
        quick=FEW,
    )
    step_seconds: float = step_option(CLAUSE)
    precondition_minutes: float = required_option(
        CLAUSE,
        30.0,
        "duration of each preconditioning round, in minutes; the first step of a round is its "
        "sample",
        within=MINUTES,
        quick=0.1,
    )
    prewrite_minutes: float = required_option(
        CLAUSE,
        {"6x6": 10.0, "*": 5.0},
        "duration of the pre-writes at the start of each round, in minutes",
        within=MINUTES,
        quick=0.05,
    )
    max_rounds: int = max_rounds_option()
    operating_points: str = option(
        "window",
        "data for choosing the operating points: the measurement-window average, or the last round",
        choices=("window", "last"),
    )
    art_limit_ms: float = required_option(
        CLAUSE,
        ART_LIMIT_MS,
        "maximum average response time at an operating point, in ms",
        within=Within(0, 1e6, open_low=True),
    )
    histogram_prewrite_minutes: float = required_option(
        CLAUSE,
        60.0,
        "duration of the pre-writes before each response-time histogram, in minutes",
        within=MINUTES,
        quick=0.1,
    )
    histogram_minutes: float = required_option(
        CLAUSE,
        10.0,
        "duration of each response-time histogram, in minutes",
        within=MINUTES,
        quick=0.1,
    )


D = TypeVar("D", bound=DemandOptions)


class DemandProcedure(PtsProcedure[D]):
    """A test with preconditioning, demand variation, operating points and histograms."""

    @property
    @abstractmethod
    def load(self) -> str:
        """Name of the accesses, such as "RND 8KiB"."""

    @property
    @abstractmethod
    def block_bytes(self) -> int | None:
        """Block size of the accesses, or `None` for the composite load."""

    @property
    @abstractmethod
    def read_pct(self) -> float:
        """Percentage of reads in the cells; preconditioning and pre-writes contain only writes."""

    def check(self) -> None:
        """Raise ConfigError if the loop is empty, or a period is not a whole number of steps."""
        o = self.options
        if not (o.threads and o.queue_depths):
            raise ConfigError(
                "the test has no cells to measure", hint="set --threads and --queue-depths"
            )
        for period, minutes in (
            ("a preconditioning round", o.precondition_minutes),
            ("a pre-write", o.prewrite_minutes),
            ("a pre-write before a histogram", o.histogram_prewrite_minutes),
        ):
            whole_steps(period, minutes * 60, o.step_seconds)

    # -- loads ------------------------------------------------------------------------------

    @property
    def tracked(self) -> LoadPoint:
        """The cell that determines steady state, which is also the preconditioning load.

        This cell is the standard's 32/32 cell, which has the most outstanding I/Os in the loop.
        """
        return max(self.options.threads), max(self.options.queue_depths)

    @property
    def load_point(self) -> LoadPoint:
        """Thread count and queue depth of the preconditioning."""
        return self.tracked

    @property
    def loads(self) -> Sequence[LoadPoint]:
        """The cells of a round, in order."""
        o = self.options
        return [(threads, depth) for threads in o.threads for depth in o.queue_depths]

    @property
    def mix(self) -> str:
        """The accesses and their read/write mix, such as "RND 8KiB 65/35"."""
        return f"{self.load} {mix_text(self.read_pct)}"

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (preconditioning, pre-writes, loop, operating points)."""
        o = self.options
        grid = (
            f"TC {min(o.threads)}-{max(o.threads)}/QD {min(o.queue_depths)}-{max(o.queue_depths)}"
        )
        precondition_round = units.minutes(o.precondition_minutes)
        return {
            **super().setup(identity),
            "precondition": f"{self.load}, R/W {mix_text(0)}",
            "precondition_toio": self.toio,
            "precondition_duration": f"rounds of {precondition_round} until steady",
            "precondition_2": f"Inter-Round Pre W, {self.load} {mix_text(0)}",
            "precondition_2_toio": self.toio,
            "precondition_2_duration": units.minutes(o.prewrite_minutes),
            "test_stimulus": self.load,
            "rw_mix": mix_text(self.read_pct),
            "toio": grid,
            "order": "High to Low TOIO",
            "test_stimulus_2": "Min/Mid/Max IOPS Points",
            "toio_2": f"ART < {o.art_limit_ms:g} ms",
            "operating_points": (
                "from the average of the window"
                if o.operating_points == "window"
                else "from the last round"
            ),
        }

    def choices(self) -> tuple[Choice, ...]:
        """Add the choices on operating points that sources disagree about."""
        points = Choice(
            "loads from which the operating points are selected",
            "averages of the measurement window; the last round",
            {"window": "averages of the window", "last": "the last round"}[
                self.options.operating_points
            ],
            "--operating-points",
        )
        middle = Choice(
            "half-way operating point",
            "IOPS half-way from MaxIOPS to those of TC 1/QD 1; to the least IOPS of any load",
            "half-way to TC 1/QD 1",
        )
        limit = Choice(
            "average response time that operating points must stay below",
            "5 ms, in one published program; no public text states it",
            f"{self.options.art_limit_ms:g} ms",
            "--art-limit-ms",
        )
        return (*super().choices(), points, middle, limit)

    # -- stages -----------------------------------------------------------------------------

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the preconditioning, the rounds, and a histogram for each operating point."""
        limit = self.options.max_rounds
        precondition = rounds_until_steady(
            lambda number: self._precondition(identity, number),
            limit,
            TrackingVariable(self._tracked_name(0), "IOPS", lambda rows: rows[0].iops),
            phase=PRECONDITION,
            title="preconditioning rounds",
            purge=True,
            continuous=True,
        )
        rounds = rounds_until_steady(
            lambda number: self._round(identity, number),
            limit,
            TrackingVariable(self._tracked_name(self.read_pct), "IOPS", self._tracked_iops),
        )
        return (precondition, rounds, *(self._histogram_stage(identity, name) for name in NAMES))

    def _tracked_name(self, read_pct: float) -> str:
        threads, depth = self.tracked
        return f"{self.load} {mix_text(read_pct)} TC{threads}/QD{depth} IOPS"

    def _tracked_iops(self, rows: Sequence[StepRow]) -> float:
        return next(
            row.iops
            for row in rows
            if is_cell(row) and (row.threads, row.queue_depth) == self.tracked
        )

    def _accesses(
        self,
        identity: DeviceIdentity,
        name: str,
        load: LoadPoint,
        *seed_path: object,
        read_pct: float = 0.0,
        minutes: float | None = None,
        sample: bool = False,
    ) -> Step:
        """Return a step of accesses at `load`; its duration defaults to `step_seconds`."""
        seconds = self.options.step_seconds if minutes is None else minutes * 60
        return self.cell(
            identity,
            name,
            *seed_path,
            seconds=seconds,
            at=load,
            block_bytes=self.block_bytes,
            read_pct=read_pct,
            sample=sample,
        )

    def _precondition(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        def step(name: str, position: int) -> Step:
            return self._accesses(identity, name, self.tracked, PRECONDITION, number, position)

        o = self.options
        return round_steps(number, o.precondition_minutes, o.step_seconds, "first", step)

    def _prewrites(
        self, identity: DeviceIdentity, minutes: float, load: LoadPoint, *seed_path: object
    ) -> Sequence[Step]:
        o = self.options
        name = f"{PREWRITE} {unit_name(o.step_seconds)}"
        return numbered(
            whole_steps("a pre-write", minutes * 60, o.step_seconds),
            lambda n: replace(
                self._accesses(identity, f"{name} {n}", load, *seed_path, PREWRITE, n),
                role=PREWRITE,
            ),
        )

    def _round(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        before = self._prewrites(identity, self.options.prewrite_minutes, self.tracked, number)
        cells = [
            self._accesses(
                identity,
                f"TC{load[0]}/QD{load[1]}",
                load,
                number,
                *load,
                read_pct=self.read_pct,
                sample=load == self.tracked,
            )
            for load in self.loads
        ]
        return [*before, *cells]

    def _histogram_stage(self, identity: DeviceIdentity, name: Name) -> Stage:
        return Stage(
            phase=f"rth-{name}",
            title=f"response-time histogram at {name.capitalize()}IOPS",
            steps=lambda history, number: self._histogram(identity, history, name),
        )

    def _histogram(self, identity: DeviceIdentity, history: History, name: Name) -> Sequence[Step]:
        """Return the steps of a histogram, or none if there is no operating point.

        Before the rounds have run, the preconditioning load replaces the operating point.
        """
        o, load = self.options, self.tracked
        if ROUNDS_PHASE in history.stages:
            cell = self.operating_points(history).get(name)
            if cell is None:
                return ()
            load = (cell.threads, cell.queue_depth)
        run = self._accesses(
            identity,
            f"response-time histogram TC{load[0]}/QD{load[1]}",
            load,
            "rth",
            name,
            read_pct=self.read_pct,
            minutes=o.histogram_minutes,
        )
        before = self._prewrites(identity, o.histogram_prewrite_minutes, load, "rth", name)
        return [*before, run]

    # -- results -------------------------------------------------------------------------

    def cells(self, history: History) -> tuple[Cell, ...]:
        """Return the cells of the demand variation, over the rounds that an option selects."""
        return cells_of(self.cell_rows(history))

    def cell_rows(self, history: History) -> Sequence[StepRow]:
        """Return the steps that `cells` evaluates."""
        rows = rows_considered(history.stages[ROUNDS_PHASE], self.options.operating_points)
        return [row for row in rows if is_cell(row)]

    def operating_points(self, history: History) -> Mapping[Name, Cell]:
        """Return the operating points by name, or none if every response time exceeds the limit."""
        return operating_points(self.cells(history), limit_ms=self.options.art_limit_ms)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        return (
            *self.beginning,
            f"preconditioning: {self.load} writes at {self.toio} in rounds of "
            f"{units.minutes(o.precondition_minutes)} until steady state, {o.max_rounds} at most",
            f"a round: {units.minutes(o.prewrite_minutes)} of writes at {self.toio}, then "
            f"{self.mix} at {len(o.threads)} thread counts x {len(o.queue_depths)} queue depths, "
            f"in steps of {o.step_seconds:g} s",
            f"rounds until steady state over {WINDOW_ROUNDS} of them, {o.max_rounds} at most",
            f"at Max, Mid and Min IOPS: {units.minutes(o.histogram_prewrite_minutes)} of writes, "
            f"then a response-time histogram of {units.minutes(o.histogram_minutes)}",
        )

    def warnings(self, history: History) -> tuple[str, ...]:
        """Add a warning if no load is below the response-time limit."""
        lacks_points = ROUNDS_PHASE in history.stages and not self.operating_points(history)
        text = (
            f"no operating point: no load has an average response time below "
            f"{self.options.art_limit_ms:g} ms"
        )
        return (*super().warnings(history), *((text,) if lacks_points else ()))


def is_cell(row: StepRow) -> bool:
    """Return `True` if a row belongs to the cells of a round, and `False` for its pre-writes."""
    return row.phase == ROUNDS_PHASE and row.role != PREWRITE

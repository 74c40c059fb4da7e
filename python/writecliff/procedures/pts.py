"""Editions, options, preconditioning, rounds and accesses that the PTS tests share.

The tests implement the SNIA Solid State Storage Performance Test Specification (PTS): client and
enterprise editions of revision 1.x (PTS-C 1.2, PTS-E 1.1) and of 2.0 (PTS 2.0.2, which contains
both in one document).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import ecw_load
from writecliff.procedures.active_range import (
    CLIENT,
    CLIENT_2,
    COMBINATIONS,
    GIB,
    SegmentOptions,
    check_amount,
    range_choice,
    range_start,
    segment_deviations,
    segments_setup,
    share_choice,
)
from writecliff.procedures.model import (
    End,
    History,
    Stage,
    StageHistory,
    Step,
    TrackingVariable,
    step_seed,
)
from writecliff.procedures.optioned import OptionedProcedure
from writecliff.procedures.options import (
    PERCENT,
    QUEUE_DEPTH,
    QUICK_HELP,
    SEED,
    SOME_PERCENT,
    THREADS,
    Deviation,
    Level,
    Within,
    no_purge_option,
    option,
    required_option,
)
from writecliff.procedures.registry import PROCEDURES
from writecliff.procedures.sources import Choice
from writecliff.procedures.steady import MAX_ROUNDS, WINDOW_ROUNDS
from writecliff.workload.data_pattern import data_pattern_of
from writecliff.workload.model import KIB, BlockSize, Job, Pattern, Segments, Workload

EDITION_TITLES = {
    ("pts-e", "1.x"): "PTS-E 1.1",
    ("pts-c", "1.x"): "PTS-C 1.2",
    ("pts-e", "2.0"): "PTS 2.0.2 (enterprise)",
    ("pts-c", "2.0"): "PTS 2.0.2 (client)",
}
EDITIONS = ("pts-e", "pts-c")
REVISIONS = ("1.x", "2.0")
TC_BY_EDITION = {"pts-e": 4, "pts-c": 2}
QD_BY_EDITION = {"pts-e": 32, "pts-c": 16}
ROUNDS = Within(WINDOW_ROUNDS, 100_000)
RANDOM_DATA = "random"  # Name that stands for the absence of a data file.
_CLIENT_RANGES = {pct for pct, _ in COMBINATIONS}


def threads_option(clause: str, values: Any, level: Level = "recommended") -> Any:
    """Declare the thread count (TC), with the values that the clause requires."""
    help = "number of threads that issue I/O (TC)"
    return required_option(clause, values, help, level=level, within=THREADS)


def queue_depth_option(clause: str, values: Any, level: Level = "recommended") -> Any:
    """Declare the queue depth (QD) per thread, with the values that the clause requires."""
    help = "number of outstanding I/Os per thread (QD)"
    return required_option(clause, values, help, level=level, within=QUEUE_DEPTH)


def step_option(clause: str, help: str = "duration of each step, in seconds") -> Any:
    """Declare the duration of a step, which is a minute in the standard."""
    return required_option(clause, 60.0, help, within=Within(0.01, 86400.0), quick=1.0)


def max_rounds_option(
    help: str = "maximum number of rounds to reach steady state",
) -> Any:
    """Declare the maximum number of rounds, which is 25 in the standard."""
    return required_option("PTS steady state", MAX_ROUNDS, help, within=ROUNDS)


@dataclass(frozen=True, kw_only=True)
class PtsOptions:
    """Options of every test in the standard. Omitted options have the edition's values."""

    edition: str = option("pts-e", "PTS edition: enterprise or client", choices=EDITIONS)
    revision: str = option("1.x", "PTS revision", choices=REVISIONS)
    quick: bool = option(False, QUICK_HELP)
    no_purge: bool = no_purge_option("PTS purge")
    write_cache: bool = required_option(
        "PTS write cache", {"pts-e": False, "pts-c": True}, "state of the volatile write cache"
    )
    active_range_pct: float = required_option(
        "PTS active range",
        {"pts-c 2.0": 75.0, "*": 100.0},
        "active range: percentage of the drive's addresses that the test accesses",
        within=SOME_PERCENT,
    )
    compressible_pct: float = required_option(
        "PTS data pattern",
        0.0,
        "compressibility of the data in percent, where 0 means random data",
        within=PERCENT,
    )
    duplicate_pct: float = required_option(
        "PTS data pattern",
        0.0,
        "percentage of written 4 KiB pages that are duplicates of another page",
        within=PERCENT,
    )
    data_file: str = option(
        RANDOM_DATA,
        "file that contains the data pattern. The measured compressibility and percentage of "
        "duplicates of the pattern apply unless other options set these values",
    )
    seed: int = option(1, "seed for all random choices", within=SEED)

    @property
    def rule_keys(self) -> tuple[str, ...]:
        """The keys of rules; a test on which sources disagree adds its option `reading`."""
        keys = (f"{self.edition} {self.revision}", self.edition, self.revision)
        reading = getattr(self, "reading", None)
        return keys if reading is None else (reading, *keys)


@dataclass(frozen=True, kw_only=True)
class LoadOptions(PtsOptions):
    """Options of tests with a single thread count and queue depth."""

    threads: int = threads_option("PTS", TC_BY_EDITION)
    queue_depth: int = queue_depth_option("PTS", QD_BY_EDITION)


LoadPoint = tuple[int, int]  # Thread count and queue depth per thread.
P = TypeVar("P", bound=PtsOptions)
L = TypeVar("L", bound=LoadOptions)


class PtsProcedure(OptionedProcedure[P]):
    """A test of the standard."""

    subtitle: ClassVar[str]

    def settle(self, options: P, *, shorten: bool) -> P:
        """Measure the data file's properties, which a stored run contains instead of the file."""
        if options.data_file == RANDOM_DATA or None not in (
            options.compressible_pct,
            options.duplicate_pct,
        ):
            return super().settle(options, shorten=shorten)
        pattern = data_pattern_of(Path(options.data_file))
        given = {
            name: getattr(pattern, name)
            for name in ("compressible_pct", "duplicate_pct")
            if getattr(options, name) is None
        }
        return super().settle(replace(options, **given), shorten=shorten)

    @property
    def duplicate_pct(self) -> float:
        """Percentage of written 4 KiB pages that are duplicates of another page."""
        return self.options.duplicate_pct

    @property
    def data_pattern(self) -> str:
        """The data pattern in the header block, such as "40% compr., 5% dup. (as db.bin)"."""
        o = self.options
        shares = ((o.compressible_pct, "compr."), (o.duplicate_pct, "dup."))
        text = ", ".join(f"{share:g}% {word}" for share, word in shares if share) or "RND"
        return text if o.data_file == RANDOM_DATA else f"{text} (as {Path(o.data_file).name})"

    @property
    @abstractmethod
    def load_point(self) -> LoadPoint:
        """Thread count and queue depth of steps that do not set their own."""

    @property
    def toio(self) -> str:
        """The load point in the standard's notation, such as "TC 4/QD 32"."""
        return toio_text(*self.load_point)

    @property
    def edition(self) -> str:
        """The test's edition.

        A test that exists only in the enterprise edition is not presented as part of the client
        edition when it runs with client settings.
        """
        edition, revision = self.options.edition, self.options.revision
        if edition in PROCEDURES[self.name].editions or PROCEDURES[self.name].campaign:
            return EDITION_TITLES[edition, revision]
        document = "PTS-E 1.1" if revision == "1.x" else "PTS 2.0.2"
        return f"{document} test, client settings"

    @property
    def active_range_pct(self) -> float:
        """The active range of all steps, in percent of the addresses."""
        return self.options.active_range_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the parameters that every test discloses, which tests extend."""
        o, limited = self.options, self.segmented
        return {
            "subtitle": self.subtitle,
            "data_pattern": self.data_pattern,
            "active_range": f"{o.active_range_pct:g}%",
            "ar_segments": "N/A",
            "precondition": "None",
            **(segments_setup(limited, o.active_range_pct) if limited else {}),
        }

    def range_start(self, identity: DeviceIdentity, block_bytes: int) -> int:
        """Return the offset of the first byte in the active range."""
        length = self.range_bytes(identity, block_bytes)
        return range_start(identity, length, segmented=self.segmented is not None)

    def range_bytes(self, identity: DeviceIdentity, block_bytes: int) -> int:
        """Return the active range size in whole blocks, at least one block."""
        exact = round(identity.capacity_bytes * self.options.active_range_pct / 100)
        return max(block_bytes, exact // block_bytes * block_bytes)

    def cell(
        self,
        identity: DeviceIdentity,
        name: str,
        *seed_path: object,
        seconds: float,
        at: LoadPoint | None = None,
        pattern: Pattern = "random",
        block_bytes: int | None = 4 * KIB,
        read_pct: float = 0.0,
        sample: bool = False,
    ) -> Step:
        """Return a step with a single access to the active range for `seconds`.

        `at` defaults to `load_point`. A `block_bytes` of `None` selects the composite load of
        `ecw_load`. For `seed_path` see `step`.
        """
        threads, queue_depth = at or self.load_point
        more: dict[str, Any] = {"segments": self.segments(identity)}
        if block_bytes is None:
            block_bytes, more = ecw_load.LARGEST_BYTES, {**ecw_load.JOB_FIELDS, **more}
        step = self.access(
            name,
            *seed_path,
            seconds=seconds,
            threads=threads,
            queue_depth=queue_depth,
            pattern=pattern,
            block_bytes=block_bytes,
            read_pct=read_pct,
            sample=sample,
            offset_bytes=self.range_start(identity, block_bytes),
            range_bytes=self.range_bytes(identity, block_bytes),
            **more,
        )
        return replace(step, continues=pattern == "sequential")

    def sequential_fill(
        self,
        identity: DeviceIdentity,
        capacities: float,
        at: LoadPoint,
        block_bytes: int = 128 * KIB,
    ) -> tuple[Step, ...]:
        """Return the workload-independent preconditioning.

        The preconditioning writes the whole active range sequentially, in the standard twice the
        user capacity (PTS 1.x and 2.0, every test with a steady-state loop). Several threads start
        at separate positions in the range, so that each written user capacity covers the range
        once, as with a single thread.
        """
        threads, queue_depth = at
        volume = round(capacities * identity.capacity_bytes / block_bytes) * block_bytes
        if not volume:
            return ()
        range_bytes = self.range_bytes(identity, block_bytes)
        stride = range_bytes // threads // block_bytes * block_bytes if threads > 1 else 0
        job = Job(
            name="preconditioning",
            pattern="sequential",
            block_sizes=(BlockSize(block_bytes),),
            threads=threads,
            queue_depth=queue_depth,
            offset_bytes=self.range_start(identity, block_bytes),
            range_bytes=range_bytes,
            thread_stride_bytes=stride,
            compressible_pct=self.options.compressible_pct,
            duplicate_pct=self.options.duplicate_pct,
            volume_bytes=volume,
        )
        name = f"SEQ {block_text(block_bytes)} W, {capacities:g} x user capacity"
        return (self.step(name, Workload(name, (job,)), "wipc", block_bytes),)

    @property
    def segmented(self) -> SegmentOptions | None:
        """The options if only segments of the active range are accessed, else `None`."""
        o = self.options
        limited = isinstance(o, SegmentOptions) and o.ar_amount_gib is not None
        return cast("SegmentOptions", o) if limited else None

    def segments(self, identity: DeviceIdentity) -> Segments | None:
        """Return the segments of the active range to access, equal for all steps of a run.

        Returns:
            The segments, or `None` for the whole range.

        Raises:
            ConfigError: If the range is not larger than the segments.
        """
        limited = self.segmented
        if limited is None:
            return None
        check_amount(limited, identity, self.options.active_range_pct)
        seed = step_seed(self.seed, self.name, "segments")
        return Segments(limited.ar_segments, round((limited.ar_amount_gib or 0) * GIB), seed=seed)

    def deviations(self) -> tuple[Deviation, ...]:
        """Return the options that deviate from their rules, including those of segments."""
        o, limited = self.options, self.segmented
        deviations = super().deviations()
        if limited is None:
            return deviations
        if (o.edition, o.revision) == CLIENT and o.active_range_pct in _CLIENT_RANGES:
            deviations = tuple(d for d in deviations if d.option != "active_range_pct")
        return (*deviations, *segment_deviations(limited, (o.edition, o.revision)))

    def choices(self) -> tuple[Choice, ...]:
        """Return this test's choices on points that the standard's sources disagree about."""
        o = self.options
        if isinstance(o, SegmentOptions) and (o.edition, o.revision) == CLIENT:
            return (range_choice(o, o.active_range_pct),)
        return (share_choice(o.active_range_pct),) if (o.edition, o.revision) == CLIENT_2 else ()

    def warnings(self, history: History) -> tuple[str, ...]:
        """Report stages that did not reach steady state."""
        return tuple(
            f"steady state was not reached within {stage.rounds_done} rounds ({stage.phase})"
            for stage in history.stages.values()
            if not_achieved(stage)
        )


class LoadProcedure(PtsProcedure[L]):
    """A test with a single thread count and queue depth."""

    @property
    def load_point(self) -> LoadPoint:
        """Thread count and queue depth set by the options."""
        return self.options.threads, self.options.queue_depth


@dataclass(frozen=True, kw_only=True)
class RoundOptions(LoadOptions):
    """Options of tests that precondition the drive and repeat rounds until steady state."""

    step_seconds: float = step_option("PTS test loop")
    max_rounds: int = max_rounds_option()
    wipc_capacities: float = required_option(
        "PTS workload-independent preconditioning",
        2.0,
        "volume of sequential writes before the test, in multiples of the user capacity",
        within=Within(0, 1000),
        quick=1.0,
    )
    wipc_threads: int | None = option(
        None, "number of preconditioning threads", within=THREADS, unset="the test's thread count"
    )
    wipc_queue_depth: int | None = option(
        None,
        "number of outstanding I/Os per preconditioning thread",
        within=QUEUE_DEPTH,
        unset="the test's queue depth",
    )


R = TypeVar("R", bound=RoundOptions)


class RoundProcedure(LoadProcedure[R]):
    """A test that preconditions the drive and repeats rounds until steady state."""

    @property
    def wipc_point(self) -> LoadPoint:
        """Thread count and queue depth of the preconditioning, by default those of the test."""
        o = self.options
        return o.wipc_threads or o.threads, o.wipc_queue_depth or o.queue_depth

    def wipc(self, identity: DeviceIdentity, block_bytes: int = 128 * KIB) -> tuple[Step, ...]:
        """Return the workload-independent preconditioning (see `sequential_fill`)."""
        capacities = self.options.wipc_capacities
        return self.sequential_fill(identity, capacities, self.wipc_point, block_bytes)

    def choices(self) -> tuple[Choice, ...]:
        """Add the choice of preconditioning demand, which sources disagree about."""
        demand = Choice(
            "demand of the preconditioning",
            "that of the test (PTS-E 1.1); a different demand (primer, figure 6)",
            f"{toio_text(*self.wipc_point)}, the test has {self.toio}",
            "--wipc-threads, --wipc-queue-depth",
        )
        return (*super().choices(), *([demand] if self.options.wipc_capacities else []))

    def precondition_setup(self, loop: str, sizes: Sequence[int] = (128 * KIB,)) -> dict[str, str]:
        """Return the header entries for `wipc` with block sizes `sizes`, and for the test's loop.

        The loop is the second preconditioning, because results are taken from the last rounds.
        """
        o = self.options
        times = {1.0: "Once", 2.0: "Twice"}.get(o.wipc_capacities, f"{o.wipc_capacities:g} x")
        entries = {"precondition_2": loop, "precondition_2_toio": self.toio}
        if o.wipc_capacities:
            entries["precondition"] = f"SEQ {', '.join(map(block_text, sizes))} W"
            entries["precondition_toio"] = toio_text(*self.wipc_point)
            entries["precondition_duration"] = f"{times} User Capacity"
        return entries

    def loop_phases(self, *loop: str) -> tuple[str, ...]:
        """Describe the run in one sentence per phase, where `loop` describes a round."""
        o = self.options
        filled = f"{o.wipc_capacities:g} x user capacity of sequential writes"
        return (
            *self.beginning,
            filled if o.wipc_capacities else "no preconditioning",
            *loop,
            f"rounds until steady state over {WINDOW_ROUNDS} of them, {o.max_rounds} at most",
        )


def rounds_until_steady(
    steps: Callable[[int], Sequence[Step]],
    limit: int,
    *tracking: TrackingVariable,
    title: str = "rounds",
    phase: str = "rounds",
    what: str = "steady state",
    **more: Any,
) -> Stage:
    """Return a stage that stops if `tracking` is steady over five rounds, or after `limit` rounds.

    `steps` returns the steps of a round, counted from 1. `what` names the goal in the text of the
    end condition. `more` contains further fields of the stage.
    """
    ends = (
        End(
            "steady",
            f"{what} over {WINDOW_ROUNDS} rounds",
            lambda h: h.steady_at_round is not None,
            per_round=True,
            fraction=lambda h: min(h.rounds_done / WINDOW_ROUNDS, 0.99),
        ),
        End(
            "rounds",
            f"{limit} rounds without {what}",
            lambda h: h.rounds_done >= limit,
            per_round=True,
            fraction=lambda h: h.rounds_done / limit,
        ),
    )
    return Stage(
        phase=phase,
        title=title,
        steps=lambda history, number: steps(number),
        tracking=tracking,
        ends=ends,
        rounds_max=limit,
        **more,
    )


def not_achieved(stage: StageHistory) -> bool:
    """Return `True` if the rounds tracked steady state but did not reach it."""
    return stage.tracker is not None and stage.tracker.first_steady is None


def block_text(size_bytes: int) -> str:
    """Return a block size in the standard's notation, such as 0.5KiB or 1024KiB."""
    return f"{size_bytes / KIB:g}KiB"


def mix_text(read_pct: float) -> str:
    """Return a read/write mix in the standard's notation, such as 65/35."""
    return f"{read_pct:g}/{100 - read_pct:g}"


def toio_text(threads: int, queue_depth: int) -> str:
    """Return the total outstanding I/Os in the standard's notation: TC 4/QD 32."""
    return f"TC {threads}/QD {queue_depth}"

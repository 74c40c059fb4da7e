"""What all tests of the PTS have in common: editions, shared options, preconditioning, cells.

SNIA Solid State Storage Performance Test Specification (PTS), client and enterprise editions of
revision 1.x (PTS-C 1.2, PTS-E 1.1) and of 2.0 (PTS 2.0.2, which has both in one document).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import End, History, StageHistory, Step, step_seed
from writecliff.procedures.optioned import OptionedProcedure
from writecliff.procedures.options import (
    PERCENT,
    SEED,
    SOME_PERCENT,
    Rule,
    Within,
    option,
    required_option,
    step_option,
)
from writecliff.procedures.steady import MAX_ROUNDS, WINDOW_ROUNDS
from writecliff.workload.model import (
    KIB,
    SECOND_NS,
    Addresses,
    BlockSize,
    Job,
    Pattern,
    Segments,
    Workload,
)

EDITION_TITLES = {
    ("pts-e", "1.x"): "PTS-E 1.1",
    ("pts-c", "1.x"): "PTS-C 1.2",
    ("pts-e", "2.0"): "PTS 2.0.2 (enterprise)",
    ("pts-c", "2.0"): "PTS 2.0.2 (client)",
}
EDITIONS = ("pts-e", "pts-c")
REVISIONS = ("1.x", "2.0")
ROUNDS = Within(WINDOW_ROUNDS, 100_000)
GIB = 1 << 30


def steady_or_rounds(what: str, limit: int) -> tuple[End, ...]:
    """The ends of rounds that are repeated until `what` over five of them, or `limit` times."""
    return (
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


def max_rounds_option(
    help: str = "rounds after which the test gives up reaching steady state",
) -> Any:
    """The standard's 25 rounds."""
    return required_option("PTS steady state", {"*": MAX_ROUNDS}, help, within=ROUNDS)


def beginning(options: Any) -> tuple[str, str]:
    """How every test begins, a sentence a phase; `options` say whether there is a write cache."""
    cache = "on (WCE)" if options.write_cache else "off (WCD)"
    return "purge the drive", f"write cache {cache}"


@dataclass(frozen=True, kw_only=True)
class PtsOptions:
    """Options that every test has. None stands for the value of the edition.

    Tests override a field where their clause says otherwise (threads, queue depth).
    """

    edition: str = option("pts-e", "pts-e (enterprise) or pts-c (client)", choices=EDITIONS)
    revision: str = option("1.x", "revision of the standard: 1.x or 2.0", choices=REVISIONS)
    quick: bool = option(False, "a shortened form for demos; its report is stamped")
    write_cache: bool | None = required_option(
        "PTS write cache", {"pts-e": False, "pts-c": True}, "state of the volatile write cache"
    )
    active_range_pct: float | None = required_option(
        "PTS active range",
        {"pts-c 2.0": 75.0, "*": 100.0},
        "share of the addresses that may be touched",
        within=SOME_PERCENT,
    )
    compressible_pct: float = option(
        0.0,
        "compressibility of the data (0: random)",
        rule=Rule({"*": 0.0}, "required", "PTS data pattern"),
        within=PERCENT,
    )
    seed: int = option(1, "fixes every random choice", within=SEED)


@dataclass(frozen=True, kw_only=True)
class RoundOptions(PtsOptions):
    """Options of tests that precondition the drive and repeat rounds of steps until steady."""

    step_seconds: float | None = step_option("PTS test loop")
    max_rounds: int | None = max_rounds_option()
    wipc_capacities: float | None = required_option(
        "PTS workload-independent preconditioning",
        {"*": 2.0},
        "user capacities of sequential writes before the test",
        within=Within(0, 1000),
        quick=1.0,
    )
    wipc_queue_depth: int = option(
        32, "outstanding I/Os of the one thread that preconditions", within=Within(1, 65536)
    )
    ar_amount_gib: float | None = option(
        None,
        "GiB of the active range that the test loop touches, in segments (default: all of it)",
        within=Within(0, 1e9, open_low=True),
    )
    ar_segments: int = option(
        2048, "active range segments, with ar_amount_gib", within=Within(1, 1 << 20)
    )


class PtsProcedure(OptionedProcedure):
    """A test with `PtsOptions`, settled and checked (else ConfigError)."""

    options_type: ClassVar[type[PtsOptions]]
    subtitle: ClassVar[str]

    @staticmethod
    def rule_keys(options: Any) -> tuple[str, ...]:
        return _editions(options)

    @property
    def edition(self) -> str:
        return EDITION_TITLES[self.options.edition, self.options.revision]

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """The parameters that every test discloses; tests add theirs."""
        o = self.options
        return {
            "subtitle": self.subtitle,
            "data_pattern": "RND" if o.compressible_pct == 0 else f"{o.compressible_pct:g}% compr.",
            "active_range": f"{o.active_range_pct:g}%",
            "ar_segments": "N/A",
            "precondition": "None",
        }

    def range_bytes(self, identity: DeviceIdentity, block_bytes: int) -> int:
        """The active range in whole blocks, at least one."""
        exact: int = round(identity.capacity_bytes * self.options.active_range_pct / 100)
        return max(block_bytes, exact // block_bytes * block_bytes)

    def cell(
        self,
        identity: DeviceIdentity,
        name: str,
        *place: object,
        seconds: float,
        threads: int,
        queue_depth: int,
        pattern: Pattern = "random",
        block_bytes: int = 4 * KIB,
        read_pct: float = 0.0,
        sample: bool = False,
    ) -> Step:
        """One access for so many seconds; `place` is what makes its seed differ from others'."""
        job = Job(
            name=self.name,
            pattern=pattern,
            read_pct=read_pct,
            block_sizes=(BlockSize(block_bytes),),
            threads=threads,
            queue_depth=queue_depth,
            range_bytes=self.range_bytes(identity, block_bytes),
            segments=self.segments(identity),
            addresses=Addresses("uniform"),
            compressible_pct=self.options.compressible_pct,
            duration_ns=round(seconds * SECOND_NS),
        )
        return Step(name, self.workload(name, job, *place), sample)

    def workload(self, name: str, job: Job, *place: object) -> Workload:
        return Workload(name, (job,), seed=step_seed(self.options.seed, self.name, *place))

    def segments(self, identity: DeviceIdentity) -> Segments | None:
        """Of the test loop's active range; the same for all steps of a run."""
        amount_gib = getattr(self.options, "ar_amount_gib", None)
        if amount_gib is None:
            return None
        return Segments(
            self.options.ar_segments,
            round(amount_gib * GIB),
            seed=step_seed(self.options.seed, self.name, "segments"),
        )

    def wipc(self, identity: DeviceIdentity, block_bytes: int = 128 * KIB) -> tuple[Step, ...]:
        """Workload-independent preconditioning: sequential writes over the whole active range,
        twice the user capacity (PTS 1.x and 2.0, every test with a steady-state loop)."""
        o = self.options
        volume = round(o.wipc_capacities * identity.capacity_bytes / block_bytes) * block_bytes
        if not volume:
            return ()
        job = Job(
            name="preconditioning",
            pattern="sequential",
            block_sizes=(BlockSize(block_bytes),),
            queue_depth=o.wipc_queue_depth,
            range_bytes=self.range_bytes(identity, block_bytes),
            compressible_pct=o.compressible_pct,
            volume_bytes=volume,
        )
        name = f"SEQ {block_text(block_bytes)} W, {o.wipc_capacities:g} x user capacity"
        return (Step(name, self.workload(name, job, "wipc", block_bytes)),)

    def precondition_setup(
        self, loop: str, toio: str, sizes: Sequence[int] = (128 * KIB,)
    ) -> dict[str, str]:
        """What the header block says of `wipc` at block sizes `sizes` and of the test's own loop,
        which is the second preconditioning: the standard's results come from its last rounds."""
        o = self.options
        times = {1: "Once", 2: "Twice"}.get(o.wipc_capacities, f"{o.wipc_capacities:g} x")
        found = {"precondition_2": loop, "precondition_2_toio": toio}
        if o.wipc_capacities:
            found["precondition"] = f"SEQ {', '.join(map(block_text, sizes))} W"
            found["precondition_toio"] = toio_text(1, o.wipc_queue_depth)
            found["precondition_duration"] = f"{times} User Capacity"
        if o.ar_amount_gib is not None:
            found["ar_segments"] = f"{o.ar_segments}"
            found["ar_amount"] = f"{o.active_range_pct:g}%, {o.ar_amount_gib:g} GiB"
        return found

    def loop_phases(self, *loop: str) -> tuple[str, ...]:
        """What will be done, a sentence a phase; `loop` says what a round is."""
        o = self.options
        filled = f"{o.wipc_capacities:g} x user capacity of sequential writes"
        return (
            *beginning(o),
            filled if o.wipc_capacities else "no preconditioning",
            *loop,
            f"rounds until steady state over {WINDOW_ROUNDS} of them, {o.max_rounds} at most",
        )

    def round_ends(self) -> tuple[End, ...]:
        """Steady state over five rounds, or the standard's 25 rounds without it."""
        return steady_or_rounds("steady state", self.options.max_rounds)

    def warnings(self, history: History) -> tuple[str, ...]:
        return tuple(
            f"steady state was not reached in {stage.rounds_done} rounds ({stage.phase})"
            for stage in history.stages.values()
            if not_achieved(stage)
        )


def _editions(options: PtsOptions) -> tuple[str, ...]:
    """The keys under which a `Rule` may have its value, the most special one first.

    Where sources of the standard disagree, a test has the option `reading`: its words are keys.
    """
    reading = getattr(options, "reading", None)
    keys = (f"{options.edition} {options.revision}", options.edition, options.revision)
    return keys if reading is None else (reading, *keys)


def not_achieved(stage: StageHistory) -> bool:
    """The rounds were to become steady, and did not."""
    return stage.tracker is not None and stage.tracker.first_steady is None


def block_text(size_bytes: int) -> str:
    """As the standard writes block sizes: 0.5KiB, 4KiB, 1024KiB."""
    return f"{size_bytes / KIB:g}KiB"


def mix_text(read_pct: float) -> str:
    """As the standard writes read/write mixes: 65/35."""
    return f"{read_pct:g}/{100 - read_pct:g}"


def toio_text(threads: int, queue_depth: int) -> str:
    return f"TC {threads}/QD {queue_depth}"

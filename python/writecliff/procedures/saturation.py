"""Continuous load, samples in rounds, and end conditions that the saturation tests share.

The write saturation test (`wsat.py`) and the tests with captured workloads (`rwsw/`) use this
module. A round of the framework is a group of one-minute steps whose last step is the steady-state
sample, so that samples are 30 minutes apart. A run stops at the first enabled end condition that it
reaches:

    steady     five consecutive samples meet the steady-state rule (PTS 2.0.2 section 2.1.24)
    capacity   four times the user capacity has been written
    time       24 h of device time (revision 1.x), 6 h (revision 2.0)

The standard allows the operator to choose any end condition, and requires the choice to be
reported. `capacity` is off by default, because a small or fast drive is written four times before
five samples are complete, and is not saturated by then. Five samples take 2.1 h, which is too short
to write a 2 TB drive once at 200 MB/s, so the drive would meet the steady-state rule on the plateau
before its write cliff. Therefore, only windows that start after `fresh_fills` written user
capacities (default 2) count, because before this, a drive is fresh out of the box (SNIA primer).
The steady-state figures are computed at every sample, even if `steady` is off.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import Bounds, End, History, Stage, Step, TrackingVariable
from writecliff.procedures.options import (
    HOURS,
    MINUTES,
    SECONDS,
    Within,
    option,
    required_option,
)
from writecliff.procedures.periods import round_steps, whole_steps
from writecliff.procedures.pts import (
    QD_BY_EDITION,
    TC_BY_EDITION,
    LoadOptions,
    LoadProcedure,
    max_rounds_option,
    mix_text,
    queue_depth_option,
    step_option,
    threads_option,
)
from writecliff.procedures.steady import WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS

if TYPE_CHECKING:
    from writecliff.procedures.bounds import Speeds
    from writecliff.workload.model import Workload

END_NAMES = ("steady", "capacity", "time")
CLAUSE = "PTS WSAT"
FOB_DRIVE_FILLS = 2.0  # Drive fills until a drive is no longer fresh (SNIA primer, 2013).


@dataclass(frozen=True, kw_only=True)
class SaturationOptions(LoadOptions):
    """Options of saturation tests. Omitted options have the edition's values."""

    end: tuple[str, ...] = option(
        ("steady", "time"),
        "stop conditions, of which the first to be met stops the test",
        choices=END_NAMES,
    )
    threads: int = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int = queue_depth_option(CLAUSE, QD_BY_EDITION)
    sample_seconds: float = step_option(CLAUSE)
    round_minutes: float = required_option(
        CLAUSE, 31.0, "interval between samples, in minutes", within=MINUTES, quick=0.1
    )
    time_hours: float = required_option(
        CLAUSE,
        {"1.x": 24.0, "2.0": 6.0},
        "with `--end time`, stop after this many hours of device time",
        within=HOURS,
        quick=0.5,
    )
    drive_fills: float = required_option(
        CLAUSE,
        4.0,
        "with `--end capacity`, stop after writing this many user capacities",
        within=Within(0, 1e5, open_low=True),  # The upper bound suffices to wear out any drive.
    )
    fresh_fills: float = option(
        FOB_DRIVE_FILLS,
        "write volume before the first steady-state window, in multiples of the user capacity, "
        "because the constant speed of a fresh drive could be mistaken for steady state",
        within=Within(0, 1e5),
    )
    max_rounds: int = max_rounds_option(
        "maximum number of rounds if 'steady' is the only stop condition"
    )
    histogram: bool | None = required_option(
        CLAUSE, {"2.0": True}, "finish with a 20-minute response-time histogram"
    )
    histogram_seconds: float = required_option(
        CLAUSE, 1200.0, "duration of the histogram step, in seconds", within=SECONDS, quick=10.0
    )


class Load(Protocol):
    """Description of a saturation test's load."""

    @property
    def text(self) -> str:
        """The load in the standard's notation, such as "RND 4KiB W"."""

    @property
    def words(self) -> str:
        """Description of the load, such as "random 4 KiB writes"."""

    @property
    def read_pct(self) -> float:
        """Percentage of reads."""
        ...

    @property
    def subtitle(self) -> str:
        """Subtitle of the report."""
        ...

    @property
    def disclosure(self) -> str:
        """A note for readers of the figures, or "" if the name is sufficient."""


S = TypeVar("S", bound=SaturationOptions)


class Saturation(LoadProcedure[S]):
    """A saturation test. Raises ConfigError if an option is invalid."""

    def check(self) -> None:
        """Raise ConfigError if no end is enabled, or a round is not a whole number of steps."""
        if not self.options.end:
            raise ConfigError("--end is empty", hint="set --end to steady, capacity or time")
        _ = self.steps_per_round

    @property
    @abstractmethod
    def stimulus(self) -> Load:
        """The test's load."""

    @abstractmethod
    def load_step(
        self, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        """Return a step with the test's load."""

    @property
    def steps_per_round(self) -> int:
        """Number of steps from one sample to the next."""
        o = self.options
        return whole_steps("a round", o.round_minutes * 60, o.sample_seconds)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (load, demand, rounds and end conditions)."""
        o, stimulus = self.options, self.stimulus
        entries = {
            **super().setup(identity),
            "subtitle": stimulus.subtitle,
            # The saturating load is the drive's workload-dependent preconditioning (WDPC).
            "precondition": f"WDPC, {stimulus.text}",
            "precondition_toio": self.toio,
            "precondition_duration": " or ".join(self.end_texts),
            "test_stimulus": stimulus.text,
            "load": stimulus.words,
            "rw_mix": mix_text(stimulus.read_pct),
            "toio": self.toio,
            "round": f"{units.minutes(o.round_minutes)}, last {o.sample_seconds:g} s is the sample",
            "ends": "; ".join(end.text for end in self.ends(identity)),
        }
        return {**entries, **({"load_note": note} if (note := stimulus.disclosure) else {})}

    @property
    def end_texts(self) -> Sequence[str]:
        """The enabled end conditions, abbreviated for the header block."""
        o = self.options
        texts = {
            "steady": "steady",
            "capacity": f"{o.drive_fills:g}X user capacity",
            "time": f"{o.time_hours:g} h",
        }
        return [texts[name] for name in END_NAMES if name in o.end]

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the rounds and, if requested, the histogram."""
        rounds = self.saturated(identity, "rounds", "rounds", self.stimulus.text, self.load_step)
        if not self.options.histogram:
            return (rounds,)
        title = "response-time histogram"
        step = self.load_step(identity, title, self.options.histogram_seconds, "histogram")
        return (rounds, Stage.once("rth", title, [step]))

    def saturated(
        self,
        identity: DeviceIdentity,
        phase: str,
        title: str,
        text: str,
        step: Callable[..., Step],
        **more: Any,
    ) -> Stage:
        """Return the rounds for a load that is called `text`.

        `step` creates steps like `load_step`; `more` contains further fields of the stage.
        """
        o = self.options
        load = step(identity, "", o.sample_seconds).workload
        return Stage(
            phase=phase,
            title=title,
            steps=lambda history, number: self._round(identity, number, step),
            tracking=(TrackingVariable(f"{text} IOPS", "IOPS", lambda rows: rows[-1].iops),),
            ends=self.ends(identity),
            rounds_max=o.max_rounds,
            fresh_fills=o.fresh_fills,
            bounds=lambda speeds: bounds(self, identity, load, speeds),
            purge=True,
            continuous=True,
            **more,
        )

    def _round(
        self, identity: DeviceIdentity, number: int, load_step: Callable[..., Step]
    ) -> Sequence[Step]:
        seconds = self.options.sample_seconds

        def step(name: str, position: int) -> Step:
            return load_step(identity, name, seconds, number, position)

        return round_steps(number, self.options.round_minutes, seconds, "last", step)

    def ends(self, identity: DeviceIdentity) -> Sequence[End]:
        """Return the enabled ends, and a round limit if only steady state stops the run."""
        o = self.options
        # The tolerance is half a sample, because steps on a real drive are a few ms too long or too
        # short.
        whole_s = whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        limit_ns = round((whole_s - o.sample_seconds / 2) * SECOND_NS)
        limit_bytes = o.drive_fills * identity.capacity_bytes
        after = f" after {o.fresh_fills:g} x user capacity" if o.fresh_fills else ""
        possible = {
            "steady": End(
                "steady",
                f"steady state over {WINDOW_ROUNDS} rounds{after}",
                lambda h: h.steady_at_round is not None,
                per_round=True,
            ),
            "capacity": End(
                "capacity",
                f"{o.drive_fills:g} x user capacity written",
                lambda h: h.host_write_bytes_total >= limit_bytes,
                fraction=lambda h: h.host_write_bytes_total / limit_bytes,
            ),
            "time": End(
                "time",
                f"{o.time_hours:g} h of writes",
                lambda h: h.elapsed_ns >= limit_ns,
                fraction=lambda h: h.elapsed_ns / limit_ns,
            ),
        }
        chosen = [possible[name] for name in END_NAMES if name in o.end]
        if o.end == ("steady",):
            # Without another end condition, the standard's 25 rounds bound the run.
            chosen.append(
                End(
                    "rounds",
                    f"{o.max_rounds} rounds without steady state",
                    lambda h: h.rounds_done >= o.max_rounds,
                    per_round=True,
                    fraction=lambda h: len(h.rows) / (o.max_rounds * self.steps_per_round),
                )
            )
        return chosen

    def warnings(self, history: History) -> tuple[str, ...]:
        """Report a run that is not steady, or whose measurement window starts too early."""
        rounds = history.stages["rounds"]
        decision = rounds.decision
        if rounds.steady_at_round is None and not (decision is not None and decision.met):
            return ("steady state was not reached",) if "steady" in self.options.end else ()
        rows = rounds.round_rows(decision.rounds[0]) if decision is not None else ()
        fills = rows[-1].drive_fills if rows else 0.0
        if fills < FOB_DRIVE_FILLS:
            return (
                f"the measurement window starts after {fills:.2f} drive fills, but drives rarely "
                f"leave their fresh-out-of-box state before {FOB_DRIVE_FILLS:g}",
            )
        return ()

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        ends = " or ".join(end.text for end in self.ends(identity))
        histogram = f"response-time histogram, {o.histogram_seconds:g} s"
        return (
            *self.beginning,
            f"{self.stimulus.words}, TC {o.threads} / QD {o.queue_depth}, in steps of "
            f"{o.sample_seconds:g} s",
            f"one step in {self.steps_per_round}, the last of a round, is a steady-state sample",
            f"until {ends}, whichever comes first" if " or " in ends else f"until {ends}",
            *((histogram,) if o.histogram else ()),
        )


# -- plan ------------------------------------------------------------------------------------------

# Bounds on the duration and the writes of a saturation test, according to its enabled end
# conditions.


def bounds(
    test: Saturation[Any], identity: DeviceIdentity, load: Workload, speeds: Speeds
) -> tuple[Bounds, Bounds]:
    """Return the lower and upper bounds of all rounds, whose steps are `load`."""
    o, rate = test.options, speeds.writes(load)
    round_s = test.steps_per_round * o.sample_seconds
    ends_min_s, ends_max_s, ends_max_bytes = [], [], []
    if "steady" in o.end:
        ends_min_s.append(WINDOW_ROUNDS * round_s)
        if o.end == ("steady",):
            ends_max_s.append(o.max_rounds * round_s)
    if "capacity" in o.end and rate:
        volume = o.drive_fills * identity.capacity_bytes
        ends_min_s.append(whole_steps_s(volume / rate, o.sample_seconds))
        # The step that reaches the volume still runs to completion.
        ends_max_bytes.append(volume + rate * o.sample_seconds)
    if "time" in o.end:
        limit = whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        ends_min_s.append(limit)
        ends_max_s.append(limit)
    low_s, high_s = min(ends_min_s), min(ends_max_s, default=None)
    if high_s is not None:
        ends_max_bytes.append(high_s * rate)
    low = Bounds(round(low_s / o.sample_seconds), low_s, 0.0)
    steps = None if high_s is None else round(high_s / o.sample_seconds)
    return low, Bounds(steps, high_s, min(ends_max_bytes, default=None))


def whole_steps_s(seconds: float, sample_seconds: float) -> float:
    """Return `seconds` rounded up to whole samples, at least one sample."""
    return max(1, math.ceil(seconds / sample_seconds - 1e-9)) * sample_seconds

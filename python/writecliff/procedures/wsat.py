"""WSAT, the write saturation test: random 4 KiB writes from purge until the drive is saturated.

Editions PTS-C (client) and PTS-E (enterprise) of the SNIA Solid State Storage Performance Test
Specification. There is no preconditioning: the saturation is the result. One framework round is a
group of one-minute steps whose last one is the steady-state sample, so that samples are 30 minutes
apart. A run ends at the first of the enabled ends:

    steady     five consecutive samples meet the steady-state rule (PTS 2.0.2 section 2.1.24)
    capacity   four times the user capacity has been written
    time       24 h of device time (revision 1.x), 6 h (revision 2.0)

All three are on in both editions; the standard lets the operator choose and wants the choice
reported. The steady-state figures are computed at every sample even when `steady` is off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures import wsat_plan
from writecliff.procedures.model import (
    End,
    History,
    Plan,
    Procedure,
    Step,
    StepRow,
    TrackingVariable,
    step_seed,
)
from writecliff.procedures.options import (
    Deviation,
    Rule,
    by_edition,
    deviations,
    option,
    options_from_mapping,
    options_to_mapping,
)
from writecliff.procedures.steady import MAX_ROUNDS, WINDOW_ROUNDS
from writecliff.workload.model import SECOND_NS, Addresses, BlockSize, Job, Workload

Edition = Literal["pts-e", "pts-c"]
Revision = Literal["1.x", "2.0"]
EndName = Literal["steady", "capacity", "time"]
END_NAMES: tuple[EndName, ...] = ("steady", "capacity", "time")
EDITION_TITLES = {
    ("pts-e", "1.x"): "PTS-E 1.1",
    ("pts-c", "1.x"): "PTS-C 1.2",
    ("pts-e", "2.0"): "PTS 2.0.2 (enterprise)",
    ("pts-c", "2.0"): "PTS 2.0.2 (client)",
}
CLAUSE = "PTS WSAT"
FOB_DRIVE_FILLS = (
    2.0  # fresh-out-of-box behaviour lasts until about here (SNIA primer, 2013, fn. 3)
)

# What engines can do, and runs that end: no more than a year, no more than wears any drive out.
LIMITS = {
    "threads": 4096,
    "queue_depth": 65536,
    "max_rounds": 100_000,
    "time_hours": 8784.0,
    "round_minutes": 60 * 8784.0,
    "histogram_seconds": 3600 * 8784.0,
    "drive_fills": 1e5,
}
MIN_STEP_S = 0.01  # the resolution of fio's run times is worse


@dataclass(frozen=True, kw_only=True)
class WsatOptions:
    """Options of WSAT. None stands for the value of the edition; `Wsat` fills it in."""

    edition: Edition = option("pts-e", "pts-e (enterprise) or pts-c (client)")
    revision: Revision = option("1.x", "revision of the standard: 1.x or 2.0")
    end: tuple[EndName, ...] = option(END_NAMES, "what may end the run; the first one reached does")
    threads: int | None = option(
        None,
        "threads issuing I/O (TC)",
        rule=Rule({"pts-e": 4, "pts-c": 2}, "recommended", CLAUSE),
    )
    queue_depth: int | None = option(
        None,
        "outstanding I/Os of a thread (QD)",
        rule=Rule({"pts-e": 32, "pts-c": 16}, "recommended", CLAUSE),
    )
    write_cache: bool | None = option(
        None,
        "state of the volatile write cache",
        rule=Rule({"pts-e": False, "pts-c": True}, "required", CLAUSE),
    )
    sample_seconds: float = option(
        60.0, "length of a step", rule=Rule({"*": 60.0}, "required", CLAUSE)
    )
    round_minutes: float = option(
        31.0, "minutes from sample to sample", rule=Rule({"*": 31.0}, "required", CLAUSE)
    )
    time_hours: float | None = option(
        None,
        "device time of the end 'time'",
        rule=Rule({"1.x": 24.0, "2.0": 6.0}, "required", CLAUSE),
    )
    drive_fills: float = option(
        4.0, "user capacities of the end 'capacity'", rule=Rule({"*": 4.0}, "required", CLAUSE)
    )
    max_rounds: int = option(
        MAX_ROUNDS,
        "rounds after which a run that only 'steady' may end gives up",
        rule=Rule({"*": MAX_ROUNDS}, "required", "PTS steady state"),
    )
    active_range_pct: float = option(
        100.0, "share of the addresses that is written", rule=Rule({"*": 100.0}, "required", CLAUSE)
    )
    compressible_pct: float = option(
        0.0, "compressibility of the data", rule=Rule({"*": 0.0}, "required", "PTS data pattern")
    )
    histogram: bool | None = option(
        None,
        "response-time histogram of 20 minutes at the end",
        rule=Rule({"2.0": True}, "required", CLAUSE),
    )
    histogram_seconds: float = option(
        1200.0,
        "length of the histogram step",
        rule=Rule({"*": 1200.0}, "required", CLAUSE),
    )
    seed: int = option(1, "fixes every random choice")


def _settled(options: WsatOptions) -> WsatOptions:
    """Options with the edition's and the revision's values filled in."""
    if options.edition not in ("pts-e", "pts-c"):
        raise ConfigError(
            f"unknown edition '{options.edition}'", hint="editions of WSAT are pts-e and pts-c"
        )
    if options.revision not in ("1.x", "2.0"):
        raise ConfigError(f"unknown revision '{options.revision}'", hint="revisions: 1.x and 2.0")
    filled = by_edition(options, options.edition, options.revision)
    if filled.get("histogram", False) is None:
        filled["histogram"] = False  # revision 1.x does not know it
    ends = tuple(dict.fromkeys(options.end))  # naming one twice means it once
    return replace(options, **filled, end=ends)


class Wsat(Procedure):
    """The write saturation test, its options settled and checked (else ConfigError)."""

    name = "wsat"
    title = "Write Saturation Test"
    summary = "random 4 KiB writes from purge until the drive is saturated"
    subtitle = "WSAT - RND 4KiB 100% W"
    block_bytes = 4096

    def __init__(self, options: WsatOptions | None = None) -> None:
        self.options = _settled(options or WsatOptions())
        self._check()

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Wsat:
        """The procedure whose `options_mapping` was `data` (a manifest's)."""
        return cls(options_from_mapping(WsatOptions, data))

    def _check(self) -> None:
        o = self.options
        if not o.end:
            raise ConfigError("nothing ends the run", hint="give --end steady, capacity or time")
        for end in o.end:
            if end not in END_NAMES:
                raise ConfigError(
                    f"unknown end '{end}'", hint=f"ends of WSAT are {', '.join(END_NAMES)}"
                )
        positive = (
            "threads",
            "queue_depth",
            "sample_seconds",
            "round_minutes",
            "time_hours",
            "drive_fills",
            "histogram_seconds",
        )
        for name in positive:
            if not getattr(o, name) > 0:
                raise ConfigError(f"{name} must be more than 0, not {getattr(o, name):g}")
            if math.isinf(getattr(o, name)):
                raise ConfigError(f"{name} must be a finite number")
        if o.max_rounds < WINDOW_ROUNDS:
            raise ConfigError(
                f"max_rounds must be at least {WINDOW_ROUNDS} (the measurement window), "
                f"not {o.max_rounds}"
            )
        if not 0 < o.active_range_pct <= 100:
            raise ConfigError(f"active_range_pct must be in (0, 100], not {o.active_range_pct:g}")
        if not 0 <= o.compressible_pct <= 100:
            raise ConfigError(f"compressible_pct must be in [0, 100], not {o.compressible_pct:g}")
        if not 0 <= o.seed < 1 << 63:
            raise ConfigError(f"seed must be in [0, 2^63), not {o.seed}")
        for name, limit in LIMITS.items():
            if getattr(o, name) > limit:
                raise ConfigError(f"{name} must be at most {limit:g}, not {getattr(o, name):g}")
        if o.sample_seconds < MIN_STEP_S:
            raise ConfigError(
                f"sample_seconds must be at least {MIN_STEP_S:g}, not {o.sample_seconds:g}"
            )
        steps = o.round_minutes * 60 / o.sample_seconds
        if abs(steps - round(steps)) > 1e-9 or steps < 1:
            nearest = max(1, round(steps)) * o.sample_seconds / 60
            raise ConfigError(
                f"a round of {o.round_minutes:g} min is no whole number of samples "
                f"of {o.sample_seconds:g} s",
                hint=f"the nearest round is {nearest:g} min",
            )

    @property
    def steps_per_round(self) -> int:
        return round(self.options.round_minutes * 60 / self.options.sample_seconds)

    @property
    def edition(self) -> str:
        return EDITION_TITLES[self.options.edition, self.options.revision]

    @property
    def write_cache(self) -> bool:
        return bool(self.options.write_cache)

    @property
    def seed(self) -> int:
        return self.options.seed

    def options_mapping(self) -> dict[str, Any]:
        return options_to_mapping(self.options)

    def deviations(self) -> tuple[Deviation, ...]:
        return deviations(self.options, self.options.edition, self.options.revision)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        ends = {end.name: end.text for end in self.ends(identity)}
        return {
            "subtitle": self.subtitle,
            "data_pattern": "RND" if o.compressible_pct == 0 else f"{o.compressible_pct:g}% compr.",
            "active_range": f"{o.active_range_pct:g}%",
            "ar_segments": "N/A",
            "precondition": "None",
            "test_stimulus": "RND 4KiB W",
            "rw_mix": "0/100",
            "toio": f"TC {o.threads}/QD {o.queue_depth}",
            "round": f"{o.round_minutes:g} min, last {o.sample_seconds:g} s is the sample",
            "ends": "; ".join(ends.values()),
        }

    def _range_bytes(self, identity: DeviceIdentity) -> int:
        exact = round(identity.capacity_bytes * self.options.active_range_pct / 100)
        return max(self.block_bytes, exact // self.block_bytes * self.block_bytes)

    def _step(
        self,
        identity: DeviceIdentity,
        name: str,
        seconds: float,
        *place: object,
        sample: bool = False,
    ) -> Step:
        o = self.options
        assert o.threads is not None
        assert o.queue_depth is not None
        job = Job(
            name="wsat",
            pattern="random",
            read_pct=0.0,
            block_sizes=(BlockSize(self.block_bytes),),
            threads=o.threads,
            queue_depth=o.queue_depth,
            range_bytes=self._range_bytes(identity),
            addresses=Addresses("uniform"),
            compressible_pct=o.compressible_pct,
            duration_ns=round(seconds * SECOND_NS),
        )
        workload = Workload(name, (job,), seed=step_seed(o.seed, self.name, *place))
        return Step(name, workload, sample)

    def round_steps(self, identity: DeviceIdentity, round_number: int) -> Sequence[Step]:
        first = (round_number - 1) * self.steps_per_round
        seconds = self.options.sample_seconds
        unit = "minute" if seconds == 60 else "sample"
        return [
            self._step(
                identity,
                f"{unit} {first + number}",
                seconds,
                round_number,
                number,
                sample=number == self.steps_per_round,
            )
            for number in range(1, self.steps_per_round + 1)
        ]

    def tracking(self) -> Sequence[TrackingVariable]:
        return (TrackingVariable("RND 4KiB W IOPS", "IOPS", _last_iops),)

    def ends(self, identity: DeviceIdentity) -> Sequence[End]:
        o = self.options
        assert o.time_hours is not None
        # Half a sample of slack: steps of a real drive last a few ms more or less than asked for.
        whole_s = wsat_plan.whole_steps_s(o.time_hours * 3600, o.sample_seconds)
        limit_ns = round((whole_s - o.sample_seconds / 2) * SECOND_NS)
        limit_bytes = o.drive_fills * identity.capacity_bytes
        possible = {
            "steady": End(
                "steady",
                f"steady state over {WINDOW_ROUNDS} rounds",
                lambda h: h.steady_at_round is not None,
                per_round=True,
            ),
            "capacity": End(
                "capacity",
                f"{o.drive_fills:g} x user capacity written",
                lambda h: h.total_write_bytes >= limit_bytes,
                fraction=lambda h: h.total_write_bytes / limit_bytes,
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
            # Nothing else bounds the run, so the standard's 25 rounds do.
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

    def after_steps(self, identity: DeviceIdentity) -> Sequence[Step]:
        if not self.options.histogram:
            return ()
        return (
            self._step(
                identity, "response-time histogram", self.options.histogram_seconds, "histogram"
            ),
        )

    def warnings(self, history: History) -> Sequence[str]:
        if history.steady_at_round is None:
            return ("steady state was not reached",) if "steady" in self.options.end else ()
        rows = history.round_rows(history.steady_at_round - WINDOW_ROUNDS + 1)
        fills = rows[-1].drive_fills if rows else 0.0
        if fills < FOB_DRIVE_FILLS:
            return (
                f"the measurement window begins after {fills:.2f} drive fills: a drive is seldom "
                f"past its fresh-out-of-box state before {FOB_DRIVE_FILLS:g}; "
                "see `--end capacity`",
            )
        return ()

    def plan(self, identity: DeviceIdentity) -> Plan:
        return wsat_plan.plan(self, identity)


def _last_iops(rows: Sequence[StepRow]) -> float:
    return rows[-1].iops

"""Replay-native: replay the time steps of a capture in order.

Each time step has its own combination of streams and its own queue depth, and lasts as long as in
the capture, or is `speed_up` times shorter. Each time step runs as fast as the drive allows at that
queue depth, and the report shows the capture's rate for comparison. Steps that contain no reads or
writes are omitted. Queue depths are rounded to whole outstanding I/Os. If a capture has no queue
depths, the queue depth set by the options is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import QUEUE_DEPTH, Within, option
from writecliff.procedures.pts import LoadPoint
from writecliff.procedures.rwsw import mix
from writecliff.procedures.rwsw.capture_options import CaptureOptions, CaptureProcedure
from writecliff.traces.io_capture import CaptureStep, normalised

PHASE = "replay"
DEPTH = 32  # Number of outstanding I/Os for captures that have no queue depths.
SHORTEST_S = 0.01  # Resolution of fio's run times.
FILLED = 2.0


@dataclass(frozen=True, kw_only=True)
class ReplayNativeOptions(CaptureOptions):
    """Options of the Replay-Native test."""

    speed_up: float = option(
        1.0, "factor by which to shorten the time steps of the capture", within=Within(1, 1e6)
    )
    queue_depth: int = option(
        DEPTH,
        "outstanding I/Os in time steps where the capture does not record the queue depth",
        within=QUEUE_DEPTH,
    )
    fill_capacities: float = option(
        FILLED,
        "volume of sequential writes before the replay, in multiples of the user capacity",
        within=Within(0, 1000),
    )


class ReplayNative(CaptureProcedure[ReplayNativeOptions]):
    """A test that replays a capture. Raises ConfigError if an option is invalid."""

    name = "replay-native"
    subtitle = "Replay-Native"
    options_type = ReplayNativeOptions

    def check(self) -> None:
        """Raise ConfigError also if a time step would be too short for fio."""
        super().check()
        shortest = min(step.length_s for step in self.replayed)
        if shortest / self.options.speed_up < SHORTEST_S:
            raise ConfigError(
                f"the shortest time step, {shortest:g} s, would be replayed in less than "
                f"{SHORTEST_S:g} s",
                hint=f"specify a --speed-up of at most {shortest / SHORTEST_S:g}",
            )

    @property
    def replayed(self) -> Sequence[CaptureStep]:
        """The time steps that contain I/O, in order."""
        return [step for step in self.capture.steps if step.streams]

    def depth(self, step: CaptureStep) -> int:
        """Return the number of outstanding I/Os in a step."""
        depth = step.queue_depth
        return self.options.queue_depth if depth is None else max(1, round(depth))

    @property
    def load_point(self) -> LoadPoint:
        """A demand of one thread and the highest queue depth of all steps."""
        return 1, max(self.depth(step) for step in self.replayed)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the capture, queue depths and speed-up to the disclosed parameters."""
        o, depths = self.options, [self.depth(step) for step in self.replayed]
        return {
            **super().setup(identity),
            **self.capture_setup(),
            "subtitle": f"{self.subtitle} - {self.capture.name}",
            "test_stimulus": "the streams of each time step",
            "toio": f"TC 1/QD {min(depths)}-{max(depths)}",
            "speed_up": f"{o.speed_up:g}",
            "alignment": mix.DISCLOSURE,
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a single stage that has a step for each time step."""
        return (
            Stage.once(
                PHASE,
                "replay",
                [self._step(identity, number, step) for number, step in enumerate(self.replayed)],
                purge=True,
                prepare=self.fill(identity, (1, DEPTH)),
            ),
        )

    def _step(self, identity: DeviceIdentity, number: int, step: CaptureStep) -> Step:
        return self.mixed(
            identity,
            normalised(self.capture.streams_of(step)),
            f"step {number + 1} at {units.duration(step.begin_s * 1e9)}",
            PHASE,
            number,
            seconds=step.length_s / self.options.speed_up,
            at=(1, self.depth(step)),
            sample=True,
        )

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o, capture = self.options, self.capture
        left_out = len(capture.steps) - len(self.replayed)
        return (
            *self.beginning,
            f"{len(self.replayed)} time steps of {units.duration(capture.step_s * 1e9)} of "
            f"{capture.name}, {o.speed_up:g} times as fast, each with its streams and queue depth"
            + (f"; {left_out} without I/O are omitted" if left_out else ""),
        )

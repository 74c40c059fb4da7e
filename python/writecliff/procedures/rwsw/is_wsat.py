"""Individual Streams-WSAT, which runs each stream of the applied workload until steady.

Each stream is preceded by a purge and preconditioning. Rounds, samples and end conditions are those
of WSAT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.options import Within, option
from writecliff.procedures.rwsw.capture_options import CaptureOptions, CaptureProcedure
from writecliff.procedures.rwsw.multi_wsat import AppliedLoad, need_other_end
from writecliff.procedures.saturation import Saturation, SaturationOptions
from writecliff.procedures.steady import WINDOW_ROUNDS

FILLED = 2.0  # Volume of sequential writes before each stream, in user capacities.

FILLED = 2.0  # Sequential writes before each stream, in user capacities.


@dataclass(frozen=True, kw_only=True)
class IsWsatOptions(SaturationOptions, CaptureOptions):
    """Options of the Individual Streams test. Omitted options have the WSAT values."""

    histogram: bool | None = option(False, "unused", choices=(), measured=True)
    fill_capacities: float = option(
        FILLED,
        "volume of sequential writes before each stream, in multiples of the user capacity",
        within=Within(0, 1000),
    )


class IsWsat(Saturation[IsWsatOptions], CaptureProcedure[IsWsatOptions]):
    """The Individual Streams test. Raises ConfigError if an option is invalid."""

    name = "is-wsat"
    subtitle = "Individual Streams-WSAT"
    options_type = IsWsatOptions

    def check(self) -> None:
        """Raise ConfigError also for reads of a purged drive, or reads that never stop."""
        super().check()
        reads = [share for share in self.applied if share.stream.operation == "read"]
        if reads and not self.options.fill_capacities:
            raise ConfigError(
                f"the stream '{reads[0].stream.text}' only reads, but a purged drive has no data",
                hint=f"fill the drive first, with --fill-capacities {FILLED:g}",
            )
        if reads:
            need_other_end(self.options.end)

    @property
    def stimulus(self) -> AppliedLoad:
        """Description of each stream's load."""
        count = len(self.applied)
        return AppliedLoad(
            f"{count} streams, each alone",
            f"each of {count} I/O streams alone",
            self.read_share_pct,
            f"{self.subtitle} - {self.capture.name}",
        )

    def load_step(
        self, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        """Return a step with the first stream, as an example of all streams."""
        return self._alone(0, identity, name, seconds, *seed_path)

    def _alone(
        self, number: int, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        at = self.load_point
        streams = self.applied[number : number + 1]
        path = (number, *seed_path)
        return self.mixed(identity, streams, name, *path, seconds=seconds, at=at)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the capture to the disclosed parameters."""
        return {**super().setup(identity), **self.capture_setup()}

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each stream."""
        return [self._stage(identity, number) for number in range(len(self.applied))]

    def _stage(self, identity: DeviceIdentity, number: int) -> Stage:
        text = self.applied[number].stream.text

        def step(identity: DeviceIdentity, name: str, seconds: float, *path: object) -> Step:
            return self._alone(number, identity, name, seconds, *path)

        fill = self.fill(identity, self.load_point)
        phase = phase_of(number)
        return self.saturated(identity, phase, f"{text} alone", text, step, prepare=fill)

    def warnings(self, history: History) -> tuple[str, ...]:
        """Report streams that did not become steady."""
        texts = []
        for number, share in enumerate(self.applied):
            stage = history.stages.get(phase_of(number))
            if stage is not None and stage.steady_at_round is None and "steady" in self.options.end:
                texts.append(f"{share.stream.text} was not steady after {stage.rounds_done} rounds")
        return tuple(texts)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        ends = " or ".join(end.text for end in self.ends(identity))
        streams = ", ".join(share.stream.text for share in self.applied)
        return (
            f"for each of {len(self.applied)} streams: {', '.join(self.beginning)}, then the "
            f"stream alone at TC {o.threads} / QD {o.queue_depth}",
            streams,
            f"rounds of {units.minutes(o.round_minutes)}, the last {o.sample_seconds:g} s are the "
            f"sample; steady state over {WINDOW_ROUNDS} rounds",
            f"each until {ends}",
        )


def phase_of(number: int) -> str:
    """Return the phase of a stream's rows, where streams are counted from 0."""
    return f"stream-{number + 1}"

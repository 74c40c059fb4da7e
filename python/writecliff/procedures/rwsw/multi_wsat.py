"""Multi-WSAT: the applied workload of a capture, all of its streams at once, from a purged drive
until it is saturated. Rounds, samples and ends are those of WSAT (`saturation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.rwsw import mix
from writecliff.procedures.rwsw.capture_options import CaptureOptions, CaptureProcedure
from writecliff.procedures.saturation import Saturation, SaturationOptions


@dataclass(frozen=True)
class AppliedLoad:
    """What a test of saturation says of the applied workload."""

    text: str
    words: str
    read_pct: float
    subtitle: str
    disclosure: str = mix.DISCLOSURE


@dataclass(frozen=True, kw_only=True)
class MultiWsatOptions(SaturationOptions, CaptureOptions):
    """Options of Multi-WSAT. Those left out take the value of WSAT."""


class MultiWsat(Saturation[MultiWsatOptions], CaptureProcedure[MultiWsatOptions]):
    """The Multi-WSAT test. Raises ConfigError for options that are not allowed."""

    name = "multi-wsat"
    subtitle = "Multi-WSAT - Applied Test Workload"
    options_type = MultiWsatOptions

    def check(self) -> None:
        super().check()
        if self.read_share_pct > 100 - 1e-9:
            if not self.options.fill_capacities:
                raise ConfigError(
                    "the applied workload only reads, and a purged drive holds nothing",
                    hint="give --fill-capacities 2",
                )
            need_other_end(self.options.end)

    @property
    def stimulus(self) -> AppliedLoad:
        name = self.capture.name
        return AppliedLoad(
            self.applied_text, self.applied_words, self.read_share_pct, f"{self.subtitle} - {name}"
        )

    def load_step(
        self, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        at = self.load_point
        return self.mixed(identity, self.applied, name, *seed_path, seconds=seconds, at=at)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        return {**super().setup(identity), **self.capture_setup()}

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        rounds, *rest = super().stages(identity)
        return (replace(rounds, prepare=self.fill(identity, self.load_point)), *rest)


def need_other_end(ends: Sequence[str]) -> None:
    """Raise ConfigError where reads alone would never end a run."""
    if tuple(ends) == ("capacity",):
        raise ConfigError(
            "reads never write the capacity that is to end the run", hint="add --end steady,time"
        )

"""Multi-WSAT, which runs all streams of the applied workload at once until saturation.

The test starts with a purged drive. Rounds, samples and end conditions are those of WSAT
(`saturation.py`).
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
    """Description of the applied workload for a saturation test."""

    text: str
    words: str
    read_pct: float
    subtitle: str
    disclosure: str = mix.DISCLOSURE


@dataclass(frozen=True, kw_only=True)
class MultiWsatOptions(SaturationOptions, CaptureOptions):
    """Options of the Multi-WSAT test. Omitted options have the WSAT values."""


class MultiWsat(Saturation[MultiWsatOptions], CaptureProcedure[MultiWsatOptions]):
    """The Multi-WSAT test. Raises ConfigError if an option is invalid."""

    name = "multi-wsat"
    subtitle = "Multi-WSAT - Applied Test Workload"
    options_type = MultiWsatOptions

    def check(self) -> None:
        """Raise ConfigError also for reads of a purged drive, or reads that never stop."""
        super().check()
        if self.read_share_pct > 100 - 1e-9:
            if not self.options.fill_capacities:
                raise ConfigError(
                    "the applied workload only reads, but a purged drive has no data",
                    hint="fill the drive first, with --fill-capacities 2",
                )
            need_other_end(self.options.end)

    @property
    def stimulus(self) -> AppliedLoad:
        """Description of the applied workload."""
        name = self.capture.name
        return AppliedLoad(
            self.applied_text, self.applied_words, self.read_share_pct, f"{self.subtitle} - {name}"
        )

    def load_step(
        self, identity: DeviceIdentity, name: str, seconds: float, *seed_path: object
    ) -> Step:
        """Return a step that accesses all streams at once."""
        at = self.load_point
        return self.mixed(identity, self.applied, name, *seed_path, seconds=seconds, at=at)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the capture to the disclosed parameters."""
        return {**super().setup(identity), **self.capture_setup()}

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the stages of the saturation test, with the fill before the rounds."""
        rounds, *rest = super().stages(identity)
        return (replace(rounds, prepare=self.fill(identity, self.load_point)), *rest)


def need_other_end(ends: Sequence[str]) -> None:
    """Check that a load consisting only of reads can stop.

    Raises:
        ConfigError: A load consisting only of reads never stops if the only end condition is a
            written volume.
    """
    if tuple(ends) == ("capacity",):
        raise ConfigError(
            "the run would never stop, because the load only reads and the only stop condition is "
            "a written volume",
            hint="add --end steady,time",
        )

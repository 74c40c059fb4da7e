"""Thread count / queue depth sweep: the applied workload over the demand matrix.

As DIRTH (`demand_intensity.py`), but every access is one of the applied workload: it also
preconditions the drive, and precedes the cells of each round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.demand_intensity import DemandOptions, DemandProcedure
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.pts import LoadPoint
from writecliff.procedures.rwsw import mix
from writecliff.procedures.rwsw.capture_options import CaptureOptions, CaptureProcedure


@dataclass(frozen=True, kw_only=True)
class TcqdOptions(DemandOptions, CaptureOptions):
    """Options of the sweep. Those left out take the value of DIRTH."""


class Tcqd(DemandProcedure[TcqdOptions], CaptureProcedure[TcqdOptions]):
    """The sweep over thread counts and queue depths. Raises ConfigError for options that are not
    allowed.
    """

    name = "tcqd"
    subtitle = "TC/QD Sweep - Applied Test Workload"
    options_type = TcqdOptions
    block_bytes = None
    prewrites_read = True

    def check(self) -> None:
        super().check()
        if self.read_share_pct > 100 - 1e-9 and not self.options.fill_capacities:
            raise ConfigError(
                "the applied workload only reads, and a purged drive holds nothing",
                hint="give --fill-capacities 2",
            )

    @property
    def load(self) -> str:
        return self.applied_text

    @property
    def read_pct(self) -> float:
        return self.read_share_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        return {
            **super().setup(identity),
            **self.capture_setup(),
            "subtitle": f"{self.subtitle} - {self.capture.name}",
            "alignment": mix.DISCLOSURE,
            "precondition": self.applied_text,
            "precondition_2": f"Inter-Round, {self.applied_text}",
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        from dataclasses import replace

        first, *rest = super().stages(identity)
        return (replace(first, prepare=self.fill(identity, self.load_point)), *rest)

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
        """The applied workload, whatever the mix."""
        seconds = self.options.step_seconds if minutes is None else minutes * 60
        return self.mixed(
            identity, self.applied, name, *seed_path, seconds=seconds, at=load, sample=sample
        )

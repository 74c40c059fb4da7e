"""Sweep of thread count and queue depth, with the applied workload at each matrix point.

The test is like DIRTH (`demand_intensity.py`), but uses the applied workload for preconditioning,
pre-writes and the cells of each round.
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
    """Options of the TCQD test. Omitted options have the DIRTH values."""


class Tcqd(DemandProcedure[TcqdOptions], CaptureProcedure[TcqdOptions]):
    """The sweep over thread counts and queue depths. Raises ConfigError if an option is invalid."""

    name = "tcqd"
    subtitle = "TC/QD Sweep - Applied Test Workload"
    options_type = TcqdOptions
    block_bytes = None
    prewrites_read = True

    def check(self) -> None:
        """Raise ConfigError also for reads of a purged drive."""
        super().check()
        if self.read_share_pct > 100 - 1e-9 and not self.options.fill_capacities:
            raise ConfigError(
                "the applied workload only reads, but a purged drive has no data",
                hint="fill the drive first, with --fill-capacities 2",
            )

    @property
    def load(self) -> str:
        """Short description of the applied workload."""
        return self.applied_text

    @property
    def read_pct(self) -> float:
        """Percentage of reads in the applied workload's I/Os."""
        return self.read_share_pct

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the capture and its preconditioning to the disclosed parameters."""
        return {
            **super().setup(identity),
            **self.capture_setup(),
            "subtitle": f"{self.subtitle} - {self.capture.name}",
            "alignment": mix.DISCLOSURE,
            "precondition": self.applied_text,
            "precondition_2": f"Inter-Round, {self.applied_text}",
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the stages of DIRTH, with the fill before the first stage."""
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
        """Return a step with the applied workload, whose own mix replaces `read_pct`."""
        seconds = self.options.step_seconds if minutes is None else minutes * 60
        return self.mixed(
            identity, self.applied, name, *seed_path, seconds=seconds, at=load, sample=sample
        )

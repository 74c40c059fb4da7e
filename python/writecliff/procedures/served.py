"""A served drive's session as a run, read from the `writecliff serve --output` directory.

Other programs access the drive, so the run has no plan and cannot be resumed. The steps are
segments of the session. Each segment is stored when it ends, so a killed server loses only the last
segment. The options contain the figures of the whole session up to the end of the last segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe_text
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.user_load import UserLoadProcedure
from writecliff.workload.model import Workload

PHASE = "session"
STEP = Step("part of the session", Workload("clients", ()), sample=True)


@dataclass(frozen=True, kw_only=True)
class Served(UserLoadProcedure):
    """A session of a served drive.

    `session` contains the output of `writecliff serve --json`, and the histograms of flushes and
    lateness.
    """

    name = "served"
    session: Mapping[str, Any]
    precondition: str = "none"
    seed: int = 1

    @property
    def command(self) -> Sequence[str]:
        """The command that serves a drive."""
        return ("writecliff", "serve")

    @property
    def title(self) -> str:
        """The title in reports."""
        return "Served Drive"

    @property
    def is_timed(self) -> bool:
        """`True` if requests took the same time as on the drive."""
        return self.session["slow_down"] is not None

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (transports, timing and power cycles)."""
        session = self.session
        slow = session["slow_down"]
        return {
            "subtitle": "Served to other programs",
            "data_pattern": "of the clients",
            "active_range": "by client",
            "ar_segments": "N/A",
            "precondition": "restored" if session["restored"] else recipe_text(self.precondition),
            "test: Transports": ", ".join(session["transports"]),
            "test: Time": "none (--fast)" if slow is None else "as the drive",
            "test: Slow-down": "N/A" if slow is None else f"{slow:g}",
            "test: Power cycles": str(session["power_cycles"]),
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a single stage, whose steps are segments of the session."""
        return [Stage.once(PHASE, "session", [STEP])]

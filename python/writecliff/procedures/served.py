"""A served drive as a run: what a run directory of `writecliff serve --output` holds.

Other programs drive it, so that there is nothing to plan or to resume. Its steps are parts of the
session, each stored when it is over, so that a server that is killed loses the last one. The
options hold the figures of the whole session, as of the end of the last part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import recipe_text
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.own import OwnProcedure
from writecliff.workload.model import Workload

PHASE = "session"
STEP = Step("part of the session", Workload("clients", ()), sample=True)


@dataclass(frozen=True, kw_only=True)
class Served(OwnProcedure):
    """A session of a served drive; `session` is what `writecliff serve --json` prints of it, with
    the histograms of flushes and lateness.
    """

    name = "served"
    session: Mapping[str, Any]
    precondition: str = "none"
    seed: int = 1

    @property
    def command(self) -> Sequence[str]:
        return ("writecliff", "serve")

    @property
    def title(self) -> str:
        return "Served Drive"

    @property
    def is_timed(self) -> bool:
        """Whether requests took the drive's time."""
        return self.session["slow_down"] is not None

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
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
        return [Stage.once(PHASE, "session", [STEP])]

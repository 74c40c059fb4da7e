"""A trace replay as a run, read from the run directory of `writecliff replay`.

The native module replays the whole trace (`writecliff.replay`), so the run cannot be resumed. The
run has a single step, whose latencies are those of the timed replay. The options contain the
command's output, including the assumptions and the contents of each stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import value_text
from writecliff.procedures.user_load import UserLoadProcedure
from writecliff.workload.model import Workload

PHASE = "replay"
STEP = Step("replay", Workload("replay", ()), sample=True)


@dataclass(frozen=True, kw_only=True)
class TraceReplay(UserLoadProcedure):
    """A completed replay. `answer` contains the output of `writecliff replay --json`."""

    name = "trace_replay"
    answer: Mapping[str, Any]
    seed: int = 1

    @property
    def command(self) -> Sequence[str]:
        """The command that replays a trace."""
        return ("writecliff", "replay")

    @property
    def title(self) -> str:
        """The title in reports."""
        return f"Replay of {self.trace_name}"

    @property
    def trace_name(self) -> str:
        """Name of the trace file."""
        return Path(self.answer["trace"]["path"]).name

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (trace, stream assignment, rounds and TRIM)."""
        answer, trace = self.answer, self.answer["trace"]
        copies = trace["copies"]
        used = ("write back", trace["writeback"]), ("allocator", trace["allocator"])
        return {
            "subtitle": "Replay of a trace",
            "data_pattern": "RND",
            "active_range": "by trace",
            "ar_segments": "N/A",
            "precondition": "None",
            "test: Trace": self.trace_name,
            "test: Assign": answer["assign"],
            "test: Streams": str(answer["streams"]),
            "test: Mistagged": f"{answer['mistag_pct']:g} %",
            "test: Rounds": f"{trace['rounds']}" + (f", {copies} copies" if copies > 1 else ""),
            **{f"test: {name.capitalize()}": text for name, text in used},
            "test: TRIM": value_text(trace["trim"]),
            "test: Simulated capacity": units.size(answer["device"]["simulated_capacity_bytes"]),
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a single stage that consists of a single step."""
        return [Stage.once(PHASE, "replay", [STEP])]

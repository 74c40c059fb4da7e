"""The replay of a trace as a run: what a run directory of `writecliff replay` holds.

The native module replays in one go (`writecliff.replay`), so that there is nothing to drive or to
resume: a run of one step, whose latencies are those of the timed part. The options hold the answer
of the command, with what was assumed and what each stream held.
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
from writecliff.procedures.own import OwnProcedure
from writecliff.workload.model import Workload

PHASE = "replay"
STEP = Step("replay", Workload("replay", ()), sample=True)


@dataclass(frozen=True, kw_only=True)
class TraceReplay(OwnProcedure):
    """A replay that was made; `answer` is what `writecliff replay --json` prints of it."""

    name = "trace_replay"
    answer: Mapping[str, Any]
    seed: int = 1

    @property
    def command(self) -> Sequence[str]:
        return ("writecliff", "replay")

    @property
    def title(self) -> str:
        return f"Replay of {self.trace_name}"

    @property
    def trace_name(self) -> str:
        """The name of the trace's file."""
        return Path(self.answer["trace"]["path"]).name

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
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
        return [Stage.once(PHASE, "replay", [STEP])]

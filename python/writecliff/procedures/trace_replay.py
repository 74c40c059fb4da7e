"""The replay of a trace as a run: what a run directory of `writecliff replay` holds.

The native module replays in one go (`writecliff.replay`), so that there is nothing to drive or to
resume: a run of one step, whose latencies are those of the timed part. The options hold the answer
of the command, with what was assumed and what each stream held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.procedures.model import Procedure, Stage, Step
from writecliff.procedures.options import Deviation, value_text
from writecliff.workload.model import Workload

PHASE = "replay"
STEP = Step("replay", Workload("replay", ()), sample=True)


@dataclass(frozen=True, kw_only=True)
class TraceReplay(Procedure):
    """A replay that was made; `answer` is what `writecliff replay --json` prints of it."""

    name = "trace_replay"
    answer: Mapping[str, Any]
    seed: int = 1

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Self:
        """The replay whose `options_mapping` was `data`."""
        return cls(**data)

    def options_mapping(self) -> dict[str, Any]:
        return dict(vars(self))

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

    @property
    def edition(self) -> str:
        return ""

    def deviations(self) -> tuple[Deviation, ...]:
        """None: there is no standard to differ from."""
        return ()

    @property
    def write_cache(self) -> bool:
        return True

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

"""Metrics of a trace's workload, computed by the native module in one pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.traces.source import Skipped, Source, skipped_mapping

YEAR_S = 365.25 * 86_400
DAY_S = 86_400.0


@dataclass(frozen=True)
class Characterised:
    """Metrics of a trace."""

    trace: Path
    formats: tuple[str, ...]
    measures: Mapping[str, Any]
    """Result of `_native.TraceMeasures`; `docs/reference/json-commands.md` lists the keys."""
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    replayed: Mapping[str, Any] | None = None
    """Effect of its writes on a simulated drive, if a drive was given."""

    @property
    def format(self) -> str:
        """Format of the trace, or formats of the archive's members."""
        return ", ".join(self.formats)

    @property
    def drive(self) -> dict[str, Any]:
        """Load on a drive, with writes per day and year, footprint, overwrites, and the replay."""
        seconds, measures = self.measures["duration_s"], self.measures
        per_second = measures["write_bytes"] / seconds if seconds > 0 else None
        footprint = measures["unique_bytes"]
        per_day = None if per_second is None else per_second * DAY_S
        read_first = footprint - measures["unique"]["write_bytes"]
        return {
            "writes_per_day_bytes": per_day,
            "writes_per_year_bytes": None if per_second is None else per_second * YEAR_S,
            "footprint_overwrites_per_day": per_day / footprint if per_day and footprint else None,
            "read_not_written_bytes": read_first,
            "replay": self.replayed,
        }

    def mapping(self) -> dict[str, Any]:
        """Return the metrics in the format of `writecliff characterise --json`."""
        return {
            "trace": self.trace,
            "format": self.format,
            **self.measures,
            **skipped_mapping(self.skipped),
            "notes": list(self.notes),
            "drive": self.drive,
        }


def characterise(source: Source, trace: Path, *, progress: WorkProgress = UNSEEN) -> Characterised:
    """Read a whole trace, and compute its metrics.

    Raises:
        ConfigError: If the trace has no I/Os, is truncated, or mostly does not match its format.
    """
    measures = _native.TraceMeasures()
    for _ in source.feed(measures):
        progress.done(source.share, ios=measures.ios)
    if not measures.ios:
        reasons = ", ".join(skipped.reason for skipped in source.skipped())
        raise ConfigError(
            f"{trace} contains no I/Os to characterise" + (f" ({reasons})" if reasons else "")
        )
    result = json.loads(measures.result())
    notes = source.notes()
    if late := result["out_of_order"]:
        notes.append(
            f"{late:,} I/Os have an earlier time than a previous I/O: measures of arrivals and "
            "queue depth omit them or are inexact"
        )
    return Characterised(
        trace=trace,
        formats=tuple(source.formats),
        measures=result,
        skipped=tuple(source.skipped()),
        notes=tuple(notes),
    )

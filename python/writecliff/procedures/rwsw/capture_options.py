"""Capture file, time steps and applied workload, shared by the tests that use a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from writecliff import units
from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures.model import Step
from writecliff.procedures.options import SOME_PERCENT, Within, option, required_option
from writecliff.procedures.pts import LoadPoint, PtsOptions, PtsProcedure
from writecliff.procedures.rwsw import mix
from writecliff.traces.capture_file import load_capture
from writecliff.traces.io_capture import IoCapture, StreamShare, normalised, on_sectors

CLAUSE = "RWSW PTS"
EDITION = "RWSW PTS 1.0.7"
DOMINANT = 9  # Number of streams in an applied workload.
COVERED_PCT = 80.0  # Minimum fraction of the I/Os that an applied workload should cover.
RECALLED = "numbers of the RWSW PTS are recalled, not read in it"


@dataclass(frozen=True, kw_only=True)
class CaptureOptions(PtsOptions):
    """Options of every test that uses a capture."""

    capture: str | None = option(
        None,
        "I/O capture: a trace in a format that `characterise` reads, or a table of streams (.toml)",
        unset="none; required",
    )
    capture_step: float | None = option(
        None,
        "duration of each time step of the trace, in seconds (1 to 600)",
        unset="at most 300 time steps",
    )
    streams: int = required_option(
        CLAUSE, DOMINANT, "number of I/O streams in the applied workload, busiest first",
        level="recommended", within=Within(1, 64),
    )  # fmt: skip
    cover_pct: float | None = option(
        None,
        "percentage of the I/Os that the busiest streams must cover; replaces --streams",
        within=SOME_PERCENT,
        unset="use --streams",
    )
    fill_capacities: float = option(
        0.0,
        "volume of sequential writes before the test, in multiples of the user capacity",
        within=Within(0, 1000),
    )
    capture_data: str = option("", "contents of the capture", measured=True)


C = TypeVar("C", bound=CaptureOptions)


class CaptureProcedure(PtsProcedure[C]):
    """A test that uses a capture.

    Raises:
        ConfigError: If an option is invalid, or the capture cannot be read.
    """

    def settle(self, options: C, *, shorten: bool) -> C:
        """Read the capture, whose contents a stored run contains instead of the file."""
        if not options.capture_data:
            if options.capture is None:
                raise ConfigError(
                    "the test requires an I/O capture",
                    hint="specify --capture TRACE, in a format of `writecliff trace formats` or "
                    "as a table of streams",
                )
            capture = load_capture(Path(options.capture), step_s=options.capture_step)
            options = replace(options, capture_data=capture.to_text())
        return super().settle(options, shorten=shorten)

    @property
    def edition(self) -> str:
        """The document that defines the tests."""
        return EDITION

    @cached_property
    def capture(self) -> IoCapture:
        """The capture."""
        return IoCapture.from_text(self.options.capture_data)

    @cached_property
    def applied(self) -> Sequence[StreamShare]:
        """The applied test workload."""
        o = self.options
        return self.capture.applied(streams=o.streams, cover_pct=o.cover_pct)

    @property
    def covered_pct(self) -> float:
        """Percentage of the capture's I/Os that the applied workload covers."""
        wanted = {share.stream for share in self.applied}
        shares = self.capture.cumulative()
        return sum(share.share_pct for share in shares if share.stream in wanted)

    @property
    def applied_text(self) -> str:
        """Short description of the applied workload, such as "Applied, 9 streams"."""
        count = len(self.applied)
        return f"Applied, {units.plural(count, 'stream')}"

    @property
    def applied_words(self) -> str:
        """One-sentence description of the applied workload."""
        count = len(self.applied)
        return f"the applied workload of {units.plural(count, 'I/O stream')}"

    @property
    def read_share_pct(self) -> float:
        """Percentage of reads in the applied workload's I/Os."""
        reads = (share for share in self.applied if share.stream.operation == "read")
        return sum(share.share_pct for share in reads)

    def capture_setup(self) -> dict[str, str]:
        """Return the header block entries and the disclosures about the capture."""
        capture, o = self.capture, self.options
        return {
            "capture": capture.name,
            "capture_source": capture.source,
            "capture_steps": f"{len(capture.steps)} x {units.duration(capture.step_s * 1e9)}",
            "applied_streams": f"{len(self.applied)}, {self.covered_pct:.3g}% of the I/Os",
            "recalled": RECALLED,
            **(
                {"precondition": "SEQ 128KiB W", "precondition_duration":
                 f"{o.fill_capacities:g} x User Capacity"} if o.fill_capacities else {}
            ),
        }  # fmt: skip

    def fill(self, identity: DeviceIdentity, at: LoadPoint) -> tuple[Step, ...]:
        """Return the sequential writes before the test."""
        return self.sequential_fill(identity, self.options.fill_capacities, at)

    @property
    def beginning(self) -> tuple[str, ...]:  # type: ignore[override]
        """Descriptions of the test's first phases, one sentence each."""
        fills = self.options.fill_capacities
        filled = (f"{fills:g} x user capacity of sequential writes",) if fills else ()
        return (*super().beginning, *filled)

    def mixed(
        self,
        identity: DeviceIdentity,
        streams: Sequence[StreamShare],
        name: str,
        *seed_path: object,
        seconds: float,
        at: LoadPoint,
        sample: bool = False,
    ) -> Step:
        """Return a step that accesses all `streams` at once, in whole sectors of the drive."""
        streams = normalised(on_sectors(streams, identity.sector_bytes))
        largest = mix.largest_bytes(streams)
        fields: dict[str, Any] = mix.job_fields(streams)
        step = self.access(
            name,
            *seed_path,
            seconds=seconds,
            threads=at[0],
            queue_depth=at[1],
            sample=sample,
            offset_bytes=self.range_start(identity, largest),
            range_bytes=self.range_bytes(identity, largest),
            **fields,
        )
        return replace(step, continues=fields["pattern"] == "sequential")


def capture_mapping(capture: IoCapture) -> Mapping[str, object]:
    """Return the entries of a summary that describe a capture, as JSON values."""
    return {
        "name": capture.name,
        "source": capture.source,
        "step_s": capture.step_s,
        "steps": len(capture.steps),
        "duration_s": capture.duration_s,
        "read_pct": capture.read_pct,
    }


def stream_mapping(share: StreamShare) -> dict[str, object]:
    """Return the entries of a summary that describe a stream, as JSON values."""
    stream = share.stream
    return {
        "access": stream.access,
        "operation": stream.operation,
        "size_bytes": stream.size_bytes,
        "share_pct": share.share_pct,
    }

"""Capture section shared by all RWSW test reports, with streams, queue depth and processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.rwsw.capture_options import capture_mapping, stream_mapping
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.base import TestReport
from writecliff.report.csvs import data_file
from writecliff.report.model import Figure, KeyFigure, Section, section
from writecliff.report.plots import lines
from writecliff.report.table import Column, DataFile, Head, Table, table

if TYPE_CHECKING:
    from writecliff.procedures.rwsw.capture_options import CaptureProcedure
    from writecliff.traces.io_capture import CaptureStep, IoCapture

DRAWN = 8  # Number of streams in the map, each in a separate colour.
LISTED = 32
PROCESSES = 12
NS_PER_S = 1e9


def unknown(value: float | None) -> float:
    """Return NaN instead of None, for use in drawings."""
    return math.nan if value is None else value


class CaptureReport(TestReport):
    """Report for a test based on a capture."""

    procedure: CaptureProcedure[Any]

    @property
    def capture(self) -> IoCapture:
        """Capture that the test replays."""
        return self.procedure.capture

    @cached_property
    def mean_iops(self) -> float | None:
        """Mean IOPS over the capture's whole duration, or None if a step was not counted."""
        mean_iops = self.capture
        measured = all(step.counted for step in mean_iops.steps)
        return mean_iops.ios / mean_iops.duration_s if measured else None

    @cached_property
    def peak_iops(self) -> float | None:
        """IOPS in the busiest time step."""
        return max((step.iops for step in self.capture.steps if step.iops is not None),
                   default=None)  # fmt: skip

    def capture_sections(self) -> Iterator[Section]:
        """Yield the capture section, which precedes the results."""
        capture, p = self.capture, self.procedure
        step = units.duration(capture.step_s * NS_PER_S)
        intro = (
            f"{capture.name} ({capture.source}): {len(capture.steps)} time steps of {step}, "
            f"{units.pct(capture.read_pct, 1)} reads. An I/O stream is an access, an operation and "
            f"a size. The applied workload has {len(p.applied)} of the streams, with "
            f"{units.pct(p.covered_pct, 1)} of the I/Os; its shares add up to 100 %."
        )
        if notes := capture.notes:
            intro += f" Note: {'; '.join(notes)}."
        yield section("The I/O capture", intro, self._streams_table(), self._processes(),
                      *self._maps())  # fmt: skip

    def _streams_table(self) -> Table:
        applied = {share.stream: share.share_pct for share in self.procedure.applied}
        cumulative = self.capture.cumulative()
        rows, covered = [], 0.0
        for number, share_of_stream in enumerate(cumulative[:LISTED], 1):
            covered += share_of_stream.share_pct
            share = applied.get(share_of_stream.stream)
            rows.append(
                (
                    f"{number}",
                    share_of_stream.stream.text,
                    share_of_stream.share_pct,
                    covered,
                    "" if share is None else share,
                )
            )
        names = ("Of the capture", "Together", "Applied workload")
        head: Head = ("", "I/O stream", *(Column(name, kinds.percents(1)) for name in names))
        return table("Cumulative and applied workload", head, rows, "rw",
                     data=self._streams_file())  # fmt: skip

    def _streams_file(self) -> DataFile:
        applied = {share.stream: share.share_pct for share in self.procedure.applied}
        head = ("access", "operation", "size_bytes", "capture_pct", "applied_pct")
        return data_file(
            "streams.csv",
            head,
            (
                (
                    share.stream.access,
                    share.stream.operation,
                    share.stream.size_bytes,
                    share.share_pct,
                    applied.get(share.stream),
                )
                for share in self.capture.cumulative()
            ),
        )

    def _processes(self) -> Table | None:
        ios: dict[str, int] = {}
        for step in self.capture.steps:
            for name, count in step.processes:
                ios[name] = ios.get(name, 0) + count
        if not ios:
            return None
        order = sorted(ios, key=lambda name: (-ios[name], name))[:PROCESSES]
        rows = [(name, ios[name], ios[name] / self.capture.ios) for name in order]
        note = "Only the eight busiest processes of each time step are counted."
        head = ("Process", Column("I/Os", kinds.NUMBER), Column("Of the capture", kinds.shares()))
        return table("Processes", head, rows, note=note)

    def _maps(self) -> Iterator[Figure | None]:
        """Yield the streams, all reads and writes, and the queue depth over the time steps."""
        steps = self.capture.steps
        if len(steps) < 2:
            return
        middles = [(step.begin_s + step.length_s / 2) * NS_PER_S for step in steps]
        x = time_axis(self.capture.duration_s * NS_PER_S, "Time of the capture")
        data = self._steps_file()
        yield lines(
            "capture-map", "I/O stream map: IOPS of the streams", data,
            [Line(name, middles, values) for name, values in self._by_stream()], x, Axis("IOPS"),
            alt="IOPS of the dominant I/O streams over the time steps of the capture",
        )  # fmt: skip
        drawn = [("reads and writes", [unknown(step.iops) for step in steps])]
        yield lines(
            "capture-iops", "IOPS of the capture", data,
            [Line(name, middles, values) for name, values in drawn], x, Axis("IOPS"),
        )  # fmt: skip
        depths = [unknown(step.queue_depth) for step in steps]
        yield lines(
            "capture-depth", "Queue depth of the capture", data,
            [Line("mean of a step", middles, depths)], x, Axis("Queue depth"),
            alt="Mean queue depth at the arrival of I/Os, over the time steps",
        )  # fmt: skip

    def _by_stream(self) -> Iterator[tuple[str, list[float]]]:
        """Yield the IOPS of the first applied streams by time step."""
        capture = self.capture
        shown = [share.stream for share in self.procedure.applied][:DRAWN]
        numbers = {capture.streams.index(stream): stream for stream in shown}
        ios = {number: [0.0] * len(capture.steps) for number in numbers}
        for place, step in enumerate(capture.steps):
            for number, count in step.streams:
                if number in ios:
                    ios[number][place] = count / step.length_s if step.counted else math.nan
        for number, stream in numbers.items():
            yield stream.text, ios[number]

    def _steps_file(self) -> DataFile:
        head = (
            "begin_s",
            "length_s",
            "iops",
            "bytes_per_s",
            "read_share",
            "queue_depth",
            "art_ns",
            "p99999_ns",
            "max_ns",
            *(stream.text for stream in self.capture.streams),
        )
        streams = len(self.capture.streams)

        def row(step: CaptureStep) -> Sequence[float | None]:
            ios: list[float | None] = [0.0] * streams
            for number, count in step.streams:
                ios[number] = count
            share = step.reads / step.ios if step.ios else None
            return (
                step.begin_s,
                step.length_s,
                step.iops,
                step.bytes_per_s,
                share,
                step.queue_depth,
                step.art_ns,
                step.p99999_ns,
                step.max_ns,
                *ios,
            )

        return data_file("capture-steps.csv", head, map(row, self.capture.steps))

    def capture_figures(self) -> Iterator[KeyFigure]:
        """Yield the key figure of the capture."""
        if self.mean_iops is not None:
            peak = units.number(self.peak_iops)
            note = f"mean; {peak} in its busiest time step"
            yield KeyFigure("IOPS of the capture", units.number(self.mean_iops), "", note)

    def capture_results(self) -> dict[str, Any]:
        """Return the summary keys about the capture."""
        return {
            "capture": {
                **capture_mapping(self.capture),
                "mean_iops": self.mean_iops,
                "peak_iops": self.peak_iops,
                "covered_pct": self.procedure.covered_pct,
            },
            "applied": [stream_mapping(share) for share in self.procedure.applied],
        }

    def notes(self) -> tuple[str, ...]:
        """Return a note if the capture has been recalled."""
        recalled = self.data.manifest.setup.get("recalled", "")
        return (f"{recalled[:1].upper()}{recalled[1:]}.",) if recalled else ()

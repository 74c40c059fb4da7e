"""The report of the replay of a capture; summary "writecliff/replay-native/1"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.procedures.rwsw.replay_native import PHASE, ReplayNative
from writecliff.report import kinds
from writecliff.report.axes import Axis, Line, time_axis
from writecliff.report.compared import Curve
from writecliff.report.csvs import data_file
from writecliff.report.figures import histogram_figures
from writecliff.report.headline import Headline, headline, ms, quantile_headline
from writecliff.report.latency import latency_mapping, latency_table, service_note
from writecliff.report.model import Figure, KeyFigure, Section, section
from writecliff.report.plots import lines
from writecliff.report.rwsw.capture_view import NS_PER_S, CaptureReport, unknown
from writecliff.report.table import DataFile, Table

if TYPE_CHECKING:
    from writecliff._native import Histogram
    from writecliff.procedures.model import StepRow
    from writecliff.traces.io_capture import CaptureStep

FIVE_NINES = 0.99999
LISTED = 60  # time steps of the table; the file has all


@dataclass(frozen=True)
class Replayed:
    """A time step of the capture and what the drive did with it."""

    captured: CaptureStep
    row: StepRow
    depth: int
    p99999_ns: float | None  # None: too few I/Os

    @property
    def middle_ns(self) -> float:
        """On the clock of the capture."""
        return (self.captured.begin_s + self.captured.length_s / 2) * NS_PER_S

    @property
    def ratio(self) -> float | None:
        """IOPS of the drive over those of the capture."""
        asked = self.captured.iops
        return self.row.iops / asked if asked else None


class ReplayNativeReport(CaptureReport):
    """The report of a run of the replay."""

    procedure: ReplayNative

    @cached_property
    def steps(self) -> Sequence[Replayed]:
        """The time steps, as far as the run got."""
        by_seq = self.data.run.histograms_by_step()
        found = []
        rows = self.data.stage_rows(PHASE)
        for captured, row in zip(self.procedure.replayed, rows, strict=False):
            histogram = by_seq.get(self.data.seq(row))
            slow = None if histogram is None else histogram.quantile(FIVE_NINES).value_ns
            found.append(Replayed(captured, row, self.procedure.depth(captured), slow))
        return found

    @cached_property
    def histogram(self) -> Histogram | None:
        rows = self.data.stage_rows(PHASE)
        return self.data.histogram(rows) if rows else None

    @property
    def latency_note(self) -> str:
        return service_note(self.histogram, ": all time steps", otherwise="No step is complete.")

    def loaded(self) -> str:
        return f"loaded with {len(self.steps)} time steps of {self.capture.name}"

    @cached_property
    def iops(self) -> float | None:
        """Over all steps."""
        took = sum(one.row.elapsed_ns for one in self.steps)
        return sum(one.row.ios for one in self.steps) / (took / NS_PER_S) if took else None

    @cached_property
    def bytes_per_s(self) -> float | None:
        took = sum(one.row.elapsed_ns for one in self.steps)
        return sum(one.row.bytes for one in self.steps) / (took / NS_PER_S) if took else None

    @cached_property
    def least_ratio(self) -> float | None:
        """Of the time step in which the drive has the least to spare."""
        return min((one.ratio for one in self.steps if one.ratio is not None), default=None)

    @property
    def behind(self) -> int:
        """Time steps in which the drive does less than the capture had."""
        return sum(one.ratio is not None and one.ratio < 1 for one in self.steps)

    def opening(self) -> list[str]:
        said = [self.began()]
        if self.least_ratio is not None:
            said.append(
                f"In {self.behind} of {len(self.steps)} time steps the drive does less than the "
                f"capture had; where it has the least to spare it does "
                f"{units.significant(self.least_ratio)} times as much."
            )
        return said

    def key_figures(self) -> Iterator[KeyFigure]:
        yield KeyFigure("Replay IOPS", units.number(self.iops), "", "over all time steps")
        value, _, unit = units.throughput(self.bytes_per_s or 0.0).rpartition(" ")
        yield KeyFigure("Throughput", value, unit, "over all time steps")
        if self.least_ratio is not None:
            note = "IOPS of drive and capture, in the time step with the least"
            yield KeyFigure("Least ratio", units.significant(self.least_ratio), "", note)
        yield from self.capture_figures()

    def headlines(self) -> list[Headline]:
        mean = None if self.histogram is None else ms(self.histogram.mean_ns)
        slow = self.histogram if self.tails_are_real else None
        return [
            *headline("replay_iops", "Replay", self.iops, "IOPS"),
            *headline("latency_mean", "Average latency", mean, "ms", higher_is_better=False),
            *quantile_headline("latency_p99999", "p99.999", slow, FIVE_NINES),
            *headline("least_ratio", "Least ratio to the capture", self.least_ratio, ""),
        ]

    def curves(self) -> list[Curve]:
        x = time_axis(self.capture.duration_s * NS_PER_S, "Time of the capture")
        iops = [(one.middle_ns, one.row.iops) for one in self.steps]
        art = [(one.middle_ns, unknown(one.row.latency_mean_ns)) for one in self.steps]
        ms_axis = Axis("Average response time", units.LATENCY_UNITS, log=True)
        return [
            Curve("replay-iops", "Replay: IOPS of the time steps", x, Axis("IOPS"), iops),
            Curve("replay-art", "Replay: ART of the time steps", x, ms_axis, art),
        ]

    def sections(self) -> Iterator[Section]:
        yield from self.capture_sections()
        yield section(
            "The replay beside the capture",
            "Each time step runs its own streams at its own queue depth, as fast as the drive can. "
            "Times of the capture are those of its drive and its host.",
            self._table(),
            *self._figures(),
        )
        yield section(
            "Response times",
            f"{self.latency_note} Percentiles are of the merged histograms.",
            *histogram_figures(self.histogram),
            latency_table(self.histogram) if self.histogram is not None else None,
        )

    def _figures(self) -> Iterator[Figure | None]:
        data, at = self._file(), [one.middle_ns for one in self.steps]
        x = time_axis(self.capture.duration_s * NS_PER_S, "Time of the capture")
        latency = Axis("Response time", units.LATENCY_UNITS, log=True)
        captured = [one.captured for one in self.steps]
        rows = [one.row for one in self.steps]
        drawn: tuple[tuple[str, str, Axis, list[float], list[float]], ...] = (
            ("replay-iops", "IOPS", Axis("IOPS", log=True),
             [row.iops for row in rows], [unknown(one.iops) for one in captured]),
            ("replay-throughput", "Throughput", Axis("Throughput", (units.MB_S,), log=True),
             [row.bytes_per_s for row in rows], [unknown(one.bytes_per_s) for one in captured]),
            ("replay-art", "Average response time", latency,
             [unknown(row.latency_mean_ns) for row in rows], [unknown(c.art_ns) for c in captured]),
            ("replay-nines", "99.999 % of the response times", latency,
             [unknown(one.p99999_ns) for one in self.steps],
             [unknown(c.p99999_ns) for c in captured]),
        )  # fmt: skip
        for name, title, y, ours, theirs in drawn:
            series = [Line("drive", at, ours), Line("capture", at, theirs)]
            alt = f"{title} of drive and capture over the time steps"
            yield lines(name, f"{title} of the time steps", data, series, x, y, alt=alt)

    def _table(self) -> Table:
        shown = self.steps[:LISTED]
        more = len(self.steps) - len(shown)

        def pair(text: Any, ours: float | None, theirs: float | None) -> str:
            return f"{text(ours)} / {text(theirs)}"

        return Table.of(
            "Time steps, drive / capture",
            shown,
            ("Begin", kinds.DURATION, lambda one: one.captured.begin_s * NS_PER_S),
            ("QD", kinds.plain(), lambda one: one.depth),
            ("Streams", kinds.plain(), lambda one: len(one.captured.streams)),
            ("IOPS", kinds.RIGHT,
             lambda one: pair(units.number, one.row.iops, one.captured.iops)),
            ("MB/s", kinds.RIGHT,
             lambda one: pair(_mb, one.row.bytes_per_s, one.captured.bytes_per_s)),
            ("ART", kinds.RIGHT,
             lambda one: pair(units.latency, one.row.latency_mean_ns, one.captured.art_ns)),
            ("99.999 %", kinds.RIGHT,
             lambda one: pair(units.latency, one.p99999_ns, one.captured.p99999_ns)),
            note=f"{more} more steps are in the file." if more else "",
            data=self._file(),
        )  # fmt: skip

    def _file(self) -> DataFile:
        head = ("begin_s", "queue_depth", "iops", "bytes_per_s", "art_ns", "p99999_ns",
                "capture_queue_depth", "capture_iops", "capture_bytes_per_s", "capture_art_ns",
                "capture_p99999_ns")  # fmt: skip
        return data_file(
            "replay-steps.csv",
            head,
            (
                (
                    c.begin_s, one.depth, one.row.iops, one.row.bytes_per_s,
                    one.row.latency_mean_ns, one.p99999_ns, c.queue_depth, c.iops, c.bytes_per_s,
                    c.art_ns, c.p99999_ns,
                )
                for one in self.steps
                for c in (one.captured,)
            ),
        )  # fmt: skip

    def results(self) -> dict[str, Any]:
        return {
            **self.capture_results(),
            "figures": {
                "replay_iops": self.iops,
                "replay_bytes_per_s": self.bytes_per_s,
                "least_ratio": self.least_ratio,
                "steps_behind": self.behind,
                "steps": len(self.steps),
            },
            "steps": [
                {
                    "begin_s": one.captured.begin_s,
                    "queue_depth": one.depth,
                    "iops": one.row.iops,
                    "bytes_per_s": one.row.bytes_per_s,
                    "art_ns": one.row.latency_mean_ns,
                    "p99999_ns": one.p99999_ns,
                    "capture_iops": one.captured.iops,
                    "capture_art_ns": one.captured.art_ns,
                }
                for one in self.steps
            ],
            "latency": None if self.histogram is None else latency_mapping(self.histogram),
        }


def _mb(value: float | None) -> str:
    return units.number(None if value is None else value / 1e6, 1)

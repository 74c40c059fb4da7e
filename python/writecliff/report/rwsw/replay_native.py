"""Report for a capture replay, with the summary "writecliff/replay-native/1"."""

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
LISTED = 60  # Number of time steps in the table; the file contains all time steps.


@dataclass(frozen=True)
class Replayed:
    """A time step of the capture, and its replay on the drive."""

    captured: CaptureStep
    row: StepRow
    depth: int
    p99999_ns: float | None  # Percentile in ns; `None` if there are too few I/Os.

    @property
    def middle_ns(self) -> float:
        """Middle of the time step in ns, on the capture's clock."""
        return (self.captured.begin_s + self.captured.length_s / 2) * NS_PER_S

    @property
    def ratio(self) -> float | None:
        """Ratio of the drive's IOPS to the capture's IOPS, or None without I/Os."""
        asked = self.captured.iops
        return self.row.iops / asked if asked else None


class ReplayNativeReport(CaptureReport):
    """Report for a replay run."""

    procedure: ReplayNative

    @cached_property
    def steps(self) -> Sequence[Replayed]:
        """Time steps that were replayed."""
        by_seq = self.data.run.histograms_by_step()
        steps = []
        rows = self.data.stage_rows(PHASE)
        for captured, row in zip(self.procedure.replayed, rows, strict=False):
            histogram = by_seq.get(self.data.seq(row))
            slow = None if histogram is None else histogram.quantile(FIVE_NINES).value_ns
            steps.append(Replayed(captured, row, self.procedure.depth(captured), slow))
        return steps

    @cached_property
    def histogram(self) -> Histogram | None:
        """Response times over all time steps."""
        rows = self.data.stage_rows(PHASE)
        return self.data.histogram(rows) if rows else None

    @property
    def latency_note(self) -> str:
        """Steps covered by `histogram`."""
        return service_note(self.histogram, ": all time steps", otherwise="No step is complete.")

    def loaded(self) -> str:
        """Return the number of replayed time steps and the capture."""
        return f"loaded with {len(self.steps)} time steps of {self.capture.name}"

    @cached_property
    def iops(self) -> float | None:
        """IOPS over all steps, or None if no step ran."""
        took = sum(step.row.elapsed_ns for step in self.steps)
        return sum(step.row.ios for step in self.steps) / (took / NS_PER_S) if took else None

    @cached_property
    def bytes_per_s(self) -> float | None:
        """Throughput over all steps in bytes per second, or None if no step ran."""
        took = sum(step.row.elapsed_ns for step in self.steps)
        return sum(step.row.bytes for step in self.steps) / (took / NS_PER_S) if took else None

    @cached_property
    def least_ratio(self) -> float | None:
        """Smallest replay-to-capture ratio over all time steps."""
        return min((step.ratio for step in self.steps if step.ratio is not None), default=None)

    @property
    def behind(self) -> int:
        """Number of time steps where the drive is slower than the capture."""
        return sum(step.ratio is not None and step.ratio < 1 for step in self.steps)

    def opening(self) -> list[str]:
        """Return the initial state and the comparison with the capture."""
        sentences = [self.began()]
        if self.least_ratio is not None:
            sentences.append(
                f"In {self.behind} of {len(self.steps)} time steps the drive is slower than the "
                f"capture; in its slowest time step it reaches "
                f"{units.significant(self.least_ratio)} times the IOPS of the capture."
            )
        return sentences

    def key_figures(self) -> Iterator[KeyFigure]:
        """Yield the IOPS, the throughput and the smallest ratio to the capture."""
        yield KeyFigure("Replay IOPS", units.number(self.iops), "", "over all time steps")
        value, _, unit = units.throughput(self.bytes_per_s or 0.0).rpartition(" ")
        yield KeyFigure("Throughput", value, unit, "over all time steps")
        if self.least_ratio is not None:
            note = "IOPS of drive and capture, smallest of all time steps"
            yield KeyFigure("Least ratio", units.significant(self.least_ratio), "", note)
        yield from self.capture_figures()

    def headlines(self) -> list[Headline]:
        """Return the IOPS, the latencies and the smallest ratio to the capture."""
        mean = None if self.histogram is None else ms(self.histogram.mean_ns)
        slow = self.histogram if self.tails_are_real else None
        return [
            *headline("replay_iops", "Replay", self.iops, "IOPS"),
            *headline("latency_mean", "Average latency", mean, "ms", higher_is_better=False),
            *quantile_headline("latency_p99999", "p99.999", slow, FIVE_NINES),
            *headline("least_ratio", "Least ratio to the capture", self.least_ratio, ""),
        ]

    def curves(self) -> list[Curve]:
        """Return the IOPS and average response time over the capture's duration."""
        x = time_axis(self.capture.duration_s * NS_PER_S, "Time of the capture")
        iops = [(step.middle_ns, step.row.iops) for step in self.steps]
        art = [(step.middle_ns, unknown(step.row.latency_mean_ns)) for step in self.steps]
        ms_axis = Axis("Average response time", units.LATENCY_UNITS, log=True)
        return [
            Curve("replay-iops", "Replay: IOPS of the time steps", x, Axis("IOPS"), iops),
            Curve("replay-art", "Replay: ART of the time steps", x, ms_axis, art),
        ]

    def sections(self) -> Iterator[Section]:
        """Yield the capture, the replay next to the capture, and the response times."""
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
        data, at = self._file(), [step.middle_ns for step in self.steps]
        x = time_axis(self.capture.duration_s * NS_PER_S, "Time of the capture")
        latency = Axis("Response time", units.LATENCY_UNITS, log=True)
        captured = [step.captured for step in self.steps]
        rows = [step.row for step in self.steps]
        drawn: tuple[tuple[str, str, Axis, list[float], list[float]], ...] = (
            ("replay-iops", "IOPS", Axis("IOPS", log=True),
             [row.iops for row in rows], [unknown(step.iops) for step in captured]),
            ("replay-throughput", "Throughput", Axis("Throughput", (units.MB_S,), log=True),
             [row.bytes_per_s for row in rows], [unknown(step.bytes_per_s) for step in captured]),
            ("replay-art", "Average response time", latency,
             [unknown(row.latency_mean_ns) for row in rows], [unknown(c.art_ns) for c in captured]),
            ("replay-nines", "99.999 % of the response times", latency,
             [unknown(step.p99999_ns) for step in self.steps],
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
            ("Begin", kinds.DURATION, lambda step: step.captured.begin_s * NS_PER_S),
            ("QD", kinds.plain(), lambda step: step.depth),
            ("Streams", kinds.plain(), lambda step: len(step.captured.streams)),
            ("IOPS", kinds.RIGHT,
             lambda step: pair(units.number, step.row.iops, step.captured.iops)),
            ("MB/s", kinds.RIGHT,
             lambda step: pair(_mb, step.row.bytes_per_s, step.captured.bytes_per_s)),
            ("ART", kinds.RIGHT,
             lambda step: pair(units.latency, step.row.latency_mean_ns, step.captured.art_ns)),
            ("99.999 %", kinds.RIGHT,
             lambda step: pair(units.latency, step.p99999_ns, step.captured.p99999_ns)),
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
                    c.begin_s, step.depth, step.row.iops, step.row.bytes_per_s,
                    step.row.latency_mean_ns, step.p99999_ns, c.queue_depth, c.iops, c.bytes_per_s,
                    c.art_ns, c.p99999_ns,
                )
                for step in self.steps
                for c in (step.captured,)
            ),
        )  # fmt: skip

    def results(self) -> dict[str, Any]:
        """Return the capture, the figures and the latency."""
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
                    "begin_s": step.captured.begin_s,
                    "queue_depth": step.depth,
                    "iops": step.row.iops,
                    "bytes_per_s": step.row.bytes_per_s,
                    "art_ns": step.row.latency_mean_ns,
                    "p99999_ns": step.p99999_ns,
                    "capture_iops": step.captured.iops,
                    "capture_art_ns": step.captured.art_ns,
                }
                for step in self.steps
            ],
            "latency": None if self.histogram is None else latency_mapping(self.histogram),
        }


def _mb(value: float | None) -> str:
    return units.number(None if value is None else value / 1e6, 1)

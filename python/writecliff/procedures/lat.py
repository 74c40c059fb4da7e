"""LAT, the latency test, with a single outstanding I/O until steady state.

PTS-C and PTS-E, revisions 1.x and 2.0. After a purge and workload-independent preconditioning, the
test runs rounds of nine one-minute steps, which combine three read/write mixes (outer loop) with
three block sizes. The test tracks the average latency of random 4 KiB writes. Revision 2.0 adds a
20-minute response-time histogram of random 4 KiB writes after the rounds. A histogram of reads is
optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.model import Stage
from writecliff.procedures.options import SECONDS, option, required_option
from writecliff.procedures.pts import mix_text, queue_depth_option, threads_option
from writecliff.procedures.sources import Choice
from writecliff.workload.model import KIB

CLAUSE = "PTS latency"
READ_PCTS = (100.0, 65.0, 0.0)
BLOCK_SIZES_KIB = (8.0, 4.0, 0.5)
TRACKED: cells.Cell = (4 * KIB, 0.0)
MAXIMA = ("window", "mean")


@dataclass(frozen=True, kw_only=True)
class LatOptions(cells.LoopOptions):
    """Options of the latency test. Omitted options have the edition's values."""

    threads: int = threads_option(CLAUSE, 1, "required")
    queue_depth: int = queue_depth_option(CLAUSE, 1, "required")
    read_pcts: tuple[float, ...] = cells.mixes_option(CLAUSE, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CLAUSE, BLOCK_SIZES_KIB)
    max_latency: str = option(
        "window",
        "maximum latency shown in the tables: the maximum over the measurement window, or the "
        "mean of its rounds' maxima",
        choices=MAXIMA,
    )
    histogram: bool | None = required_option(
        CLAUSE,
        {"2.0": True},
        "finish with a 20-minute response-time histogram of random 4 KiB writes",
    )
    histogram_reads: bool = option(False, "add a response-time histogram of random 4 KiB reads")
    histogram_seconds: float = required_option(
        CLAUSE, 1200.0, "duration of each histogram step, in seconds", within=SECONDS, quick=10.0
    )


class Lat(cells.CellLoop[LatOptions]):
    """The latency test. Raises ConfigError if an option is invalid."""

    name = "lat"
    subtitle = "LATENCY - Response Time OIO=1"
    options_type = LatOptions
    loop_name = "LAT Loop"
    variable = cells.tracked_latency
    tracked = (TRACKED,)

    @property
    def histogram_read_pcts(self) -> tuple[float, ...]:
        """Read percentages of the histograms that follow the rounds."""
        o = self.options
        return (0.0,) * bool(o.histogram) + (100.0,) * o.histogram_reads

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Add the subtitle and the histograms to the disclosed parameters."""
        o = self.options
        outstanding = o.threads * o.queue_depth
        entries = {
            **super().setup(identity),
            "subtitle": f"LATENCY - Response Time OIO={outstanding}",
        }
        if self.histogram_read_pcts:
            mixes = ", ".join(map(mix_text, self.histogram_read_pcts))
            entries["test_stimulus_2"] = f"RTH RND 4KiB {mixes}, {o.histogram_seconds:g} s"
            entries["toio_2"] = self.toio
        return entries

    def choices(self) -> tuple[Choice, ...]:
        """Add the choices on tracking, maxima and histograms that sources disagree about."""
        longest = Choice(
            "maximum latency of a cell",
            "the longest of all I/Os of the window; the mean of its rounds' maxima",
            {"window": "the longest", "mean": "the mean"}[self.options.max_latency],
            "--max-latency",
        )
        tracked = Choice(
            "tracking variable of steady state",
            "the average latency of RND 4KiB 0/100 (published programs); no public text states "
            "if the maximum must be steady too",
            "the average",
        )
        mixes = ", ".join(map(mix_text, self.histogram_read_pcts))
        histograms = Choice(
            "response-time histograms after the rounds",
            "RND 4KiB 0/100; 100/0 after it as well",
            mixes,
            "--histogram-reads",
        )
        return (*super().choices(), tracked, longest, *([histograms] if mixes else []))

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the rounds and any histograms."""
        rounds = super().stages(identity)
        if not self.histogram_read_pcts:
            return rounds
        histograms = [
            self.cell(
                identity,
                f"response-time histogram {mix_text(read_pct)}",
                "histogram",
                TRACKED[0],
                read_pct,
                seconds=self.options.histogram_seconds,
                read_pct=read_pct,
            )
            for read_pct in self.histogram_read_pcts
        ]
        return (*rounds, Stage.once("rth", "response-time histogram", histograms))

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        histograms = (
            f"response-time histogram of RND 4KiB {mix_text(read_pct)}, "
            f"{self.options.histogram_seconds:g} s"
            for read_pct in self.histogram_read_pcts
        )
        return (*super().phases(identity), *histograms)

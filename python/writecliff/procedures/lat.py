"""LAT, latency: response times with a single outstanding I/O, until steady.

PTS-C and PTS-E, revisions 1.x and 2.0. Purge, workload-independent preconditioning, then rounds of
nine one-minute steps: three read/write mixes (outer loop) and three block sizes. Steady state is
that of the average latency of random 4 KiB writes. Revision 2.0 adds a response-time histogram of
20 minutes of random 4 KiB writes afterwards; one of reads can be had as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.options import (
    SECONDS,
    option,
    queue_depth_option,
    required_option,
    threads_option,
)
from writecliff.procedures.pts import (
    PtsProcedure,
    RoundOptions,
    block_text,
    mix_text,
    toio_text,
)
from writecliff.workload.model import KIB

CLAUSE = "PTS latency"
READ_PCTS = (100.0, 65.0, 0.0)
BLOCK_SIZES_KIB = (8.0, 4.0, 0.5)
TRACKED: cells.Cell = (4 * KIB, 0.0)
MAXIMA = ("window", "mean")


@dataclass(frozen=True, kw_only=True)
class LatOptions(RoundOptions):
    """Options of the latency test. None stands for the value of the edition."""

    threads: int | None = threads_option(CLAUSE, {"*": 1}, "required")
    queue_depth: int | None = queue_depth_option(CLAUSE, {"*": 1}, "required")
    read_pcts: tuple[float, ...] = cells.mixes_option(CLAUSE, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CLAUSE, BLOCK_SIZES_KIB)
    max_latency: str = option(
        "window",
        "maximum in the tables: of all I/Os of the window, or the mean of its rounds' maxima",
        choices=MAXIMA,
    )
    histogram: bool | None = required_option(
        CLAUSE,
        {"1.x": False, "2.0": True},
        "response-time histogram of 20 minutes of random 4 KiB writes at the end",
    )
    histogram_reads: bool = option(
        False, "another response-time histogram, of random 4 KiB reads, after it"
    )
    histogram_seconds: float | None = required_option(
        CLAUSE, {"*": 1200.0}, "length of each histogram step", within=SECONDS, quick=10.0
    )


class Lat(PtsProcedure):
    """The latency test, its options settled and checked (else ConfigError)."""

    name = "lat"
    subtitle = "LATENCY - Response Time OIO=1"
    options_type = LatOptions

    def check(self) -> None:
        cells.need_cells((TRACKED,), self.sizes, self.options.read_pcts, "random")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Block sizes in bytes, in the order of the inner loop."""
        return cells.sizes_bytes(self.options.block_sizes_kib)

    @property
    def histogram_read_pcts(self) -> tuple[float, ...]:
        """The histograms after the rounds, by their share of reads."""
        o = self.options
        return (0.0,) * bool(o.histogram) + (100.0,) * bool(o.histogram_reads)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        toio = toio_text(o.threads, o.queue_depth)
        found = {
            **super().setup(identity),
            **self.precondition_setup("LAT Loop", toio),
            "subtitle": f"LATENCY - Response Time OIO={o.threads * o.queue_depth}",
            "test_stimulus": "LAT Loop",
            "rw_mix": ", ".join(map(mix_text, o.read_pcts)),
            "block_sizes": ", ".join(map(block_text, cells.supported(self.sizes, identity))),
            "toio": toio,
        }
        if self.histogram_read_pcts:
            mixes = ", ".join(map(mix_text, self.histogram_read_pcts))
            found["test_stimulus_2"] = f"RTH RND 4KiB {mixes}, {o.histogram_seconds:g} s"
            found["toio_2"] = toio
        return found

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        cells.need_supported((TRACKED,), identity, "random")
        rounds = Stage(
            phase="rounds",
            title="rounds",
            steps=lambda history, number: self._round(identity, number),
            tracking=(cells.tracked_latency(TRACKED),),
            ends=self.round_ends(),
            rounds_max=self.options.max_rounds,
            purge=True,
            prepare=self.wipc(identity),
        )
        if not self.histogram_read_pcts:
            return (rounds,)
        histograms = Stage(
            phase="rth",
            title="response-time histogram",
            steps=lambda history, number: self._histograms(identity),
        )
        return (rounds, histograms)

    def _round(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        o = self.options
        loop = [(size, read) for read in o.read_pcts for size in self.sizes]
        possible = cells.supported(self.sizes, identity)
        return [
            self._cell(
                identity,
                cells.cell_text(cell),
                cell,
                o.step_seconds,
                number,
                sample=cell == TRACKED,
            )
            for cell in loop
            if cell[0] in possible
        ]

    def _histograms(self, identity: DeviceIdentity) -> Sequence[Step]:
        return [
            self._cell(
                identity,
                f"response-time histogram {mix_text(read_pct)}",
                (TRACKED[0], read_pct),
                self.options.histogram_seconds,
                "histogram",
            )
            for read_pct in self.histogram_read_pcts
        ]

    def _cell(
        self,
        identity: DeviceIdentity,
        name: str,
        cell: cells.Cell,
        seconds: float,
        place: object,
        *,
        sample: bool = False,
    ) -> Step:
        return self.cell(
            identity,
            name,
            place,
            *cell,
            seconds=seconds,
            threads=self.options.threads,
            queue_depth=self.options.queue_depth,
            block_bytes=cell[0],
            read_pct=cell[1],
            sample=sample,
        )

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        sizes = cells.supported(self.sizes, identity)
        histograms = (
            f"response-time histogram of RND 4KiB {mix_text(read_pct)}, {o.histogram_seconds:g} s"
            for read_pct in self.histogram_read_pcts
        )
        loop = self.loop_phases(
            f"a round: {len(o.read_pcts)} mixes x {len(sizes)} block sizes, random, "
            f"{toio_text(o.threads, o.queue_depth)}, in steps of {o.step_seconds:g} s"
        )
        return (*loop, *histograms)

    def warnings(self, history: History) -> tuple[str, ...]:
        return (
            *super().warnings(history),
            *cells.left_out(self.sizes, history.stages.get("rounds")),
        )

"""IOPS: random I/O in eight block sizes and seven read/write mixes, until steady.

PTS-C and PTS-E, revisions 1.x and 2.0. Purge, workload-independent preconditioning, then rounds of
56 one-minute steps: the mixes are the outer loop and the block sizes the inner one, in the order
that the standard prescribes. Steady state is that of random 4 KiB writes (1.x); revision 2.0 wants
three cells steady in the same window. Results are the means over the rounds of the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.procedures import cells
from writecliff.procedures.model import History, Stage, Step
from writecliff.procedures.options import (
    QD_BY_EDITION,
    TC_BY_EDITION,
    queue_depth_option,
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

CLAUSE = "PTS IOPS"
READ_PCTS = (100.0, 95.0, 65.0, 50.0, 35.0, 5.0, 0.0)
BLOCK_SIZES_KIB = (1024.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 0.5)
TRACKED: Mapping[str, tuple[cells.Cell, ...]] = {
    "1.x": ((4 * KIB, 0.0),),
    "2.0": ((4 * KIB, 0.0), (64 * KIB, 65.0), (1024 * KIB, 100.0)),
}


@dataclass(frozen=True, kw_only=True)
class IopsOptions(RoundOptions):
    """Options of the IOPS test. None stands for the value of the edition."""

    threads: int | None = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int | None = queue_depth_option(CLAUSE, QD_BY_EDITION)
    read_pcts: tuple[float, ...] = cells.mixes_option(CLAUSE, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CLAUSE, BLOCK_SIZES_KIB)


class Iops(PtsProcedure):
    """The IOPS test, its options settled and checked (else ConfigError)."""

    name = "iops"
    subtitle = "IOPS - Block Size x RW Mix Matrix"
    options_type = IopsOptions

    def check(self) -> None:
        cells.need_cells(self.tracked, self.sizes, self.options.read_pcts, "random")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Block sizes in bytes, in the order of the inner loop."""
        return cells.sizes_bytes(self.options.block_sizes_kib)

    @property
    def tracked(self) -> tuple[cells.Cell, ...]:
        return TRACKED[self.options.revision]

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        sizes = cells.supported(self.sizes, identity)
        return {
            **super().setup(identity),
            **self.precondition_setup("IOPS Loop", toio_text(o.threads, o.queue_depth)),
            "test_stimulus": "IOPS Loop",
            "rw_mix": ", ".join(map(mix_text, o.read_pcts)),
            "block_sizes": ", ".join(map(block_text, sizes)),
            "toio": toio_text(o.threads, o.queue_depth),
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        cells.need_supported(self.tracked, identity, "random")
        return (
            Stage(
                phase="rounds",
                title="rounds",
                steps=lambda history, number: self._round(identity, number),
                tracking=tuple(map(cells.tracked_iops, self.tracked)),
                ends=self.round_ends(),
                rounds_max=self.options.max_rounds,
                purge=True,
                prepare=self.wipc(identity),
            ),
        )

    def _round(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        o = self.options
        loop = [(size, read) for read in o.read_pcts for size in self.sizes]
        possible = cells.supported(self.sizes, identity)
        return [
            self.cell(
                identity,
                cells.cell_text(cell),
                number,
                *cell,
                seconds=o.step_seconds,
                threads=o.threads,
                queue_depth=o.queue_depth,
                block_bytes=cell[0],
                read_pct=cell[1],
                sample=cell in self.tracked,
            )
            for cell in loop
            if cell[0] in possible
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        sizes = cells.supported(self.sizes, identity)
        return self.loop_phases(
            f"a round: {len(o.read_pcts)} mixes x {len(sizes)} block sizes, random, "
            f"{toio_text(o.threads, o.queue_depth)}, in steps of {o.step_seconds:g} s"
        )

    def warnings(self, history: History) -> tuple[str, ...]:
        return (
            *super().warnings(history),
            *cells.left_out(self.sizes, history.stages.get("rounds")),
        )

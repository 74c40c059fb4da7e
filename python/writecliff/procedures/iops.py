"""IOPS test, with random I/O at eight block sizes and seven read/write mixes until steady state.

PTS-C and PTS-E, revisions 1.x and 2.0. After a purge and workload-independent preconditioning, the
test runs rounds of 56 one-minute steps. The mixes are the outer loop and the block sizes are the
inner loop, in the order that the standard prescribes. Revision 1.x tracks random 4 KiB writes.
Revision 2.0 requires three cells to be steady in the same window. Results are averaged over the
rounds of the measurement window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from writecliff.procedures import cells
from writecliff.procedures.pts import (
    QD_BY_EDITION,
    TC_BY_EDITION,
    queue_depth_option,
    threads_option,
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
class IopsOptions(cells.LoopOptions):
    """Options of the IOPS test. Omitted options have the edition's values."""

    threads: int = threads_option(CLAUSE, TC_BY_EDITION)
    queue_depth: int = queue_depth_option(CLAUSE, QD_BY_EDITION)
    read_pcts: tuple[float, ...] = cells.mixes_option(CLAUSE, READ_PCTS)
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CLAUSE, BLOCK_SIZES_KIB)


T = TypeVar("T", bound=IopsOptions)


class IopsLoop(cells.CellLoop[T]):
    """The rounds of the IOPS test, which other tests use as well."""

    loop_name = "IOPS Loop"
    variable = cells.tracked_iops

    @property
    def tracked(self) -> tuple[cells.Cell, ...]:
        """The cells that determine steady state, by revision."""
        return TRACKED[self.options.revision]


class Iops(IopsLoop[IopsOptions]):
    """The IOPS test. Raises ConfigError if an option is invalid."""

    name = "iops"
    subtitle = "IOPS - Block Size x RW Mix Matrix"
    options_type = IopsOptions

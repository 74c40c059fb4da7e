"""Cells, and the tests (IOPS and latency) that repeat a loop over cells.

A cell is a block size at a read/write mix. A loop combines every mix (outer loop) with every block
size (inner loop). The figures of selected cells determine steady state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError, EngineError
from writecliff.procedures.active_range import SegmentOptions
from writecliff.procedures.model import (
    History,
    Stage,
    StageHistory,
    Step,
    StepRow,
    TrackingVariable,
)
from writecliff.procedures.options import BLOCK_KIB, PERCENT, required_option
from writecliff.procedures.pts import (
    RoundOptions,
    RoundProcedure,
    block_text,
    mix_text,
    rounds_until_steady,
)
from writecliff.workload.model import KIB, Pattern

# Sector size; all block sizes, like the sectors of every drive, are multiples of this size.
SECTOR_BYTES = 512
LETTERS = {"random": "RND", "sequential": "SEQ"}

Cell = tuple[int, float]  # Block size in bytes, and read percentage.


def mixes_option(clause: str, read_pcts: tuple[float, ...]) -> Any:
    """Return the option for a test's outer loop."""
    help = "read/write mixes of the outer loop, in order, as percentages of reads"
    return required_option(clause, read_pcts, help, within=PERCENT)


def block_sizes_option(clause: str, sizes_kib: tuple[float, ...]) -> Any:
    """Return the option for a test's inner loop."""
    help = "block sizes of the inner loop, in order, in KiB"
    return required_option(clause, sizes_kib, help, within=BLOCK_KIB)


@dataclass(frozen=True, kw_only=True)
class LoopOptions(RoundOptions, SegmentOptions):
    """Options of tests that repeat a loop over cells."""

    read_pcts: tuple[float, ...] = mixes_option("PTS", ())
    block_sizes_kib: tuple[float, ...] = block_sizes_option("PTS", ())


C = TypeVar("C", bound=LoopOptions)


class CellLoop(RoundProcedure[C]):
    """A test that repeats a loop over random cells until the `tracked` cells are steady."""

    loop_name: ClassVar[str]  # Name in the header block, such as "IOPS Loop".
    # Function that returns the tracking variable of a cell.
    variable: ClassVar[Callable[[Cell], TrackingVariable]]

    @property
    @abstractmethod
    def tracked(self) -> tuple[Cell, ...]:
        """The cells that determine steady state."""

    def check(self) -> None:
        """Raise ConfigError if the loop omits a cell that determines steady state."""
        sizes, mixes = self.sizes, self.options.read_pcts
        for cell in self.tracked:
            if cell[0] not in sizes or cell[1] not in mixes:
                raise ConfigError(
                    f"these block sizes and mixes omit {cell_text(cell)}, which determines steady "
                    "state",
                    hint=f"include {cell[0] / KIB:g} in --block-sizes-kib and {cell[1]:g} in "
                    "--read-pcts",
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Block sizes in bytes, in the order of the inner loop."""
        return sizes_bytes(self.options.block_sizes_kib)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (preconditioning, mixes, block sizes and demand)."""
        return {
            **super().setup(identity),
            **self.precondition_setup(self.loop_name),
            "test_stimulus": self.loop_name,
            "rw_mix": ", ".join(map(mix_text, self.options.read_pcts)),
            "block_sizes": ", ".join(map(block_text, supported(self.sizes, identity))),
            "toio": self.toio,
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return the rounds, or raise ConfigError if the drive cannot run a steady-state cell."""
        need_supported(self.tracked, identity)
        return (
            rounds_until_steady(
                lambda number: self._round(identity, number),
                self.options.max_rounds,
                *map(type(self).variable, self.tracked),
                purge=True,
                prepare=self.wipc(identity),
            ),
        )

    def _round(self, identity: DeviceIdentity, number: int) -> Sequence[Step]:
        o = self.options
        return [
            self.cell(
                identity,
                cell_text((size, read_pct)),
                number,
                size,
                read_pct,
                seconds=o.step_seconds,
                block_bytes=size,
                read_pct=read_pct,
                sample=(size, read_pct) in self.tracked,
            )
            for read_pct in o.read_pcts
            for size in supported(self.sizes, identity)
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        return self.loop_phases(
            f"a round: {len(o.read_pcts)} mixes x {len(supported(self.sizes, identity))} block "
            f"sizes, random, {self.toio}, in steps of {o.step_seconds:g} s"
        )

    def warnings(self, history: History) -> tuple[str, ...]:
        """Add a warning about block sizes that the drive does not support."""
        rounds = history.stages.get("rounds")
        return (*super().warnings(history), *_left_out(self.sizes, rounds))


def cell_text(cell: Cell, pattern: Pattern = "random") -> str:
    """Return a cell in the standard's notation, such as "RND 4KiB 0/100"."""
    return f"{LETTERS[pattern]} {block_text(cell[0])} {mix_text(cell[1])}"


def row_of_cell(rows: Iterable[StepRow], cell: Cell) -> StepRow:
    """Return the step for `cell` among the rows of a round. Raises KeyError if no row matches."""
    for row in rows:
        if (row.block_bytes, row.read_pct) == cell:
            return row
    raise KeyError(cell_text(cell))


def tracked_iops(cell: Cell) -> TrackingVariable:
    """Return the tracking variable for a cell's IOPS."""
    return TrackingVariable(
        f"{cell_text(cell)} IOPS", "IOPS", lambda rows: row_of_cell(rows, cell).iops
    )


def tracked_throughput(cell: Cell) -> TrackingVariable:
    """Return the tracking variable for sequential throughput, in decimal MB/s."""
    return TrackingVariable(
        f"{cell_text(cell, 'sequential')} throughput",
        "MB/s",
        lambda rows: row_of_cell(rows, cell).bytes_per_s / 1e6,
    )


def tracked_latency(cell: Cell) -> TrackingVariable:
    """Return the tracking variable for a cell's average service time, in µs."""

    def value(rows: Sequence[StepRow]) -> float:
        mean_ns = row_of_cell(rows, cell).latency_mean_ns
        if mean_ns is None:
            raise EngineError(
                f"a step completed no I/O for the cell {cell_text(cell)}, so the cell has no "
                f"latency",
                hint="the steps are too short for this drive, so increase --step-seconds",
            )
        return mean_ns / 1e3

    return TrackingVariable(f"{cell_text(cell)} average latency", "µs", value)


def sizes_bytes(sizes_kib: Iterable[float]) -> tuple[int, ...]:
    """Convert block sizes from KiB to bytes.

    Raises:
        ConfigError: If a size is not a multiple of `SECTOR_BYTES`.
    """
    sizes = []
    for size_kib in sizes_kib:
        size = size_kib * KIB
        if size % SECTOR_BYTES:
            nearest = max(1, round(size / SECTOR_BYTES)) * SECTOR_BYTES / KIB
            raise ConfigError(
                f"block sizes must be multiples of 0.5 KiB, not {size_kib:g} KiB",
                hint=f"the nearest valid size is {nearest:g}",
            )
        sizes.append(int(size))
    return tuple(sizes)


def supported(sizes: Iterable[int], identity: DeviceIdentity) -> tuple[int, ...]:
    """Return the sizes that the drive supports, which are multiples of its sector size."""
    return tuple(size for size in sizes if size % identity.sector_bytes == 0)


def need_supported(
    cells: Iterable[Cell], identity: DeviceIdentity, pattern: Pattern = "random"
) -> None:
    """Check that the drive supports the cells that determine steady state.

    Raises:
        ConfigError: If a block size is not a multiple of the drive's sector size.
    """
    for cell in cells:
        if cell[0] % identity.sector_bytes:
            raise ConfigError(
                f"{cell_text(cell, pattern)} determines steady state, but the drive's sector size "
                f"is {identity.sector_bytes} bytes",
                hint="run this test on a drive with smaller sectors",
            )


def _left_out(sizes: Iterable[int], stage: StageHistory | None) -> tuple[str, ...]:
    """Return a warning about block sizes that the drive does not support and the rounds omit."""
    if stage is None or not stage.rounds_done:
        return ()
    seen = {row.block_bytes for row in stage.rows}
    missing = [size for size in sizes if size not in seen]
    if not missing:
        return ()
    names = " and ".join(map(block_text, missing))
    return (f"{names} omitted: not a multiple of the drive's sectors",)

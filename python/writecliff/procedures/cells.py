"""Cells: one block size at one read/write mix, and the figures that are tracked of them.

The loops of IOPS, throughput and latency are made of cells; steady state is judged by some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError, EngineError
from writecliff.procedures.model import StageHistory, StepRow, TrackingVariable
from writecliff.procedures.options import PERCENT, Rule, Within, option
from writecliff.procedures.pts import block_text, mix_text
from writecliff.workload.model import KIB, Pattern

SECTOR_BYTES = 512  # the unit of block sizes: every drive's sector is a multiple
LETTERS = {"random": "RND", "sequential": "SEQ"}

Cell = tuple[int, float]  # block size in bytes, share of reads in percent


def mixes_option(clause: str, read_pcts: tuple[float, ...]) -> Any:
    """The outer loop of a test."""
    return option(
        read_pcts,
        "read/write mixes of the outer loop, in their order, as percent of reads",
        rule=Rule({"*": read_pcts}, "required", clause),
        within=PERCENT,
    )


def block_sizes_option(clause: str, sizes_kib: tuple[float, ...]) -> Any:
    """The inner loop of a test."""
    return option(
        sizes_kib,
        "block sizes of the inner loop, in their order, in KiB",
        rule=Rule({"*": sizes_kib}, "required", clause),
        within=Within(0.5, 65536),
    )


def cell_text(cell: Cell, pattern: Pattern = "random") -> str:
    """As the standard names it: "RND 4KiB 0/100"."""
    return f"{LETTERS[pattern]} {block_text(cell[0])} {mix_text(cell[1])}"


def row_of_cell(rows: Iterable[StepRow], cell: Cell) -> StepRow:
    """The step of `cell` among those of one round. Raises KeyError: the round has none."""
    for row in rows:
        if (row.block_bytes, row.read_pct) == cell:
            return row
    raise KeyError(cell_text(cell))


def tracked_iops(cell: Cell) -> TrackingVariable:
    return TrackingVariable(
        f"{cell_text(cell)} IOPS", "IOPS", lambda rows: row_of_cell(rows, cell).iops
    )


def tracked_throughput(cell: Cell) -> TrackingVariable:
    """Sequential, in the standard's decimal MB/s."""
    return TrackingVariable(
        f"{cell_text(cell, 'sequential')} throughput",
        "MB/s",
        lambda rows: row_of_cell(rows, cell).bytes_per_s / 1e6,
    )


def tracked_latency(cell: Cell) -> TrackingVariable:
    """Average service time in µs."""

    def value(rows: Sequence[StepRow]) -> float:
        mean_ns = row_of_cell(rows, cell).latency_mean_ns
        if mean_ns is None:
            raise EngineError(
                f"no I/O of {cell_text(cell)} was completed in a step, so it has no latency",
                hint="steps are too short for this drive: give a longer --step-seconds",
            )
        return mean_ns / 1e3

    return TrackingVariable(f"{cell_text(cell)} average latency", "µs", value)


def sizes_bytes(sizes_kib: Iterable[float]) -> tuple[int, ...]:
    """Block sizes given in KiB. Raises ConfigError for one that no drive can have."""
    sizes = []
    for size_kib in sizes_kib:
        size = size_kib * KIB
        if size % SECTOR_BYTES:
            nearest = max(1, round(size / SECTOR_BYTES)) * SECTOR_BYTES / KIB
            raise ConfigError(
                f"block sizes are multiples of 0.5 KiB, not {size_kib:g} KiB",
                hint=f"the nearest is {nearest:g}",
            )
        sizes.append(int(size))
    return tuple(sizes)


def supported(sizes: Iterable[int], identity: DeviceIdentity) -> tuple[int, ...]:
    """Those that the drive can transfer: a drive of 4 KiB sectors has no 0.5 KiB blocks."""
    return tuple(size for size in sizes if size % identity.sector_bytes == 0)


def need_cells(
    cells: Iterable[Cell], sizes: Sequence[int], read_pcts: Sequence[float], pattern: Pattern
) -> None:
    """Refuse loops without the cells that steady state is judged by; raises ConfigError."""
    for cell in cells:
        if cell[0] not in sizes or cell[1] not in read_pcts:
            raise ConfigError(
                f"steady state is judged by {cell_text(cell, pattern)}, which these block sizes "
                "and mixes leave out",
                hint=f"--block-sizes-kib needs {cell[0] / KIB:g}, --read-pcts {cell[1]:g}",
            )


def need_supported(cells: Iterable[Cell], identity: DeviceIdentity, pattern: Pattern) -> None:
    """Refuse a drive that cannot do the cells that steady state is judged by."""
    for cell in cells:
        if cell[0] % identity.sector_bytes:
            raise ConfigError(
                f"steady state is judged by {cell_text(cell, pattern)}, and the drive has sectors "
                f"of {identity.sector_bytes} bytes",
                hint="this test needs a drive of smaller sectors",
            )


def left_out(sizes: Iterable[int], stage: StageHistory | None) -> tuple[str, ...]:
    """A warning on block sizes that no step of the rounds had, because the drive cannot."""
    if stage is None or not stage.rounds_done:
        return ()
    seen = {row.block_bytes for row in stage.rows}
    missing = [size for size in sizes if size not in seen]
    if not missing:
        return ()
    names = " and ".join(map(block_text, missing))
    return (f"{names} left out: smaller than the drive's sectors or no multiple of them",)

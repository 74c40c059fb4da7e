"""Throughput test (TP) with sequential reads and writes until steady state.

PTS-C and PTS-E, revisions 1.x and 2.0. For every block size, the drive is purged and preconditioned
at that block size. Rounds of a minute of reads and a minute of writes then run in a single thread.
Steady state is determined from the writes. Results are averaged over the rounds of the window, in
decimal MB/s. The streams continue from round to round: exactly on a simulated drive
(`framework.py`), and as far as fio allows on a real drive (`next_start`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures import cells
from writecliff.procedures.active_range import SegmentOptions
from writecliff.procedures.model import History, Stage, Step, StepRow
from writecliff.procedures.options import BLOCK_KIB, THREADS, required_option
from writecliff.procedures.pts import (
    RoundOptions,
    RoundProcedure,
    block_text,
    queue_depth_option,
    rounds_until_steady,
)
from writecliff.workload.model import KIB

CLAUSE = "PTS throughput"
READ_PCTS = (100.0, 0.0)
PHASE = "rounds-"


@dataclass(frozen=True, kw_only=True)
class TpOptions(RoundOptions, SegmentOptions):
    """Options of the throughput test. Omitted options have the edition's values."""

    threads: int = required_option(
        CLAUSE,
        1,
        "number of threads that issue I/O (TC); each thread covers the whole range",
        within=THREADS,
    )
    queue_depth: int = queue_depth_option(CLAUSE, 32, "required")
    block_sizes_kib: tuple[float, ...] = required_option(
        CLAUSE,
        {"*": (1024.0, 128.0), "pts-c 1.x": (1024.0,)},
        "block sizes in KiB, each with its own purge, preconditioning and rounds",
        within=BLOCK_KIB,
    )


def next_start(range_bytes: int, block_bytes: int, done: Sequence[int]) -> int:
    """Return the start of a stream whose earlier steps transferred `done` bytes each.

    The stream starts where the last step ended, if that step's volume plus a quarter fits before
    the end of the range. Otherwise, the stream starts at the last position where this volume fits,
    and then at 0 again. A step that covers the whole range starts at 0.
    """
    start = at = need = 0
    for size in (*done, 0):
        need = -(-need // block_bytes) * block_bytes
        last = max(0, range_bytes - need)
        again = need >= range_bytes or (at > last and start == last)
        start = 0 if again else min(at, last)
        at = start + size % max(block_bytes, range_bytes - start)
        need = size + size // 4
    return start


def phase_of(block_bytes: int) -> str:
    """Return the stored name of the rounds for a block size, such as "rounds-128k"."""
    return f"{PHASE}{block_bytes / KIB:g}k"


class Tp(RoundProcedure[TpOptions]):
    """The throughput test. Raises ConfigError if an option is invalid."""

    name = "tp"
    subtitle = "TP - SEQ R/W"
    options_type = TpOptions

    def check(self) -> None:
        """Raise ConfigError if no block size is given."""
        if not self.sizes:
            raise ConfigError("--block-sizes-kib is empty", hint="give --block-sizes-kib 1024,128")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Block sizes in bytes, in order."""
        return cells.sizes_bytes(self.options.block_sizes_kib)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (preconditioning, block sizes and demand)."""
        sizes = ", ".join(map(block_text, self.sizes))
        return {
            **super().setup(identity),
            **self.precondition_setup("TP Loop", self.sizes),
            "subtitle": f"TP - SEQ {sizes} R/W",
            "test_stimulus": f"SEQ {sizes}",
            "rw_mix": "100/0, 0/100",
            "block_sizes": sizes,
            "toio": self.toio,
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each block size."""
        cells.need_supported([(size, 0.0) for size in self.sizes], identity, "sequential")
        return [self._stage(identity, size) for size in self.sizes]

    def _stage(self, identity: DeviceIdentity, size: int) -> Stage:
        stage = rounds_until_steady(
            lambda number: self._round(identity, size, number),
            self.options.max_rounds,
            cells.tracked_throughput((size, 0.0)),
            phase=phase_of(size),
            title=f"rounds of {block_text(size)}",
            purge=True,
            prepare=self.wipc(identity, size),
        )
        if identity.simulated:
            return stage

        def steps(history: History, number: int) -> Sequence[Step]:
            here = history.stages.get(stage.phase)
            rows = [] if here is None else here.rows
            return [self._continued(step, rows) for step in self._round(identity, size, number)]

        return replace(stage, steps=steps)

    def _continued(self, step: Step, rows: Sequence[StepRow]) -> Step:
        """Return the step with a stream that continues the last stream of the same kind."""
        (job,) = step.workload.jobs
        done = [row.bytes // job.threads for row in rows if row.read_pct == job.read_pct]
        block = job.block_sizes[0].bytes
        if job.segments is None:
            whole = job.range_bytes or 0
            start = next_start(whole, block, done)
            job = replace(job, offset_bytes=job.offset_bytes + start, range_bytes=whole - start)
        else:  # The I/O starts at the start of the segment that the stream has reached.
            length = job.segments.length(block)
            start = next_start(job.segments.count * length, block, done)
            job = replace(job, start_bytes=start // length * length)
        return replace(step, workload=replace(step.workload, jobs=(job,)))

    def _round(self, identity: DeviceIdentity, size: int, number: int) -> Sequence[Step]:
        return [
            self.cell(
                identity,
                cells.cell_text((size, read_pct), "sequential"),
                size,
                number,
                read_pct,
                seconds=self.options.step_seconds,
                pattern="sequential",
                block_bytes=size,
                read_pct=read_pct,
                sample=read_pct == 0.0,
            )
            for read_pct in READ_PCTS
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        sizes = " and ".join(map(block_text, self.sizes))
        return self.loop_phases(
            f"a round: sequential reads, then writes, {self.toio}, in steps of "
            f"{self.options.step_seconds:g} s",
            f"all of this for {sizes}" if len(self.sizes) > 1 else f"blocks of {sizes}",
        )

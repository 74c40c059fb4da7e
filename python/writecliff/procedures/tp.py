"""TP, throughput: sequential reads and writes, each block size a test of its own, until steady.

PTS-C and PTS-E, revisions 1.x and 2.0. For every block size: purge, preconditioning at that block
size, then rounds of a minute of reads and a minute of writes from one thread. Steady state is that
of the writes. Results are the means over the rounds of the window, in decimal MB/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.errors import ConfigError
from writecliff.procedures import cells
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import (
    THREADS,
    Within,
    queue_depth_option,
    required_option,
)
from writecliff.procedures.pts import PtsProcedure, RoundOptions, block_text, toio_text
from writecliff.workload.model import KIB

CLAUSE = "PTS throughput"
READ_PCTS = (100.0, 0.0)
PHASE = "rounds-"


@dataclass(frozen=True, kw_only=True)
class TpOptions(RoundOptions):
    """Options of the throughput test. None stands for the value of the edition."""

    threads: int | None = required_option(
        CLAUSE,
        {"*": 1},
        "threads issuing I/O (TC); each goes through the range by itself",
        within=THREADS,
    )
    queue_depth: int | None = queue_depth_option(CLAUSE, {"*": 32}, "required")
    block_sizes_kib: tuple[float, ...] | None = required_option(
        CLAUSE,
        {"*": (1024.0, 128.0), "pts-c 1.x": (1024.0,)},
        "block sizes in KiB, each with its own purge, preconditioning and rounds",
        within=Within(0.5, 65536),
    )


def phase_of(block_bytes: int) -> str:
    """As the store names the rounds of a block size: "rounds-128k"."""
    return f"{PHASE}{block_bytes / KIB:g}k"


class Tp(PtsProcedure):
    """The throughput test, its options settled and checked (else ConfigError)."""

    name = "tp"
    subtitle = "TP - SEQ R/W"
    options_type = TpOptions

    def check(self) -> None:
        if not self.sizes:
            raise ConfigError("no block size is given", hint="give --block-sizes-kib 1024,128")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Block sizes in bytes, in their order."""
        return cells.sizes_bytes(self.options.block_sizes_kib)

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        o = self.options
        sizes = ", ".join(map(block_text, self.sizes))
        toio = toio_text(o.threads, o.queue_depth)
        return {
            **super().setup(identity),
            **self.precondition_setup("TP Loop", toio, self.sizes),
            "subtitle": f"TP - SEQ {sizes} R/W",
            "test_stimulus": f"SEQ {sizes}",
            "rw_mix": "100/0, 0/100",
            "block_sizes": sizes,
            "toio": toio,
        }

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        cells.need_supported([(size, 0.0) for size in self.sizes], identity, "sequential")
        return tuple(self._stage(identity, size) for size in self.sizes)

    def _stage(self, identity: DeviceIdentity, size: int) -> Stage:
        return Stage(
            phase=phase_of(size),
            title=f"rounds of {block_text(size)}",
            steps=lambda history, number: self._round(identity, size, number),
            tracking=(cells.tracked_throughput((size, 0.0)),),
            ends=self.round_ends(),
            rounds_max=self.options.max_rounds,
            purge=True,
            prepare=self.wipc(identity, size),
        )

    def _round(self, identity: DeviceIdentity, size: int, number: int) -> Sequence[Step]:
        o = self.options
        return [
            self.cell(
                identity,
                cells.cell_text((size, read_pct), "sequential"),
                size,
                number,
                read_pct,
                seconds=o.step_seconds,
                threads=o.threads,
                queue_depth=o.queue_depth,
                pattern="sequential",
                block_bytes=size,
                read_pct=read_pct,
                sample=read_pct == 0.0,
            )
            for read_pct in READ_PCTS
        ]

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        o = self.options
        sizes = " and ".join(map(block_text, self.sizes))
        return self.loop_phases(
            f"a round: sequential reads, then writes, {toio_text(o.threads, o.queue_depth)}, "
            f"in steps of {o.step_seconds:g} s",
            f"all of this for {sizes}" if len(self.sizes) > 1 else f"blocks of {sizes}",
        )

"""Which streams should a trace's writes go to? Compares ways to assign them, and judges.

Compared are: no streams, the user's rules, three published automatic schemes, and an oracle that
knows when data die, over the number of streams that a drive may have. The best is the mapping with
the least write amplification that a host can really make, so not the oracle's; of those that are as
good to half a percent, the one with the fewest streams. For it, and for tagging errors in it, the
trace is replayed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side
from writecliff.replay.model import STREAMS_MAX, Replayed, ReplaySetup, replay
from writecliff.replay.summary import (
    device_mapping,
    result_mapping,
    stream_rows,
    trace_mapping,
)

if TYPE_CHECKING:
    from writecliff.replay.columns import FileIO

SCHEMA = "writecliff/placement/1"
STREAM_COUNTS = (2, 4, 8)
MISTAG_PCTS = (1.0, 2.0, 5.0, 10.0)
AS_GOOD = 1.005
GAIN_LEAST = 1.01  # below this streams win nothing worth having
AUTOMATIC = ("sfr", "multi-queue", "sepbit")
NAMES = {
    "none": "no streams",
    "rules": "rules",
    "sfr": "AutoStream SFR",
    "multi-queue": "AutoStream multi-queue",
    "sepbit": "SepBIT",
    "oracle": "oracle",
}
SEPBIT_STREAMS = 2  # user writes take two classes; the others belong to collection


@dataclass(frozen=True)
class MisTagged:
    share_pct: float
    waf: float


@dataclass(frozen=True)
class Placement:
    """What was compared, and what came out best."""

    trace: Path
    setup: ReplaySetup
    cells: tuple[Replayed, ...]
    best: Replayed  # of what a host can do; no streams where they win nothing
    mistagged: tuple[MisTagged, ...] = field(default_factory=tuple)  # of the best with streams
    mistagged_of: Replayed | None = None

    @property
    def none(self) -> Replayed:
        return self.cells[0]

    @property
    def oracle(self) -> Replayed | None:
        found = [cell for cell in self.cells if cell.scheme == "oracle"]
        return min(found, key=lambda cell: cell.waf) if found else None


def stream_counts(text: str | None) -> tuple[int, ...]:
    """The numbers of --counts, ascending, 1 left out: that is no streams. Raises ConfigError."""
    if text is None:
        return STREAM_COUNTS
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or counts[-1] > STREAMS_MAX or counts[-1] < 2:
        raise ConfigError(
            f"--counts is '{text}'", hint=f"numbers of streams up to {STREAMS_MAX}, such as 2,4,8"
        )
    return tuple(count for count in counts if count > 1)


def plan(io: FileIO, counts: Sequence[int]) -> list[tuple[str, int]]:
    """Scheme and number of streams of each cell, no streams first."""
    cells = [("none", 1)]
    with_rules = ("rules",) if io.streams else ()
    for scheme in (*with_rules, *AUTOMATIC, "oracle"):
        for count in counts:
            if scheme == "sepbit" and count != min(counts):
                continue
            cells.append((scheme, count))
    return cells


def compare(
    trace: Path,
    setup: ReplaySetup,
    counts: Sequence[int],
    *,
    timed: bool = True,
    queue_depth: int = 32,
    readers: int = 4,
    seed: int = 1,
    on_cell: Callable[[Replayed], None] | None = None,
) -> Placement:
    """Replay every cell side by side, judge, and replay the best with tagging errors."""

    def task(scheme: str, streams: int, mistag_pct: float = 0.0) -> Task[Replayed]:
        def run() -> Replayed:
            done = replay(
                setup,
                scheme,
                streams,
                mistag_pct=mistag_pct,
                timed=timed and not mistag_pct,
                queue_depth=queue_depth,
                readers=readers,
                seed=seed,
            )
            if on_cell is not None:
                on_cell(done)
            return done

        # The oracle has a drive in reserve while it tries out.
        memory_bytes = setup.memory_bytes * (2 if scheme == "oracle" else 1)
        return Task(f"{NAMES[scheme]} with {streams} streams", memory_bytes, run)

    cells = run_side_by_side([task(*cell) for cell in plan(setup.io, counts)])
    with_streams = best_of([cell for cell in cells[1:] if cell.scheme != "oracle"])
    best = with_streams if cells[0].waf / with_streams.waf >= GAIN_LEAST else cells[0]
    tagged = run_side_by_side(
        [task(with_streams.scheme, with_streams.streams, share) for share in MISTAG_PCTS]
    )
    return Placement(
        trace=trace,
        setup=setup,
        cells=tuple(cells),
        best=best,
        mistagged=tuple(MisTagged(cell.mistag_pct, cell.waf) for cell in tagged),
        mistagged_of=with_streams,
    )


def best_of(cells: Sequence[Replayed]) -> Replayed:
    """The fewest streams among those as good as the best; rules go before what is automatic."""
    least = min(cell.waf for cell in cells)
    good = [cell for cell in cells if cell.waf <= least * AS_GOOD]
    return min(good, key=lambda cell: (cell.streams, cell.scheme != "rules", cell.waf))


def verdict(placement: Placement) -> tuple[str, ...]:
    """What came out, in sentences."""
    setup, none, best = placement.setup, placement.none, placement.best
    said = []
    if best is none:
        said.append(
            f"Streams win nothing here: write amplification is {none.waf:.3f} without them, and "
            "no assignment that a host can make lowers it by 1 % or more."
        )
    else:
        said.append(
            f"Best is {NAMES[best.scheme]} with {best.streams} streams: write amplification "
            f"{best.waf:.3f} instead of {none.waf:.3f}, so the flash lasts "
            f"{none.waf / best.waf:.2f} times as long."
        )
    before, after = none.read_p9999_ns, best.read_p9999_ns
    if best is not none and before is not None and after is not None:
        said.append(
            f"The 99.99 % read latency goes from {before / 1e6:.2f} ms to {after / 1e6:.2f} ms."
        )
    oracle = placement.oracle
    if oracle is not None:
        said.append(
            f"Known death times reach {oracle.waf:.3f} with {oracle.streams} streams: more is "
            "hardly to be had from placement alone."
        )
    if placement.mistagged and placement.mistagged_of is not None:
        last, right = placement.mistagged[-1], placement.mistagged_of
        said.append(
            f"With {last.share_pct:g} % of the writes in a wrong stream, {NAMES[right.scheme]} "
            f"with {right.streams} streams comes to {last.waf:.3f} instead of {right.waf:.3f}."
        )
    if setup.io.streams and max(setup.io.streams) >= max(cell.streams for cell in placement.cells):
        said.append(
            "The rules name streams beyond those compared; such writes went to stream 0, as a "
            "drive has it that cannot open more."
        )
    return tuple(said)


def placement_mapping(placement: Placement) -> dict[str, Any]:
    """Everything, for programs."""
    setup, right = placement.setup, placement.mistagged_of
    return {
        "schema": SCHEMA,
        "trace": trace_mapping(placement.trace, setup),
        "device": device_mapping(setup),
        "verdict": list(verdict(placement)),
        "best": {
            **result_mapping(setup, placement.best),
            "by_stream": stream_rows(setup, placement.best),
        },
        "cells": [result_mapping(setup, cell) for cell in placement.cells],
        "mistagged": {
            "assign": right.scheme if right is not None else None,
            "streams": right.streams if right is not None else None,
            "cells": [
                {
                    "share_pct": cell.share_pct,
                    "waf": cell.waf,
                    "endurance_bytes": setup.endurance_bytes(cell.waf),
                }
                for cell in placement.mistagged
            ],
        },
    }

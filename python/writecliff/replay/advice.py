"""Recommend streams for a trace's writes by comparing stream assignments.

The comparison covers replays without streams, rules, three published automatic schemes, and an
oracle that knows when data will be overwritten, at several stream counts. Only assignments that a
user can enable are recommended: no streams, or rules that a program or a helper applies as write
hints or placement handles. The automatic schemes only provide bounds, because they infer streams in
a drive's firmware or a driver, which no product does, and because overwrite times are not known in
advance. Among the rules within 0.5 % of the lowest write amplification, those with the fewest
streams are best. The best rules are replayed again with tagging errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError
from writecliff.parallel import Task, run_side_by_side
from writecliff.replay.model import STREAMS_MAX, Replayed, ReplaySetup, replay
from writecliff.replay.summary import (
    WRITEBACK_TEXT,
    device_mapping,
    rate_text,
    result_mapping,
    stream_rows,
    trace_mapping,
)

if TYPE_CHECKING:
    from writecliff.replay.columns import FileIO

SCHEMA = "writecliff/stream-advice/1"
STREAM_COUNTS = (2, 4, 8)
MISTAG_PCTS = (1.0, 2.0, 5.0, 10.0)
AS_GOOD = 1.005
GAIN_MIN = 1.05  # Minimum ratio of write amplifications for a recommendation of streams.
AUTOMATIC = ("sfr", "multi-queue", "sepbit")
BOUNDS = (*AUTOMATIC, "oracle")  # Assignments shown as bounds, because users cannot enable them.
NAMES = {
    "none": "no streams",
    "rules": "rules",
    "sfr": "AutoStream SFR",
    "multi-queue": "AutoStream multi-queue",
    "sepbit": "SepBIT",
    "oracle": "oracle",
}


@dataclass(frozen=True)
class StreamAdvice:
    """The compared assignments, and the best assignment."""

    trace: Path  # Path of the trace file.
    setup: ReplaySetup  # Drive and assumptions.
    cells: tuple[Replayed, ...]  # All assignments, starting with no streams.
    best: Replayed  # Best assignment that a user can enable; no streams if streams bring no gain.
    mistagged: tuple[Replayed, ...] = ()  # Results of the best rules with tagging errors.
    mistagged_of: Replayed | None = None  # Result of the best rules.

    @property
    def none(self) -> Replayed:
        """Replay without streams."""
        return self.cells[0]

    @property
    def oracle(self) -> Replayed | None:
        """Replay with the oracle variant that has the lowest write amplification."""
        return self._least("oracle")

    @property
    def automatic(self) -> Replayed | None:
        """Replay with the lowest write amplification among all schemes in a drive or driver."""
        return self._least(*AUTOMATIC)

    def _least(self, *schemes: str) -> Replayed | None:
        cells = [cell for cell in self.cells if cell.scheme in schemes]
        return min(cells, key=lambda cell: cell.waf) if cells else None


def stream_counts(text: str | None) -> tuple[int, ...]:
    """Return the stream counts from --counts in ascending order, excluding 1.

    Raises:
        ConfigError: If the text is not a list of numbers, or a number is out of range.
    """
    if text is None:
        return STREAM_COUNTS
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1 or counts[-1] > STREAMS_MAX or counts[-1] < 2:
        raise ConfigError(
            f"--counts is '{text}', not a list of stream counts",
            hint=f"use numbers from 2 to {STREAMS_MAX}, such as 2,4,8",
        )
    return tuple(count for count in counts if count > 1)


def plan(io: FileIO, counts: Sequence[int]) -> list[tuple[str, int]]:
    """Return the scheme and stream count of each cell, starting with no streams."""
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
) -> StreamAdvice:
    """Replay all assignments in parallel, select the best, and replay it with tagging errors."""

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

        # The oracle needs a second drive for its trials.
        memory_bytes = setup.memory_bytes * (2 if scheme == "oracle" else 1)
        return Task(f"{NAMES[scheme]} with {streams} streams", memory_bytes, run)

    cells = run_side_by_side([task(*cell) for cell in plan(setup.io, counts)])
    rules = [cell for cell in cells if cell.scheme == "rules"]
    if not rules:
        return StreamAdvice(trace=trace, setup=setup, cells=tuple(cells), best=cells[0])
    with_streams = best_of(rules)
    tagged = run_side_by_side(
        [task(with_streams.scheme, with_streams.streams, share) for share in MISTAG_PCTS]
    )
    return StreamAdvice(
        trace=trace,
        setup=setup,
        cells=tuple(cells),
        best=with_streams if cells[0].waf / with_streams.waf >= GAIN_MIN else cells[0],
        mistagged=tuple(tagged),
        mistagged_of=with_streams,
    )


def best_of(cells: Sequence[Replayed]) -> Replayed:
    """Return the cell with the fewest streams within 0.5 % of the lowest write amplification."""
    least = min(cell.waf for cell in cells)
    good = [cell for cell in cells if cell.waf <= least * AS_GOOD]
    return min(good, key=lambda cell: (cell.streams, cell.waf))


def verdict(advice: StreamAdvice) -> tuple[str, ...]:
    """Return the result as sentences."""
    setup, none, best = advice.setup, advice.none, advice.best
    sentences = [_recommended(advice)]
    years = setup.years(none.waf), setup.years(best.waf)
    if years[0] is not None and years[1] is not None:
        life = f"{years[0]:.3g} years"
        if best is not none:
            life = f"{years[1]:.3g} years instead of {life}"
        sentences.append(
            f"At {rate_text(setup)}, that is {life}; writes reach the drive "
            f"{WRITEBACK_TEXT[setup.sizing.writeback]}."
        )
    before, after = none.read_p9999_ns, best.read_p9999_ns
    if best is not none and before is not None and after is not None:
        sentences.append(
            f"The 99.99 % read latency changes from {before / 1e6:.2f} ms to {after / 1e6:.2f} ms."
        )
    oracle, automatic = advice.oracle, advice.automatic
    if automatic is not None:
        gain = (
            f"could reach {automatic.waf:.3f} with {automatic.streams} streams "
            f"({NAMES[automatic.scheme]}, a bound: none is for sale)"
            if automatic.waf < none.waf
            else "would gain nothing"
        )
        sentences.append(f"A drive or driver with automatic stream detection {gain}.")
    if oracle is not None:
        sentences.append(
            f"An oracle that knows overwrite times reaches {oracle.waf:.3f} with {oracle.streams} "
            "streams, about the best that a choice of streams can reach."
        )
    if best is not none and advice.mistagged and advice.mistagged_of is not None:
        last, right = advice.mistagged[-1], advice.mistagged_of
        sentences.append(
            f"With {last.mistag_pct:g} % of the writes in a wrong stream, {NAMES[right.scheme]} "
            f"with {right.streams} streams have {last.waf:.3f} instead of {right.waf:.3f}."
        )
    if setup.io.streams and max(setup.io.streams) >= max(cell.streams for cell in advice.cells):
        sentences.append(
            "The rules name more streams than were compared. Writes of the other streams went to "
            "stream 0, as on a drive that cannot open more streams."
        )
    return tuple(sentences)


def _recommended(advice: StreamAdvice) -> str:
    """Return the recommendation as a sentence."""
    none, best, rules = advice.none, advice.best, advice.setup.io.rules
    if best is not none:
        return (
            f"Switch streams on, by {rules} with {best.streams} streams: write amplification "
            f"{best.waf:.3f} instead of {none.waf:.3f}, so the flash lasts "
            f"{none.waf / best.waf:.2f} times as long."
        )
    without = f"Write amplification is {none.waf:.3f} without streams"
    if rules is None:
        return (
            f"{without}. There is nothing to switch on yet: the trace has no write hints and no "
            "rules were given (--streams)."
        )
    least = f"{100 * (GAIN_MIN - 1):.0f} %"
    return f"Leave streams off. {without}, and streams by {rules} lower it by less than {least}."


def advice_mapping(advice: StreamAdvice) -> dict[str, object]:
    """Return the comparison in the format of `writecliff advise-streams --json`."""
    setup, right = advice.setup, advice.mistagged_of
    return {
        "schema": SCHEMA,
        "trace": trace_mapping(advice.trace, setup),
        "device": device_mapping(setup),
        "verdict": list(verdict(advice)),
        "best": {
            **result_mapping(setup, advice.best),
            "by_stream": stream_rows(setup, advice.best),
        },
        "rules": setup.io.rules,
        "cells": [
            {**result_mapping(setup, cell), "bound": cell.scheme in BOUNDS} for cell in advice.cells
        ],
        "mistagged": {
            "assign": right.scheme if right is not None else None,
            "streams": right.streams if right is not None else None,
            "cells": [
                {
                    "share_pct": cell.mistag_pct,
                    "waf": cell.waf,
                    "endurance_bytes": setup.endurance_bytes(cell.waf),
                }
                for cell in advice.mistagged
            ],
        },
    }

"""Gain from streams, compared with theory and with published measurements.

Three loads run fast-forwarded on drives with flat geometry:

* hot and cold random data, for which the best split of the spare space has a closed form
  (`crates/ftl/src/theory.rs`). A drive that tunes its own spare space must be within 2 % of the
  closed form; other drives are shown for comparison;
* sequential writers with a stream each, whose write amplification must be 1;
* the three writers of Song et al. (FAST 2026) on reclaim unit handles (see `handles.py`).

Over-provisioning counts the slots through which collection circulates with one stream or, for the
third load, all slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from writecliff import _native
from writecliff.lab.validate import handles
from writecliff.lab.validate.stream_rows import StreamsCase, StreamsReport
from writecliff.parallel import SLOT_BYTES, Task, drive_memory_bytes, run_side_by_side

TOLERANCE_PCT = 2.0
SEED = 1
PAGES_PER_BLOCK = 256
BLOCKS = 4096

# Fraction of the data that is hot, hot fraction of the writes, over-provisioning.
HOT_COLD = ((0.2, 0.8, 0.07), (0.1, 0.9, 0.07), (0.05, 0.95, 0.07), (0.2, 0.8, 0.28))
SEQUENTIAL_OVERPROVISIONS = (0.07, 0.145, 0.28)

# Streams, destination of relocated data, and division of the spare space.
TREATMENTS: dict[str, dict[str, Any]] = {
    "one stream": {"streams": False},
    "streams": {"streams": True},
    "streams, relocated data shared": {"streams": True, "gc_destination": "shared"},
    "streams, self-tuned spare": {"streams": True, "self_tuned": True},
}
TUNED = "streams, self-tuned spare"


Size = tuple[int, int, int]  # Pages per block, blocks, passes.


def run(
    *, pages_per_block: int = PAGES_PER_BLOCK, blocks: int = BLOCKS, passes: int = 10
) -> StreamsReport:
    """Measure all rows in parallel, in order (smaller values are faster but less accurate)."""
    size: Size = (pages_per_block, blocks, passes)
    calls: list[Callable[[], StreamsCase]] = [
        *(partial(_hot_cold, hot, treatment, size) for hot in HOT_COLD for treatment in TREATMENTS),
        *(
            partial(_sequential, load, op, treatment, size)
            for load in ("by-size", "by-rate")
            for op in SEQUENTIAL_OVERPROVISIONS
            for treatment in list(TREATMENTS)[1:]
        ),
        *handles.calls(pages_per_block),
    ]
    flash = max(pages_per_block * blocks, handles.largest_pages(pages_per_block)) * SLOT_BYTES
    memory_bytes = drive_memory_bytes(flash, flash)
    tasks = [Task(f"streams case {n}", memory_bytes, call, call) for n, call in enumerate(calls)]
    rows = tuple(run_side_by_side(tasks))
    return StreamsReport(rows, handles.crossovers(rows))


def _hot_cold(hot: tuple[float, float, float], treatment: str, size: Size) -> StreamsCase:
    data, writes, op = hot
    load = f"hot/cold, {100 * writes:g} % of the writes to {100 * data:g} % of the data"
    source, tolerance = "theory: best split of the spare space", TOLERANCE_PCT
    case = _case("hot-cold", op, treatment, size, load, source, tolerance, data=data, writes=writes)
    return case if treatment == TUNED else replace(case, tolerance_pct=None)


def _sequential(load: str, op: float, treatment: str, size: Size) -> StreamsCase:
    what = {"by-size": "ranges 1:10:33:55", "by-rate": "rates 1:1/10:1/33:1/55"}[load]
    name, source = f"four sequential writers, {what}", "theory: units die whole"
    size = (*size[:2], min(size[2], 3))
    return _case(load, op, treatment, size, name, source, 0.0)


def _case(
    load: str,
    op: float,
    treatment: str,
    size: Size,
    name: str,
    source: str,
    tolerance_pct: float,
    **more: Any,
) -> StreamsCase:
    pages, blocks, passes = size
    measured, best = _native.validate_data_placement(
        load, op, pages_per_block=pages, blocks=blocks, seed=SEED, warm_up=passes, measured=passes,
        **more, **TREATMENTS[treatment],
    )  # fmt: skip
    return StreamsCase(name, treatment, op, None, measured, best, source, tolerance_pct)

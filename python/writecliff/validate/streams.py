"""What keeping data apart is worth, against theory and against published measurements.

Three loads, all on the fast-forward clock and on drives of flat geometry:

* hot and cold random data, where the best split of the spare space is known in closed form
  (`crates/ftl/src/theory.rs`): the drive that tunes its spare space itself has to come within 2 %
  of it; the drives that do not are beside it;
* sequential writers with a stream each, which must not amplify at all;
* the three writers of Song et al., "Characterizing and Emulating FDP SSDs with WARP", FAST 2026,
  with collected data kept in their handle (persistently isolated) or put together (initially
  isolated). The load is that of the paper's artifact; its write amplifications are of another
  machine and are compared, not required.

Over-provisioning counts the slots that collection circulates through under one stream; of the third
load, all slots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from writecliff import _native
from writecliff.parallel import SLOT_BYTES, Task, drive_memory_bytes, run_side_by_side

TOLERANCE_PCT = 2.0
SEED = 1
PAGES_PER_BLOCK = 256
BLOCKS = 4096

# Share of the data that is hot, share of the writes that it takes, over-provisioning.
HOT_COLD = ((0.2, 0.8, 0.07), (0.1, 0.9, 0.07), (0.05, 0.95, 0.07), (0.2, 0.8, 0.28))
SEQUENTIAL_OVERPROVISIONS = (0.07, 0.145, 0.28)

# Song et al., figure 17: (initially, persistently isolated) by unit in MiB and over-provisioning.
PUBLISHED = {
    (256, 0.03): (2.92, 3.80),
    (256, 0.05): (2.18, 2.37),
    (256, 0.10): (1.34, 1.18),
    (128, 0.03): (2.52, 2.78),
    (128, 0.05): (1.74, 1.91),
    (128, 0.10): (1.13, 1.09),
}
PUBLISHED_CROSSOVER = {256: (0.07, 0.09), 128: (0.05, 0.07)}
HANDLE_OVERPROVISIONS = (0.03, 0.04, 0.05, 0.07, 0.09, 0.10)
_USER_MIB = 224 * 1024  # capacity of the artifact's drive
_RESERVED = 4  # units that the validation drive keeps idle under one stream
_PASSES = 5  # its figures are taken when five capacities have been written, the first one included

# Where the streams go, where collected data go, how the spare space is split.
TREATMENTS: dict[str, dict[str, Any]] = {
    "one stream": {"streams": False},
    "streams": {"streams": True},
    "streams, collected data shared": {"streams": True, "collected": "shared"},
    "streams, self-tuned spare": {"streams": True, "self_tuned": True},
}
TUNED = "streams, self-tuned spare"


@dataclass(frozen=True)
class StreamsCase:
    """One row. `reference` is theory ("theory") or somebody's measurement ("published");
    `tolerance_pct` is None where nothing is required."""

    load: str
    treatment: str
    overprovision: float
    unit_mib: int | None
    waf_measured: float
    reference: float | None
    source: str
    tolerance_pct: float | None

    @property
    def error_pct(self) -> float | None:
        return None if self.reference is None else 100 * (self.waf_measured / self.reference - 1)

    @property
    def ok(self) -> bool:
        """Within its tolerance; rows that require nothing are always well."""
        error = self.error_pct
        return self.tolerance_pct is None or error is None or abs(error) <= self.tolerance_pct


@dataclass(frozen=True)
class Crossover:
    """Over-provisioning above which persistently isolated handles write less than initially
    isolated ones: the two measured points between which it lies, None beyond the last one."""

    unit_mib: int
    measured: tuple[float | None, float | None]
    published: tuple[float, float]

    @property
    def reproduced(self) -> bool:
        """The measured interval lies inside the published one."""
        low, high = self.measured
        if low is None or high is None:
            return False
        return self.published[0] <= low and high <= self.published[1]


@dataclass(frozen=True)
class StreamsReport:
    rows: tuple[StreamsCase, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def ok(self) -> bool:
        return bool(self.rows) and all(row.ok for row in self.rows)


def run(
    *, pages_per_block: int = PAGES_PER_BLOCK, blocks: int = BLOCKS, passes: int = 10
) -> StreamsReport:
    """All rows, in order; smaller values give a rougher answer sooner. Results do not depend on how
    many cases run at a time."""
    size = (pages_per_block, blocks, passes)
    calls = [
        *(partial(_hot_cold, hot, treatment, size) for hot in HOT_COLD for treatment in TREATMENTS),
        *(
            partial(_sequential, load, op, treatment, size)
            for load in ("by-size", "by-rate")
            for op in SEQUENTIAL_OVERPROVISIONS
            for treatment in list(TREATMENTS)[1:]
        ),
        *(
            partial(_handles, unit, op, kind, pages_per_block)
            for unit in PUBLISHED_CROSSOVER
            for op in HANDLE_OVERPROVISIONS
            for kind in ("initially isolated", "persistently isolated")
        ),
    ]
    flash = pages_per_block * max(blocks, 2 * _USER_MIB // 128) * SLOT_BYTES
    memory_bytes = drive_memory_bytes(flash, flash)
    tasks = [Task(f"streams case {n}", memory_bytes, call) for n, call in enumerate(calls)]
    rows = tuple(run_side_by_side(tasks))
    return StreamsReport(rows, tuple(_crossover(unit, rows) for unit in PUBLISHED_CROSSOVER))


def _hot_cold(
    hot: tuple[float, float, float], treatment: str, size: tuple[int, int, int]
) -> StreamsCase:
    data, writes, op = hot
    pages, blocks, passes = size
    measured, best = _native.validate_placement(
        "hot-cold", op, data=data, writes=writes, pages_per_block=pages, blocks=blocks, seed=SEED,
        warm_up=passes, measured=passes, **TREATMENTS[treatment],
    )  # fmt: skip
    return StreamsCase(
        load=f"hot/cold, {100 * writes:g} % of the writes to {100 * data:g} % of the data",
        treatment=treatment,
        overprovision=op,
        unit_mib=None,
        waf_measured=measured,
        reference=best,
        source="theory: best split of the spare space",
        tolerance_pct=TOLERANCE_PCT if treatment == TUNED else None,
    )


def _sequential(load: str, op: float, treatment: str, size: tuple[int, int, int]) -> StreamsCase:
    pages, blocks, passes = size
    measured, best = _native.validate_placement(
        load, op, pages_per_block=pages, blocks=blocks, seed=SEED, warm_up=min(passes, 3),
        measured=min(passes, 3), **TREATMENTS[treatment],
    )  # fmt: skip
    what = {"by-size": "ranges 1:10:33:55", "by-rate": "rates 1:1/10:1/33:1/55"}[load]
    return StreamsCase(
        load=f"four sequential writers, {what}",
        treatment=treatment,
        overprovision=op,
        unit_mib=None,
        waf_measured=measured,
        reference=best,
        source="theory: units die whole",
        tolerance_pct=0.0,
    )


def _handles(unit_mib: int, op: float, kind: str, pages_per_block: int) -> StreamsCase:
    user = _USER_MIB // unit_mib
    units = round(user * (1 + op))
    collected = "shared" if kind.startswith("initially") else "own"
    measured, _ = _native.validate_placement(
        "three-writers", (units - _RESERVED) / user - 1, streams=True, collected=collected,
        pages_per_block=pages_per_block * unit_mib // 256, blocks=units, seed=SEED,
        warm_up=0, measured=_PASSES - 1,
    )  # fmt: skip
    published = PUBLISHED.get((unit_mib, op))
    return StreamsCase(
        load="three writers, 80/20",
        treatment=kind,
        overprovision=op,
        unit_mib=unit_mib,
        waf_measured=measured,
        reference=published[kind.startswith("persistently")] if published else None,
        source="published: Song et al., FAST 2026",
        tolerance_pct=None,
    )


def _crossover(unit_mib: int, rows: Sequence[StreamsCase]) -> Crossover:
    """Where the sign of the difference changes, searched from the top of the range."""
    waf = {(r.overprovision, r.treatment): r.waf_measured for r in rows if r.unit_mib == unit_mib}
    worse = [
        waf[op, "persistently isolated"] - waf[op, "initially isolated"]
        for op in HANDLE_OVERPROVISIONS
    ]
    found: tuple[float | None, float | None] = (None, HANDLE_OVERPROVISIONS[0])
    for op, above, difference in zip(
        HANDLE_OVERPROVISIONS, (*HANDLE_OVERPROVISIONS[1:], math.inf), worse, strict=True
    ):
        if difference > 0:
            found = (op, above if math.isfinite(above) else None)
    return Crossover(unit_mib, found, PUBLISHED_CROSSOVER[unit_mib])

"""Write amplification of drives that compress or de-duplicate, against closed forms.

Uniform random overwrites of single 4 KiB slots on a full drive. Data of one compressed size are as
many more pieces in as many more spare places, so greedy collection follows its theory for that
over-provisioning; under FIFO sizes may mix and data repeat. The formulas are in
`crates/ftl/src/theory.rs`. Space that no piece fits into at the end of a reclaim unit is measured,
and counted as space that there is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from writecliff import _native
from writecliff.parallel import SLOT_BYTES, Task, drive_memory_bytes, run_side_by_side

OVERPROVISIONS = (0.07, 0.28)
PAGES_PER_BLOCK = 256
BLOCKS = 2048
TOLERANCE_PCT = 0.5
SEED = 1
_PASSES = 8
_PLACES_PER_SLOT = 8  # addresses for the smallest pieces


@dataclass(frozen=True)
class Load:
    """What is written, and under which collection there is theory for it."""

    name: str
    policy: str
    sectors: tuple[int, ...]  # sizes of a compressed slot, each as often as the others
    duplicate_pct: float = 0.0


LOADS = (
    Load("as it is", "greedy", (8,)),
    Load("three quarters", "greedy", (6,)),
    Load("half", "greedy", (4,)),
    Load("a quarter", "greedy", (2,)),
    Load("half to whole", "fifo", (4, 5, 6, 7, 8)),
    Load("25 % duplicates", "fifo", (8,), 25.0),
    Load("50 % duplicates", "fifo", (8,), 50.0),
    Load("half, 50 % duplicates", "fifo", (4,), 50.0),
)


@dataclass(frozen=True)
class ReductionCase:
    """One row: what was measured, what theory says, and by how much they differ."""

    data: str
    policy: str
    overprovision: float
    waf_measured: float
    waf_theory: float
    error_pct: float

    @property
    def ok(self) -> bool:
        """Measured and expected agree within 0.5 %."""
        return abs(self.error_pct) <= TOLERANCE_PCT


def run() -> list[ReductionCase]:
    """All rows, in order. Cases run side by side; results do not depend on how many do."""
    flash_bytes = BLOCKS * PAGES_PER_BLOCK * SLOT_BYTES
    memory_bytes = drive_memory_bytes(_PLACES_PER_SLOT * flash_bytes, flash_bytes)
    return run_side_by_side(
        [
            Task(f"{load.name} {op}", memory_bytes, partial(_measure, load, op))
            for load, op in product(LOADS, OVERPROVISIONS)
        ]
    )


def _measure(load: Load, overprovision: float) -> ReductionCase:
    measured, theory = _native.validate_reduction(
        load.policy,
        overprovision,
        list(load.sectors),
        load.duplicate_pct / 100,
        pages_per_block=PAGES_PER_BLOCK,
        blocks=BLOCKS,
        seed=SEED,
        warm_up=_PASSES,
        measured=_PASSES,
    )
    error_pct = 100 * (measured / theory - 1)
    return ReductionCase(load.name, load.policy, overprovision, measured, theory, error_pct)

"""Write amplification of the simulator, compared with closed forms.

The formulas and their sources are in `crates/ftl/src/theory.rs`. Two sets of loads run on full
drives:

* `waf_cases`: uniform random overwrites of single 4 KiB slots under greedy, FIFO, d-choices
  (d = 10) and random collection, and sequential writers with a stream each;
* `reduction_cases`: random overwrites on drives that compress or deduplicate. Compressed data of a
  single size take proportionally more pieces in proportionally more allocation units, so greedy
  collection follows its theory for that over-provisioning. Under FIFO, sizes may be mixed and data
  may repeat. Space at the end of a reclaim unit where no piece fits is measured and subtracted.

Over-provisioning counts the slots through which collection circulates, excluding the idle pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from writecliff import _native
from writecliff.parallel import SLOT_BYTES, drive_memory_bytes, map_side_by_side

POLICIES = ("greedy", "fifo", "d=10", "random")
OVERPROVISIONS = (0.07, 0.127, 0.20, 0.28)
REDUCTION_OVERPROVISIONS = (0.07, 0.28)
PAGES_PER_BLOCK = 256
BLOCKS, REDUCTION_BLOCKS = 4096, 2048
TOLERANCE_PCT = 0.5
SEED = 1
_REDUCTION_PASSES = 8
_PIECES_PER_SLOT = 8  # Pieces per slot at the smallest size.


@dataclass(frozen=True)
class TheoryCase:
    """Conditions, with measured and theoretical write amplification."""

    conditions: dict[str, Any]
    waf_measured: float
    waf_theory: float
    tolerance_pct: float = TOLERANCE_PCT

    @property
    def error_pct(self) -> float:
        """Deviation from theory in %."""
        return 100 * (self.waf_measured / self.waf_theory - 1)

    @property
    def ok(self) -> bool:
        """`True` if the deviation is within the tolerance."""
        return abs(self.error_pct) <= self.tolerance_pct

    def mapping(self) -> dict[str, Any]:
        """Return the row as plain data."""
        waf = {"waf_measured": self.waf_measured, "waf_theory": self.waf_theory}
        return {**self.conditions, **waf, "error_pct": self.error_pct}


def waf_cases() -> list[TheoryCase]:
    """Measure all policies in parallel, in order."""
    flash_bytes = BLOCKS * PAGES_PER_BLOCK * SLOT_BYTES
    cases = product((*POLICIES, "streams"), OVERPROVISIONS)
    return map_side_by_side(_waf_case, cases, drive_memory_bytes(flash_bytes, flash_bytes))


def _waf_case(policy: str, overprovision: float) -> TheoryCase:
    # Sequential writers are periodic after one pass, but random loads need ten passes to settle.
    # With streams, the write amplification must be exactly 1.
    passes, tolerance_pct = (2, 0.0) if policy == "streams" else (10, TOLERANCE_PCT)
    measured, theory = _native.validate_waf(
        policy, overprovision, PAGES_PER_BLOCK, BLOCKS, SEED, passes, passes
    )
    conditions = {
        "policy": policy,
        "overprovision": overprovision,
        "pages_per_block": PAGES_PER_BLOCK,
        "blocks": BLOCKS,
    }
    return TheoryCase(conditions, measured, theory, tolerance_pct)


@dataclass(frozen=True)
class ReducedLoad:
    """Data to write, and the garbage collection policy whose theory applies."""

    name: str
    policy: str
    sectors: tuple[int, ...]  # Compressed slot sizes in sectors, all equally frequent.
    duplicate_pct: float = 0.0


REDUCED_LOADS = (
    ReducedLoad("uncompressed", "greedy", (8,)),
    ReducedLoad("three quarters", "greedy", (6,)),
    ReducedLoad("half", "greedy", (4,)),
    ReducedLoad("a quarter", "greedy", (2,)),
    ReducedLoad("half to whole", "fifo", (4, 5, 6, 7, 8)),
    ReducedLoad("25 % duplicates", "fifo", (8,), 25.0),
    ReducedLoad("50 % duplicates", "fifo", (8,), 50.0),
    ReducedLoad("half, 50 % duplicates", "fifo", (4,), 50.0),
)


def reduction_cases() -> list[TheoryCase]:
    """Measure all loads on drives with data reduction in parallel, in order."""
    flash_bytes = REDUCTION_BLOCKS * PAGES_PER_BLOCK * SLOT_BYTES
    memory_bytes = drive_memory_bytes(_PIECES_PER_SLOT * flash_bytes, flash_bytes)
    cases = product(REDUCED_LOADS, REDUCTION_OVERPROVISIONS)
    return map_side_by_side(_reduction_case, cases, memory_bytes)


def _reduction_case(load: ReducedLoad, overprovision: float) -> TheoryCase:
    measured, theory = _native.validate_reduction(
        load.policy,
        overprovision,
        list(load.sectors),
        load.duplicate_pct / 100,
        pages_per_block=PAGES_PER_BLOCK,
        blocks=REDUCTION_BLOCKS,
        seed=SEED,
        warm_up=_REDUCTION_PASSES,
        measured=_REDUCTION_PASSES,
    )
    conditions = {"data": load.name, "policy": load.policy, "overprovision": overprovision}
    return TheoryCase(conditions, measured, theory)

"""Write amplification of the shipped FTL against closed forms.

Loads for which theory exists: uniform random overwrites of single 4 KiB slots on a full drive,
under greedy, FIFO, d-choices (d = 10) and random collection, and sequential writers with a stream
each.
The formulas and their sources are in `crates/ftl/src/theory.rs`. Over-provisioning counts the slots
that collection circulates through: the idle pool that the FTL keeps is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from writecliff import _native
from writecliff.parallel import SLOT_BYTES, Task, drive_memory_bytes, run_side_by_side

POLICIES = ("greedy", "fifo", "d=10", "random")
OVERPROVISIONS = (0.07, 0.127, 0.20, 0.28)
PAGES_PER_BLOCK = 256
BLOCKS = 4096
TOLERANCE_PCT = 0.5
SEED = 1


@dataclass(frozen=True)
class WafCase:
    """One row: what was measured, what theory says, and by how much they differ."""

    policy: str
    overprovision: float
    pages_per_block: int
    blocks: int
    waf_measured: float
    waf_theory: float
    error_pct: float

    @property
    def ok(self) -> bool:
        """Random loads agree within 0.5 %; streams amplify nothing at all."""
        limit = 0.0 if self.policy == "streams" else TOLERANCE_PCT
        return abs(self.error_pct) <= limit


def run() -> list[WafCase]:
    """All rows, in order. Cases run side by side; results do not depend on how many do."""
    cases = [*product(POLICIES, OVERPROVISIONS), *(("streams", op) for op in OVERPROVISIONS)]
    flash_bytes = BLOCKS * PAGES_PER_BLOCK * SLOT_BYTES
    memory_bytes = drive_memory_bytes(flash_bytes, flash_bytes)
    return run_side_by_side(
        [
            Task(f"{policy} {op}", memory_bytes, partial(_measure, policy, op))
            for policy, op in cases
        ]
    )


def _measure(policy: str, overprovision: float) -> WafCase:
    # Sequential writers repeat themselves after one pass; random loads need ten to settle.
    passes = 2 if policy == "streams" else 10
    measured, theory = _native.validate_waf(
        policy, overprovision, PAGES_PER_BLOCK, BLOCKS, SEED, passes, passes
    )
    return WafCase(
        policy=policy,
        overprovision=overprovision,
        pages_per_block=PAGES_PER_BLOCK,
        blocks=BLOCKS,
        waf_measured=measured,
        waf_theory=theory,
        error_pct=100 * (measured / theory - 1),
    )

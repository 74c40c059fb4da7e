"""Write amplification of the same writers in another simulator, without streams.

An independently written flat simulator (C, untimed): 4096 reclaim units of 256 slots, 20 capacities
to settle, 10 measured, requests of 4 or 128 KiB; its figures have three digits. Its garbage
collection is not documented. Of the variants that were tried, whole victims relocated to the unit
that the host fills, 4094 circulating units and requests that wrap at the end of their range
reproduce all of its figures; the guide to streams lists the errors of the others.
"""

from __future__ import annotations

from writecliff.experiments.lifetimes import Reading
from writecliff.parallel import SLOT_BYTES

TOLERANCE_PCT = 3.0
REQUESTS = (SLOT_BYTES, 32 * SLOT_BYTES)

# By reading and over-provisioning: greedy with requests of 4 and 128 KiB, FIFO (128 KiB).
_WAF: dict[tuple[Reading, float], tuple[float, float, float]] = {
    ("by-size", 0.07): (6.45, 5.32, 7.00),
    ("by-size", 0.127): (3.89, 3.63, 4.75),
    ("by-size", 0.145): (3.73, 3.39, 4.00),
    ("by-size", 0.28): (2.18, 2.16, 2.50),
    ("by-rate", 0.07): (3.03, 3.04, 3.14),
    ("by-rate", 0.127): (2.69, 2.51, 2.83),
    ("by-rate", 0.145): (2.63, 2.40, 2.67),
    ("by-rate", 0.28): (2.17, 1.97, 2.33),
}


def reference_waf(
    reading: Reading, overprovision: float, policy: str, request_bytes: int
) -> float | None:
    """Its write amplification with whole victims in the host's unit; None if it gives none."""
    columns = {("greedy", REQUESTS[0]): 0, ("greedy", REQUESTS[1]): 1, ("fifo", REQUESTS[1]): 2}
    row, column = _WAF.get((reading, overprovision)), columns.get((policy, request_bytes))
    return None if row is None or column is None else row[column]

"""What another simulator says of the same writers, without streams.

An independently written flat simulator (C, no time): 4096 units of 256 slots, 20 capacities to
settle, 10 measured, requests of 4 or 128 KiB; its figures have three digits. How it collects is not
written down with them. Of the ways that were tried, whole victims that rejoin the unit the host
fills, 4094 units that circulate and requests that go on at the start of their range give all of its
figures; the guide to streams says how far the others are off.
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
    """Its write amplification with whole victims that rejoin, None where it gives none."""
    row = _WAF.get((reading, overprovision))
    if row is None or request_bytes not in REQUESTS:
        return None
    if policy == "fifo":
        return row[2] if request_bytes == REQUESTS[1] else None
    return row[REQUESTS.index(request_bytes)] if policy == "greedy" else None

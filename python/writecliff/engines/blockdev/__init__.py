"""Protection, identity, counters, purge and write cache of block devices."""

from __future__ import annotations

from writecliff.engines.blockdev.protection import (
    Claim,
    Protection,
    claim,
    inspect,
)
from writecliff.engines.blockdev.topology import System

__all__ = ["Claim", "Protection", "System", "claim", "inspect"]

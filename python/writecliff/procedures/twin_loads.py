"""The loads to measure for a twin, in order, including the held-out loads.

A load starts with the drive in one of three states: "fresh" (purged, before the first writes),
"fill" (whole capacity written once, 128 KiB sequentially) or "overwritten" (then overwritten with
random 4 KiB writes for a time). The rule for held-out loads, which was fixed before any
measurement, selects every third load of each kind in table order. Held-out loads are used neither
by the fit nor for the fit's starting values, but determine the twin's error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from writecliff.engines.base import DeviceIdentity
from writecliff.workload.model import KIB, BlockSize, Job, Pattern

Begins = Literal["fresh", "fill", "overwritten"]
HELD_OUT_RULE = (
    "of each kind (random reads, sequential reads, mixes, writes), in the order of measurement, "
    "every third load is held out"
)
EVERY = 3
FILL_DEPTH = OVERWRITE_DEPTH = 32
FILL_BYTES, OVERWRITE_BYTES = 128 * KIB, 4 * KIB


@dataclass(frozen=True)
class MeasuredLoad:
    """A load that consists of a single job. `held_out` loads determine the twin's error."""

    begins: Begins
    pattern: Pattern
    block_bytes: int
    read_pct: float
    outstanding: int
    held_out: bool = False

    @property
    def label(self) -> str:
        """Description of the load, such as "random 4 KiB, 70 % reads, QD 32"."""
        mix = {0.0: "writes", 100.0: "reads"}.get(self.read_pct, f"{self.read_pct:g} % reads")
        return f"{self.pattern} {self.block_bytes // KIB} KiB, {mix}, QD {self.outstanding}"

    def job(self, seconds: float) -> Job:
        """Return the load as a job of `seconds`."""
        return Job(
            name="twin",
            pattern=self.pattern,
            read_pct=self.read_pct,
            block_sizes=(BlockSize(self.block_bytes),),
            queue_depth=self.outstanding,
        ).with_duration_s(seconds)


# Random reads on a filled drive: block size in KiB and queue depth, where 0 means the maximum depth
_READS = (
    (4, 1), (4, 2), (4, 4), (4, 8), (4, 0), (4, 16), (128, 1), (64, 1), (16, 1), (64, 8),
    (128, 8), (16, 8),
)  # fmt: skip
_DEEP_READS = ((4, 64), (16, 0), (4, 32))  # Reads for drives with many queues.
_IN_ORDER = ((128, 32), (128, 1), (128, 4))  # Sequential reads: block size in KiB and queue depth.
# Block size in KiB, read percentage and queue depth.
_MIXES = (
    (4, 70.0, 32), (4, 70.0, 1), (4, 50.0, 32), (4, 30.0, 32), (4, 90.0, 32), (4, 70.0, 8),
    (64, 70.0, 8), (16, 50.0, 16), (8, 70.0, 16),
)  # fmt: skip
_WRITES = ((4, 32), (4, 1), (4, 8), (64, 8), (16, 32), (16, 4))
FRESH = (
    MeasuredLoad("fresh", "random", 4 * KIB, 0.0, 1),
    MeasuredLoad("fresh", "random", 4 * KIB, 0.0, 32),
    MeasuredLoad("fresh", "sequential", 128 * KIB, 0.0, 32),
)


def deepest(identity: DeviceIdentity) -> int:
    """Return the highest queue depth of the loads, by interface, as in data sheets."""
    text = (identity.interface or "").lower()
    return 32 if "sata" in text or "sas" in text else 256


def read_loads(identity: DeviceIdentity) -> Sequence[MeasuredLoad]:
    """Return the read loads, for a filled drive."""
    deep = deepest(identity)
    random = [*_READS, *(_DEEP_READS if deep > 32 else ())]
    return [
        *_with_held_out(
            MeasuredLoad("fill", "random", kib * KIB, 100.0, depth or deep) for kib, depth in random
        ),
        *_with_held_out(
            MeasuredLoad("fill", "sequential", kib * KIB, 100.0, depth) for kib, depth in _IN_ORDER
        ),
    ]


def write_loads() -> Sequence[MeasuredLoad]:
    """Return the mixed and write loads, for an overwritten drive."""
    return [
        *_with_held_out(
            MeasuredLoad("overwritten", "random", kib * KIB, read, depth)
            for kib, read, depth in _MIXES
        ),
        *_with_held_out(
            MeasuredLoad("overwritten", "random", kib * KIB, 0.0, depth) for kib, depth in _WRITES
        ),
    ]


def _with_held_out(loads: Iterator[MeasuredLoad]) -> Iterator[MeasuredLoad]:
    """Yield the loads of a kind, marking the held-out loads according to the rule."""
    for number, load in enumerate(loads, 1):
        yield replace(load, held_out=number % EVERY == 0)

"""Number of dies of a drive, and use of independent plane reads.

Planes of newer flash read independently of each other. A drive uses this if its read rates require
it. Programs and erases occupy the whole die, so reads collide with them on as many dies as the
drive really has. If independent reads do not suffice, dies are smaller than usual. The small dies
that replace a die together program as slowly as that die.
"""

from __future__ import annotations

from dataclasses import dataclass

from writecliff.devices.generations import BLOCK, DIES_MAX, GIB, KIB, SLOT, Generation

_RANDOM, _IN_ORDER = 1.6, 2.0  # dies that are there for each that reads: reads collide
_PLANES = 4.0  # planes read independently below this number of dies per busy die
_COLLISIONS = 1.1  # margin on the waiting time of reads
_LEAST_WAIT = 0.1  # share of tR below which more dies hardly shorten reads
_WINDOW = 32 * BLOCK  # bytes in flight while a sheet's sequential reads are measured


@dataclass(frozen=True)
class Reads:
    """Read rates that the flash must sustain."""

    random: float  # random reads per second, with `depth` outstanding
    in_order: float  # bytes per second of sequential reads
    read_ns: float  # tR
    alone_ns: float  # latency of a read at queue depth 1
    depth: int


@dataclass(frozen=True)
class Dies:
    """`count` dies of `planes` planes each. `slower` of them replace one die of the usual size, and
    together program as slowly as that die."""

    count: int
    planes: int
    independent: bool  # `True` if planes read independently
    slower: float
    why: str


def dies_of(raw_bytes: float, generation: Generation, bits: int, usual: Reads, own: Reads) -> Dies:
    """The dies of so much flash. `usual`: what drives like this one give, for which planes may read
    by themselves; `own`: what this one is known to give, for which dies may be smaller."""
    gbit = generation.die_gbit_of(bits)
    count, planes, slower = raw_bytes * 8 / GIB / gbit, generation.planes, 1.0
    independent = False
    why = f"{gbit} Gbit dies are usual for {generation.name}"
    while count > DIES_MAX:  # a drive that the year could not yet build
        gbit, count = 2 * gbit, count / 2
        why = f"dies of {gbit} Gbit: more than {DIES_MAX} would not fit a controller"
    if generation.independent and count < _PLANES * _busy(generation, usual):
        independent = True
    readers, width = (planes, 1) if independent else (1, planes)

    def missing(reads: Reads) -> str:
        return _missing(count * readers, width, generation, bits, reads)

    while gbit > 64 and 2 * count <= DIES_MAX and (lacking := missing(own)):
        gbit, count, slower = gbit // 2, 2 * count, 2 * slower
        why = f"as many as {lacking} need"
    return Dies(max(2, round(count)), planes, independent, slower, why)


def _busy(generation: Generation, reads: Reads) -> float:
    """Return the mean number of dies that random reads keep busy."""
    return reads.random * (reads.read_ns / 1e9 + SLOT / (generation.bus_mb_s * 1e6))


def _missing(count: float, planes: int, generation: Generation, bits: int, reads: Reads) -> str:
    """Return the reads that `count` dies, or independent planes, do not sustain, or `""`."""
    busy = _busy(generation, reads) / count
    if busy > 1 / _RANDOM:
        return f"{reads.random:,.0f} reads a second"
    if reads.random:
        # Reads wait for each other as in a queue with constant service times (M/D/1).
        spare_ns = 1e9 * reads.depth / reads.random - reads.alone_ns
        service_ns = 1e9 * _busy(generation, reads) / reads.random
        wait_ns = _COLLISIONS * service_ns * busy / (1 - busy) / 2
        if wait_ns > max(spare_ns, _LEAST_WAIT * reads.read_ns):
            return f"{reads.random:,.0f} reads a second at queue depth {reads.depth}"
    page, bus = planes * generation.page_kib * KIB, generation.bus_mb_s * 1e6
    unit = page * bits if generation.one_shot else page  # in order on one die
    if count >= _WINDOW / unit:  # more dies would have nothing to read
        return ""
    if count * page / (reads.read_ns / 1e9 + page / bus) >= _IN_ORDER * reads.in_order:
        return ""
    return f"{reads.in_order / 1e6:,.0f} MB/s of sequential reads"

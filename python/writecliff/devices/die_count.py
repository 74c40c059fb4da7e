"""The number of dies of a drive, and whether their planes read independently.

Planes of newer flash read independently of each other. A drive uses that if the rates of its reads
need it; programs and erases take the whole die, so reads collide with them on as many dies as the
drive really has. If that is not enough, dies are smaller than usual, and program as slowly as the
dies that they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

from writecliff.devices.generations import BLOCK, DIES_MAX, GIB, KIB, SLOT, Generation

_RANDOM, _IN_ORDER = 1.6, 2.0  # dies that are there for each that reads: reads collide
_PLANES = 4.0  # with fewer dies for each that reads, planes read independently
_COLLISIONS = 1.1  # margin on the time for which reads wait
_LEAST_WAIT = 0.1  # of tR: more dies would hardly shorten reads
_WINDOW = 32 * BLOCK  # bytes in flight while a sheet's sequential reads are measured


@dataclass(frozen=True)
class Reads:
    """What flash must give: random reads a second, bytes/s in order, tR, and the time of a read at
    queue depth 1. Random reads are measured with `depth` outstanding."""

    random: float
    in_order: float
    read_ns: float
    alone_ns: float
    depth: int


@dataclass(frozen=True)
class Dies:
    """`count` dies of `planes` planes each. `slower`: number of them that stand for a die that was
    made, which programs as slowly as these together."""

    count: int
    planes: int
    independent: bool  # whether planes read independently
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

    def gives(reads: Reads) -> bool:
        return _give(count * readers, width, generation, bits, reads)

    while gbit > 64 and 2 * count <= DIES_MAX and not gives(own):
        gbit, count, slower = gbit // 2, 2 * count, 2 * slower
        why = f"as many as {own.random:,.0f} reads a second need"
        if count * readers >= 2 * _busy(generation, own) * _RANDOM:
            why = f"as many as {own.in_order / 1e6:,.0f} MB/s of reads in order need"
    return Dies(max(2, round(count)), planes, independent, slower, why)


def _busy(generation: Generation, reads: Reads) -> float:
    """How many dies are busy with the random reads."""
    return reads.random * (reads.read_ns / 1e9 + SLOT / (generation.bus_mb_s * 1e6))


def _give(count: float, planes: int, generation: Generation, bits: int, reads: Reads) -> bool:
    """Whether so many dies, or planes that read independently, give these reads."""
    busy = _busy(generation, reads) / count
    if busy > 1 / _RANDOM:
        return False
    if reads.random:
        # Reads wait for each other on their dies, as a queue with constant service times.
        spare_ns = 1e9 * reads.depth / reads.random - reads.alone_ns
        service_ns = 1e9 * _busy(generation, reads) / reads.random
        wait_ns = _COLLISIONS * service_ns * busy / (1 - busy) / 2
        if wait_ns > max(spare_ns, _LEAST_WAIT * reads.read_ns):
            return False
    page, bus = planes * generation.page_kib * KIB, generation.bus_mb_s * 1e6
    unit = page * bits if generation.one_shot else page  # in order on one die
    if count >= _WINDOW / unit:  # more dies would have nothing to read
        return True
    return count * page / (reads.read_ns / 1e9 + page / bus) >= _IN_ORDER * reads.in_order

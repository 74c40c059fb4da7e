"""How many dies a drive has, and how many of their planes read by themselves.

The simulator's dies read one page at a time, on all planes. Planes of newer flash read
independently, so where reads need it, each half or quarter of the planes stands as a die of its
own: that changes neither what a program moves nor what it takes. Where that is not enough, dies are
smaller than usual, and program as slowly as those that they stand for.
"""

from __future__ import annotations

from dataclasses import dataclass

from writecliff.devices.generations import BLOCK, DIES_MAX, GIB, KIB, SLOT, Generation

_RANDOM, _IN_ORDER = 1.6, 2.0  # dies that are there for each that reads: reads collide
_WINDOW = 32 * BLOCK  # bytes in flight while a sheet's sequential reads are measured


@dataclass(frozen=True)
class Reads:
    """What flash must give: random reads a second, bytes/s in order, and the time of one."""

    random: float
    in_order: float
    read_ns: float


@dataclass(frozen=True)
class Dies:
    """`count` dies of `planes` planes each, as the simulator has them. `slower`: how many of them
    stand for one that was made, which programs as slowly as these together."""

    count: int
    planes: int
    slower: float
    why: str


def dies_of(raw_bytes: float, generation: Generation, bits: int, usual: Reads, own: Reads) -> Dies:
    """The dies of so much flash. `usual`: what drives like this one give, for which planes may read
    by themselves; `own`: what this one is known to give, for which dies may be smaller."""
    gbit = generation.die_gbit_of(bits)
    count, planes, slower = raw_bytes * 8 / GIB / gbit, generation.planes, 1.0
    why = f"{gbit} Gbit dies are usual for {generation.name}"
    while count > DIES_MAX:  # a drive that the year could not yet build
        gbit, count = 2 * gbit, count / 2
        why = f"dies of {gbit} Gbit: more than {DIES_MAX} would not fit a controller"
    most, made = DIES_MAX * planes, why
    splits = generation.independent
    while splits and planes > 1 and not _give(count, planes, generation, bits, usual):
        count, planes = 2 * count, planes // 2
        share = "a plane" if planes == 1 else f"{planes} planes"
        why = f"{made}; {share} of one as a die, for planes read independently"
    while gbit > 64 and 2 * count <= most and not _give(count, planes, generation, bits, own):
        gbit, count, slower = gbit // 2, 2 * count, 2 * slower
        why = f"as many as {own.random:,.0f} reads a second need"
        if count >= 2 * _busy(generation, own) * _RANDOM:
            why = f"as many as {own.in_order / 1e6:,.0f} MB/s of reads in order need"
    return Dies(max(2, round(count)), planes, slower, why)


def _busy(generation: Generation, reads: Reads) -> float:
    """How many dies are busy with the random reads."""
    return reads.random * (reads.read_ns / 1e9 + SLOT / (generation.bus_mb_s * 1e6))


def _give(count: float, planes: int, generation: Generation, bits: int, reads: Reads) -> bool:
    """Whether so many dies give these reads."""
    if count < _RANDOM * _busy(generation, reads):
        return False
    page, bus = planes * generation.page_kib * KIB, generation.bus_mb_s * 1e6
    unit = page * bits if generation.one_shot else page  # in order on one die
    at_once = min(count, _WINDOW / unit)
    return at_once * page / (reads.read_ns / 1e9 + page / bus) >= _IN_ORDER * reads.in_order

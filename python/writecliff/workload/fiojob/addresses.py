"""How the addresses of a job are spread over its range: `random_distribution` and `sprandom`."""

from __future__ import annotations

import math

from writecliff.workload.fiojob.blocks import SECTOR_BYTES, Blocks, Operations
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.splits import Distribution
from writecliff.workload.model import Addresses, Zone


def addresses(
    settings: Settings, ops: Operations, blocks: Blocks, length: int
) -> tuple[Addresses, int]:
    """The distribution, and the range without what no zone covers."""
    if settings.sprandom:
        return _sprandom(settings, ops), length
    if _has_map(settings, ops, blocks):
        return Addresses("once"), length
    chosen: Distribution = settings.random_distribution
    if ops.pattern == "sequential" or chosen.kind == "random":
        return Addresses(), length
    if chosen.kind == "zipf":
        return Addresses("zipf", theta=chosen.parameter, generator="fio"), length
    if chosen.kind == "pareto":
        return Addresses("pareto", hot_pct=100 * (chosen.parameter or 0)), length
    if chosen.kind == "normal":
        return Addresses("normal", deviation_pct=_deviation_pct(chosen.parameter or 0)), length
    if chosen.kind == "sequence":
        stride = settings.random_sequence_stride
        return Addresses("sequence", blocks=chosen.blocks, advancing=stride), length
    assert chosen.zones is not None
    splits = {chosen.zones.of(operation) for operation in ops.used}
    if len(splits) > 1:
        raise settings.error(
            "random_distribution",
            f"{' and '.join(ops.used)} with different zones in one job are not available",
            "use two jobs",
        )
    split = splits.pop()
    covered = sum(size for _, size in split)
    if chosen.absolute:
        if covered > length:
            raise settings.error(
                "random_distribution",
                f"zones of {covered} bytes exceed the range of {length}",
                "use a larger size",
            )
        length = covered
    elif covered < 100:
        length = length * covered // 100
        length -= length % SECTOR_BYTES
    zones = tuple(Zone(float(access), 100 * size / covered) for access, size in split)
    return Addresses("zoned", zones=zones), length


def _has_map(settings: Settings, ops: Operations, blocks: Blocks) -> bool:
    """Return `True` if the job needs fio's random map, which cuts I/Os of several sizes.

    I/Os of a single size keep their number and length without it.
    """
    return (
        ops.pattern == "random"
        and settings.random_distribution.kind == "random"
        and not settings.norandommap
        and settings.zonemode != "zbd"
        and not settings.given("blockalign")
        and blocks.is_mix
        and blocks.writes is None
        and ops.run_ios == 1
        and not ops.sequential_read_pct
        and not ops.sequential_write_pct
    )


def _deviation_pct(spread_pct: float) -> float:
    """fio adds a uniform number of this spread to a mean of twelve over the whole range, whose own
    deviation is a twelfth of the range (lib/gauss.c)."""
    return math.sqrt((100 / 12) ** 2 + spread_pct**2 / 12)


def _sprandom(settings: Settings, ops: Operations) -> Addresses:
    """As in fio: one thread of random writes of one size; `bs` is the drive's indirection unit."""
    if (ops.pattern, ops.used, settings.numjobs) != ("random", ("write",), 1):
        raise settings.error("sprandom", "sprandom needs rw=randwrite and numjobs=1", "set them")
    share = settings.spr_op
    if len(share) != 1 or not 0 < share[0] < 1:
        raise settings.error("spr_op", "spr_op is not above 0 and below 1", "such as spr_op=0.15")
    return Addresses("sprandom", spare_pct=100 * share[0], regions=settings.spr_num_regions)


def add_notes_on_addresses(settings: Settings, ops: Operations, blocks: Blocks) -> None:
    """Add a note for everything about addresses that is not as in fio."""
    if settings.sprandom:
        if settings.spr_cs:
            settings.note("spr_cs: repeated writes are not delayed by a region")
        return
    chosen = settings.random_distribution
    repeats = chosen.kind == "random" and not settings.norandommap and settings.zonemode != "zbd"
    if ops.pattern == "random" and repeats and not _has_map(settings, ops, blocks):
        of_fio = "fio would write or read each once in a pass"
        if blocks.writes is not None:
            of_fio = "fio's map mixes the block sizes of reads and writes up and ends passes early"
        settings.note(f"blocks are drawn with repetition, as with norandommap; {of_fio}")
    if ops.pattern == "random" and chosen.centre is not None:
        settings.note(
            f"the centre of {chosen.kind} is not kept: hot blocks are scattered over the range"
        )
    if settings.nrfiles > 1 and ops.pattern == "sequential":
        kind = settings.file_service_type.partition(":")
        if (kind[0], kind[2]) not in (("roundrobin", ""), ("roundrobin", "1"), ("sequential", "")):
            settings.note(f"file_service_type={settings.file_service_type}: files take turns")
    if ops.trim_first:
        settings.note("trims are queued like writes; fio waits for each")

"""Drives of storage-class memory as device files, from the figures that a fit may use.

The rule, of a family's figures, all capacities together:

* The controller takes a time per command and one per access. The highest rate of reads of one
  access and the rate of random writes of 4 KiB, which are eight, give both.
* A block of 4 KiB lies in one bank, so its latency beyond that of one access is what seven accesses
  of the bank take.
* What is left of the latency of one access is the firmware's.
* Banks write as fast as the rated sequential writes.

How many banks there are is not published. The controller of the predecessor, the P4800X, has seven
channels (ComputerBase, "Intel Optane SSD DC P4801X", 2018), each of which is taken for one.
Capacities differ in nothing else: small ones of the predecessor were as fast as large ones
(SQLPerformance, Intel Optane SSD DC P4800X; AnandTech, its review of 750 GB, 2017). A write buffer,
background moves that level wear, and power have no published figure that was found, so the drive
has none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from writecliff.devices.derive import Value, quoted_time
from writecliff.devices.generations import KIB, LINKS, SLOT, US
from writecliff.errors import ConfigError
from writecliff.published.figures import PublishedFigure

UNIT = 512  # bytes; the smallest logical block
BANKS = 7
_PER_SLOT = SLOT // UNIT
_YEARS = 5  # of the warranty, that drive writes a day are of


def scm_values(
    name: str, facts: Mapping[str, Any], figures: Iterable[PublishedFigure]
) -> list[Value]:
    """The values of the device file of the drive `name`, in its order. Raises ConfigError: a figure
    that the rule needs is not there."""
    own = [f for f in figures if f.device in facts["drives"]]
    capacity = float(name.rpartition("-")[2]) * 1e9
    link = LINKS[facts["interface"]]
    per_day = _one(own, "dwpd", None, None)
    rated = per_day.value * 365 * _YEARS * capacity
    values = [
        Value("name", f'"{name}"', "the drive and its capacity"),
        Value("description", f'"{facts["about"]}"', "the figures"),
        Value("model", f'"simulated {name}"', "shown in reports"),
        Value("user_capacity", f'"{capacity / 1e9:g} GB"', "the figures"),
        Value(
            "rated_writes",
            f'"{rated / 1e12:g} TB"',
            f"{per_day.value:g} drive writes a day for {_YEARS} years: {per_day.source}",
        ),
    ]
    return [*values, *_timing(own, link.most_mb_s * 1e6, link.command_us * US), *_link(facts)]


def _timing(own: list[PublishedFigure], bandwidth: float, command_ns: float) -> list[Value]:
    small, many = _fastest(own, UNIT), _one(own, "iops", SLOT, 0.0)
    access = (1e9 / many.value - 1e9 / small.value) / (_PER_SLOT - 1)
    command = 1e9 / small.value - access
    first, block = _one(own, "latency_avg", UNIT, 100.0), _one(own, "latency_avg", SLOT, 100.0)
    more = (block.value - first.value) * 1e6 - (SLOT - UNIT) / bandwidth * 1e9
    read = more / (_PER_SLOT - 1)
    latency = first.value * 1e6 - 1e9 / small.value - read - command_ns - UNIT / bandwidth * 1e9
    written = _one(own, "throughput", 128 * KIB, 0.0)
    write = BANKS * UNIT / (written.value * 1e6) * 1e9
    if min(access, command, read, latency) <= 0:
        raise ConfigError(f"the figures of {own[0].device} contradict each other")
    media = (
        ("banks", str(BANKS), "not published: the channels of the predecessor's controller "
         "(ComputerBase, Intel Optane SSD DC P4801X)"),
        ("unit", f'"{UNIT} B"', "the smallest logical block; not published"),
        ("interleave", f'"{SLOT // KIB} KiB"', "a block of 4 KiB lies in one bank"),
        ("read_time", quoted_time(read),
         f"leaves {block.value * 1e3:g} us for 4 KiB and {first.value * 1e3:g} us for 512 bytes: "
         f"{block.source}, {first.source}"),
        ("write_time", quoted_time(write),
         f"all banks write {written.value:,.0f} MB/s: {written.source}"),
    )  # fmt: skip
    controller = (
        ("command_time", quoted_time(command),
         f"leaves {small.value:,.0f} reads of 512 bytes a second: {small.source}"),
        ("access_time", quoted_time(access),
         f"leaves {many.value:,.0f} random writes of 4 KiB a second: {many.source}"),
        ("latency", quoted_time(latency),
         f"leaves {first.value * 1e3:g} us for a read of 512 bytes: {first.source}"),
    )  # fmt: skip
    rows = [("media", media), ("controller", controller)]
    return [Value(f"{table}.{key}", *rest) for table, own in rows for key, *rest in own]


def _link(facts: Mapping[str, Any]) -> list[Value]:
    link = LINKS[facts["interface"]]
    rows = (
        ("interface", f'"{link.name}"', "the figures"),
        ("bandwidth", f'"{link.most_mb_s:.1f} MB/s"', f"what {link.name} carries"),
        ("duplex", '"full"', link.name),
        ("command", f'"{link.command_us:g} us"', "frames or doorbells of a command"),
        ("queues", str(link.queues), "usual"),
        ("queue_depth", str(link.depth), "usual"),
    )
    return [Value(f"link.{key}", value, why) for key, value, why in rows]


def _one(
    figures: Iterable[PublishedFigure], metric: str, size: int | None, read_pct: float | None
) -> PublishedFigure:
    """The first figure of a metric. Raises ConfigError."""
    for f in figures:
        if (f.metric, f.block_bytes, f.read_pct) == (metric, size, read_pct):
            return f
    raise ConfigError(f"there is no figure {metric} of {size} bytes, {read_pct} % reads")


def _fastest(figures: Iterable[PublishedFigure], size: int) -> PublishedFigure:
    """The highest rate of random reads of `size` bytes: the others may be the host's."""
    own = [f for f in figures if (f.metric, f.block_bytes, f.read_pct) == ("iops", size, 100.0)]
    if not own:
        raise ConfigError(f"there is no rate of reads of {size} bytes")
    return max(own, key=lambda f: f.value)

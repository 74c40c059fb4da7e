"""Conditions of SSD-iq's figures: the load that a text describes.

A condition names the drive before its first semicolon and the load behind it, for example
"Samsung PM9A3 960 GB (PCIe 4); sanitize, sequential fill of 100 %, then 4 KiB random writes,
QD 128 x 4 threads, zipf theta 0.8, pages shuffled over the whole LBA space; mean of minutes between
60 and 99 % of the run (5 to 7 capacities)". Only words that change the load are looked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from writecliff.errors import ConfigError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"kib": KIB, "mib": MIB, "gib": GIB, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_NUMBER = r"([\d][\d,]*(?:\.\d+)?)"
_WINDOW = (0.60, 0.99)  # shares of a run that the authors average over
_CAPACITIES, _ZONE_CAPACITIES, _AGED = 6.0, 4.0, 3.0  # if a condition does not say
_PROBE_IOPS = 10_000.0


@dataclass(frozen=True)
class Spread:
    """Distribution of the writes over the pages: uniform, zipf with `theta`, or `zones` of a share
    of the pages and a share of the writes each, in percent."""

    theta: float | None = None
    zones: tuple[tuple[float, float], ...] = ()
    is_scattered: bool = True

    @property
    def kind(self) -> str:
        """`"uniform"`, `"zipf"`, `"static"` (a zone is never written) or `"zones"`."""
        if self.theta is not None:
            return "zipf"
        if not self.zones:
            return "uniform"
        return "static" if any(writes == 0 for _, writes in self.zones) else "zones"

    @property
    def label(self) -> str:
        """The distribution in a few words."""
        if self.theta is not None:
            return f"zipf {self.theta:g}"
        pieces = ", ".join(f"{writes:g} % to {pages:g} %" for pages, writes in self.zones)
        return f"writes {pieces} of pages" if self.zones else "uniform"


@dataclass(frozen=True)
class RandomWrites:
    """Closed loop of random writes after a sequential fill, measured over `window` of the run."""

    spread: Spread
    block_bytes: int = 4 * KIB
    queue_depth: int = 128
    threads: int = 4
    capacities: float = _CAPACITIES  # of the used range that are written
    range_bytes: float | None = None  # of the real drive; None: all of it
    window: tuple[float, float] = _WINDOW

    @property
    def label(self) -> str:
        """The load in a few words."""
        used = "" if self.range_bytes is None else f", {self.range_bytes / GIB:g} GiB used"
        return self.spread.label + used


@dataclass(frozen=True)
class ZoneWrites:
    """Writes in order within zones of the host; a zone is trimmed as a whole before it is written
    again, and the next zone is drawn at random."""

    zone_bytes: float
    active: int
    block_bytes: int = 512 * KIB
    queue_depth: int = 1
    threads: int = 1
    capacities: float = _ZONE_CAPACITIES
    window: tuple[float, float] = _WINDOW

    @property
    def label(self) -> str:
        """The load in a few words."""
        return f"{self.active} active zones of {self.zone_bytes / GIB:g} GiB"


@dataclass(frozen=True)
class OpenLoop:
    """Latency of a probe at a fixed rate beside Poisson arrivals of I/Os, on an aged drive."""

    rate_iops: float  # of the arrivals
    write_pct: float = 99.0  # of the arrivals
    block_bytes: int = 4 * KIB
    threads: int = 6
    queue_depth: int = 64
    aged_capacities: float = _AGED  # of uniform writes before the load
    probe_iops: float = _PROBE_IOPS
    probe_read_pct: float = 50.0

    @property
    def label(self) -> str:
        """The load in a few words."""
        return f"open loop, {self.rate_iops:,.0f} I/Os a second"


Load = RandomWrites | ZoneWrites | OpenLoop
UNIFORM = Spread()


def drive_text(condition: str) -> str:
    """The part of a condition that names the drive."""
    return condition.partition(";")[0].strip()


def load_of(condition: str) -> Load:
    """The load that a condition describes.

    Raises ConfigError: no load, or one that is not known."""
    _, found, text = condition.partition(";")
    if not found:
        raise ConfigError("the condition names no drive and load, separated by a semicolon")
    text = " ".join(text.lower().split())
    if "open loop" in text or "writes/s" in text:
        return _open_loop(text)
    if re.search(r"active zones? of", text):
        return _zone_writes(text)
    if "uniform" in text or "zipf" in text or "of pages get" in text:
        return _random_writes(text)
    raise ConfigError("no known load: uniform, zipf, zones of pages, active zones, or open loop")


def uniform_of(load: RandomWrites) -> RandomWrites:
    """The same load with uniform addresses, to which figures are relative."""
    return replace(load, spread=UNIFORM)


def _random_writes(text: str) -> RandomWrites:
    depth, threads = _queues(text, 128, 4)
    used = re.search(rf"{_NUMBER} (gib|gb|mib|mb) of the drive used", text)
    times = _found(rf"{_NUMBER} x the used range", text)
    return RandomWrites(
        spread=_spread(text),
        block_bytes=_block(text, 4 * KIB),
        queue_depth=depth,
        threads=threads,
        capacities=times or _capacities(text, _CAPACITIES),
        range_bytes=_value(used[1]) * _UNITS[used[2]] if used else None,
        window=_window(text),
    )


def _spread(text: str) -> Spread:
    scattered = "shuffle" in text or "scatter" in text
    if zones := re.findall(rf"{_NUMBER} ?% of pages get {_NUMBER} ?% of writes", text):
        return _zoned(tuple((_value(pages), _value(writes)) for pages, writes in zones), scattered)
    static = re.search(rf"{_NUMBER} ?% (?:of (?:the )?(?:pages|data) )?(?:is |are )?static", text)
    if static:
        share = _value(static[1])
        return _zoned(((share, 0.0), (100 - share, 100.0)), scattered)
    if "zipf" in text:
        theta = _found(rf"zipf\w*\s*(?:\(?theta)?\s*[=:]?\s*{_NUMBER}", text)
        if theta is None:
            raise ConfigError("zipf without a theta")
        return Spread(theta=theta) if theta > 0 else UNIFORM
    return UNIFORM


def _zoned(zones: tuple[tuple[float, float], ...], scattered: bool) -> Spread:
    """Zones with pages, checked. A single zone is all pages."""
    zones = tuple(zone for zone in zones if zone[0] > 0)
    if any(abs(sum(column) - 100) > 0.5 for column in zip(*zones, strict=True)):
        raise ConfigError("the zones do not add up to 100 % of the pages and of the writes")
    return UNIFORM if len(zones) < 2 else Spread(zones=zones, is_scattered=scattered)


def _zone_writes(text: str) -> ZoneWrites:
    found = re.search(rf"{_NUMBER} active zones? of {_NUMBER} ?(gib|mib|gb|mb)", text)
    if found is None:
        raise ConfigError("active zones without a number and a size")
    depth, threads = _queues(text, 1, 1)
    return ZoneWrites(
        zone_bytes=_value(found[2]) * _UNITS[found[3]],
        active=max(1, int(_value(found[1]))),
        block_bytes=_block(text, 512 * KIB),
        queue_depth=depth,
        threads=threads,
        capacities=_capacities(text, _ZONE_CAPACITIES),
        window=_window(text),
    )


def _open_loop(text: str) -> OpenLoop:
    rate = _found(rf"at {_NUMBER} (?:writes|i/os|iops)(?:/s| a second| per second)?", text)
    if rate is None or rate <= 0:
        raise ConfigError("an open loop without a rate")
    load, _, probe = text.partition("latency from")
    share = _found(rf"{_NUMBER} ?% \d+ kib writes", load)
    mix = re.search(rf"{_NUMBER} iops {_NUMBER}/{_NUMBER}", probe)
    depth, _ = _queues(load, 64, 1)
    return OpenLoop(
        rate_iops=rate,
        write_pct=99.0 if share is None else share,
        block_bytes=_block(load, 4 * KIB),
        threads=int(_found(rf"{_NUMBER} threads? with", load) or 6),
        queue_depth=depth,
        aged_capacities=_AGED if (aged := _capacity_words(load)) is None else aged,
        probe_iops=_value(mix[1]) if mix else _found(rf"{_NUMBER} iops", probe) or _PROBE_IOPS,
        probe_read_pct=_value(mix[2]) if mix else 50.0,
    )


def _window(text: str) -> tuple[float, float]:
    found = re.search(rf"{_NUMBER} (?:and|to) {_NUMBER} ?%", text)
    low, high = (_value(found[1]) / 100, _value(found[2]) / 100) if found else _WINDOW
    return (low, high) if 0 <= low < high <= 1 else _WINDOW


def _capacities(text: str, default: float) -> float:
    return _capacity_words(text) or default


def _capacity_words(text: str) -> float | None:
    """The number before "capacities", or the middle of two."""
    found = re.search(rf"(?:{_NUMBER} to )?{_NUMBER} capacit", text)
    if found is None:
        return None
    values = [_value(one) for one in found.groups() if one]
    return sum(values) / len(values)


def _queues(text: str, depth: int, threads: int) -> tuple[int, int]:
    """Outstanding I/Os of each thread, and threads."""
    found = re.search(rf"qd ?{_NUMBER}(?: x {_NUMBER})?", text)
    if found:
        depth = max(1, int(_value(found[1])))
    if found and found[2]:
        threads = max(1, int(_value(found[2])))
    elif plain := _found(rf"{_NUMBER} threads?\b(?! with)", text):
        threads = max(1, int(plain))
    return depth, threads


def _block(text: str, default: int) -> int:
    found = re.search(rf"{_NUMBER} ?(kib|mib|kb) (?:random |sequential )?writes", text)
    return int(_value(found[1]) * _UNITS[found[2]]) if found else default


def _found(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text)
    return _value(match[1]) if match else None


def _value(text: str) -> float:
    return float(text.replace(",", ""))

"""Parser of the conditions of SSD-iq's figures.

A condition names the drive before its first semicolon and the load after it, for example
"Samsung PM9A3 960 GB (PCIe 4); sanitize, sequential fill of 100 %, then 4 KiB random writes,
QD 128 x 4 threads, zipf theta 0.8, pages shuffled over the whole LBA space; mean of minutes between
60 and 99 % of the run (5 to 7 capacities)". The parser ignores words that do not affect the load.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from writecliff.errors import ConfigError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"mib": MIB, "gib": GIB, "mb": 10**6, "gb": 10**9}
# Block size units, which are powers of two because sources write "4 KB" for 4 KiB.
_BLOCK_UNITS = {"k": KIB, "m": MIB}
_NUMBER = r"([\d][\d,]*(?:\.\d+)?)"
_NUMBER_MAX = 1e15
# Bounds of the averaging window, as fractions of a run, that the authors use.
_WINDOW = (0.60, 0.99)
_CAPACITIES, _ZONE_CAPACITIES, _AGED = 6.0, 4.0, 3.0  # Default volumes in user capacities.
_CAPACITIES_MAX = 1000.0
_PROBE_IOPS = 10_000.0
_SHARES_TOLERANCE = 0.5  # Tolerance by which the sum of rounded percentages may differ from 100 %.
_STATIC = re.compile(rf"{_NUMBER} ?% (?:of (?:the )?(?:pages|data) )?(?:is |are )?static")
# Words for the number of capacities that a sequential fill writes.
_FILL_CAPACITIES = re.compile(
    rf"fill(?:ed)? (?:of |with )?(?:{_NUMBER} to )?{_NUMBER} capacit\w*\b(?! (?:uniform|random))"
    rf"|(?:{_NUMBER} to )?{_NUMBER} capacit\w* (?:of )?sequential\b"
)


@dataclass(frozen=True)
class Spread:
    """Distribution of the writes over the pages: uniform, Zipf with `theta`, or `zones`.

    Each zone is defined by its percentage of the pages and its percentage of the writes.
    """

    theta: float | None = None
    zones: tuple[tuple[float, float], ...] = ()
    is_scattered: bool = True

    @property
    def kind(self) -> str:
        """`"uniform"`, `"zipf"`, `"static"` (if a zone is never written) or `"zones"`."""
        if self.theta is not None:
            return "zipf"
        if not self.zones:
            return "uniform"
        return "static" if any(writes == 0 for _, writes in self.zones) else "zones"

    @property
    def label(self) -> str:
        """Short name of the distribution."""
        if self.theta is not None:
            return f"zipf {self.theta:g}"
        pieces = ", ".join(f"{writes:g} % to {pages:g} %" for pages, writes in self.zones)
        return f"writes {pieces} of pages" if self.zones else "uniform"


@dataclass(frozen=True)
class RandomWrites:
    """Closed loop of random writes after a sequential fill, measured during `window` of the run."""

    spread: Spread
    block_bytes: int = 4 * KIB
    queue_depth: int = 128  # Number of outstanding I/Os per thread.
    threads: int = 4
    capacities: float = _CAPACITIES  # Written volume as a multiple of the used range.
    range_bytes: float | None = None  # Used range of the real drive; `None` for the whole drive.
    window: tuple[float, float] = _WINDOW

    @property
    def label(self) -> str:
        """Short name of the load."""
        used = "" if self.range_bytes is None else f", {self.range_bytes / GIB:g} GiB used"
        return self.spread.label + used


@dataclass(frozen=True)
class ZoneWrites:
    """Sequential writes within zones managed by the host.

    The host trims a whole zone before rewriting it, and chooses the next zone at random.
    """

    zone_bytes: float  # Zone size on the real drive, in bytes.
    active: int  # Number of zones that are written concurrently.
    block_bytes: int = 512 * KIB
    queue_depth: int = 1
    threads: int = 1
    capacities: float = _ZONE_CAPACITIES
    window: tuple[float, float] = _WINDOW

    @property
    def label(self) -> str:
        """Short name of the load."""
        return f"{self.active} active zones of {self.zone_bytes / GIB:g} GiB"


@dataclass(frozen=True)
class OpenLoop:
    """Poisson arrivals of I/Os on an aged drive, and a fixed-rate latency probe."""

    rate_iops: float  # Arrival rate in IOPS.
    write_pct: float = 99.0  # Percentage of writes among the arrivals.
    block_bytes: int = 4 * KIB
    threads: int = 6
    queue_depth: int = 64
    aged_capacities: float = _AGED  # Uniform writes before the load, in user capacities.
    probe_iops: float = _PROBE_IOPS
    probe_read_pct: float = 50.0

    @property
    def label(self) -> str:
        """Short name of the load."""
        return f"open loop, {self.rate_iops:,.0f} I/Os per second"


Load = RandomWrites | ZoneWrites | OpenLoop
UNIFORM = Spread()


def drive_text(condition: str) -> str:
    """Return the drive name from a condition."""
    return condition.partition(";")[0].strip()


def load_of(condition: str) -> Load:
    """Return the load that a condition describes.

    Raises:
        ConfigError: If the condition contains no load or an unknown load.
    """
    _, separator, text = condition.partition(";")
    if not separator:
        raise ConfigError(
            "the condition does not contain a semicolon between the drive and the load"
        )
    text = " ".join(text.lower().split())
    if "open loop" in text or "writes/s" in text:
        return _open_loop(text)
    if re.search(r"active zones? of", text):
        return _zone_writes(text)
    if "uniform" in text or "zipf" in text or "of pages get" in text or _STATIC.search(text):
        return _random_writes(text)
    raise ConfigError(
        "unknown load (known: uniform, zipf, zones of pages, active zones, open loop)"
    )


def uniform_of(load: RandomWrites) -> RandomWrites:
    """Return the load with uniform addresses, which is the reference for relative figures."""
    return replace(load, spread=UNIFORM)


def _random_writes(text: str) -> RandomWrites:
    depth, threads = _queues(text, 128, 4)
    used = re.search(rf"{_NUMBER} (gib|gb|mib|mb) of the drive used", text)
    passes = _number_in(rf"{_NUMBER} x the used range", text)
    return RandomWrites(
        spread=_spread(text),
        block_bytes=_block(text, 4 * KIB),
        queue_depth=depth,
        threads=threads,
        capacities=_limited(passes) if passes else _capacities(text, _CAPACITIES),
        range_bytes=_value(used[1]) * _UNITS[used[2]] if used else None,
        window=_window(text),
    )


def _spread(text: str) -> Spread:
    scattered = "shuffle" in text or "scatter" in text
    if zones := re.findall(rf"{_NUMBER} ?% of pages get {_NUMBER} ?% of writes", text):
        return _zoned(tuple((_value(pages), _value(writes)) for pages, writes in zones), scattered)
    if static := _STATIC.search(text):
        share = _value(static[1])
        return _zoned(((share, 0.0), (100 - share, 100.0)), scattered)
    if "zipf" in text:
        theta = _number_in(rf"zipf\w*\s*(?:\(?theta)?\s*[=:]?\s*{_NUMBER}", text)
        if theta is None:
            raise ConfigError("a zipf load requires a theta, for example `zipf theta 0.8`")
        return Spread(theta=theta) if theta > 0 else UNIFORM
    return UNIFORM


def _zoned(zones: tuple[tuple[float, float], ...], scattered: bool) -> Spread:
    """Return the distribution over the zones that have pages; a single zone is uniform.

    Raises:
        ConfigError: If the percentages do not add up to 100 %, allowing for rounding.
    """
    zones = tuple(zone for zone in zones if zone[0] > 0)
    totals = [sum(shares) for shares in zip(*zones, strict=True)]
    if any(abs(total - 100) > _SHARES_TOLERANCE for total in totals):
        raise ConfigError("the zones must add up to 100 % of the pages and to 100 % of the writes")
    if len(zones) < 2:
        return UNIFORM
    columns = (_to_100(shares) for shares in zip(*zones, strict=True))
    return Spread(zones=tuple(zip(*columns, strict=True)), is_scattered=scattered)


def _to_100(shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the percentages, scaled so that they add up to 100 %."""
    total = sum(shares)
    return shares if total == 100 else tuple(share / total * 100 for share in shares)


def _zone_writes(text: str) -> ZoneWrites:
    match = re.search(rf"{_NUMBER} active zones? of {_NUMBER} ?(gib|mib|gb|mb)", text)
    if match is None:
        raise ConfigError(
            "a load with active zones requires their number and size, for example `16 active "
            "zones of 8 GiB`"
        )
    depth, threads = _queues(text, 1, 1)
    return ZoneWrites(
        zone_bytes=_value(match[2]) * _UNITS[match[3]],
        active=max(1, int(_value(match[1]))),
        block_bytes=_block(text, 512 * KIB),
        queue_depth=depth,
        threads=threads,
        capacities=_capacities(text, _ZONE_CAPACITIES),
        window=_window(text),
    )


def _open_loop(text: str) -> OpenLoop:
    rate = _number_in(rf"at {_NUMBER} (?:writes|i/os|iops)(?:/s| a second| per second)?", text)
    if rate is None or rate <= 0:
        raise ConfigError("an open-loop load requires a rate, for example `at 50000 writes/s`")
    load, _, probe = text.partition("latency from")
    share = _number_in(rf"{_NUMBER} ?% \d+ ?ki?b? writes", load)
    mix = re.search(rf"{_NUMBER} iops {_NUMBER}/{_NUMBER}", probe)
    depth, _ = _queues(load, 64, 1)
    return OpenLoop(
        rate_iops=rate,
        write_pct=99.0 if share is None else share,
        block_bytes=_block(load, 4 * KIB),
        threads=int(_number_in(rf"{_NUMBER} threads? with", load) or 6),
        queue_depth=depth,
        aged_capacities=_AGED if (aged := _capacity_words(load)) is None else aged,
        probe_iops=_value(mix[1]) if mix else _number_in(rf"{_NUMBER} iops", probe) or _PROBE_IOPS,
        probe_read_pct=_value(mix[2]) if mix else 50.0,
    )


def _window(text: str) -> tuple[float, float]:
    match = re.search(rf"{_NUMBER} (?:and|to) {_NUMBER} ?%", text)
    if match is None:
        return _WINDOW
    low, high = (_value(share) / 100 for share in match.groups())
    if not low < high <= 1:
        raise ConfigError(f"invalid window from {100 * low:g} to {100 * high:g} % of the run")
    return low, high


def _capacities(text: str, default: float) -> float:
    capacities = _capacity_words(text)
    if capacities == 0:
        raise ConfigError("the load writes 0 capacities, so it cannot be measured")
    return default if capacities is None else capacities


def _capacity_words(text: str) -> float | None:
    """Return the number before "capacities", or the mean of a range, such as "5 to 7".

    The capacities written by the sequential fill are not counted.
    """
    match = re.search(rf"(?:{_NUMBER} to )?{_NUMBER} capacit", _FILL_CAPACITIES.sub("", text))
    if match is None:
        return None
    values = [_value(number) for number in match.groups() if number]
    return _limited(sum(values) / len(values))


def _limited(capacities: float) -> float:
    """Return the capacities to write. Raises ConfigError if there are too many to simulate."""
    if capacities > _CAPACITIES_MAX:
        raise ConfigError(f"{capacities:g} capacities exceed the limit of {_CAPACITIES_MAX:,.0f}")
    return capacities


def _queues(text: str, depth: int, threads: int) -> tuple[int, int]:
    """Return the outstanding I/Os per thread, and the number of threads."""
    match = re.search(rf"qd ?{_NUMBER}(?: x {_NUMBER})?", text)
    if match:
        depth = max(1, int(_value(match[1])))
    if match and match[2]:
        threads = max(1, int(_value(match[2])))
    elif plain := _number_in(rf"{_NUMBER} threads?\b(?! with)", text):
        threads = max(1, int(plain))
    return depth, threads


def _block(text: str, default: int) -> int:
    match = re.search(rf"{_NUMBER} ?([km])i?b? (?:random |sequential )?writes", text)
    size = round(_value(match[1]) * _BLOCK_UNITS[match[2]]) if match else default
    if size <= 0:
        raise ConfigError("the block size is 0 bytes, but must be greater than 0")
    return size


def _number_in(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text)
    return _value(match[1]) if match else None


def _value(text: str) -> float:
    value = float(text.replace(",", ""))
    if value > _NUMBER_MAX:
        raise ConfigError(f"{value:g} exceeds the largest supported number, {_NUMBER_MAX:g}")
    return value

"""Flash structure that no single rate reveals, which is over-provisioning, dies and bottlenecks.

Over-provisioning is determined by the write amplification after the measured overwrites, which
depends on little else, so timing is not simulated. The number of dies is determined by figures that
depend on collisions between I/Os on a die: reads by queue depth, and slow I/Os in a mix. The
program time scales with the number of dies, so that the total program rate of all dies remains
constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from writecliff.devices import open_device
from writecliff.devices.edit import value_of, with_values
from writecliff.devices.generations import LINKS
from writecliff.devices.quantities import number
from writecliff.engines.base import Progress
from writecliff.engines.preconditioned import recipe
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.fit.progress import FitProgress
from writecliff.published.measure import ComparedDrive
from writecliff.published.sheet_check import fitting_scale

Log = Callable[[str], None]
SMALL_BYTES = 8e9  # Largest capacity that is simulated at full size.
DIES_MOST, CHANNELS_MOST = 256, 16
_DIES_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_WAF_TOLERANCE = 0.01  # Relative tolerance for write amplification.
_TRIES = 12
_FASTER = 0.25  # Factor on the firmware times if flash is the write bottleneck.
_FASTER_FLASH = 0.6  # Factor on the program time if firmware is the bottleneck.
_LEAST_NS = 50.0
_UNITS_LEAST = 150  # Minimum number of reclaim units, because fewer units would be too coarse.
_LEAST_READ, _SAME_READ = 0.3, 0.04  # Fractions of the mean read time.
_TRIED = "measured here: best of the tried values"
_SUSPENSIONS, _USUAL_SUSPENSIONS = "controller.suspends_per_operation", "8"
LINK = "link.bandwidth"
SLOT = 4096


@dataclass(frozen=True)
class Spare:
    """Fitted over-provisioning, as blocks per plane, and the simulated write amplification."""

    text: str
    blocks: int
    waf: float
    exact: bool  # `True` if `waf` equals the measured value.


def with_spare_for(text: str, path: str, overwritten_pct: float, waf: float, log: Log) -> Spare:
    """Return the device file with the block count that yields the measured write amplification.

    Raises:
        ConfigError: If no block count yields a possible drive.
    """
    log("simulating write amplification by over-provisioning")
    capacity = number(value_of(text, "user_capacity"))
    raw = open_device(text, path).describe()["raw_bytes"]
    each = raw / number(value_of(text, "flash.blocks_per_plane"))
    low, high = int(np.ceil(capacity / each)), int(2.0 * capacity / each)
    best: Spare | None = None
    # Each iteration halves the search range.
    tries = min(_TRIES, max(1, (high - low + 1).bit_length()))
    progress = FitProgress(log)
    for nth in range(tries):
        blocks = (low + high) // 2
        made = _with_blocks(text, blocks)

        def look(share: float, tried: int = nth) -> None:
            progress.searching("over-provisioning", tries, (tried + share) / tries)

        try:
            simulated = simulated_waf(made, path, overwritten_pct, look)
        except ConfigError:  # There is too little spare flash.
            low = blocks + 1
            if low > high:
                break
            continue
        here = Spare(made, blocks, simulated, abs(simulated / waf - 1) < _WAF_TOLERANCE)
        if best is None or abs(np.log(simulated / waf)) < abs(np.log(best.waf / waf)):
            best = here
        if here.exact or low >= high:
            break
        low, high = (blocks + 1, high) if simulated > waf else (low, blocks - 1)
        if low > high:
            break
    if best is None:
        raise ConfigError("no over-provisioning is possible with this capacity and number of dies")
    return best


def simulated_waf(
    text: str,
    path: str,
    overwritten_pct: float,
    on_share: Callable[[float], None] = lambda share: None,
) -> float:
    """Return the untimed write amplification over the last quarter of the overwrites.

    `on_share` receives the completed fraction of the writes, from 0 to 1.
    """
    drive = ComparedDrive("spare", text, path)
    scale = fitting_scale(text, path, SMALL_BYTES)
    drive = drive.scaled(scale) if scale > 1 else drive
    engine = SimEngine.from_text(drive.text, drive.file_name)
    capacity = engine.identify().capacity_bytes
    # The last step has a different seed, so that addresses do not repeat in the same order.
    steps = recipe(f"overwritten:{0.75 * overwritten_pct:.4g}%", capacity)
    last = recipe(f"overwritten:{0.25 * overwritten_pct:.4g}%", capacity)[-1]
    steps.append(type(last)(last.name, last.jobs, seed=last.seed + 1))
    volumes = [sum(job.volume_bytes or 0 for job in step.jobs) for step in steps]
    waf: float | None = None
    for nth, step in enumerate(steps):
        begin, volume, whole = sum(volumes[:nth]), volumes[nth], sum(volumes)

        def look(
            now: Progress, begin: int = begin, volume: int = volume, whole: int = whole
        ) -> None:
            on_share((begin + (now.fraction or 0.0) * volume) / whole)

        waf = engine.precondition(step, look).waf
        on_share((begin + volume) / whole)
    return waf or 1.0


@dataclass(frozen=True)
class Variant:
    """A starting point: a device file, with its dies, program suspension and bottlenecks."""

    text: str
    dies: int
    suspends: bool
    flash_bounds: tuple[
        str, ...
    ]  # Operations ("reads", "writes") that flash limits; firmware limits all other operations.

    @property
    def bounds(self) -> str:
        """Description of the bottlenecks."""
        both = (("reads", "firmware"), ("writes", "firmware"))
        named = [(what, "flash" if what in self.flash_bounds else who) for what, who in both]
        words = [f"{what} bound by {who}" for what, who in named]
        return ", ".join([*words, *([] if self.suspends else ["no suspension"])])


def variants(text: str) -> Iterator[Variant]:
    """Yield starting points with other die counts, suspension settings and bottlenecks.

    Each device file occurs only once.
    """
    seen: set[str] = set()
    channels, per = (round(number(value_of(text, f"flash.{key}")))
                     for key in ("channels", "dies_per_channel"))  # fmt: skip
    dies = channels * per
    every = (max(1, round(dies * factor)) for factor in _DIES_FACTORS)
    for wanted in dict.fromkeys(count for count in every if count <= DIES_MOST):
        made = with_dies(text, wanted)
        if made is None:
            continue
        bounds = ((), ("reads",), ("writes",), ("reads", "writes"))
        for suspends, bound in itertools.product((True, False), bounds):
            faster = made if "writes" in bound else _firmware_bound(made)
            changed = _with_suspensions(_flash_bound(faster, bound), suspends=suspends)
            if changed not in seen:
                seen.add(changed)
                yield Variant(changed, wanted, suspends, bound)


def with_dies(text: str, dies: int) -> str | None:
    """Return the device file with a different die count, but equal flash capacity and program rate.

    Return `None` if no such drive is possible.
    """
    channels, per, blocks, pages = (
        round(number(value_of(text, f"flash.{key}")))
        for key in ("channels", "dies_per_channel", "blocks_per_plane", "pages_per_block")
    )
    usual = 16 if channels > 8 else 8
    wanted_channels = min(dies, max(channels, usual))
    while dies % wanted_channels:
        wanted_channels -= 1
    share = dies / (channels * per)
    # A reclaim unit consists of one block on each plane. Drives with more dies have smaller blocks,
    # which preserves the number of reclaim units.
    made = {
        "flash.channels": str(wanted_channels),
        "flash.dies_per_channel": str(dies // wanted_channels),
        "flash.blocks_per_plane": str(max(1, round(blocks / share))),
    }
    units = blocks / share
    if units < _UNITS_LEAST:
        bits = len(value_of(text, "flash.read"))
        lines = max(1, round(pages / bits * units / _UNITS_LEAST))
        exact = blocks * pages / share / (lines * bits)
        made["flash.pages_per_block"] = str(lines * bits)
        made["flash.blocks_per_plane"] = str(max(1, round(exact)))
    changed = with_values(text, {key: (value, None) for key, value in made.items()})
    program = number(value_of(text, "flash.program"))
    changed = with_numbers(changed, {"flash.program": program * share})
    try:
        open_device(changed, "variant.toml")
    except ConfigError:
        return None
    return changed


def with_write_times(text: str, fill_bytes_per_s: float, steady_iops: float, waf: float) -> str:
    """Return the device file with write times that explain the measured rates.

    The program time and the firmware times each explain, without the other, the fill and the steady
    random writes at the measured write amplification.
    """
    dies, planes, pages = (
        _dies(text),
        *(number(value_of(text, f"flash.{key}")) for key in ("planes_per_die", "page")),
    )
    bits = len(value_of(text, "flash.read")) if value_of(text, "flash.one_shot") else 1
    programmed = max(fill_bytes_per_s, steady_iops * SLOT * waf)
    mapping_ns = SLOT / fill_bytes_per_s * 1e9
    relocation_ns = (1e9 / steady_iops - mapping_ns) / max(waf - 1, 0.01)
    times = {
        "flash.program": dies * planes * pages * bits / programmed * 1e9,
        "controller.mapping_update_time": mapping_ns,
        "controller.relocation_time": max(relocation_ns, _LEAST_NS),
    }
    described = {key: f'"{value / 1e3:.4g} us"' for key, value in times.items()}
    del described["flash.program"]
    made = with_values(text, {key: (value, None) for key, value in described.items()})
    return with_numbers(made, {"flash.program": times["flash.program"]})


def _dies(text: str) -> float:
    return number(value_of(text, "flash.channels")) * number(
        value_of(text, "flash.dies_per_channel")
    )


def _firmware_bound(text: str) -> str:
    """Return the device file with flash that is faster than the writes require."""
    program = number(value_of(text, "flash.program"))
    return with_numbers(text, {"flash.program": _FASTER_FLASH * program})


def _flash_bound(text: str, bounds: Sequence[str]) -> str:
    """Return the device file with faster firmware, so that flash limits the operations in `bounds`.

    The latency of a single command is preserved, because the time removed from the command is added
    to the controller's latency.
    """
    every = "controller.command_time"
    keys = {
        "reads": ("controller.read_command_time",),
        "writes": ("controller.write_command_time", "controller.mapping_update_time",
                   "controller.relocation_time"),
    }  # fmt: skip
    names = [key for what in bounds for key in keys[what]]
    if len(bounds) == len(keys):
        names.append(every)
    have = {key: value for key in (*names, every) if (value := _time(text, key))}
    times = {key: _FASTER * value for key, value in have.items() if key in names}
    least = times.get(every, have[every])
    for what in ("read", "write"):
        key = f"controller.{what}_command_time"
        if key in times:
            times[key] = max(times[key], least)
    if "reads" in bounds:
        times[LINK] = max(link_most(text), number(value_of(text, LINK)))
    alone = max(_command_alone(text) - _command_alone(with_numbers(text, times)), 0.0)
    if alone:
        times["controller.latency"] = number(value_of(text, "controller.latency")) + alone
    return with_numbers(text, times) if times else text


def link_most(text: str) -> float:
    """Return the maximum rate of the drive link in bytes/s."""
    name = value_of(text, "link.interface")
    every = [link.most_mb_s * 1e6 for link in LINKS.values() if link.name == name]
    return every[0] if every else number(value_of(text, LINK))


def _command_alone(text: str) -> float:
    """Return the firmware time of a single write, in ns."""
    write_time = _time(text, "controller.write_command_time")
    return write_time or _time(text, "controller.command_time") or 0.0


def _time(text: str, key: str) -> float | None:
    try:
        value = number(value_of(text, key))
    except ConfigError:
        return None
    return value if value > 0 else None


def with_page_times(text: str, single_reads_ns: Mapping[int, Sequence[float]]) -> str:
    """Return the device file with page read times that differ as in the measured reads."""
    times = value_of(text, "flash.read")
    middles = single_reads_ns.get(len(times))
    if middles is None:
        return text
    mean, mean_read = number(times), sum(middles) / len(middles)
    read_times = [max(mean + middle - mean_read, _LEAST_READ * mean) for middle in middles]
    if max(read_times) - min(read_times) < _SAME_READ * mean:
        return text
    listed = ", ".join(f'"{read_time / 1e3:.4g} us"' for read_time in read_times)
    return with_values(text, {"flash.read": (f"[{listed}]", None)})


def alternatives(text: str) -> Iterator[tuple[str, str]]:
    """Yield changes that no rate reveals, as pairs of description and device file."""
    key = "controller.write_buffer"
    size = number(value_of(text, key))
    for factor in (0.5, 2.0, 4.0):
        mib = size * factor / (1 << 20)
        if mib >= 1:
            yield (
                f"a buffer of {mib:.4g} MiB",
                with_values(text, {key: (f'"{mib:.4g} MiB"', _TRIED)}),
            )
    channels, per = (
        round(number(value_of(text, f"flash.{name}"))) for name in ("channels", "dies_per_channel")
    )
    for more in (channels // 2, channels * 2):
        if 1 <= more <= CHANNELS_MOST and channels * per % more == 0:
            changes = {"flash.channels": more, "flash.dies_per_channel": channels * per // more}
            made = {name: (str(value), _TRIED) for name, value in changes.items()}
            yield f"{more} channels", with_values(text, made)
    yield from _other_blocks(text)
    suspends = number(value_of(text, _SUSPENSIONS)) > 0
    words = "no suspension" if suspends else "suspension"
    yield words, _with_suspensions(text, suspends=not suspends)


def _with_suspensions(text: str, *, suspends: bool) -> str:
    """Return the device file with the usual number of suspensions by reads, or with none."""
    if (number(value_of(text, _SUSPENSIONS)) > 0) == suspends:
        return text
    return with_values(text, {_SUSPENSIONS: (_USUAL_SUSPENSIONS if suspends else "0", _TRIED)})


def _other_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield half and double block sizes, erased proportionally more or less often."""
    pages, blocks = (
        round(number(value_of(text, f"flash.{key}")))
        for key in ("pages_per_block", "blocks_per_plane")
    )
    bits = len(value_of(text, "flash.read"))
    for factor in (0.5, 2.0):
        other = max(1, round(pages / bits * factor)) * bits
        changes = {
            "flash.pages_per_block": str(other),
            "flash.blocks_per_plane": str(round(blocks * pages / other)),
        }
        made = {name: (value, _TRIED) for name, value in changes.items()}
        yield f"blocks of {other} pages", with_values(text, made)


def _with_blocks(text: str, blocks: int) -> str:
    return with_values(text, {"flash.blocks_per_plane": (str(blocks), None)})

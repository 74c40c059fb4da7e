"""A simulated drive of another size: so small that the files of a trace fill it.

A capture of some gigabytes leaves a real drive nearly empty, where every placement is as good. The
drive is cut down instead: over-provisioning, planes, page size and times stay, and so does the size
of the reclaim unit while there are enough of them; below that units shrink, and with them dies,
because streams and collection need a number of units and not of bytes. What changes with it: the
bandwidth of the flash, where dies had to go.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from typing import Any

from writecliff import _native
from writecliff.devices import describe_device
from writecliff.engines.scaled import (
    device_toml,
    pieces_per_slot,
    resize_slc_cache,
    slc_unit_bytes,
)
from writecliff.errors import ConfigError

SLOT_BYTES = 4096
PURPOSE = "a replay"  # what messages say that hard disks do not do
UNITS_MIN = 256
# Units of spare space: those that streams and collection keep open must stay few against them.
SPARE_UNITS, SPARE_UNITS_A_STREAM = 16, 4
_BITS = {"SLC": 1, "MLC": 2, "TLC": 3, "QLC": 4}


@dataclass(frozen=True)
class Flash:
    """What a reclaim unit is made of."""

    channels: int
    dies_per_channel: int
    word_lines: int
    units: int
    line_bytes: int  # of one word line over all planes of one die

    @property
    def unit_bytes(self) -> int:
        return self.channels * self.dies_per_channel * self.word_lines * self.line_bytes


def sized_device(
    text: str, file_name: str, capacity_bytes: int, *, streams: int, units: int | None = None
) -> str:
    """The device file `text` for a drive of about `capacity_bytes` for the host.

    `units`: reclaim units that it has, about (default: so many that they keep their size, but
    enough for `streams`). Raises ConfigError for a capacity that is too small to be a drive.
    """
    described = describe_device(text, file_name)
    device = tomllib.loads(text)
    spare = described.flash_bytes(PURPOSE) / described.capacity_bytes
    raw_bytes = capacity_bytes * spare
    old, old_name = _flash(device), described.name
    if units is None:
        needed = SPARE_UNITS + SPARE_UNITS_A_STREAM * streams
        least = max(UNITS_MIN, math.ceil(needed / (1 - 1 / spare)))
        units = max(least, min(old.units, round(raw_bytes / old.unit_bytes)))
    new = _fitting(old, raw_bytes, units)
    capacity_slots = int(new.units * new.unit_bytes / spare) // SLOT_BYTES
    if new.units < 0.75 * units or abs(capacity_slots * SLOT_BYTES / capacity_bytes - 1) > 0.05:
        raise ConfigError(
            f"a drive of {capacity_bytes / 1e6:.1f} MB, which the files would fill, is too small "
            f"to have {units} reclaim units",
            hint=f"of {old_name}, {units * new.unit_bytes / spare / 1e6:.0f} MB is the smallest: "
            "take a larger load, a smaller --fill, or fewer streams",
        )
    flash, ftl = device["flash"], device["ftl"]
    flash["channels"], flash["dies_per_channel"] = new.channels, new.dies_per_channel
    flash["pages_per_block"] = new.word_lines * _BITS[flash["cell"]]
    flash["blocks_per_plane"] = new.units
    # Pools counted in units keep their share of the flash, as far as collection can work with it.
    for key, least in (("gc_start", ftl["gc_floor"] + 1), ("gc_idle_target", ftl["gc_floor"] + 2)):
        ftl[key] = max(least, round(ftl[key] * new.units / old.units))
    device["user_capacity"] = f"{capacity_slots * SLOT_BYTES} B"
    resize_slc_cache(device, capacity_bytes / described.capacity_bytes)
    return device_toml(device)


def with_streams(text: str, streams: int) -> str:
    """The device with so many streams, and a buffer that holds their open program units."""
    device = tomllib.loads(text)
    device["ftl"]["streams"] = streams
    _limit_placement(device.get("placement", {}), streams)
    flash = device["flash"]
    at_once = _BITS[flash["cell"]] if flash["one_shot"] else 1
    planes = flash["planes_per_die"] if flash["multi_plane"] else 1
    unit_bytes = at_once * planes * _native.parse_size(flash["page"])
    needed = (streams + 1) * unit_bytes * pieces_per_slot(device) + slc_unit_bytes(device)
    buffer = _native.parse_size(device["controller"]["write_buffer"])
    device["controller"]["write_buffer"] = f"{max(buffer, needed)} B"
    return device_toml(device)


def _limit_placement(placement: dict[str, Any], streams: int) -> None:
    """Limits that the drive's maker set below its streams are kept as far as they still fit."""
    if "open_streams" in placement:
        placement["open_streams"] = min(placement["open_streams"], streams - 1)
    if "handles" in placement:
        handles = [handle for handle in placement["handles"] if handle < streams]
        placement["handles"] = handles or [0]


def _flash(device: dict[str, dict[str, int | str]]) -> Flash:
    flash = device["flash"]
    bits = _BITS[str(flash["cell"])]
    page = _native.parse_size(str(flash["page"]))
    return Flash(
        channels=int(flash["channels"]),
        dies_per_channel=int(flash["dies_per_channel"]),
        word_lines=int(flash["pages_per_block"]) // bits,
        units=int(flash["blocks_per_plane"]),
        line_bytes=bits * page * int(flash["planes_per_die"]),
    )


def _fitting(old: Flash, raw_bytes: float, wanted: int) -> Flash:
    """The flash nearest to `old` that holds `raw_bytes`: dies go last."""
    channels, dies, lines = old.channels, old.dies_per_channel, old.word_lines

    def units_of(word_lines: int) -> float:
        return raw_bytes / (channels * dies * word_lines * old.line_bytes)

    while units_of(1) < 0.75 * wanted and channels * dies > 1:
        if dies > 1:
            dies = (dies + 1) // 2
        else:
            channels = (channels + 1) // 2
    lines = max(1, min(old.word_lines, round(units_of(1) / wanted)))
    return Flash(channels, dies, lines, max(1, round(units_of(lines))), old.line_bytes)

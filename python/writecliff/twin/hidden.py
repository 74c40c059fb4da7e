"""Hidden drives for the validation of `writecliff twin`, which are presets with changed values.

Two hidden drives are fixed, and they were known during development of the fit. Other hidden drives
are generated from a number, such as "drawn-7". A previously unused number yields a drive that
nobody has seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.devices import read_device_file
from writecliff.devices.edit import with_values
from writecliff.errors import ConfigError

# Preset values that are changed, in TOML notation.
_FIXED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "sata": ("sata-tlc-120", {
        "user_capacity": '"2 GB"',
        "flash.channels": "4",
        "flash.blocks_per_plane": "185",
        "flash.pages_per_block": "96",
        "flash.read": '["75 us", "75 us", "75 us"]',
        "flash.program": '["2.4 ms"]',
        "controller.write_buffer": '"2 MiB"',
        "controller.command_time": '"7 us"',
        "controller.latency": '"14 us"',
        "link.bandwidth": '"520 MB/s"',
    }),
    "nvme": ("nvme-tlc-960", {
        "user_capacity": '"3 GB"',
        "flash.channels": "4",
        "flash.dies_per_channel": "2",
        "flash.blocks_per_plane": "292",
        "flash.pages_per_block": "48",
        "flash.read": '["50 us", "60 us", "70 us"]',
        "flash.program": '["900 us"]',
        "flash.bus": '"800 MB/s"',
        "controller.write_buffer": '"8 MiB"',
        "controller.command_time": '"4 us"',
        "controller.latency": '"9 us"',
    }),
}  # fmt: skip
_DRAWN = re.compile(r"drawn-[0-9]{1,9}")
# drawn-1 and drawn-2 were known when the starting points of the fit were chosen.
USUAL = (*_FIXED, *(f"drawn-{number}" for number in range(3, 7)))

_PAGE_BYTES = 16 * 1024  # Page size in both presets.


def hidden_drive(name: str) -> tuple[str, Sequence[str]]:
    """Return a hidden drive's device file, and the keys whose values differ from its preset.

    Raises:
        ConfigError: If the hidden drive does not exist.
    """
    if name in _FIXED:
        preset, changes = _FIXED[name]
    elif _DRAWN.fullmatch(name):
        preset, changes = _drawn(random.Random(name))
    else:
        raise ConfigError.unknown("hidden drive", name, (*_FIXED, "drawn-NUMBER"))
    text, _ = read_device_file(preset)
    made = with_values(text, {key: (value, "hidden") for key, value in changes.items()})
    return made, tuple(changes)


@dataclass(frozen=True)
class _Class:
    """A preset, with the value ranges of its class; `least_spare` leaves room for streams."""

    preset: str
    capacity_gb: int
    least_spare: float
    channels: Sequence[int]
    dies_per_channel: Sequence[int]
    buffers_mib: Sequence[int]
    command_us: tuple[float, float]
    link_mb_s: tuple[int, int]


_CLASSES = (
    _Class("sata-tlc-120", 2, 0.10, (2, 4, 8), (1, 2), (1, 2, 4, 8), (4.0, 20.0), (450, 560)),
    _Class("nvme-tlc-960", 3, 0.16, (4, 8), (1, 2, 4), (2, 4, 8, 16), (1.5, 6.0), (1500, 3200)),
)


def _drawn(draw: random.Random) -> tuple[str, Mapping[str, str]]:
    """Choose a preset and values within its class's ranges at random.

    The flash has up to 28 % spare capacity, divided into at least 300 reclaim units of matching
    size.
    """
    of = draw.choice(_CLASSES)
    channel_count, dies_each = draw.choice(of.channels), draw.choice(of.dies_per_channel)
    raw_bytes = of.capacity_gb * 1e9 * (1 + draw.uniform(of.least_spare, 0.28))
    planes = channel_count * dies_each * 2  # Plane count in both presets.
    word_lines = raw_bytes / (planes * draw.randint(300, 420) * 3 * _PAGE_BYTES)
    pages = 3 * max(1, int(word_lines))
    read_us, step_us = draw.uniform(40, 110), draw.choice((0, 5, 10))
    reads = ", ".join(f'"{read_us + step_us * page:.1f} us"' for page in range(3))
    return of.preset, {
        "user_capacity": f'"{of.capacity_gb} GB"',
        "flash.channels": str(channel_count),
        "flash.dies_per_channel": str(dies_each),
        "flash.blocks_per_plane": str(round(raw_bytes / (planes * pages * _PAGE_BYTES))),
        "flash.pages_per_block": str(pages),
        "flash.read": f"[{reads}]",
        "flash.program": f'["{draw.uniform(0.6, 3):.2f} ms"]',
        "flash.bus": f'"{draw.randint(300, 1200)} MB/s"',
        "controller.write_buffer": f'"{draw.choice(of.buffers_mib)} MiB"',
        "controller.command_time": f'"{draw.uniform(*of.command_us):.1f} us"',
        "controller.latency": f'"{draw.uniform(5, 20):.1f} us"',
        "controller.suspends_per_operation": str(draw.choice((0, 8))),
        "link.bandwidth": f'"{draw.randint(*of.link_mb_s)} MB/s"',
    }

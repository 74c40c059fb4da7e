"""Device files derived from others: scaled, resized, with other streams, with other values.

The figures were recorded from the first implementation of each derivation before it was replaced.
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.devices.edit import value_of, with_values
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors

SCALED_SSD = {
    "controller.idle_delay": "625000 ns",
    "controller.write_buffer": "1703936 B",
    "flash.erase": "156250 ns",
    "flash.pages_per_block": 12,
    "user_capacity": "3749998592 B",
}
RESIZED = {
    "flash.blocks_per_plane": 364,
    "flash.pages_per_block": 12,
    "ftl.gc_idle_watermark": 5,
    "ftl.gc_high_watermark": 4,
    "user_capacity": "999264256 B",
}
STREAMS = {"controller.write_buffer": "6389760 B", "ftl.streams": 64}
SCALED_DISK = {"flash_cache.size": "1000001536 B", "user_capacity": "124999999488 B"}
RESIZED_DIES = {
    "flash.blocks_per_plane": 453,
    "flash.channels": 4,
    "flash.pages_per_block": 3,
    "ftl.gc_idle_watermark": 12,
    "ftl.gc_high_watermark": 9,
    "user_capacity": "299917312 B",
}
SCALED_CHECKPOINTS = {
    "controller.idle_delay": "5000000 ns",
    "controller.write_buffer": "4194304 B",
    "flash.erase": "750000 ns",
    "flash.pages_per_block": 64,
    "housekeeping.checkpoint_interval": "268435456 B",
    "housekeeping.checkpoint_time": "3075000 ns",
    "user_capacity": "64000000000 B",
}

SCALED_PATROLS = {
    "housekeeping.patrol_interval": "2500000000 ns",
    "housekeeping.patrol_length": "800000000 ns",
}


def opened(name: str) -> _native.Device:
    return open_device(*read_device_file(name))


def changed(name: str, device: _native.Device) -> dict[str, Any]:
    """Return the values of a derived device file that differ from the preset, by dotted key."""
    differences = {}
    before = {value.key: value.value for value in describe(opened(name)).values}
    for value in describe(device).values:
        if before.get(value.key) != value.value:
            differences[value.key] = tomllib.loads(f"value = {value.value}")["value"]
    return differences


def test_a_scaled_ssd() -> None:
    assert changed("sata-tlc-120", opened("sata-tlc-120").scaled(32, 131_072)) == SCALED_SSD


def test_a_scaled_drive_that_takes_checkpoints() -> None:
    assert changed("850-256", opened("850-256").scaled(4, 4096)) == SCALED_CHECKPOINTS


def test_a_scaled_drive_that_scans_its_media() -> None:
    differences = changed("mlc-a-800", opened("mlc-a-800").scaled(4, 4096))
    patrols = {key: value for key, value in differences.items() if "patrol" in key}
    assert patrols == SCALED_PATROLS


def test_a_scaled_disk_with_flash() -> None:
    differences = changed("hdd-sshd-7200-500", opened("hdd-sshd-7200-500").scaled(4, 4096))
    assert differences == SCALED_DISK


def test_a_drive_that_a_trace_fills_loses_units_first() -> None:
    device = opened("sata-tlc-120").for_streams(8, 1_000_000_000)
    assert changed("sata-tlc-120", device) == RESIZED


def test_a_small_drive_of_many_dies_loses_dies() -> None:
    device = opened("pm9d3a-1920").for_streams(8, 300_000_000)
    assert changed("pm9d3a-1920", device) == RESIZED_DIES


def test_more_streams_need_a_larger_buffer() -> None:
    assert changed("sata-tlc-120", opened("sata-tlc-120").for_streams(64)) == STREAMS


def test_a_drive_can_be_too_small_for_its_reclaim_units() -> None:
    with (
        pytest.raises(ConfigError, match=r"a drive of 20\.0 MB.* is too small") as caught,
        as_user_errors(),
    ):
        opened("pm9d3a-1920").for_streams(8, 20_000_000)
    assert caught.value.hint is not None
    assert "use a larger load" in caught.value.hint


def test_disks_have_no_streams() -> None:
    with pytest.raises(ConfigError, match="hdd-15k-80 is a hard disk"), as_user_errors():
        opened("hdd-15k-80").for_streams(4)


def test_values_change_and_comments_stay() -> None:
    text, _ = read_device_file("sata-tlc-120")
    new = with_values(text, {"flash.channels": ("4", None), "link.queues": ("2", "measured")})
    assert (value_of(new, "flash.channels"), value_of(new, "link.queues")) == (4, 2)
    rows = {row[0]: row[2] for row in _native.toml_rows(new, "new")}
    assert rows["link.queues"] == "measured"
    before = {row[0]: row[2] for row in _native.toml_rows(text, "old")}
    assert rows["flash.channels"] == before["flash.channels"]

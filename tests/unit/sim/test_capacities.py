"""Capacities that a family does not list: which drives are derived, and how figures scale."""

from __future__ import annotations

import tomllib

import pytest

from writecliff.devices import (
    capacities,
    describe_device,
    open_device,
    read_device_file,
    show_device,
)
from writecliff.devices.capacities import (
    FamilySheets,
    derived_text,
    family_and_capacity,
    family_of,
    family_sheets,
    scaled_sheet,
)
from writecliff.devices.families import FOLDER, variants
from writecliff.devices.generations import GIB
from writecliff.devices.sheet import DataSheet
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.workload.model import BlockSize, Job, Workload


def sheet(name: str, gigabytes: float, **figures: float) -> DataSheet:
    return DataSheet(
        name=name, interface="pcie4", capacity=gigabytes * 1e9, year=2022, cell="tlc",
        power_loss_protection=True, **figures,
    )  # fmt: skip


def family(*sheets: DataSheet, **usual: float) -> FamilySheets:
    return FamilySheets("a family", sheets, sheets, usual)


def test_sequential_rates_follow_the_dies_up_to_the_controller() -> None:
    sheets_of = family(
        sheet("a-1000", 1000, sequential_write=1.5e9), sheet("a-8000", 8000, sequential_write=4e9)
    )
    rates = [scaled_sheet("a", gb * 1e9, sheets_of)[0].sequential_write for gb in (2000, 4000)]
    assert rates == [3e9, 4e9]


def test_random_rates_have_a_constant_time_and_one_that_the_dies_share() -> None:
    """Check 2 us in the controller and 8 us on the dies at 1 TB."""
    sheets_of = family(
        sheet("a-1000", 1000, random_write=1e6 / 10), sheet("a-8000", 8000, random_write=1e6 / 3)
    )
    derived, fields = scaled_sheet("a", 2e12, sheets_of)
    assert derived.random_write == pytest.approx(1e6 / (2 + 8 / 2))
    assert fields["random_write"].reason == "interpolated between a-1000 and a-8000"


def test_rates_that_grow_faster_than_the_capacity_are_interpolated() -> None:
    sheets_of = family(
        sheet("a-1000", 1000, random_read=1e5), sheet("a-4000", 4000, random_read=9e5)
    )  # fmt: skip
    assert scaled_sheet("a", 2e12, sheets_of)[0].random_read == pytest.approx(3e5)


def test_below_the_smallest_capacity_the_dies_are_usual() -> None:
    sheets_of = family(sheet("a-8000", 8000, sequential_write=4e9, random_read=1e6))
    derived, fields = scaled_sheet("a", 1e12, sheets_of)
    assert (derived.sequential_write, derived.random_read) == (4e9, 1e6)
    assert not fields["sequential_write"].is_flash and not fields["random_read"].is_flash


def test_above_the_largest_capacity_rates_reach_those_of_the_class() -> None:
    sheets_of = family(
        sheet("a-1000", 1000, sequential_write=1.5e9, random_read=5e5),
        sequential_write=5e9, random_read=1e6,
    )  # fmt: skip
    twice, many = (scaled_sheet("a", gb * 1e9, sheets_of)[0] for gb in (2000, 16_000))
    assert (twice.sequential_write, many.sequential_write) == (3e9, 5e9)
    # The command times are 1 us, and 0.5 us instead of 1 us.
    assert twice.random_read == pytest.approx(1e6 / 1.5)
    assert many.random_read == pytest.approx(1e6 / (1 + 1 / 16))


def test_a_controller_that_limits_the_two_largest_drives_limits_a_larger_one() -> None:
    sheets_of = family(
        sheet("a-1000", 1000, sequential_write=4.9e9),
        sheet("a-4000", 4000, sequential_write=5e9),
        sequential_write=7e9,
    )
    assert scaled_sheet("a", 8e12, sheets_of)[0].sequential_write == 5e9


def test_caches_and_rated_writes_are_proportional_and_latencies_are_the_nearest() -> None:
    sheets_of = family(
        sheet("a-1000", 1000, slc_cache=3e11, tbw=6e14, read_latency=80e3),
        sheet("a-4000", 4000, read_latency=70e3),
    )
    derived, _ = scaled_sheet("a", 3e12, sheets_of)
    assert (derived.slc_cache, derived.tbw, derived.read_latency) == (9e11, 1.8e15, 70e3)


@pytest.mark.parametrize(
    ("name", "stem"),
    [("pm9a3-1920", "pm9a3"), ("d7-p5600-3200", "d7-p5500"), ("990-pro-1000", "990-pro")],
)
def test_a_family_is_known_by_the_names_of_its_drives(name: str, stem: str) -> None:
    result = family_and_capacity(name)
    assert result == (FOLDER / f"{stem}.toml", float(name.rpartition("-")[2]) * 1e9)
    assert family_of(name) == stem


@pytest.mark.parametrize("name", ["pm9a3-960", "pm863-1000", "hdd-15k-80", "pm9a3", "pm9a3-x"])
def test_listed_drives_and_other_families_are_not_derived(name: str) -> None:
    assert family_and_capacity(name) is None and derived_text(name) is None


def test_resources_scale_with_the_capacity() -> None:
    small, large = (show_device(name) for name in ("micron-7450-1920", "micron-7450-7680"))
    assert small.raw_bytes == pytest.approx(2048 * GIB, rel=1e-3)
    assert large.raw_bytes == pytest.approx(8192 * GIB, rel=1e-3)
    parts = [tomllib.loads(read_device_file(device.name)[0]) for device in (small, large)]
    dies = [part["flash"]["channels"] * part["flash"]["dies_per_channel"] for part in parts]
    assert dies == [32, 128]
    assert [part["controller"]["write_buffer"] for part in parts] == ["16 MiB", "64 MiB"]
    assert [part["rated_writes"] for part in parts] == ["3504 TB", "14016 TB"]


def test_a_derived_drive_states_where_it_is_from() -> None:
    text, file_name = read_device_file("micron-7450-3840")
    assert file_name == "micron-7450-3840.toml"
    head = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    assert "derived by rule from micron-7450-960, micron-7450-15360" in head
    between = "interpolated between micron-7450-960 and micron-7450-15360"
    assert f"* random read 849,359 per second: {between}" in head
    assert f"* sequential write 5,600 MB/s: {between}" in head
    assert "* read latency 80 us: as of micron-7450-960" in head
    values = {value.key: value.source for value in describe_device(text, file_name).values}
    assert values["controller.mapping_update_time"].startswith("bounds sequential writes at 5,600")


def test_every_family_has_further_capacities_that_run() -> None:
    for model, path in capacities._models().items():
        sheets = family_sheets(path, model)
        largest = sheets.published[-1].capacity
        name = f"{model}-{largest / 2e9:.0f}"
        if name in variants() or largest > 16e12:
            continue
        device = open_device(*read_device_file(name))
        engine = SimEngine.from_device(device.scaled(device.nearest_scale(64), 1 << 20))
        job = Job(block_sizes=(BlockSize(128 * 1024),), pattern="sequential", ios=16, queue_depth=8)
        assert engine.run(Workload("w", (job,))).total("write") == (16, 16 * 128 * 1024)


@pytest.mark.parametrize("name", ["pm9a3-1", "pm9a3-10", "pm9a3-500000"])
def test_a_capacity_too_far_from_all_others_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is too far from the known capacities") as error:
        read_device_file(name)
    assert error.value.hint == "choose a capacity from 60 to 122,880 GB"

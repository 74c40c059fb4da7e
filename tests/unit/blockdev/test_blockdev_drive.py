"""Identity, counters, purge and write cache, from recorded tool output."""

from __future__ import annotations

import json

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.identity import identify_device
from writecliff.engines.blockdev.purge import purge_device
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.blockdev.vitals import read_under_load, read_vitals
from writecliff.engines.counters import Counters
from writecliff.errors import EngineError

NVME = "/dev/nvme0n1"
SATA = "/dev/sda"
CONTROLLER = {"mn": "FAST 1TB ", "sn": "S5XY ", "fr": "1.2.3"}


@pytest.fixture
def nvme(machine: Machine) -> BlockDevice:
    path = machine.disk("nvme0n1", (259, 0), serial="S5XY", model="FAST 1TB")
    machine.attributes(
        "nvme0n1",
        queue__logical_block_size="4096",
        device__firmware_rev="1.2.3",
        device__device__current_link_speed="16.0 GT/s PCIe",
        device__device__current_link_width="4",
    )
    return device_at(machine.system, path)


@pytest.fixture
def sata(machine: Machine) -> BlockDevice:
    path = machine.disk("sda", (8, 0), model="SAMSUNG MZ7LM48")
    machine.attributes("sda", device__vendor="ATA", device__rev="GXT5", queue__rotational="0")
    page = b"\x00\x80\x00\x08  S1AB2C"
    (machine.sys / "devices/sda/device/vpd_pg80").write_bytes(page)
    return device_at(machine.system, path)


def test_nvme_identity(machine: Machine, nvme: BlockDevice) -> None:
    machine.answer("nvme id-ctrl", json.dumps(CONTROLLER))
    measured = identify_device(machine.system, nvme, NVME)
    assert (measured.model, measured.serial, measured.firmware) == ("FAST 1TB", "S5XY", "1.2.3")
    assert (measured.interface, measured.sector_bytes) == ("NVMe (16.0 GT/s x4)", 4096)
    assert (measured.nand_type, measured.rated_tbw_bytes, measured.simulated) == (None, None, False)


def test_sata_identity_has_the_full_model(machine: Machine, sata: BlockDevice) -> None:
    answer = {
        "model_name": "SAMSUNG MZ7LM480HCHP-00003",
        "firmware_version": "GXT5103Q",
        "interface_speed": {"current": {"string": "6.0 Gb/s"}},
    }
    machine.answer("smartctl -j -i", json.dumps(answer))
    measured = identify_device(machine.system, sata, SATA)
    assert (measured.model, measured.serial) == ("SAMSUNG MZ7LM480HCHP-00003", "S1AB2C")
    assert (measured.firmware, measured.interface) == ("GXT5103Q", "SATA 6.0 Gb/s")
    assert measured.vendor is None  # "ATA" is libata's placeholder, not a vendor.
    assert measured.rotational is False


def test_identity_without_tools(machine: Machine, sata: BlockDevice) -> None:
    measured = identify_device(machine.system, sata, SATA)
    assert (measured.model, measured.firmware, measured.interface) == (
        "SAMSUNG MZ7LM48",
        "GXT5",
        "SATA",
    )


def test_a_hard_disk_says_so_and_a_loop_device_is_not_believed(machine: Machine) -> None:
    disk = machine.disk("sdb", (8, 16), model="HDD 15K")
    machine.attributes("sdb", device__vendor="HGST", queue__rotational="1")
    loop = machine.disk("loop7", (7, 7), model="")
    machine.attributes("loop7", queue__rotational="1")
    measured = [
        identify_device(machine.system, device_at(machine.system, path), path).rotational
        for path in (disk, loop)
    ]
    assert measured == [True, None]


def row(number: int, name: str, raw: int, value: int = 100) -> dict[str, object]:
    return {"id": number, "name": name, "value": value, "raw": {"value": raw}}


def test_ata_counters_go_by_names_with_units(machine: Machine, sata: BlockDevice) -> None:
    table = [
        row(177, "Wear_Leveling_Count", 40, value=98),
        row(241, "Total_LBAs_Written", 1000),
        row(242, "Total_LBAs_Read", 10),
        row(249, "NAND_Writes_1GiB", 3),
    ]
    machine.answer("smartctl -j -A", json.dumps({"ata_smart_attributes": {"table": table}}))
    assert read_vitals(machine.system, sata, SATA).counters == Counters(
        host_write_bytes=512_000,
        host_read_bytes=5120,
        nand_write_bytes=3 << 30,
        percentage_used=2.0,
    )


def test_an_attribute_without_a_known_unit_stays_unknown(
    machine: Machine, sata: BlockDevice
) -> None:
    table = [row(251, "NAND_Writes", 12345), row(241, "Host_Writes_32MiB", 2)]
    machine.answer("smartctl -j -A", json.dumps({"ata_smart_attributes": {"table": table}}))
    measured = read_vitals(machine.system, sata, SATA).counters
    assert measured.nand_write_bytes is None
    assert measured.host_write_bytes == 64 << 20


def test_a_sata_drive_under_load_is_sent_no_command(machine: Machine, sata: BlockDevice) -> None:
    """Each would drain the queue; a later reading of the idle drive has the counters."""
    table = [row(241, "Total_LBAs_Written", 1000)]
    machine.answer("smartctl -j -A", json.dumps({"ata_smart_attributes": {"table": table}}))
    sensor = machine.sys / "devices/sda/device/hwmon/hwmon0"
    sensor.mkdir(parents=True)
    (sensor / "temp1_input").write_text("40000")  # drivetemp queries the drive for this value.
    before, measured = len(machine.calls), read_under_load(machine.system, sata, SATA)
    assert len(machine.calls) == before
    assert (measured.counters, measured.temperature_c) == (Counters(), None)
    idle = read_vitals(machine.system, sata, SATA)
    assert (idle.counters.host_write_bytes, idle.temperature_c) == (512_000, 40.0)


def test_an_nvme_drive_under_load_is_read_as_ever(machine: Machine, nvme: BlockDevice) -> None:
    idle = read_vitals(machine.system, nvme, NVME)
    assert read_under_load(machine.system, nvme, NVME) == idle
    assert idle.link == "16.0 GT/s PCIe x4"


def test_no_tools_no_counters(machine: Machine, sata: BlockDevice, nvme: BlockDevice) -> None:
    assert read_vitals(machine.system, sata, SATA).counters == Counters()
    assert read_vitals(machine.system, nvme, NVME).counters == Counters()


def test_a_device_that_cannot_be_purged_stops_the_test(machine: Machine) -> None:
    disk = device_at(machine.system, machine.disk("vdb", (254, 16)))
    with pytest.raises(EngineError, match="does not support discard"):
        purge_device(machine.system, disk, "/dev/vdb", -1)


def test_the_kernels_view_is_not_sold_as_the_drives(machine: Machine) -> None:
    disk = device_at(machine.system, machine.disk("vdb", (254, 16)))
    machine.attributes("vdb", queue__write_cache="write back")
    report = set_write_cache(machine.system, disk, "/dev/vdb", False)
    assert (report.enabled, report.note[:21]) == (True, "no settable write cac")

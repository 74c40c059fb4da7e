"""NVMe drive counters: SMART log, and flash writes from each log that reports them.

The SMART and endurance logs were recorded from nvme-cli. Logs that QEMU's drives lack (OCP,
vendors) follow the OCP specification and the structures and JSON of nvme-cli's plugins.
"""

from __future__ import annotations

import json

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import (
    NODE,
    VERSIONS,
    WRITTEN,
    alone,
    answer_controller,
    namespace_page,
    page,
    replay,
    shared,
)
from writecliff.engines.blockdev.identity import identify_device
from writecliff.engines.blockdev.nvme import pages
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.vitals import health_report, read_vitals

MB = 1_000_000
OCP_GUID = int.from_bytes(bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af"), "little")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_smart_log_as_bytes_is_what_the_tool_prints(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QFDP0001")
    reading = read_vitals(machine.system, disk, NODE)
    assert reading.temperature_c == 50.0
    assert reading.counters.host_read_bytes == 512_000
    assert reading.counters.percentage_used == 0.0
    assert reading.marks["thm_temp2_total_time"] == 0


def test_fdp_statistics_count_host_and_flash(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.16", "QFDP0001")
    before = read_vitals(machine.system, disk, NODE).counters
    replay(machine, "2.16", "QFDP0001", WRITTEN)
    reading = read_vitals(machine.system, disk, NODE)
    written = reading.counters.since(before)
    assert written.host_write_bytes == 20 << 20
    assert written.nand_write_bytes == 44_564_480 - 22_020_096  # The emulator counts these bytes.
    assert reading.media_source == "FDP statistics (log 22h)"
    log = next(call for call in machine.calls if "--log-id=0x22" in call)
    assert "--lsi=1" in log  # The log belongs to the endurance group of the namespace.


def test_statistics_that_are_still_zero_are_known(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.3", "QFDP0001")  # Replay the log from before any write.
    reading = read_vitals(machine.system, disk, NODE).counters
    assert (reading.host_write_bytes, reading.nand_write_bytes) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_drive_that_counts_no_flash_writes_says_nothing(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QPLAIN01")
    reading = read_vitals(machine.system, disk, NODE)
    assert reading.counters.nand_write_bytes is None and reading.media_source is None
    assert reading.counters.host_write_bytes == (0 if version == "2.3" else 20_992_000)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_emulators_ocp_log(machine: Machine, version: str) -> None:
    disk = alone(machine)
    replay(machine, version, "QOCP0001")
    before = read_vitals(machine.system, disk, NODE).counters
    replay(machine, version, "QOCP0001", WRITTEN)
    reading = read_vitals(machine.system, disk, NODE)
    assert reading.media_source == "OCP SMART log (C0h)"
    assert reading.counters.since(before).nand_write_bytes == 20 << 20


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("serial", "asked"),
    [
        ("QPLAIN01", ["0x02"]),
        ("QFDP0001", ["0x02", "0x22", "fdp status", "0x23", "0x23"]),
    ],
)
def test_a_second_reading_asks_for_what_may_have_changed(
    machine: Machine, version: str, serial: str, asked: list[str]
) -> None:
    """Identity, logs that the drive rejects permanently, and missing streams are read only once."""
    disk = alone(machine)
    replay(machine, version, serial)
    directives = f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x1a --namespace-id=1"
    machine.answer(f"{directives} --cdw10=0x3ff --cdw11=0x1", data=page(4096, {0: (1, 1)}))
    drive = NvmeDrive(machine.system, disk)
    first = read_vitals(machine.system, disk, NODE, drive)
    machine.calls.clear()
    assert read_vitals(machine.system, disk, NODE, drive) == first
    commands = [" ".join(call) for call in machine.calls]
    assert len(commands) == len(asked)
    assert all(what in call for what, call in zip(asked, commands, strict=True))


def test_a_log_that_is_refused_for_now_is_asked_for_again(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine)
    smart(machine)
    ocp = f"nvme get-log {machine.dev}/nvme0 --log-id=0xc0"
    machine.answer(ocp, returncode=1, stderr="NVMe status: Namespace Not Ready(0x82)")
    drive = NvmeDrive(machine.system, disk)
    assert read_vitals(machine.system, disk, NODE, drive).counters.nand_write_bytes is None
    machine.answer(ocp, data=page(512, {0: (16, 123_456_789), 496: (16, OCP_GUID)}))
    reading = read_vitals(machine.system, disk, NODE, drive).counters
    assert reading.nand_write_bytes == 123_456_789


def smart(machine: Machine, written: int = 7) -> None:
    log = page(512, {1: (2, 318), 48: (16, written), 5: (1, 3), 0: (1, 0)})
    machine.answer(f"nvme get-log {machine.dev}/nvme0 --log-id=0x02", data=log)


def log(machine: Machine, number: int, data: bytes, more: str = "") -> None:
    size = f"--log-len={len(data)}"
    machine.answer(
        f"nvme get-log {machine.dev}/nvme0 --log-id={number:#04x} {size} {more}", data=data
    )


def test_the_endurance_group_log(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine, ctratt=1 << 4)
    machine.answer(f"nvme id-ns {machine.dev}/nvme0", data=namespace_page(endurance_group=3))
    smart(machine)
    log(machine, 0x09, page(512, {64: (16, 5), 80: (16, 9)}), "--lsi=3")
    reading = read_vitals(machine.system, disk, NODE)
    assert (reading.counters.nand_write_bytes, reading.counters.host_write_bytes) == (
        9 * 10**9,
        5 * 10**9,
    )
    assert reading.media_source == "endurance group log (09h)"
    # The drive does not support the optional field.
    log(machine, 0x09, page(512, {64: (16, 5)}), "--lsi=3")
    reading = read_vitals(machine.system, disk, NODE)
    assert (reading.counters.nand_write_bytes, reading.counters.host_write_bytes) == (
        None,
        3_584_000,
    )


def test_ocps_log_is_known_by_its_guid(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine)
    smart(machine)
    fields = {0: (16, 123_456_789), 496: (16, OCP_GUID)}
    log(machine, 0xC0, page(512, fields))
    reading = read_vitals(machine.system, disk, NODE)
    assert (reading.counters.nand_write_bytes, reading.counters.host_write_bytes) == (
        123_456_789,
        3_584_000,
    )
    assert reading.media_source == "OCP SMART log (C0h)"
    log(machine, 0xC0, page(512, {0: (16, 5)}))  # The log with this number is vendor-specific.
    assert read_vitals(machine.system, disk, NODE).counters.nand_write_bytes is None


def test_ocps_log_behind_a_uuid_index(machine: Machine) -> None:
    disk = alone(machine)
    answer_controller(machine)
    smart(machine)
    uuid = int.from_bytes(bytes.fromhex("c194d55be0944794a21d29998f56be6f"), "little")
    uuids = page(4096, {48: (16, 0x1234), 80: (16, uuid)})
    machine.answer(
        f"nvme admin-passthru {machine.dev}/nvme0 --opcode=0x06 --cdw10=0x17", data=uuids
    )
    log(machine, 0xC0, page(512, {0: (16, 77), 496: (16, OCP_GUID)}), "--uuid-index=2")
    log(machine, 0xC0, page(512, {0: (16, 5)}))
    assert read_vitals(machine.system, disk, NODE).counters.nand_write_bytes == 77


@pytest.mark.parametrize("vendor", [0x8086, 0x025E])
def test_intels_and_solidigms_log(machine: Machine, vendor: int) -> None:
    disk = alone(machine)
    answer_controller(machine, vendor=vendor)
    smart(machine)
    items = {0: (1, 0xAB), 12: (1, 0xF4), 17: (6, 10), 24: (1, 0xF5), 29: (6, 4)}
    log(machine, 0xCA, page(512, items))
    reading = read_vitals(machine.system, disk, NODE)
    assert (reading.counters.nand_write_bytes, reading.counters.host_write_bytes) == (
        10 << 25,
        4 << 25,
    )
    assert str(reading.media_source).endswith("SMART log (CAh)")


MICRON_D0 = {
    "Extended Smart Log Page : 0xD0": [
        {"NAND Writes (Bytes Written)": "0x1e240", "Program Failure Count": "0x0"}
    ]
}
MICRON_FB = {
    "Extended Smart Log Page : 0xFB": [
        {
            "Physical Media Units Written - TLC": "0x1e000",
            "Physical Media Units Written - SLC": "0x240",
            "Bad Block Count": "0x7",
        }
    ]
}
WDC = {"NAND Writes TLC (Bytes)": 123_000, "NAND Writes SLC (Bytes)": "456", "Bad Block Count": 9}


@pytest.mark.parametrize(
    ("vendor", "command", "printed"),
    [
        (0x1344, "nvme micron vs-nand-stats", MICRON_D0),
        (0x1344, "nvme micron vs-nand-stats", MICRON_FB),
        (0x1C58, "nvme wdc vs-nand-stats", WDC),
        (0x15B7, "nvme wdc vs-nand-stats", WDC),
    ],
)
def test_logs_through_plugins(
    machine: Machine, vendor: int, command: str, printed: dict[str, object]
) -> None:
    disk = alone(machine)
    answer_controller(machine, vendor=vendor)
    smart(machine)
    machine.answer(f"{command} {machine.dev}/nvme0", json.dumps(printed))
    assert read_vitals(machine.system, disk, NODE).counters.nand_write_bytes == 123_456


def test_counters_from_smartctl(machine: Machine) -> None:
    disk = alone(machine)
    answer = {"data_units_written": 2, "data_units_read": "1,000", "percentage_used": 0}
    machine.answer("smartctl -j -A", json.dumps({"nvme_smart_health_information_log": answer}))
    reading = read_vitals(machine.system, disk, NODE).counters
    assert (reading.host_write_bytes, reading.host_read_bytes) == (1_024_000, 512 * MB)


def test_a_report_without_smartctl(machine: Machine) -> None:
    disk = alone(machine)
    replay(machine, "2.3", "QPLAIN01")
    report = health_report(machine.system, disk, NODE)
    assert report is not None
    assert json.loads(json.dumps(report)) == report
    assert (report["source"], report["passed"]) == ("nvme get-log", True)
    assert report["attributes"]["temperature"] == 323
    assert "temperature_sensor_1" not in report["attributes"]
    smart(machine)
    warned = page(512, {0: (1, 1)})
    replayed = f"nvme get-log {machine.dev}/nvme0 --log-id=0x02 --log-len=512 --raw-binary"
    machine.answer(replayed, data=warned)
    report = health_report(machine.system, disk, NODE)
    assert report is not None and report["passed"] is False


def test_the_controllers_of_a_shared_namespace(machine: Machine) -> None:
    """With multipath, the drive's link, sensor and errors are behind its own controller."""
    disk = shared(machine)
    for number, name in enumerate(("nvme3", "nvme4")):
        function = machine.sys / f"devices/pci0000:00/0000:00:0{number}.0"
        machine.write(
            function,
            {
                "current_link_speed": "32.0 GT/s PCIe",
                "current_link_width": "4",
                f"nvme/{name}/hwmon{number}/temp1_input": f"{40 + number}000",
                "aer_dev_fatal": f"TOTAL_ERR_FATAL {number}",
            },
        )
    reading = read_vitals(machine.system, disk, NODE)
    assert (reading.link, reading.temperature_c) == ("32.0 GT/s PCIe x4", 40.0)
    assert reading.marks == {"aer_dev_fatal": 0}
    assert identify_device(machine.system, disk, NODE).interface == "NVMe (32.0 GT/s x4)"
    first = machine.sys / "devices/pci0000:00/0000:00:00.0"
    machine.write(first / "nvme/nvme3", {"state": "dead"})
    assert read_vitals(machine.system, disk, NODE).temperature_c == 41.0


def test_a_link_that_is_none(machine: Machine) -> None:
    disk = alone(machine)  # QEMU's drives show this behaviour.
    function = machine.sys / "devices/pci0000:00/0000:00:06.0"
    machine.write(function, {"current_link_speed": "Unknown", "current_link_width": "0"})
    assert read_vitals(machine.system, disk, NODE).link is None
    assert identify_device(machine.system, disk, NODE).interface == "NVMe"


def test_a_drive_on_a_network_has_no_pcie_link(machine: Machine) -> None:
    disk = alone(machine)
    controller = machine.sys / "devices/pci0000:00/0000:00:06.0/nvme/nvme0"
    machine.write(controller, {"transport": "tcp"})
    assert identify_device(machine.system, disk, NODE).interface == "NVMe over TCP"


def test_counts_in_json_are_numbers_or_text() -> None:
    names = ("a",)
    assert pages.json_number({"x": [{"a": "0x10"}, {"a": 4}]}, names) == 20
    assert pages.json_number({"x": {"a": "1,000"}}, names) == 1000
    assert pages.json_number({"x": {"a": "n/a", "b": 3}}, names) is None

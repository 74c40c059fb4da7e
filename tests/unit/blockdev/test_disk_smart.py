"""SATA and SAS counters from smartctl's JSON, by the keys in its source (7.3).

`ataprint.cpp` (device statistics) and `scsiprint.cpp` (error counter log, solid state media).
"""

from __future__ import annotations

import json

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.blockdev.vitals import (
    disk_answer,
    disk_counters,
    health_report,
    read_vitals,
)
from writecliff.engines.counters import Counters
from writecliff.engines.fio.measured import counted_since


def statistic(name: str, value: int, *, valid: bool = True) -> dict[str, object]:
    return {"name": name, "value": value, "flags": {"valid": valid, "normalized": False}}


STATISTICS = {
    "ata_device_statistics": {
        "pages": [
            {
                "number": 1,
                "name": "General Statistics",
                "table": [
                    statistic("Logical Sectors Written", 1000),
                    statistic("Logical Sectors Read", 10),
                ],
            },
            {
                "number": 7,
                "name": "Solid State Device Statistics",
                "table": [statistic("Percentage Used Endurance Indicator", 12)],
            },
        ]
    }
}
SAS = {
    "smart_status": {"passed": True},
    "temperature": {"current": 34, "drive_trip": 70},
    "scsi_grown_defect_list": 3,
    "scsi_percentage_used_endurance_indicator": 4,
    "scsi_error_counter_log": {
        "read": {"total_errors_corrected": 5, "gigabytes_processed": "2.500"}
        | {"total_uncorrected_errors": 1},
        "write": {"total_errors_corrected": 0, "gigabytes_processed": "1234.567"}
        | {"total_uncorrected_errors": 2},
    },
}


@pytest.fixture
def sas(machine: Machine) -> BlockDevice:
    path = machine.disk("sdb", (8, 16))
    machine.attributes("sdb", device__vendor="HGST")
    return device_at(machine.system, path)


def attributes(*rows: tuple[str, int]) -> dict[str, object]:
    table = [{"id": 0, "name": name, "value": 95, "raw": {"value": raw}} for name, raw in rows]
    return {"ata_smart_attributes": {"table": table}}


def test_statistics_of_the_standard_come_before_attributes_of_vendors() -> None:
    both = STATISTICS | attributes(
        ("Total_LBAs_Written", 7), ("Media_Wearout_Indicator", 1), ("NAND_Writes_1GiB", 2)
    )
    assert disk_counters(both, 4096) == Counters(
        host_write_bytes=4_096_000,
        host_read_bytes=40_960,
        percentage_used=12.0,
        nand_write_bytes=2 << 30,
    )


def test_a_statistic_that_is_not_valid_is_not_taken() -> None:
    row = statistic("Logical Sectors Written", 5, valid=False)
    answer = {"ata_device_statistics": {"pages": [{"number": 1, "table": [row]}]}}
    assert disk_counters(answer) == Counters()


def test_a_flash_counter_that_stays_at_zero_is_unknown_not_zero() -> None:
    stale = attributes(("Total_LBAs_Written", 1000), ("NAND_Writes_1GiB", 0))
    assert disk_counters(stale).nand_write_bytes is None
    new = attributes(("Total_LBAs_Written", 0), ("NAND_Writes_1GiB", 0))
    assert disk_counters(new).nand_write_bytes == 0


def test_a_flash_counter_that_did_not_move_in_a_step_has_no_waf() -> None:
    def after(host: int, nand: int) -> float | None:
        then = Counters(host_write_bytes=10, nand_write_bytes=1 << 30)
        now = Counters(host_write_bytes=host, nand_write_bytes=nand)
        return counted_since(then, now).write_amplification_since(then)

    assert after(host=110, nand=1 << 30) is None
    assert after(host=10 + (1 << 30), nand=2 << 30) == 1.0
    assert after(host=10, nand=1 << 30) is None


def test_sas_counters(machine: Machine, sas: BlockDevice) -> None:
    machine.answer("smartctl -j -A -l error -l ssd /dev/sdb", json.dumps(SAS))
    vitals_now = read_vitals(machine.system, sas, "/dev/sdb")
    assert vitals_now.counters == Counters(
        host_write_bytes=1_234_567_000_000, host_read_bytes=2_500_000_000, percentage_used=4.0
    )
    assert (vitals_now.temperature_c, vitals_now.limit_c) == (34.0, 70.0)
    assert vitals_now.marks == {"total_uncorrected_errors": 3, "scsi_grown_defect_list": 3}


def test_health_of_a_sas_drive(machine: Machine, sas: BlockDevice) -> None:
    machine.answer("smartctl -j", json.dumps(SAS | {"power_on_time": {"hours": 9}}))
    report = health_report(machine.system, sas, "/dev/sdb")
    assert report is not None
    assert (report["passed"], report["power_on_hours"], report["nand_write_bytes"]) == (
        True,
        9,
        None,
    )
    assert report["attributes"]["write gigabytes_processed"] == "1234.567"


def test_a_sas_drive_without_these_logs_counts_nothing(machine: Machine, sas: BlockDevice) -> None:
    machine.answer("smartctl -j", json.dumps({"temperature": {"current": 38}}))
    vitals_now = read_vitals(machine.system, sas, "/dev/sdb")
    assert (vitals_now.counters, vitals_now.marks) == (Counters(), {})


def test_each_kind_of_drive_is_asked_for_its_own_logs(machine: Machine) -> None:
    disk_answer(machine.system.run, "/dev/sda", ata=True)
    disk_answer(machine.system.run, "/dev/sda", ata=False)
    assert [call[3:-1] for call in machine.calls] == [
        ["-l", "devstat"],
        ["-l", "error", "-l", "ssd"],
    ]

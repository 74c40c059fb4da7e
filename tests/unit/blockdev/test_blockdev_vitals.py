"""Vitals and health of drives from recorded output, and readings of a simulated machine."""

from __future__ import annotations

import json

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.machine import CpuTimes, take_sample
from writecliff.engines.blockdev.topology import BlockDevice, device_at
from writecliff.engines.blockdev.vitals import health_report, read_vitals
from writecliff.engines.counters import Counters

NVME_LOG = {
    "temperature": 318,
    "percentage_used": 3,
    "data_units_written": 2000,
    "warning_temp_time": 4,
    "critical_comp_time": 0,
    "thm_temp1_trans_count": 7,
    "media_errors": 1,
    "power_on_hours": 1234,
    "num_err_log_entries": 99,
}
ATA = {
    "firmware_version": "GXT5103Q",
    "smart_status": {"passed": True},
    "temperature": {"current": 41},
    "power_on_time": {"hours": 77},
    "power_cycle_count": 12,
    "ata_smart_attributes": {
        "table": [
            {
                "id": 199,
                "name": "UDMA_CRC_Error_Count",
                "value": 100,
                "worst": 100,
                "thresh": 0,
                "raw": {"value": 5, "string": "5"},
            },
            {"id": 241, "name": "Total_LBAs_Written", "raw": {"value": 10, "string": "10"}},
        ]
    },
    "ata_device_statistics": {
        "pages": [
            {
                "table": [
                    {
                        "name": "Time in Over-Temperature",
                        "value": 2,
                        "flags": {"valid": True},
                    },
                    {"name": "Number of ASR Events", "value": 9, "flags": {"valid": False}},
                ]
            }
        ]
    },
}


@pytest.fixture
def nvme(machine: Machine) -> BlockDevice:
    path = machine.disk("nvme0n1", (259, 0), serial="S5XY")
    machine.attributes(
        "nvme0n1",
        device__hwmon1__temp1_input="44850",
        device__hwmon1__temp1_max="81850",
        device__device__current_link_speed="16.0 GT/s PCIe",
        device__device__current_link_width="4",
        device__device__aer_dev_correctable="RxErr 3\nTOTAL_ERR_COR 3",
    )
    return device_at(machine.system, path)


@pytest.fixture
def sata(machine: Machine) -> BlockDevice:
    path = machine.disk("sda", (8, 0))
    machine.attributes("sda", device__vendor="ATA", device__iotmo_cnt="0x1f")
    return device_at(machine.system, path)


def test_nvme_vitals_through_smartctl(machine: Machine, nvme: BlockDevice) -> None:
    answer = {"nvme_smart_health_information_log": NVME_LOG}
    machine.answer("smartctl -j -A", json.dumps(answer))
    vitals_now = read_vitals(machine.system, nvme, "/dev/nvme0n1")
    assert vitals_now.counters == Counters(host_write_bytes=1_024_000_000, percentage_used=3.0)
    assert (vitals_now.temperature_c, vitals_now.limit_c) == (45.0, 81.85)
    assert vitals_now.link == "16.0 GT/s PCIe x4"
    assert vitals_now.marks == {
        "aer_dev_correctable": 3,
        "warning_temp_time": 4,
        "critical_comp_time": 0,
        "thm_temp1_trans_count": 7,
        "media_errors": 1,
    }


def test_without_tools_the_kernel_still_knows_the_temperature(
    machine: Machine, nvme: BlockDevice
) -> None:
    vitals_now = read_vitals(machine.system, nvme, "/dev/nvme0n1")
    assert (vitals_now.counters, vitals_now.temperature_c) == (Counters(), 44.85)
    assert health_report(machine.system, nvme, "/dev/nvme0n1") is None


def test_sata_vitals(machine: Machine, sata: BlockDevice) -> None:
    machine.answer("smartctl -j -A", json.dumps(ATA))
    vitals_now = read_vitals(machine.system, sata, "/dev/sda")
    assert (vitals_now.temperature_c, vitals_now.counters.host_write_bytes) == (41.0, 5120)
    assert vitals_now.marks == {
        "iotmo_cnt": 31,
        "UDMA_CRC_Error_Count": 5,
        "Time in Over-Temperature": 2,
    }


def test_health_of_a_sata_drive(machine: Machine, sata: BlockDevice) -> None:
    machine.answer("smartctl -j", json.dumps(ATA))
    report = health_report(machine.system, sata, "/dev/sda")
    assert report is not None
    assert json.loads(json.dumps(report)) == report
    assert (report["source"], report["passed"], report["firmware"]) == (
        "smartctl",
        True,
        "GXT5103Q",
    )
    assert (report["temperature_c"], report["power_on_hours"], report["power_cycles"]) == (
        41.0,
        77,
        12,
    )
    assert report["attributes"][0] == {
        "id": 199,
        "name": "UDMA_CRC_Error_Count",
        "value": 100,
        "worst": 100,
        "threshold": 0,
        "raw": 5,
        "raw_text": "5",
    }


def test_health_of_an_nvme_drive_through_smartctl(machine: Machine, nvme: BlockDevice) -> None:
    answer = {"nvme_smart_health_information_log": NVME_LOG}
    machine.answer("smartctl -j -A", json.dumps(answer))
    report = health_report(machine.system, nvme, "/dev/nvme0n1")
    assert report is not None
    assert (report["source"], report["power_on_hours"]) == ("smartctl", 1234)
    assert report["attributes"] == NVME_LOG
    assert report["passed"] is None


def test_a_loop_device_has_no_health(machine: Machine) -> None:
    disk = device_at(machine.system, machine.disk("loop0", (7, 0)))
    assert health_report(machine.system, disk, "/dev/loop0") is None
    assert machine.calls == []


def test_a_sample_of_the_machine(machine: Machine) -> None:
    machine.disk("sda", (8, 0))
    (machine.proc / "stat").write_text("cpu  100 10 50 1000 30 2 3 7 4 0\ncpu0 1 2 3\n")
    cpu = machine.sys / "devices/system/cpu"
    for number, (core, package, clock) in enumerate(((1, 2, 2_000_000), (3, 2, 3_000_000))):
        machine.write(
            cpu / f"cpu{number}",
            {
                "thermal_throttle/core_throttle_count": str(core),
                "thermal_throttle/package_throttle_count": str(package),
                "cpufreq/scaling_cur_freq": str(clock),
            },
        )
    stat = "  10 1 800 5  20 2 1600 5  0 1 1  3 0 80 1  4 1"
    machine.attributes("sda", stat=stat)
    machine.write(machine.sys / "devices/sda", {"queue/scheduler": "none mq-deadline kyber [bfq]"})
    vitals_now = take_sample(machine.system, machine.sys / "devices/sda")
    assert vitals_now.cpu == CpuTimes(busy=165, waiting=30, stolen=7, total=1202)
    assert (vitals_now.cpu_throttles, vitals_now.cpu_mhz) == (8, 2500.0)
    assert vitals_now.disk is not None
    assert vitals_now.disk.bytes == {"read": 800 * 512, "write": 1600 * 512, "trim": 80 * 512}
    assert vitals_now.io_scheduler == "bfq"


def test_a_machine_without_counters(machine: Machine) -> None:
    vitals_now = take_sample(machine.system, machine.sys / "devices/none")
    assert (vitals_now.cpu, vitals_now.cpu_throttles, vitals_now.cpu_mhz, vitals_now.disk) == (
        None,
        None,
        None,
        None,
    )

"""Location of a drive in the machine: controllers, PCIe links, host adapters, as in headers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from tests.support.nvme_drives import NODE, alone, replay
from writecliff.cli import cmd_device
from writecliff.engines.base import DeviceIdentity, described_as
from writecliff.engines.blockdev import pcie
from writecliff.engines.blockdev.identity import identify_device
from writecliff.engines.blockdev.topology import System, device_at

IDS = """# comment
144d  Samsung Electronics Co Ltd
\ta80a  NVMe SSD Controller PM9A1/PM9A3/980PRO
\t\t144d a801  SSD 980 PRO
8086  Intel Corporation
\t2922  82801IR/IO/IH (ICH9R/DO/DH) 6 port SATA Controller [AHCI mode]
C 01  Mass storage controller
\t06  SATA controller
"""


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pci.ids"
    path.write_text(IDS)
    monkeypatch.setattr(pcie, "_DATABASES", (str(path),))


def test_an_nvme_drive_names_its_vendor_and_link(machine: Machine) -> None:
    disk = alone(machine)
    function = machine.sys / "devices/pci0000:00/0000:00:06.0"
    machine.write(
        function,
        {
            "vendor": "0x144d", "device": "0xa80a",
            "current_link_speed": "8.0 GT/s PCIe", "current_link_width": "2",
            "max_link_speed": "16.0 GT/s PCIe", "max_link_width": "4",
        },
    )  # fmt: skip
    identified = identify_device(machine.system, disk, NODE)
    assert (identified.vendor, identified.adapter) == ("Samsung Electronics Co Ltd", None)
    assert identified.pcie == "Gen 3 x 2 (at most 16.0 GT/s x4)"
    assert identified.interface == "NVMe (8.0 GT/s x2)"


def test_a_sata_drive_names_its_adapter_and_form_factor(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0))
    machine.attributes("sda", device__vendor="ATA")
    function = machine.sys / "devices/pci0000:00/0000:00:1f.2"
    directory = function / "ata1/host0/target0:0:0/0:0:0:0/block/sda"
    directory.parent.mkdir(parents=True)
    (machine.sys / "devices/sda").rename(directory)
    (machine.sys / "devices/sda").symlink_to(directory)
    machine.write(function, {"vendor": "0x8086", "device": "0x2922", "class": "0x010601"})
    machine.answer("smartctl -j -i", json.dumps({"form_factor": {"name": "2.5 inches"}}))
    identified = identify_device(machine.system, device_at(machine.system, path), str(path))
    assert identified.adapter == (
        "Intel Corporation 82801IR/IO/IH (ICH9R/DO/DH) 6 port SATA Controller [AHCI mode]"
    )
    assert (identified.form_factor, identified.pcie) == ("2.5 inches", None)
    machine.write(function, {"vendor": "0x1234", "device": "0x5678", "class": "0x010601"})
    again = identify_device(machine.system, device_at(machine.system, path), str(path))
    assert again.adapter == "PCI 1234:5678"


def test_what_the_user_says_goes_into_the_identity() -> None:
    plain = DeviceIdentity(
        target="x", model="m", capacity_bytes=1, sector_bytes=512, simulated=False
    )
    assert described_as(plain, {}) == plain
    described = described_as(plain, {"nand_type": "TLC", "form_factor": "U.2", "sponsor": "ACME"})
    assert (described.nand_type, described.form_factor, described.remarks) == (
        "TLC",
        "U.2",
        {"sponsor": "ACME"},
    )


@pytest.mark.parametrize("as_json", [True, False])
def test_device_show_of_a_real_drive(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    as_json: bool,
) -> None:
    alone(machine)
    replay(machine, "2.3", "QFDP0001")
    system = machine.system
    monkeypatch.setattr("writecliff.engines.blockdev.topology.System", lambda: system)
    assert isinstance(system, System)
    assert cmd_device.show_real_drive(str(machine.dev / "nvme0n1"), json=as_json) == 0
    out = capsys.readouterr().out
    if as_json:
        shown = json.loads(out)
        assert shown["device"]["serial"] == "S5XY"
        assert shown["health"]["nand_write_source"] == "FDP statistics (log 22h)"
        assert shown["data_placement"]["fdp_handles"] == 8
        return
    for text in ("S5XY", "NVMe", "50 °C", "passed", "yes", "FDP: 8 placement handles"):
        assert text in out

"""SATA: hdparm and smartctl on QEMU's AHCI disk, and the disk's write-cache state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.hdparm import AtaDrive, identify
from writecliff.engines.blockdev.identity import identify_device, is_ata
from writecliff.engines.blockdev.purge import attachment_of
from writecliff.engines.blockdev.topology import BlockDevice, System, device_at
from writecliff.engines.blockdev.vitals import read_vitals

SYSTEM = System()


@pytest.fixture
def disk(sata: Drive) -> BlockDevice:
    return device_at(SYSTEM, Path(sata.path))


def test_the_drive_is_on_an_ata_port_and_identified(sata: Drive, disk: BlockDevice) -> None:
    assert is_ata(disk)
    assert attachment_of(disk) == "libata"
    assert isinstance(identify(SYSTEM.run, sata.path), AtaDrive)
    identity = identify_device(SYSTEM, disk, sata.path)
    assert (identity.model, identity.serial) == ("QEMU HARDDISK", "QSATA001")
    assert (identity.interface or "").startswith("SATA")


@pytest.mark.figure(cache="SATA")
def test_the_write_cache_is_what_the_drive_says(sata: Drive, disk: BlockDevice) -> None:
    for state in (False, True, False):
        report = set_write_cache(SYSTEM, disk, sata.path, state)
        assert (report.enabled, report.note) == (state, "")
        shown = SYSTEM.run(["hdparm", "-I", sata.path]).stdout
        assert AtaDrive(shown).enabled("Write cache") is state


def test_what_the_drive_does_not_count_is_unknown(sata: Drive, disk: BlockDevice) -> None:
    """QEMU's disk has no SMART attribute for host or NAND writes."""
    vitals = read_vitals(SYSTEM, disk, sata.path)
    assert vitals.counters.nand_write_bytes is None
    assert vitals.counters.write_amplification_since(vitals.counters) is None

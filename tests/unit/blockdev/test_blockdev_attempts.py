"""Drives that must not be written, on simulated machines with set-ups that this machine lacks.

Each drive is inspected with the right serial and every consent. tests/device uses loop devices
where possible; tests/drives uses real drives.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev import usage
from writecliff.engines.blockdev.protection import claim, inspect
from writecliff.engines.blockdev.topology import Node
from writecliff.errors import TargetError

SERIAL = "S64GNX0R123456"
Build = Callable[[Machine], None]
IN_USE: dict[str, tuple[Build, str]] = {}


def case(says: str) -> Callable[[Build], Build]:
    """Register a use of sda with the error text that it must cause."""

    def add(build: Build) -> Build:
        IN_USE[build.__name__] = (build, says)
        return build

    return add


def _above(machine: Machine, upper: str, number: tuple[int, int], *lower: str, **more: str) -> None:
    """Create a device that the kernel has built on other devices."""
    machine.disk(upper, number)
    machine.attributes(upper, **more)
    for name in lower:
        directories = machine.sys / "devices"
        hit = next(directories.rglob(name))
        (directories / upper / "slaves" / name).symlink_to(hit)
        (hit / "holders" / upper).symlink_to(directories / upper)


@case("carries the root file system")
def root(machine: Machine) -> None:
    machine.mount("8:0", "/", "/dev/sda")


@case("sda carries the root file system")
def root_on_a_partition(machine: Machine) -> None:
    machine.partition("sda", "sda1", (8, 1))
    machine.mount("8:1", "/", "/dev/sda1")


@case("carries the root file system")
def root_of_the_machine_seen_from_a_container(machine: Machine) -> None:
    machine.mount("0:50", "/", "overlay")
    machine.mount("8:0", "/", "/dev/sda", process="1")


@case("carries the root file system")
def root_on_an_encrypted_volume_of_an_array(machine: Machine) -> None:
    _above(machine, "md127", (9, 127), "sda")
    _above(machine, "dm-0", (253, 0), "md127", dm__name="crypt")
    _above(machine, "dm-1", (253, 1), "dm-0", dm__name="vg-root")
    machine.mount("253:1", "/", "/dev/mapper/vg-root")


@case("is part of md127")
def member_of_an_array(machine: Machine) -> None:
    _above(machine, "md127", (9, 127), "sda")


@case("sda2 is part of dm-0")
def physical_volume_on_a_partition(machine: Machine) -> None:
    machine.partition("sda", "sda2", (8, 2))
    _above(machine, "dm-0", (253, 0), "sda2", dm__name="vg-data")


@case("is part of bcache0")
def cache_of_another_disk(machine: Machine) -> None:
    _above(machine, "bcache0", (252, 0), "sda")


@case("is registered with bcache")
def registered_with_bcache(machine: Machine) -> None:
    (machine.sys / "devices/sda/bcache").mkdir()


@case("is part of drbd0")
def replicated_with_drbd(machine: Machine) -> None:
    _above(machine, "drbd0", (147, 0), "sda")


@case("is part of the mounted btrfs file system")
def second_device_of_btrfs(machine: Machine) -> None:
    folder = machine.sys / "fs/btrfs/9c1d/devices"
    folder.mkdir(parents=True)
    (folder / "sda").symlink_to(machine.sys / "devices/sda")


@case("is mounted at /boot/efi")
def system_partition(machine: Machine) -> None:
    machine.partition("sda", "sda1", (8, 1))
    machine.mount("8:1", "/boot/efi", "/dev/sda1")


@case("is mounted at /mnt/with blank")
def mounted_where_a_blank_is(machine: Machine) -> None:
    machine.mount("8:0", "/mnt/with\\040blank", "/dev/sda")


@case("is mounted at /data")
def mounted_with_another_number(machine: Machine) -> None:
    """Mount like Btrfs and FUSE, which have device numbers of their own."""
    machine.mount("0:44", "/data", str(machine.dev / "sda"))


@case("is mounted at /var/lib/container")
def mounted_in_a_container_alone(machine: Machine) -> None:
    machine.mount("8:0", "/var/lib/container", "/dev/sda", process="4711")


@case("is active swap space")
def swap_on_the_whole_disk(machine: Machine) -> None:
    swaps = f"Filename Type Size Used Priority\n{machine.dev / 'sda'} partition 1 0 -2\n"
    (machine.proc / "swaps").write_text(swaps)


@case("sda3 is active swap space")
def swap_on_a_partition(machine: Machine) -> None:
    node = machine.partition("sda", "sda3", (8, 3))
    (machine.proc / "swaps").write_text(f"Filename Type Size Used Priority\n{node} partition 1 0\n")


@case("is exported to other machines as NVMe subsystem nqn.x")
def exported_over_nvme(machine: Machine) -> None:
    folder = machine.sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    machine.write(folder, {"device_path": str(machine.dev / "sda"), "enable": "1"})


@case("is exported to other machines as SCSI target")
def exported_over_iscsi(machine: Machine) -> None:
    folder = machine.sys / "kernel/config/target/core/iblock_0/disk"
    machine.write(folder, {"udev_path": str(machine.dev / "sda"), "enable": "1"})


@case("another path to the same drive")
def in_use_through_its_second_port(machine: Machine) -> None:
    machine.disk("sdb", (8, 16), serial=SERIAL)
    for name in ("sda", "sdb"):
        machine.attributes(name, device__wwid="naa.5000c500a1b2c3d4")
    machine.mount("8:16", "/data", "/dev/sdb")


@case("another path to the same drive")
def held_by_multipath_through_its_second_port(machine: Machine) -> None:
    machine.disk("sdb", (8, 16), serial=SERIAL)
    for name in ("sda", "sdb"):
        machine.attributes(name, device__wwid="naa.5000c500a1b2c3d4")
    _above(machine, "dm-0", (253, 0), "sdb", dm__name="mpatha")


@case("a host-managed zoned drive")
def zones_that_the_host_manages(machine: Machine) -> None:
    machine.attributes("sda", queue__zoned="host-managed")


@case("read-only")
def write_protected(machine: Machine) -> None:
    machine.attributes("sda", ro="1")


@case("contains no medium")
def a_card_reader_without_a_card(machine: Machine) -> None:
    machine.attributes("sda", size="0")


@case("its state is offline")
def taken_offline_by_the_kernel(machine: Machine) -> None:
    machine.attributes("sda", device__state="offline")


@case("its state is dead")
def a_dead_controller(machine: Machine) -> None:
    machine.attributes("sda", device__state="dead")


@case("suspended by device mapper")
def suspended(machine: Machine) -> None:
    machine.attributes("sda", dm__suspended="1", dm__name="x")


@case("the kernel has no device 8:0")
def gone_from_the_kernel(machine: Machine) -> None:
    (machine.sys / "dev/block/8:0").unlink()


@case("a character device, not a block device")
def a_character_device(machine: Machine) -> None:
    machine.nodes[machine.dev / "sda"] = Node(False, (21, 0), "character device")


@case("cannot determine the contents")
def contents_that_blkid_cannot_read(machine: Machine) -> None:
    machine.answer("blkid", "", returncode=1)


@pytest.fixture
def sda(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(usage, "_PROCESS_SETTLE_S", 0.0)
    machine.disk("sda", (8, 0), serial=SERIAL)
    return machine


@pytest.mark.parametrize("name", IN_USE)
@pytest.mark.parametrize("through", ["node", "link"])
def test_a_drive_is_refused_whatever_the_consent(sda: Machine, name: str, through: str) -> None:
    build, says = IN_USE[name]
    build(sda)
    path = sda.dev / "sda"
    if through == "link":
        path = sda.dev / "ata-Drive_S64GNX0R123456"
        path.symlink_to(sda.dev / "sda")
    before = (sda.dev / "sda").read_bytes()
    with pytest.raises(TargetError, match=says) as caught:
        claim(path, SERIAL, allow_signatures=True, system=sda.system)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    assert (sda.dev / "sda").read_bytes() == before


SERIALS = (
    "", " ", "0", "none", "None", "yes", "--", "*", "S64GNX0R12345", "S64GNX0R1234567", "s64gnx0r123456",
    "S64GNX0R123456 ", " S64GNX0R123456", "S64GNX0R123456\n", "S64GNXOR123456", "/dev/sda", "sda",
    "S64GNX0R123456,S64GNX0R123457", "S64GNX0R123457", "\u0405" "64GNX0R123456", "S64GNX0R123456\0",
)  # fmt: skip


@pytest.mark.parametrize("given", SERIALS)
def test_only_the_serial_itself_is_the_serial(sda: Machine, given: str) -> None:
    with pytest.raises(TargetError, match="is not this device's serial"):
        claim(sda.dev / "sda", given, allow_signatures=True, system=sda.system)


CONTENTS = (
    "TYPE=ext4\nUSAGE=filesystem", "TYPE=xfs\nUSAGE=filesystem", "TYPE=btrfs\nUSAGE=filesystem",
    "TYPE=ntfs\nUSAGE=filesystem", "TYPE=vfat\nUSAGE=filesystem", "TYPE=zfs_member\nUSAGE=raid",
    "TYPE=LVM2_member\nUSAGE=raid", "TYPE=linux_raid_member\nUSAGE=raid", "TYPE=swap\nUSAGE=other",
    "TYPE=swsuspend\nUSAGE=other", "TYPE=crypto_LUKS\nUSAGE=crypto", "TYPE=BitLocker\nUSAGE=crypto",
    "TYPE=VMFS\nUSAGE=filesystem", "TYPE=drbd\nUSAGE=raid", "PTTYPE=gpt", "PTTYPE=dos", "TYPE=apfs",
    "TYPE=ceph_bluestore\nUSAGE=other", "TYPE=isw_raid_member\nUSAGE=raid", "TYPE=iso9660",
)  # fmt: skip


@pytest.mark.parametrize("answer", CONTENTS)
def test_what_is_on_it_takes_a_second_consent(sda: Machine, answer: str) -> None:
    sda.answer("blkid", f"{answer}\n")
    with pytest.raises(TargetError, match="not empty: ") as caught:
        claim(sda.dev / "sda", SERIAL, system=sda.system)
    assert caught.value.hint == "to erase all of its contents, add --wipe-signatures"


def test_the_drive_of_the_tables_may_be_written_without_what_they_add(sda: Machine) -> None:
    assert inspect(sda.dev / "sda", sda.system).refusal(SERIAL, allow_signatures=False) is None


def test_no_folder_is_a_drive(sda: Machine, tmp_path: Path) -> None:
    sda.nodes[tmp_path] = Node(False, (0, 0), "directory")
    with pytest.raises(TargetError, match="a directory, not a block device"):
        claim(tmp_path, SERIAL, system=sda.system)

"""Other paths to the bytes of a disk, and users in the kernel, on a simulated machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.identity import identify_device
from writecliff.engines.blockdev.protection import inspect, trouble
from writecliff.engines.blockdev.topology import Node, device_at
from writecliff.engines.blockdev.usage import Use, neighbours, uses_of
from writecliff.errors import TargetError


def uses(machine: Machine, name: str = "sda") -> tuple[Use, ...]:
    return uses_of(machine.system, device_at(machine.system, machine.dev / name))


def stack(machine: Machine, upper: str, *lower: str) -> None:
    """Add a device `upper` that is built on `lower`."""
    for name in lower:
        upper_folder, other = machine.sys / "devices" / upper, machine.sys / "devices" / name
        (upper_folder / "slaves" / name).symlink_to(other)
        (other / "holders" / upper).symlink_to(upper_folder)


def mapped(machine: Machine, name: str, minor: int, title: str, *lower: str) -> None:
    machine.disk(name, (253, minor))
    machine.attributes(name, dm__name=title)
    stack(machine, name, *lower)


@pytest.fixture
def sda(machine: Machine) -> Machine:
    machine.disk("sda", (8, 0))
    return machine


# -- other paths ----------------------------------------------------------------------------------


@pytest.fixture
def two_paths(sda: Machine) -> Machine:
    """Create one drive with two ports, without multipath."""
    sda.disk("sdb", (8, 16))
    for name in ("sda", "sdb"):
        sda.attributes(name, device__wwid="naa.5000c500a1b2c3d4")
    return sda


def test_a_mount_through_another_path_counts(two_paths: Machine) -> None:
    assert uses(two_paths) == ()
    two_paths.partition("sdb", "sdb1", (8, 17))
    two_paths.mount("8:17", "/data", "/dev/sdb1")
    named = "sdb1 (another path to the same drive)"
    assert uses(two_paths) == (Use("mount", named, "is mounted at /data"),)
    disk = device_at(two_paths.system, two_paths.dev / "sda")
    assert [relative.name for relative in neighbours(two_paths.system, disk)] == ["sdb", "sdb1"]


def test_a_path_that_multipath_holds_counts(two_paths: Machine) -> None:
    mapped(two_paths, "dm-0", 0, "mpatha", "sdb")
    named = "sdb (another path to the same drive)"
    assert uses(two_paths) == (Use("holder", named, "is part of dm-0"),)


def test_the_paths_below_a_multipath_device_are_its_own(two_paths: Machine) -> None:
    mapped(two_paths, "dm-0", 0, "mpatha", "sda", "sdb")
    assert uses(two_paths, "dm-0") == ()


def test_a_third_path_counts_for_a_multipath_device(two_paths: Machine) -> None:
    mapped(two_paths, "dm-0", 0, "mpatha", "sda", "sdb")
    two_paths.disk("sdc", (8, 32))
    two_paths.attributes("sdc", device__wwid="naa.5000c500a1b2c3d4")
    two_paths.mount("8:32", "/data", "/dev/sdc")
    assert [use.kind for use in uses(two_paths, "dm-0")] == ["mount"]


@pytest.mark.parametrize("differs", ["device__wwid", "size"])
def test_another_drive_is_no_path(two_paths: Machine, differs: str) -> None:
    two_paths.attributes("sdb", **{differs: "4096"})
    two_paths.mount("8:16", "/data", "/dev/sdb")
    assert uses(two_paths) == ()


def test_a_hidden_path_has_no_number_and_is_passed_over(machine: Machine) -> None:
    machine.disk("nvme0n1", (259, 0))
    hidden = machine.sys / "devices/nvme0c0n1"
    hidden.mkdir()
    (machine.sys / "block/nvme0c0n1").symlink_to(hidden)
    machine.write(hidden, {"wwid": "eui.1", "hidden": "1"})
    machine.attributes("nvme0n1", wwid="eui.1")
    assert uses(machine, "nvme0n1") == ()
    with pytest.raises(TargetError, match="does not exist") as caught:
        inspect(machine.dev / "nvme0c0n1", machine.system)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("name /dev/nvme0n1")


# -- device mapper --------------------------------------------------------------------------------

LINEAR = "{}: 0 1024 linear 8:0 {}\n"


@pytest.mark.parametrize(
    ("table", "shared"),
    [
        (LINEAR.format("one", 0) + LINEAR.format("two", 1024), False),
        (LINEAR.format("one", 0) + LINEAR.format("two", 1023), True),
        (LINEAR.format("one", 0) + "two: 0 9 snapshot 8:0 253:2 P 8\n", True),
        (LINEAR.format("one", 2048) + "two: 0 2048 striped 2 128 8:0 1024 8:16 0\n", False),
        (LINEAR.format("one", 1024) + "two: 0 2048 striped 2 128 8:0 1024 8:16 0\n", True),
        ("one: 0 1024 thin 8:0 1\ntwo: 0 1024 thin 8:0 2\n", False),
        (LINEAR.format("one", 0), True),  # The other disk is unknown.
    ],
)
def test_dm_devices_that_share_sectors_of_a_disk(sda: Machine, table: str, shared: bool) -> None:
    mapped(sda, "dm-0", 0, "one", "sda")
    mapped(sda, "dm-1", 1, "two", "sda")
    sda.answer("dmsetup table", table)
    identities = uses(sda, "dm-0")
    expected = (Use("holder", "sda", "is also mapped by dm-1 (two)"),)
    assert identities == (expected if shared else ())
    # The device-mapper device is a holder of the disk itself.
    assert [use.kind for use in uses(sda)] == ["holder"]


# -- users in the kernel --------------------------------------------------------------------------


def test_bcache_without_a_device_on_it(sda: Machine) -> None:
    (sda.sys / "devices/sda/bcache").mkdir()
    assert uses(sda) == (Use("holder", "sda", "is registered with bcache"),)


@pytest.mark.parametrize(
    ("kind", "member"), [("btrfs", "devices/sda"), ("bcachefs", "dev-1/block")]
)
def test_the_second_device_of_a_mounted_file_system(sda: Machine, kind: str, member: str) -> None:
    path = sda.sys / "fs" / kind / "1b2c" / member
    path.parent.mkdir(parents=True)
    path.symlink_to(sda.sys / "devices/sda")
    assert uses(sda) == (Use("holder", "sda", f"is part of the mounted {kind} file system 1b2c"),)


@pytest.mark.parametrize("enabled", ["1", "0"])
@pytest.mark.parametrize(
    ("folder", "file", "where"),
    [
        ("nvmet/subsystems/nqn.x/namespaces/1", "device_path", "NVMe subsystem nqn.x"),
        ("target/core/iblock_0/disk", "udev_path", "SCSI target disk"),
    ],
)
def test_exports(sda: Machine, folder: str, file: str, where: str, enabled: str) -> None:
    directory = sda.sys / "kernel/config" / folder
    sda.write(directory, {file: str(sda.dev / "sda"), "enable": enabled})
    expected = (Use("export", "sda", f"is exported to other machines as {where}"),)
    assert uses(sda) == (expected if enabled == "1" else ())


def test_a_drive_of_our_own_nvme_target_stands_on_the_exported_device(sda: Machine) -> None:
    sda.disk("nvme0n1", (259, 0))
    sda.attributes("nvme0n1", device__transport="loop", device__subsysnqn="nqn.x", nsid="1")
    folder = sda.sys / "kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    sda.write(folder, {"device_path": str(sda.dev / "sda"), "enable": "1"})
    assert uses(sda, "nvme0n1") == ()
    sda.mount("8:0", "/data", "/dev/sda")
    assert uses(sda, "nvme0n1") == (Use("mount", "sda", "is mounted at /data"),)


def test_two_namespaces_of_one_drive_are_told_apart(machine: Machine) -> None:
    """The two drives share the serial number: a run on one must not be resumed on the other."""
    identities = []
    for number in (1, 2):
        machine.disk(f"nvme0n{number}", (259, number), serial="S1")
        machine.attributes(f"nvme0n{number}", nsid=str(number))
        disk = device_at(machine.system, machine.dev / f"nvme0n{number}")
        identities.append(identify_device(machine.system, disk, f"/dev/nvme0n{number}"))
    assert [identity.serial for identity in identities] == ["S1", "S1"]
    assert [identity.backing for identity in identities] == ["namespace 1", "namespace 2"]


# -- names and condition --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ng0n1", "nvme0", "sg3"])
def test_the_block_device_of_a_character_device_is_named(machine: Machine, name: str) -> None:
    disk = "sdb" if name == "sg3" else "nvme0n1"
    machine.disk(disk, (8, 16))
    directory = machine.sys / "class" / name
    inside = {"sg3": f"device/block/{disk}", "nvme0": f"{disk}/dev", "ng0n1": "dev"}[name]
    machine.write(directory, {f"{inside}/size" if name == "sg3" else inside: "1"})
    (machine.sys / "dev/char").mkdir()
    (machine.sys / "dev/char/240:0").symlink_to(directory)
    path = machine.dev / name
    machine.nodes[path] = Node(False, (240, 0), "character device")
    with pytest.raises(TargetError, match="a character device, not a block device") as caught:
        inspect(path, machine.system)
    assert caught.value.hint == f"specify its block device /dev/{disk}"


def test_a_node_under_another_name_is_refused(sda: Machine) -> None:
    path = sda.dev / "sdb"
    sda.nodes[path] = sda.nodes[sda.dev / "sda"]
    path.write_bytes(bytes(1 << 20))
    error = inspect(path, sda.system).refusal(str(path), allow_signatures=True)
    assert error is not None
    assert "another device node for sda" in str(error)
    assert error.hint == f"specify {sda.dev / 'sda'}, or a link to it"


def test_the_node_of_libdevmapper_is_a_name_of_the_device(sda: Machine) -> None:
    mapped(sda, "dm-0", 0, "vg-lv", "sda")
    path = sda.dev / "mapper/vg-lv"
    path.parent.mkdir()
    path.write_bytes(bytes(1 << 20))
    sda.nodes[path] = sda.nodes[sda.dev / "dm-0"]
    assert inspect(path, sda.system).refusal(str(path), allow_signatures=False) is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, None),
        ({"device__state": "running"}, None),
        ({"device__state": "offline"}, "its state is offline"),
        ({"device__state": "resetting"}, None),  # The device will return after the reset.
        ({"device__nvme0__state": "dead", "device__nvme1__state": "live"}, None),
        ({"device__nvme0__state": "dead"}, "its state is dead"),
        ({"dm__suspended": "1"}, "suspended by device mapper"),
    ],
)
def test_a_drive_that_cannot_answer_is_not_read(
    sda: Machine, attributes: dict[str, str], expected: str | None
) -> None:
    sda.attributes("sda", **attributes)
    path = sda.dev / "sda"
    if expected is None:
        inspect(path, sda.system)
        return
    path.unlink()  # Reading this file would cause another error.
    with pytest.raises(TargetError, match=expected) as caught:
        inspect(path, sda.system)
    assert caught.value.hint == "reconnect the drive, then start again"


def test_a_removed_drive_is_said_to_have_vanished(sda: Machine) -> None:
    disk = device_at(sda.system, sda.dev / "sda")
    Path(sda.sys / "devices/sda").rename(sda.root / "gone")
    assert trouble(disk) == "the drive vanished: the kernel has removed the device"

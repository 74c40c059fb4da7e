"""Dangerous targets that require drives, md, device mapper, bcache, LVM or multipath.

Each target is rejected, and no byte changes. Targets that loop devices can emulate are in
tests/device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guest.qmp import Qmp
from tests.support.dangers import (
    MIB,
    SIZE,
    SWAP_HEADER,
    Danger,
    Kinds,
    assert_refused,
    require,
    run,
)
from tests.support.guest_drives import Drive, hot_plug
from tests.support.shelf import Shelf
from writecliff.engines.blockdev import claim

pytest.importorskip("writecliff._native", reason="the native module is not built")
pytestmark = pytest.mark.long


kind = Kinds[Shelf]()


# -- drives ---------------------------------------------------------------------------------------


@kind
def a_mounted_nvme_drive(shelf: Shelf) -> Danger:
    shelf.mkfs(shelf.nvme.path)
    shelf.mount(shelf.nvme.path)
    return _in_use(shelf.nvme, r"nvme\S+ is mounted at ", "unmount it")


@kind
def a_mounted_partition_of_an_nvme_drive(shelf: Shelf) -> Danger:
    partition = shelf.partitioned(shelf.nvme.path)
    shelf.mkfs(partition)
    shelf.mount(partition)
    return _in_use(shelf.nvme, r"nvme\d+n1p1 is mounted at ", "unmount it")


@kind
def swap_on_a_partition_of_an_nvme_drive(shelf: Shelf) -> Danger:
    shelf.swap(shelf.partitioned(shelf.nvme.path))
    return _in_use(shelf.nvme, r"nvme\d+n1p1 is active swap space", "swapoff", first=MIB)


@kind
def the_serial_of_another_drive(shelf: Shelf) -> Danger:
    refused, hint = "is not this device's serial", f"its serial is {shelf.nvme.serial}"
    guarded = [shelf.nvme.path]
    return Danger(shelf.nvme.path, refused, hint, guarded, consent=shelf.sata.serial)


@kind
def the_generic_node_of_a_namespace(shelf: Shelf) -> Danger:
    node = shelf.nvme.path.replace("nvme", "ng")
    return _no_block_device(node, shelf.nvme)


@kind
def the_node_of_an_nvme_controller(shelf: Shelf) -> Danger:
    return _no_block_device(re.sub(r"n1$", "", shelf.nvme.path), shelf.nvme)


@kind
def the_generic_node_of_a_scsi_drive(shelf: Shelf) -> Danger:
    shelf.module("sg")
    device = Path("/sys/block", Path(shelf.scsi.path).name, "device")
    (generic,) = (device / "scsi_generic").iterdir()
    return _no_block_device(f"/dev/{generic.name}", shelf.scsi)


@kind
def the_bsg_node_of_a_scsi_drive(shelf: Shelf) -> Danger:
    device = Path("/sys/block", Path(shelf.scsi.path).name, "device")
    nodes = list((device / "bsg").glob("*"))
    if not nodes:
        pytest.skip("this kernel has no bsg nodes")
    return _no_block_device(f"/dev/bsg/{nodes[0].name}", shelf.scsi)


def _no_block_device(node: str, drive: Drive) -> Danger:
    assert os.path.exists(node)
    refused = "a character device, not a block device"
    hint = f"block device {drive.path}$"
    return Danger(node, refused, hint, [drive.path], drive.serial, first=16 * MIB)


@kind
def the_hidden_path_of_a_multipath_nvme_drive(shelf: Shelf) -> Danger:
    hidden = next((p.name for p in Path("/sys/block").glob("nvme*c*n*")), None)
    if hidden is None:
        pytest.skip("no drive of this guest is multipath")
    whole = f"/dev/{re.sub(r'c[0-9]+n', 'n', hidden)}"
    hint = f"one path of a multipath drive, without a node: name {whole}"
    return Danger(f"/dev/{hidden}", "does not exist", hint, [whole], first=16 * MIB)


@kind
def a_write_protected_drive(shelf: Shelf) -> Danger:
    run("blockdev", "--setro", shelf.nvme.path)
    shelf.callback(run, "blockdev", "--setrw", shelf.nvme.path)
    drive = shelf.nvme
    return Danger(drive.path, "read-only", "blockdev --setrw", [drive.path], drive.serial)


@kind
def a_drive_that_the_kernel_took_offline(shelf: Shelf) -> Danger:
    state = Path("/sys/block", Path(shelf.scsi.path).name, "device/state")
    state.write_text("offline\n")
    shelf.callback(state.write_text, "running\n")
    refused = "the kernel cannot reach the drive: its state is offline"
    return Danger(shelf.scsi.path, refused, "bring it back", [], shelf.scsi.serial)


@kind
def a_device_without_a_medium(shelf: Shelf) -> Danger:
    shelf.module("nbd")
    return Danger("/dev/nbd0", r"contains no medium", "attach a medium", [])


@kind
def compressed_memory_that_is_swap(shelf: Shelf) -> Danger:
    shelf.module("zram")
    Path("/sys/block/zram0/disksize").write_text(str(SIZE))
    shelf.callback(Path("/sys/block/zram0/reset").write_text, "1")
    shelf.swap(zram := "/dev/zram0")
    return Danger(zram, "zram0 is active swap space", "swapoff", [zram], first=SWAP_HEADER)


def _in_use(drive: Drive, use: str, hint: str, *, first: int | None = None) -> Danger:
    return Danger(drive.path, f"in use: {use}", hint, [drive.path], drive.serial, first=first)


# -- device mapper and LVM ------------------------------------------------------------------------


@kind
def below_a_device_mapper_device(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.mapped("above", f"0 8192 linear {lower} 2048")
    return Danger(lower, r"in use: loop\d+ is part of dm-\d+", "stop the md, dm", [lower])


@kind
def a_mounted_device_mapper_device(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    device = shelf.mapped("above", f"0 32768 linear {lower} 0")
    shelf.mkfs(device)
    shelf.mount(device)
    return Danger(device, r"in use: dm-\d+ is mounted at", "unmount it", [lower])


@kind
def two_device_mapper_devices_over_the_same_sectors(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.mapped("one", f"0 8192 linear {lower} 0")
    device = shelf.mapped("two", f"0 8192 linear {lower} 8191")
    refused = r"in use: loop\d+ is also mapped by dm-\d+ \(one\)"
    return Danger(device, refused, "stop the md, dm", [lower])


@kind
def the_origin_of_a_snapshot(shelf: Shelf) -> Danger:
    shelf.module("dm_snapshot")
    lower, store = shelf.loop(), shelf.loop(shelf.zeros())
    device = shelf.mapped("origin", f"0 8192 snapshot-origin {lower}")
    shelf.mapped("snapshot", f"0 8192 snapshot {lower} {store} N 8")
    refused = r"in use: loop\d+ is also mapped by dm-\d+ \(snapshot\)"
    return Danger(device, refused, "stop the md, dm", [lower, store])


@kind
def a_disk_below_a_device_mapper_target_that_a_process_writes(shelf: Shelf) -> Danger:
    """The kernel prevents mounting a lower disk, but not opening it for writing."""
    lower = shelf.loop()
    pid = shelf.script(f"exec 3<>{lower}").pid
    device = shelf.mapped("above", f"0 8192 linear {lower} 0")
    return Danger(device, rf"loop\d+ is open in process {pid} ", "end that process", [lower])


@kind
def a_suspended_device(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    device = shelf.mapped("held", f"0 8192 linear {lower} 0")
    run("dmsetup", "suspend", "held")
    shelf.callback(run, "dmsetup", "resume", "held")
    return Danger(device, "suspended by device mapper", "bring it back", [lower])


@kind
def the_disk_of_an_active_lvm_volume(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.volume(lower)
    return Danger(lower, r"in use: loop\d+ is part of dm-\d+", "LVM", [lower])


@kind
def a_mounted_lvm_volume(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    volume = shelf.volume(lower)
    shelf.mkfs(volume)
    shelf.mount(volume)
    return Danger(volume, r"in use: dm-\d+ is mounted at", "unmount it", [lower])


@kind
def the_disk_of_an_inactive_lvm_volume(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.volume(lower, active=False)
    return _not_empty(lower, "LVM2_member")


@kind
def below_an_open_luks_container(shelf: Shelf) -> Danger:
    shelf.module("dm_crypt")
    lower = shelf.loop()
    key = shelf.luks(lower)
    run("cryptsetup", "open", "--key-file", key, lower, "opened")
    shelf.callback(run, "cryptsetup", "close", "opened")
    return Danger(lower, r"in use: loop\d+ is part of dm-\d+", "stop the md, dm", [lower])


@kind
def a_closed_luks_container(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.luks(lower)
    return _not_empty(lower, "crypto_LUKS")


def _not_empty(path: str, name: str) -> Danger:
    return Danger(path, f"not empty: .*{name}", "--wipe-signatures", [path], wipe=False)


# -- several paths --------------------------------------------------------------------------------


def _two_paths(shelf: Shelf) -> list[str]:
    """Add a drive that two scsi_debug hosts expose as two disks, and return their paths."""
    control = Path("/sys/bus/pseudo/drivers/scsi_debug")
    before = set(Path("/sys/block").glob("sd*"))
    (control / "vpd_use_hostno").write_text("0")
    shelf.callback((control / "vpd_use_hostno").write_text, "1")
    (control / "add_host").write_text("2")
    shelf.callback((control / "add_host").write_text, "-2")
    require(lambda: len(set(Path("/sys/block").glob("sd*")) - before) == 2)
    paths = [f"/dev/{disk.name}" for disk in sorted(set(Path("/sys/block").glob("sd*")) - before)]
    require(lambda: all(os.path.exists(path) for path in paths))
    return paths


def _serial(path: str) -> str:
    page = Path("/sys/block", Path(path).name, "device/vpd_pg80").read_bytes()
    return page[4:].decode().strip()


@kind
def another_path_to_a_mounted_drive(shelf: Shelf) -> Danger:
    first, second = _two_paths(shelf)
    shelf.mkfs(first, "16m")
    shelf.mount(first)
    refused = r"in use: sd\w+ \(another path to the same drive\) is mounted at"
    return Danger(second, refused, "unmount it", [first], _serial(second), first=32 * MIB)


@kind
def a_leg_of_a_multipath_device(shelf: Shelf) -> Danger:
    shelf.module("dm_multipath")
    shelf.module("dm_service_time")
    first, second = _two_paths(shelf)
    paths = f"service-time 0 2 1 {first} 1 {second} 1"
    shelf.mapped("mpatha", f"0 8192 multipath 0 0 1 1 {paths}")
    refused = r"in use: sd\w+ is part of dm-\d+"
    hint = "stop the md, dm"
    return Danger(first, refused, hint, [first, second], _serial(first), first=16 * MIB)


@kind
def another_path_to_a_drive_below_multipath(shelf: Shelf) -> Danger:
    shelf.module("dm_multipath")
    shelf.module("dm_service_time")
    first, second = _two_paths(shelf)
    shelf.mapped("mpatha", f"0 8192 multipath 0 0 1 1 service-time 0 1 1 {first} 1")
    refused = r"in use: sd\w+ \(another path to the same drive\) is part of dm-\d+"
    hint = "stop the md, dm"
    return Danger(second, refused, hint, [second], _serial(second), first=16 * MIB)


# -- md, bcache, file systems of several devices --------------------------------------------------


@kind
def a_member_of_a_running_array(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.mirror(lower, shelf.loop())
    return Danger(lower, r"in use: loop\d+ is part of md\d+", "stop the md, dm", [lower])


@kind
def a_mounted_array(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    array = shelf.mirror(lower, shelf.loop())
    shelf.mkfs(array)
    shelf.mount(array)
    return Danger(array, r"in use: md\d+ is mounted at", "unmount it", [lower])


def _member(metadata: str) -> Callable[[Shelf], Danger]:
    def make(shelf: Shelf) -> Danger:
        first, second = shelf.loop(), shelf.loop()
        shelf.mirror(first, second, metadata=metadata, stop=True)
        return _not_empty(second, "linux_raid_member")

    return make


kind |= {f"a_member_of_a_stopped_array_{version}": _member(version) for version in ("0.90", "1.0")}
kind |= {f"a_member_of_a_stopped_array_{version}": _member(version) for version in ("1.1", "1.2")}


def _bcache(shelf: Shelf, option: str, *, register: bool) -> str:
    shelf.module("bcache")
    device = shelf.loop(shelf.zeros(64 * MIB))  # A cache has at least a few hundred buckets.
    run("make-bcache", option, "--bucket", "64k", device)
    folder = Path("/sys/block", Path(device).name, "bcache")
    if register and not folder.exists():  # No udev registers it.
        Path("/sys/fs/bcache/register").write_text(device)
    if register:
        require(folder.exists)
        shelf.callback(_stop_bcache, folder)
    return device


def _stop_bcache(folder: Path) -> None:
    stop = folder / "stop" if (folder / "stop").exists() else folder / "set/stop"
    stop.write_text("1")
    require(lambda: not folder.exists())


@kind
def a_bcache_backing_device(shelf: Shelf) -> Danger:
    device = _bcache(shelf, "-B", register=True)
    refused = r"in use: loop\d+ is part of bcache\d+"
    return Danger(device, refused, "bcache", [device])


@kind
def a_bcache_cache_without_a_backing_device(shelf: Shelf) -> Danger:
    device = _bcache(shelf, "-C", register=True)
    return Danger(device, r"in use: loop\d+ is registered with bcache", "bcache", [device])


@kind
def a_bcache_device_that_is_not_registered(shelf: Shelf) -> Danger:
    return _not_empty(_bcache(shelf, "-B", register=False), "bcache")


@kind
def the_second_device_of_a_mounted_btrfs(shelf: Shelf) -> Danger:
    shelf.module("btrfs")
    first, second = (shelf.loop(shelf.zeros(128 * MIB)) for _ in range(2))
    run("mkfs.btrfs", "-q", "-f", "-d", "single", "-m", "raid1", first, second)
    run("btrfs", "device", "scan", first, second)
    shelf.mount(first)
    refused = r"in use: loop\d+ is part of the mounted btrfs file system [0-9a-f-]{36}"
    return Danger(second, refused, "unmount", [second])


@kind
def the_second_device_of_a_btrfs_that_is_not_mounted(shelf: Shelf) -> Danger:
    first, second = (shelf.loop(shelf.zeros(128 * MIB)) for _ in range(2))
    run("mkfs.btrfs", "-q", "-f", "-d", "single", "-m", "raid1", first, second)
    return _not_empty(second, "btrfs")


@kind
def the_journal_of_a_mounted_file_system(shelf: Shelf) -> Danger:
    journal, device = shelf.loop(), shelf.loop()
    run("mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "journal_dev", journal)
    run("mkfs.ext4", "-q", "-F", "-b", "1024", "-J", f"device={journal}", device)
    shelf.mount(device)
    return Danger(journal, "in use: the kernel refuses exclusive", "journal", [journal])


# -- exported and imported again ------------------------------------------------------------------


@kind
def exported_by_the_nvme_target(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.namespace(lower, "nqn.test:exported")
    refused = r"loop\d+ is exported to other machines as NVMe subsystem nqn.test:exported"
    return Danger(lower, refused, "take it out of the kernel's target", [lower])


@kind
def an_nvme_drive_of_our_own_target_on_a_mounted_disk(shelf: Shelf) -> Danger:
    lower = shelf.loop()
    shelf.namespace(lower, "nqn.test:imported")
    before = set(Path("/sys/block").glob("nvme*"))
    Path("/dev/nvme-fabrics").write_text("transport=loop,nqn=nqn.test:imported")
    require(lambda: set(Path("/sys/block").glob("nvme*n?")) - before)
    (disk,) = {
        path.name
        for path in set(Path("/sys/block").glob("nvme*n?")) - before
        if "c" not in path.name
    }
    folder = Path("/sys/block", disk, "device")
    controllers = [folder, *folder.glob("nvme*")]
    delete = next(
        path for controller in controllers if (path := controller / "delete_controller").exists()
    )
    shelf.callback(require, lambda: not Path("/sys/block", disk).exists())
    shelf.callback(delete.write_text, "1")
    serial = next(file for path in controllers if (file := path / "serial").exists()).read_text()
    require(lambda: os.path.exists(f"/dev/{disk}"))
    shelf.mkfs(lower)
    shelf.mount(lower)
    refused = r"in use: loop\d+ is mounted at"
    return Danger(f"/dev/{disk}", refused, "unmount it", [lower], serial.strip())


@kind
def exported_by_the_scsi_target(shelf: Shelf) -> Danger:
    shelf.module("target_core_mod")
    shelf.module("target_core_iblock")
    device = shelf.loop()
    core = Path("/sys/kernel/config/target/core/iblock_7")
    store = core / "disk"
    core.mkdir()
    shelf.callback(core.rmdir)
    store.mkdir()
    shelf.callback(store.rmdir)
    (store / "control").write_text(f"udev_path={device}")
    (store / "udev_path").write_text(device)
    (store / "enable").write_text("1")
    refused = r"in use: loop\d+ is exported to other machines as SCSI target disk"
    return Danger(device, refused, "take it out of the kernel's target", [device])


@pytest.fixture(scope="module")
def small(_in_the_guest: None) -> Iterator[Drive]:
    """Yield a small NVMe drive, which is quick to compare."""
    with Qmp.of_guest() as qmp, hot_plug(qmp) as plug:
        yield plug("QTARGET1", size_bytes=32 * MIB)


@pytest.fixture
def shelf(
    tmp_path: Path, small: Drive, nvme_fdp: Drive, sata: Drive, scsi: Drive
) -> Iterator[Shelf]:
    with Shelf(tmp_path) as shelf:
        shelf.module("loop")
        shelf.nvme, shelf.nvme_fdp, shelf.sata, shelf.scsi = small, nvme_fdp, sata, scsi
        for drive in (small, scsi):
            shelf.callback(run, "wipefs", "--all", "--force", "--quiet", drive.path)
        yield shelf


@pytest.mark.figure(targets="")
@pytest.mark.parametrize("name", kind)
def test_a_dangerous_target_is_refused_and_unchanged(
    name: str, shelf: Shelf, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # A command takes seconds in the guest, and other tests check that errors reach the user.
    assert_refused(kind[name](shelf), capsys, tmp_path, command=name == "a_mounted_nvme_drive")


def test_all_paths_of_a_multipath_device_may_be_written_through_it(shelf: Shelf) -> None:
    shelf.module("dm_multipath")
    shelf.module("dm_service_time")
    first, second = _two_paths(shelf)
    paths = f"service-time 0 2 1 {first} 1 {second} 1"
    device = shelf.mapped("mpatha", f"0 8192 multipath 0 0 1 1 {paths}")
    claim(device, device)[1].close()


def test_an_unused_volume_beside_others_may_be_written(shelf: Shelf) -> None:
    lower = shelf.loop()
    shelf.mapped("one", f"0 8192 linear {lower} 0")
    device = shelf.mapped("two", f"0 8192 linear {lower} 8192")
    claim(device, device)[1].close()


def test_unused_drives_may_be_written(shelf: Shelf) -> None:
    """Check that the same drives may be written when they are not in use."""
    for drive in (shelf.nvme, shelf.nvme_fdp, shelf.sata, shelf.scsi):
        claim(drive.path, drive.serial)[1].close()

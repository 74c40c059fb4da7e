"""Dangerous targets that loop devices can emulate: each is rejected, and no byte changes.

Targets that need real drives, md, device mapper or bcache are in tests/drives.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.dangers import (
    MIB,
    SWAP_HEADER,
    Bench,
    Danger,
    Kinds,
    assert_refused,
    require,
    run,
)
from writecliff.engines.blockdev import claim

pytest.importorskip("writecliff._native", reason="the native module is not built")

kind = Kinds[Bench]()


# -- in use: mounts and swap ----------------------------------------------------------------------


@kind
def mounted(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.mkfs(device)
    bench.mount(device)
    return Danger(device, r"in use: loop\d+ is mounted at ", "unmount it", [image])


@kind
def mounted_partition_of_the_disk(bench: Bench) -> Danger:
    partition = bench.partitioned()
    bench.mkfs(partition)
    bench.mount(partition)
    disk = partition.removesuffix("p1")
    return Danger(disk, r"in use: loop\d+p1 is mounted at ", "unmount it", [disk])


@kind
def a_partition(bench: Bench) -> Danger:
    partition = bench.partitioned()
    disk = partition.removesuffix("p1")
    return Danger(partition, "only whole drives can be tested", f"whole disk {disk},", [disk])


@kind
def a_link_to_a_partition(bench: Bench) -> Danger:
    partition = bench.partitioned()
    disk = partition.removesuffix("p1")
    link = bench.link("writecliff-test-part1", partition)
    return Danger(link, "only whole drives can be tested", f"whole disk {disk},", [disk])


def _mounted_elsewhere(bench: Bench, device: str) -> None:
    """Mount the device in the mount namespace of another process."""
    bench.mkfs(device)
    where = bench.path("hidden")
    where.mkdir()
    wrapper = ["unshare", "--mount", "--propagation", "private"]
    bench.script(f"mount {device} {where}", *wrapper)
    assert str(where) not in Path("/proc/self/mountinfo").read_text()


@kind
def mounted_in_another_namespace(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    _mounted_elsewhere(bench, device)
    return Danger(device, r"in use: loop\d+ is mounted at .*hidden", "other mount", [image])


def _mounted_in_nobodys_namespace(bench: Bench, device: str) -> None:
    """Mount the device in a namespace that outlives its process through a bind mount."""
    bench.mkfs(device)
    where, folder = bench.path("hidden"), bench.path("namespaces")
    where.mkdir()
    folder.mkdir()
    run("mount", "-t", "tmpfs", "none", folder)
    bench.callback(run, "umount", folder)
    run("mount", "--make-private", folder)
    handle = folder / "kept"
    handle.touch()
    wrapper = [f"--mount={handle}", "--propagation", "private"]
    run("unshare", *wrapper, "mount", device, where)
    bench.callback(require, lambda: not _is_held(device))
    bench.callback(run, "umount", handle)
    assert str(where) not in Path("/proc/self/mountinfo").read_text()


def _is_held(device: str) -> bool:
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return True
    return False


@kind
def mounted_in_a_namespace_without_processes(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    _mounted_in_nobodys_namespace(bench, device)
    return Danger(device, "in use: the kernel refuses exclusive", "a mount that no", [image])


@kind
def a_loop_device_over_one_that_is_mounted_in_a_namespace_without_processes(
    bench: Bench,
) -> Danger:
    image = bench.image()
    lower = bench.loop(image)
    upper = bench.loop(lower)
    _mounted_in_nobodys_namespace(bench, lower)
    return Danger(
        upper, f"{lower} is in use: the kernel refuses exclusive", "a mount that no", [image]
    )


@kind
def swap_on_the_disk(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.swap(device)
    refused = r"in use: loop\d+ is active swap space"
    return Danger(device, refused, "swapoff", [image], first=SWAP_HEADER)


@kind
def swap_on_a_partition(bench: Bench) -> Danger:
    partition = bench.partitioned()
    bench.swap(partition)
    disk = partition.removesuffix("p1")
    refused = r"in use: loop\d+p1 is active swap space"
    return Danger(
        disk, refused, "swapoff", [disk], first=MIB
    )  # The range contains everything before the swap partition.


# -- in use: processes ----------------------------------------------------------------------------


@kind
def open_in_a_process_that_reads(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    pid = bench.script(f"exec 3<{device}").pid
    return Danger(device, rf"is open in process {pid} \(sh\)", "end that process", [image])


@kind
def a_partition_open_in_a_process_that_writes(bench: Bench) -> Danger:
    partition = bench.partitioned()
    disk = partition.removesuffix("p1")
    pid = bench.script(f"exec 3<>{partition}").pid
    return Danger(disk, rf"p1 is open in process {pid} \(sh\)", "end that process", [disk])


@kind
def claimed_by_another_process(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    pid = bench.python(f"import os; os.open({device!r}, os.O_RDWR | os.O_EXCL)").pid
    return Danger(device, f"is open in process {pid} ", "end that process", [image])


@kind
def claimed_by_this_process(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.callback(claim(device, device)[1].close)
    return Danger(device, "the kernel refuses exclusive access", "stop that first", [image])


@kind
def mapped_into_a_process_that_closed_it(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    code = f"import mmap, os; fd = os.open({device!r}, os.O_RDWR); m = mmap.mmap(fd, 4096)"
    pid = bench.python(f"{code}; os.close(fd)").pid
    return Danger(device, f"is open in process {pid} ", "end that process", [image])


# -- in use: loop devices -------------------------------------------------------------------------


@kind
def behind_a_loop_device(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.loop(device)
    return Danger(device, r"loop\d+ is behind the loop device loop\d+", "losetup --detach", [image])


@kind
def a_partition_behind_a_loop_device(bench: Bench) -> Danger:
    partition = bench.partitioned()
    disk = partition.removesuffix("p1")
    bench.loop(partition)
    return Danger(disk, r"p1 is behind the loop device loop\d+", "losetup --detach", [disk])


@kind
def two_loop_devices_over_the_same_bytes(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.loop(image, "--offset", str(MIB))
    return Danger(device, r"is behind the loop device loop\d+", "losetup --detach", [image])


@kind
def two_loop_devices_over_a_deleted_file(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.loop(image, "--offset", str(MIB))
    image.unlink()
    return Danger(device, r"is behind the loop device loop\d+", "losetup --detach", [device])


@kind
def a_loop_device_over_a_mounted_one(bench: Bench) -> Danger:
    image = bench.image()
    lower = bench.loop(image)
    bench.mkfs(lower)
    bench.mount(lower)
    upper = bench.loop(lower, "--offset", str(MIB))
    return Danger(upper, rf"in use: {Path(lower).name} is mounted at ", "unmount it", [image])


@kind
def a_loop_device_over_a_disk_with_a_mounted_partition(bench: Bench) -> Danger:
    partition = bench.partitioned()
    bench.mkfs(partition)
    bench.mount(partition)
    disk = partition.removesuffix("p1")
    return Danger(bench.loop(disk), r"in use: loop\d+p1 is mounted at ", "unmount it", [disk])


@pytest.mark.parametrize("name", kind)
def test_a_dangerous_target_is_refused_and_unchanged(
    name: str, bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if shutil.which("unshare") is None and "namespace" in name:
        pytest.skip("unshare is not installed")
    assert_refused(kind[name](bench), capsys, tmp_path)


def test_an_unused_disk_is_not_refused(bench: Bench) -> None:
    """Check that an unused disk, built the same way, is accepted."""
    device = bench.loop()
    claim(device, device)[1].close()

"""Mounts, swap, holders, loops, the root disk and other processes, on a simulated machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev import usage
from writecliff.engines.blockdev.loops import below
from writecliff.engines.blockdev.topology import Node, device_at
from writecliff.engines.blockdev.usage import Use, uses_of
from writecliff.errors import TargetError


def uses(machine: Machine, name: str = "sda") -> tuple[Use, ...]:
    return uses_of(machine.system, device_at(machine.system, machine.dev / name))


@pytest.fixture
def sda(machine: Machine) -> Machine:
    machine.disk("sda", (8, 0))
    machine.partition("sda", "sda2", (8, 2), start=4096)
    machine.partition("sda", "sda1", (8, 1), start=2048)
    return machine


def test_unused(sda: Machine) -> None:
    sda.mount("9:9", "/other", "/dev/other")
    assert uses(sda) == ()


def test_partitions_are_in_order_of_their_start(sda: Machine) -> None:
    disk = device_at(sda.system, sda.dev / "sda")
    assert [part.name for part in disk.partitions()] == ["sda1", "sda2"]
    part = device_at(sda.system, sda.dev / "sda2")
    assert (part.is_partition, part.whole_name) == (True, "sda")


def test_a_mounted_partition_counts_for_the_whole_disk(sda: Machine) -> None:
    sda.mount("8:2", r"/mnt/my\040data", "/dev/sda2")
    assert uses(sda) == (Use("mount", "sda2", "is mounted at /mnt/my data"),)


def test_mounts_of_other_namespaces_count(sda: Machine) -> None:
    sda.mount("8:1", "/in/container", "/dev/sda1", process="4711")
    assert uses(sda) == (Use("mount", "sda1", "is mounted at /in/container"),)


def test_file_systems_with_anonymous_numbers_are_known_by_their_source(sda: Machine) -> None:
    # btrfs mounts have an anonymous device number.
    sda.mount("0:52", "/pool", str(sda.dev / "sda1"))
    assert uses(sda) == (Use("mount", "sda1", "is mounted at /pool"),)


def test_swap(sda: Machine) -> None:
    with (sda.proc / "swaps").open("a") as file:
        file.write(f"{sda.dev / 'sda2'} partition 1048572 0 -2\n")
    assert uses(sda) == (Use("swap", "sda2", "is active swap space"),)


def test_holders(sda: Machine) -> None:
    (sda.sys / "devices/sda/sda1/holders/md0").mkdir()
    assert uses(sda) == (Use("holder", "sda1", "is part of md0"),)


def test_a_loop_device_on_the_disk(sda: Machine) -> None:
    sda.disk("loop3", (7, 3))
    sda.attributes("loop3", loop__backing_file=str(sda.dev / "sda"))
    assert uses(sda) == (Use("loop", "sda", "is behind the loop device loop3"),)


def test_a_loop_device_whose_file_cannot_be_reached_is_of_others(sda: Machine) -> None:
    """On a FUSE mount whose server has died, stat(2) fails with ENOTCONN."""
    sda.disk("loop3", (7, 3))
    sda.attributes("loop3", loop__backing_file="/dead/mount/file")

    def stat_node(path: Path) -> Node | None:
        if path.is_relative_to("/dead"):
            raise TargetError(f"{path}: Transport endpoint is not connected")
        return sda.stat_node(path)

    system = replace(sda.system, stat_node=stat_node)
    assert uses_of(system, device_at(system, sda.dev / "sda")) == ()


def test_the_disk_below_a_loop_device(sda: Machine) -> None:
    """A loop device with an offset has no slaves in sysfs, but its writes reach the disk."""
    sda.disk("loop3", (7, 3))
    sda.attributes("loop3", loop__backing_file=str(sda.dev / "sda"), loop__offset=str(1 << 19))
    assert uses(sda, "loop3") == ()
    sda.mount("8:1", "/data", "/dev/sda1")
    assert uses(sda, "loop3") == (Use("mount", "sda1", "is mounted at /data"),)


def test_the_root_disk_is_found_through_the_layers_below(sda: Machine) -> None:
    """Build a root file system on an LVM volume on a LUKS container on sda2."""
    sda.disk("dm-0", (253, 0))
    sda.disk("dm-1", (253, 1))
    devices = sda.sys / "devices"
    (devices / "dm-1/slaves/dm-0").symlink_to(devices / "dm-0")
    (devices / "dm-0/slaves/sda2").symlink_to(devices / "sda/sda2")
    (devices / "sda/sda2/holders/dm-0").mkdir()
    sda.mount("253:1", "/", "/dev/mapper/vg-root", process="1")
    root = device_at(sda.system, sda.dev / "dm-1")
    assert below(sda.system, root).all_numbers == {(253, 1), (253, 0), (8, 2), (8, 0)}
    kinds = [use.kind for use in uses(sda)]
    assert kinds[0] == "root"
    assert "holder" in kinds


def test_root_on_an_overlay_has_no_disk(sda: Machine) -> None:
    sda.mount("0:30", "/", "overlay")
    assert uses(sda) == ()


def test_processes_that_have_it_open(sda: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("making block device nodes needs root")
    monkeypatch.setattr(usage, "_PROCESS_SETTLE_S", 0.1)
    node = sda.root / "node"
    try:
        os.mknod(node, 0o060600, os.makedev(8, 1))
    except OSError as error:
        pytest.skip(f"no device nodes here: {error}")
    directory = sda.proc / "4242"
    (directory / "fd").mkdir(parents=True)
    (directory / "fd/3").symlink_to(node)
    (directory / "comm").write_text("qemu-kvm\n")
    assert uses(sda) == (Use("process", "sda1", "is open in process 4242 (qemu-kvm)"),)

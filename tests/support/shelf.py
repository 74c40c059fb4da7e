"""Stacked devices on guest disks: md, device mapper, LVM, LUKS, the kernel's NVMe target."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.dangers import Bench, run
from tests.support.guest_drives import Drive


class Shelf(Bench):
    """A bench with the guest's drives and stacked devices."""

    nvme: Drive
    nvme_fdp: Drive
    sata: Drive
    scsi: Drive

    def module(self, name: str, *options: str) -> None:
        try:
            run("modprobe", name, *options)
        except AssertionError as error:
            pytest.skip(f"kernel module {name}: {error}")

    def mapped(self, name: str, table: str) -> str:
        """Create a device mapper device and return its kernel node."""
        self.module("dm_mod")
        run("dmsetup", "create", name, "--table", table)
        self.callback(run, "dmsetup", "remove", "--retry", name)
        number = os.stat(f"/dev/mapper/{name}").st_rdev
        return f"/dev/dm-{os.minor(number)}"

    def mirror(self, *devices: str, metadata: str = "1.2", stop: bool = False) -> str:
        self.module("raid1")
        name = f"/dev/md{100 + self.number()}"
        words = ["--create", name, "--run", "--level=1", f"--metadata={metadata}"]
        words += ["--raid-devices=2", "--assume-clean", "--homehost=any"]
        run("mdadm", *words, *devices)
        if stop:
            run("mdadm", "--stop", name)
        else:
            self.callback(run, "mdadm", "--stop", name)
        return name

    def number(self) -> int:
        self._count += 1
        return self._count

    def volume(self, device: str, *, active: bool = True) -> str:
        """Create an LVM volume on the device and return its name."""
        self.module("dm_mod")
        group = f"group{self.number()}"
        quiet = ["--config", 'devices{use_devicesfile=0 scan=["/dev"]} global{use_lvmlockd=0}']
        run("pvcreate", "-ff", "-y", *quiet, device)
        run("vgcreate", *quiet, group, device)
        run("lvcreate", *quiet, "-y", "-Wn", "-Zn", "-l", "100%FREE", "-n", "volume", group)
        if active:
            self.callback(run, "vgchange", *quiet, "-an", group)
        else:
            run("vgchange", *quiet, "-an", group)
        return f"/dev/mapper/{group}-volume"

    def luks(self, device: str) -> Path:
        """Create a LUKS container and return its key file."""
        key = self.path("key")
        key.write_text("key")
        quick = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]
        run("cryptsetup", "luksFormat", "-q", "--type=luks1", *quick, device, key)
        return key

    def namespace(self, device: str, nqn: str) -> None:
        """Export a device through the kernel's NVMe target and connect to it."""
        self.module("nvmet")
        self.module("nvme-loop")
        config = Path("/sys/kernel/config/nvmet")
        subsystem, port = config / "subsystems" / nqn, config / "ports" / str(self.number())
        space = subsystem / "namespaces/1"
        subsystem.mkdir()
        self.callback(subsystem.rmdir)
        (subsystem / "attr_allow_any_host").write_text("1")
        space.mkdir()
        self.callback(space.rmdir)
        (space / "device_path").write_text(device)
        (space / "enable").write_text("1")
        self.callback((space / "enable").write_text, "0")
        port.mkdir()
        self.callback(port.rmdir)
        (port / "addr_trtype").write_text("loop")
        link = port / "subsystems" / nqn
        link.symlink_to(subsystem)
        self.callback(link.unlink)

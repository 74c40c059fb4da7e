"""Protection of drives on a simulated machine, with a case for every rule."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev import protection
from writecliff.engines.blockdev.protection import claim, inspect
from writecliff.engines.blockdev.topology import Node
from writecliff.engines.fio.targets import DeviceTarget
from writecliff.errors import TargetError

SERIAL = "S1234"


def refusal(
    machine: Machine, path: Path, serial: str = SERIAL, *, allow_signatures: bool = False
) -> TargetError | None:
    return inspect(path, machine.system).refusal(serial, allow_signatures=allow_signatures)


def test_an_empty_unused_drive_may_be_written_with_its_serial(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    inspected = inspect(path, machine.system)
    assert (inspected.label.model, inspected.label.serial) == ("Drive", SERIAL)
    assert inspected.size_bytes == 1 << 20
    assert inspected.loss() == ()
    assert refusal(machine, path) is None


@pytest.mark.parametrize("given", ["", "S123", "s1234", "S1234 ", "/dev/sda"])
def test_another_serial_is_refused_and_the_right_one_named(machine: Machine, given: str) -> None:
    error = refusal(machine, machine.disk("sda", (8, 0), serial=SERIAL), given)
    assert error is not None
    assert f"--destroy {given!r} is not this device's serial" in str(error)
    assert error.hint is not None
    assert SERIAL in error.hint


def test_a_device_without_serial_is_confirmed_by_its_full_path(machine: Machine) -> None:
    path = machine.disk("loop0", (7, 0))
    assert refusal(machine, path, str(path)) is None
    error = refusal(machine, path, "loop0")
    assert error is not None
    assert "path (it has no serial)" in str(error)


def test_without_consent_a_run_is_refused_for_what_no_consent_removes_first(
    machine: Machine,
) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    error = inspect(path, machine.system).refusal(None, allow_signatures=False)
    assert error is not None and "destroys all data on" in str(error) and SERIAL in str(error)
    assert error.hint == f"confirm with the drive's serial number: --destroy {SERIAL}"
    machine.mount("8:0", "/", "/dev/sda")
    error = inspect(path, machine.system).refusal(None, allow_signatures=False)
    assert error is not None and "root file system" in str(error)


def test_a_device_that_is_only_looked_at_reports_why_it_would_be_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    monkeypatch.setattr(protection, "_open_exclusive", lambda node, flags: os.open("/", flags))

    def refusal_with(serial: str | None) -> str:
        target = DeviceTarget.open(str(path), serial, False, machine.system, look_only=True)
        return str(target.refusal or "")

    assert refusal_with(SERIAL) == ""
    assert "destroys all data" in refusal_with(None)
    assert "is not this device's serial" in refusal_with("S9")

    def busy(node: Path, flags: int) -> int:
        raise TargetError(f"{node}: in use")

    monkeypatch.setattr(protection, "_open_exclusive", busy)
    assert refusal_with(SERIAL).endswith("sda: in use")


def test_a_missing_node_is_refused_and_not_created(machine: Machine) -> None:
    path = machine.dev / "xyz"
    with pytest.raises(TargetError, match="does not exist"):
        claim(path, SERIAL, system=machine.system)
    assert not path.exists()


@pytest.mark.parametrize("kind", ["regular file", "character device", "directory"])
def test_only_block_devices(machine: Machine, kind: str) -> None:
    path = machine.dev / "thing"
    machine.nodes[path] = Node(False, (0, 0), kind)
    with pytest.raises(TargetError, match=f"a {kind}, not a block device") as caught:
        inspect(path, machine.system)
    assert (caught.value.hint == f"to test a file, specify file:{path}") == (kind == "regular file")


def test_a_partition_is_refused(machine: Machine) -> None:
    machine.disk("sda", (8, 0), serial=SERIAL)
    path = machine.partition("sda", "sda1", (8, 1))
    error = refusal(machine, path, allow_signatures=True)
    assert error is not None
    assert "only whole drives can be tested" in str(error)


def test_a_read_only_or_empty_device_is_refused(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.attributes("sda", ro="1")
    assert "read-only" in str(refusal(machine, path))
    machine.attributes("sda", ro="0", size="0")
    assert "contains no medium" in str(refusal(machine, path))


def test_contents_are_listed_and_need_the_second_flag(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    part = machine.partition("sda", "sda1", (8, 1))
    machine.answer(f"blkid -p -o export {path}", f"DEVNAME={path}\nPTTYPE=gpt\n")
    machine.answer(f"blkid -p -o export {part}", "TYPE=ext4\nUSAGE=filesystem\n")
    inspected = inspect(path, machine.system)
    assert inspected.loss() == (
        "partition sda1 (1.05 MB)",
        f"gpt partition table on {path}",
        f"ext4 filesystem on {part}",
    )
    error = refusal(machine, path)
    assert error is not None
    assert "not empty: partition sda1" in str(error)
    assert error.hint is not None
    assert "--wipe-signatures" in error.hint
    assert refusal(machine, path, allow_signatures=True) is None
    wrong = refusal(machine, path, "other", allow_signatures=True)
    assert wrong is not None  # The second flag does not replace the serial number.


def test_an_unreadable_answer_of_blkid_is_no_empty_device(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.answer("blkid", "", returncode=1)
    with pytest.raises(TargetError, match="cannot determine the contents"):
        inspect(path, machine.system)
    machine.answer("blkid", "", returncode=8)
    assert "contradicting" in str(refusal(machine, path))


def test_a_device_in_use_is_refused_for_that_even_if_it_cannot_be_read(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.answer("blkid", "", returncode=1)
    machine.mount("8:0", "/", "/dev/sda")
    error = refusal(machine, path)
    assert error is not None
    assert "carries the root file system" in str(error)
    assert error.hint == "writecliff never writes to this device; choose another"


def test_use_comes_before_everything_else(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.mount("8:0", "/data", "/dev/sda")
    error = refusal(machine, path, "wrong", allow_signatures=True)
    assert error is not None
    assert "in use: sda is mounted at /data" in str(error)


def test_the_kernel_has_the_last_word(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that EBUSY from O_EXCL causes a rejection even if no other rule found a reason."""
    path = machine.disk("sda", (8, 0), serial=SERIAL)

    def busy(name: object, flags: int) -> int:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(protection.os, "open", busy)
    with pytest.raises(TargetError, match="the kernel refuses exclusive access"):
        protection._open_exclusive(path, 0)


def test_a_device_that_changes_while_it_is_claimed_is_refused(machine: Machine) -> None:
    # The device node in the simulated machine is a regular file, so its number never equals the
    # number from stat.
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    before = path.read_bytes()
    with pytest.raises(TargetError, match="no longer the device that was claimed"):
        claim(path, SERIAL, system=machine.system)
    assert path.read_bytes() == before


def test_a_link_is_resolved_once(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    other = machine.disk("sdb", (8, 16), serial="OTHER")
    link = machine.dev / "by-id"
    link.symlink_to(path)
    inspected = inspect(link, machine.system)
    link.unlink()
    link.symlink_to(other)
    assert (inspected.path, inspected.node) == (str(link), str(path))


LOCKED = "Security:\n\t\tsupported\n\t\tenabled\n\t\tlocked\n\tnot\tfrozen\n"


def test_a_locked_drive_is_refused_with_the_commands_that_unlock_it(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.attributes("sda", device__vendor="ATA")
    path.unlink()  # The path is no longer readable.
    machine.answer(f"hdparm -I {path}", LOCKED)
    with pytest.raises(TargetError, match="locked by an ATA security password") as caught:
        claim(path, SERIAL, system=machine.system)
    assert caught.value.hint is not None
    user = "hdparm --user-master u --security-"
    assert f"{user}unlock writecliff {path} && {user}disable writecliff {path}" in caught.value.hint


def test_a_claim_removes_the_password_of_an_interrupted_erase(machine: Machine) -> None:
    path = machine.disk("sda", (8, 0), serial=SERIAL)
    machine.attributes("sda", device__vendor="ATA")
    machine.answer(f"hdparm -I {path}", LOCKED.replace("\t\tlocked", "\tnot\tlocked"))
    # The device node is a regular file.
    with pytest.raises(TargetError, match="no longer the device"):
        claim(path, SERIAL, system=machine.system)
    disable = ["hdparm", "--user-master", "u", "--security-disable", "writecliff", str(path)]
    assert disable in machine.calls

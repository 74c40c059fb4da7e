"""Dangerous targets by name and by contents: each is rejected, and no byte changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.dangers import (
    MIB,
    SIZE,
    SWAP_HEADER,
    Bench,
    Danger,
    Kinds,
    assert_refused,
    number_of,
    run,
)
from writecliff.engines.blockdev import inspect
from writecliff.engines.blockdev.regular_file import FileTarget

pytest.importorskip("writecliff._native", reason="the native module is not built")

kind = Kinds[Bench]()


# -- names of targets -----------------------------------------------------------------------------


@kind
def read_only(bench: Bench) -> Danger:
    image = bench.image()
    return Danger(bench.loop(image, "--read-only"), "read-only", "blockdev --setrw", [image])


@kind
def without_medium(bench: Bench) -> Danger:
    image = bench.image(0)
    return Danger(bench.loop(image), r"contains no medium", "attach a medium", [image])


@kind
def a_hand_made_node_of_the_disk(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    node = bench.node("/dev/writecliff-test-node", number_of(device))
    return Danger(node, "another device node for", f"specify {device},", [image])


@kind
def a_familiar_name_on_another_disk(bench: Bench) -> Danger:
    """Create a node with the name of one disk and the device number of another."""
    image = bench.image()
    device = bench.loop(image)
    node = bench.node("/dev/sdzz", number_of(device))
    return Danger(node, f"another device node for {Path(device).name}", device, [image])


@kind
def a_hand_made_node_of_a_mounted_disk(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    bench.mkfs(device)
    bench.mount(device)
    node = bench.node("/dev/writecliff-test-node", number_of(device))
    return Danger(node, r"in use: loop\d+ is mounted at ", "unmount it", [image])


@kind
def a_node_without_a_device(bench: Bench) -> Danger:
    node = bench.node("/dev/writecliff-test-node", (259, 1023))
    return Danger(node, "the kernel has no device 259:1023", "delete the node", [])


@kind
def a_link_that_was_pointed_elsewhere(bench: Bench) -> Danger:
    first, second = bench.image(), bench.image()
    device, other = bench.loop(first), bench.loop(second)
    link = bench.link("writecliff-test-link", other)
    return Danger(link, "is not this device's path", other, [first, second], consent=device)


@kind
def the_confirmation_of_another_disk(bench: Bench) -> Danger:
    first, second = bench.image(), bench.image()
    device, other = bench.loop(first), bench.loop(second)
    return Danger(device, "is not this device's path", device, [first, second], consent=other)


@kind
def an_empty_confirmation(bench: Bench) -> Danger:
    image = bench.image()
    device = bench.loop(image)
    return Danger(device, "is not this device's path", device, [image], consent="")


@kind
def a_character_device(bench: Bench) -> Danger:
    return Danger("/dev/loop-control", "a character device, not a block device", "/dev/sdb", [])


@kind
def a_file_named_as_a_device(bench: Bench) -> Danger:
    path = Path("/dev/shm/writecliff-test-image")
    path.write_bytes(bytes(MIB))
    bench.callback(path.unlink)
    return Danger(str(path), "a regular file, not a block device", f"file:{path}", [path])


@kind
def a_path_without_anything(bench: Bench) -> Danger:
    bench.callback(lambda: _assert_absent("/dev/writecliff-test-nothing"))
    return Danger("/dev/writecliff-test-nothing", "does not exist", "/dev/sdb, or file:PATH", [])


def _assert_absent(path: str) -> None:
    assert not os.path.lexists(path)


# -- files ----------------------------------------------------------------------------------------


@kind
def a_device_named_as_a_file(bench: Bench) -> Danger:
    image = bench.image()
    target = f"file:{bench.loop(image)}"
    return Danger(target, "a block device, not a regular file", "omit the file: prefix", [image])


@kind
def a_file_behind_a_mounted_loop_device(bench: Bench) -> Danger:
    image = _own_file(bench)
    device = bench.loop(image)
    bench.mkfs(device)
    bench.mount(device)
    return Danger(f"file:{image}", r"in use: .* is behind the loop device", "losetup", [image])


@kind
def a_file_that_is_swap(bench: Bench) -> Danger:
    image = _own_file(bench)
    image.chmod(0o600)
    bench.swap(image)
    refused = "in use: .* is active swap space"
    return Danger(f"file:{image}", refused, "swapoff", [image], first=SWAP_HEADER)


@kind
def a_file_open_in_a_process(bench: Bench) -> Danger:
    image = _own_file(bench)
    pid = bench.script(f"exec 3<>{image}").pid
    return Danger(f"file:{image}", f"is open in process {pid} ", "end that process", [image])


@kind
def a_file_mapped_into_a_process(bench: Bench) -> Danger:
    image = _own_file(bench)
    code = f"import mmap; m = mmap.mmap((f := open({str(image)!r}, 'r+b')).fileno(), 4096)"
    pid = bench.python(f"{code}; f.close()").pid
    return Danger(f"file:{image}", f"is open in process {pid} ", "end that process", [image])


@kind
def a_copy_of_a_file_with_its_consent(bench: Bench) -> Danger:
    """Copy a test's file with `cp --archive`, which preserves its extended attribute."""
    image, copy = _own_file(bench), bench.path("copy")
    run("cp", "--archive", image, copy)
    assert os.listxattr(copy) == os.listxattr(image) != []
    return Danger(
        f"file:{copy}",
        "holds data that was not written by a test",
        "specify a new file",
        [image, copy],
    )


@kind
def a_file_of_others(bench: Bench) -> Danger:
    image = bench.image()
    return Danger(
        f"file:{image}", "holds data that was not written by a test", "specify a new file", [image]
    )


@kind
def a_file_with_a_file_system(bench: Bench) -> Danger:
    image = _own_file(bench)
    bench.mkfs(image)
    return Danger(f"file:{image}", "not empty: ext4 filesystem", "specify a new file", [image])


def _own_file(bench: Bench) -> Path:
    """Create a file with a test run, which other tests may overwrite."""
    path = bench.path("own")
    file = FileTarget.open(path, SIZE)
    file.require_writable()
    os.pwrite(file.fd, b"\x5a" * MIB, MIB)
    file.close()
    return path


# -- contents -------------------------------------------------------------------------------------

# Offset and value of each format's signature. The tests in tests/drives use the real tools.
SIGNATURES: dict[str, tuple[int, bytes]] = {
    "LVM2_member": (512, b"LABELONE"),
    "linux_raid_member": (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    "crypto_LUKS": (0, b"LUKS\xba\xbe\0\x02"),
    "zfs_member": (160 * 1024, b"\x0c\xb1\xba\0\0\0\0\0"),
    "btrfs": (64 * 1024 + 64, b"_BHRfS_M"),
    "bcache": (4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    "drbd": (SIZE - 4096 + 60, b"\x83\x74\x02\x6b"),
    "swap": (4086, b"SWAPSPACE2"),
    "xfs": (0, b"XFSB"),
    "bluestore": (0, b"bluestore block device"),
    "gpt": (SIZE - 512, b"EFI PART"),  # Only the backup header of a GPT.
}


@pytest.mark.parametrize("name", kind)
def test_a_target_named_by_mistake_is_refused_and_unchanged(
    name: str, bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert_refused(kind[name](bench), capsys, tmp_path)


@pytest.mark.parametrize("name", SIGNATURES)
def test_contents_are_kept_without_a_second_consent(
    name: str, bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    image = bench.image()
    offset, magic = SIGNATURES[name]
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(magic)
    device = bench.loop(image)
    refused = rf"not empty: .*{name}.* on {device}"
    danger = Danger(device, refused, "--wipe-signatures", [image], wipe=False)
    assert_refused(danger, capsys, tmp_path)
    assert (
        inspect(device).refusal(device, allow_signatures=True) is None
    )  # Without the signature, the device may be written.


def test_the_disk_of_the_root_file_system_is_refused() -> None:
    """Check the rejection without writing, so that a failure cannot harm the machine."""
    number = os.stat("/").st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not (link / "dev").exists():
        pytest.skip("/ is on no block device here")
    inspection = inspect(f"/dev/{link.name}")
    refusal = inspection.refusal(inspection.confirmation, allow_signatures=True)
    assert refusal is not None
    if not inspection.device.is_partition:
        assert "carries the root file system" in str(refusal)
        assert refusal.hint == "writecliff never writes to this device; choose another"

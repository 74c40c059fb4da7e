"""Regular files as targets: created only on request, written only if nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from writecliff.engines.blockdev import usage
from writecliff.engines.blockdev.purge import purge_file
from writecliff.engines.blockdev.regular_file import FileTarget
from writecliff.errors import TargetError

MIB = 1 << 20


def written(path: Path) -> None:
    """Create, write and close a target, as a run does."""
    held = FileTarget.open(path, MIB)
    held.require_writable()
    os.pwrite(held.fd, b"data", 0)
    held.close()


def refusal(path: Path) -> str:
    held = FileTarget.open(path, None)
    held.close()
    return str(held.refusal or "")


def test_created_with_the_given_size_and_usable_again(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    written(path)
    assert path.stat().st_size == MIB
    again = FileTarget.open(path, None)
    again.require_writable()
    again.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.img"]


def test_a_copy_with_its_attributes_is_not_for_writing(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.img", tmp_path / "copy.img"
    written(path)
    # The copy has the same data, times and extended attributes, like a copy by cp -a.
    shutil.copy2(path, copy)
    assert os.listxattr(copy) == os.listxattr(path)
    assert "holds data that was not written by a test" in refusal(copy)
    assert refusal(path) == ""


def test_a_file_that_others_wrote_since_is_not_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    written(path)
    with path.open("r+b") as file:
        file.write(b"a tar archive")
    assert "holds data that was not written by a test" in refusal(path)


def test_a_run_that_was_killed_can_go_on_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    held = FileTarget.open(path, MIB)
    held.require_writable()
    os.pwrite(held.fd, b"data", 0)
    os.close(held.fd)  # The kernel closes the descriptor of a killed process in the same way.
    assert refusal(path) == ""


def test_a_signature_in_our_own_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    held = FileTarget.open(path, MIB)
    held.require_writable()
    os.pwrite(held.fd, b"LUKS\xba\xbe\x00\x01", 0)
    os.close(held.fd)
    assert "not empty: crypto_LUKS" in refusal(path)


def test_a_file_that_is_open_elsewhere_is_not_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "_PROCESS_SETTLE_S", 0.1)
    path = tmp_path / "x.img"
    written(path)
    with path.open("rb") as file, subprocess.Popen(["sleep", "60"], stdin=file) as other:
        try:
            assert f"is open in process {other.pid} (sleep)" in refusal(path)
        finally:
            other.kill()


def test_a_link_is_resolved_when_it_is_opened(tmp_path: Path) -> None:
    path, link = tmp_path / "x.img", tmp_path / "link.img"
    written(path)
    link.symlink_to(path)
    held = FileTarget.open(link, None)
    link.unlink()
    link.symlink_to(tmp_path / "photos.tar")
    assert held.path == str(path)
    held.verify()
    held.close()


def test_a_size_is_rounded_down_to_whole_sectors(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    held = FileTarget.open(path, 10_000_000)
    assert held.size_bytes == 9_998_336
    assert held.notes == (f"{path}: the size was rounded down to whole sectors: 9998336 bytes",)
    held.close()
    FileTarget.open(path, 10_000_000).close()  # Run the same command again.


def test_not_created_without_a_size(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="does not exist"):
        FileTarget.open(tmp_path / "x.img", None)
    assert list(tmp_path.iterdir()) == []


def test_files_with_data_of_others_are_not_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "photos.tar"
    path.write_bytes(b"x" * MIB)
    target = FileTarget.open(path, None)
    assert target.refusal is not None
    assert "holds data" in str(target.refusal)
    target.close()


def test_a_sparse_file_without_data_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    with path.open("wb") as file:
        file.truncate(MIB)
    target = FileTarget.open(path, MIB)
    assert target.refusal is None
    target.close()


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (2 * MIB, "not the requested 2097152"),
        (1000, "smaller than one sector"),
        (0, "smaller than one sector"),
    ],
)
def test_wrong_sizes(tmp_path: Path, size: int, message: str) -> None:
    path = tmp_path / "x.img"
    FileTarget.open(path, MIB).close()
    with pytest.raises(TargetError, match=message):
        FileTarget.open(path, size)
    assert path.stat().st_size == MIB


def test_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be created"):
        FileTarget.open(tmp_path / "x.img", 1 << 60)
    assert list(tmp_path.iterdir()) == []


def test_directories_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="a directory, not a regular file"):
        FileTarget.open(tmp_path, None)
    with pytest.raises(TargetError, match="not a regular file"):
        FileTarget.open("/dev/null", None)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    held = FileTarget.open(tmp_path / "x.img", MIB)
    with pytest.raises(TargetError, match="in use by another run"):
        FileTarget.open(tmp_path / "x.img", None)
    held.close()
    FileTarget.open(tmp_path / "x.img", None).close()


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    held = FileTarget.open(path, MIB)
    held.verify()
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(TargetError, match="no longer the file"):
        held.verify()
    held.close()


def test_purge_empties_the_file_and_says_that_it_is_weak(tmp_path: Path) -> None:
    held = FileTarget.open(tmp_path / "x.img", MIB)
    os.pwrite(held.fd, b"\xff" * MIB, 0)
    report = purge_file(held.path, held.fd, held.size_bytes)
    assert (report.method, report.conformant) == ("punch hole", False)
    assert os.pread(held.fd, MIB, 0) == bytes(MIB)
    assert os.fstat(held.fd).st_size == MIB
    held.close()

"""Regular files as targets: created only on request, written only if nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from writecliff.engines.blockdev.purge import purge_file
from writecliff.engines.blockdev.regular_file import open_target
from writecliff.errors import TargetError

MIB = 1 << 20


def test_created_with_the_given_size_and_usable_again(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    first = open_target(path, MIB)
    assert (first.size_bytes, first.refusal) == (MIB, None)
    os.pwrite(first.fd, b"data", 0)
    first.close()
    again = open_target(path, None)
    assert again.refusal is None
    again.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.img"]


def test_not_created_without_a_size(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no such file"):
        open_target(tmp_path / "x.img", None)
    assert list(tmp_path.iterdir()) == []


def test_files_with_data_of_others_are_not_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "photos.tar"
    path.write_bytes(b"x" * MIB)
    target = open_target(path, None)
    assert target.refusal is not None
    assert "holds data" in str(target.refusal)
    target.close()


def test_a_sparse_file_without_data_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    with path.open("wb") as file:
        file.truncate(MIB)
    target = open_target(path, MIB)
    assert target.refusal is None
    target.close()


@pytest.mark.parametrize(
    ("size", "message"),
    [(2 * MIB, "not the 2097152 asked for"), (1000, "multiple of 4096"), (0, "multiple of 4096")],
)
def test_wrong_sizes(tmp_path: Path, size: int, message: str) -> None:
    path = tmp_path / "x.img"
    open_target(path, MIB).close()
    with pytest.raises(TargetError, match=message):
        open_target(path, size)
    assert path.stat().st_size == MIB


def test_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be created"):
        open_target(tmp_path / "x.img", 1 << 60)
    assert list(tmp_path.iterdir()) == []


def test_directories_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be opened"):
        open_target(tmp_path, None)
    with pytest.raises(TargetError, match="not a regular file"):
        open_target("/dev/null", None)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    held = open_target(tmp_path / "x.img", MIB)
    with pytest.raises(TargetError, match="in use by another run"):
        open_target(tmp_path / "x.img", None)
    held.close()
    open_target(tmp_path / "x.img", None).close()


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    held = open_target(path, MIB)
    held.verify()
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(TargetError, match="no longer the file"):
        held.verify()
    held.close()


def test_purge_empties_the_file_and_says_that_it_is_weak(tmp_path: Path) -> None:
    held = open_target(tmp_path / "x.img", MIB)
    os.pwrite(held.fd, b"\xff" * MIB, 0)
    report = purge_file(held.path, held.fd, held.size_bytes)
    assert (report.method, report.conformant) == ("punch hole", False)
    assert os.pread(held.fd, MIB, 0) == bytes(MIB)
    assert os.fstat(held.fd).st_size == MIB
    held.close()

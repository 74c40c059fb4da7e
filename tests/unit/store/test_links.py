"""Links in run directories from other sources: their targets are never written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.capture.trace_file import TraceFile, fields
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError, StoreError, WritecliffError
from writecliff.output_files import check_output, part_of
from writecliff.report.csvs import write_files
from writecliff.report.pages import check_page
from writecliff.report.table import DataFile
from writecliff.store.files import FolderLock, write_atomically

UNCHANGED = b"the victim's own\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (path := tmp_path / "victim").write_bytes(UNCHANGED)
    return path


def _page(folder: Path) -> None:
    write_atomically(folder / "report.html", b"new")


def _csv(folder: Path) -> None:
    write_files([DataFile("report.html", "new")], folder)


def _trace(folder: Path) -> None:
    TraceFile(folder / "report.html", fields({})).abandon()


def _state(folder: Path) -> None:
    SimEngine(str(write_small_drive(folder.parent))).save(folder / "report.html")


@pytest.mark.parametrize("write", [_page, _csv, _trace, _state])
def test_a_link_where_the_new_file_is_written_is_replaced(
    write: Callable[[Path], None], victim: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "run").mkdir()
    (folder / "report.html.tmp").symlink_to(victim)
    write(folder)
    assert victim.read_bytes() == UNCHANGED
    assert not (folder / "report.html.tmp").exists()


def test_a_link_in_place_of_the_lock_is_refused(victim: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "run").mkdir()
    (folder / ".lock").symlink_to(victim)
    with pytest.raises(StoreError, match="symbolic links"):
        FolderLock(folder)
    assert victim.read_bytes() == UNCHANGED


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(
    victim: Path, tmp_path: Path
) -> None:
    (page := tmp_path / "report.html").symlink_to(victim)
    write_atomically(page, b"new")
    assert (victim.read_bytes(), page.read_bytes()) == (UNCHANGED, b"new")
    assert not page.is_symlink()


@pytest.mark.parametrize("path", ["/dev/null", "/dev/tty", "/dev/zero"])
def test_a_device_is_no_place_for_a_file(path: str) -> None:
    before = os.stat(path)
    for write in (lambda path: write_atomically(path, b""), part_of, check_output):
        with pytest.raises(ConfigError, match="is a device, not a file"):
            write(Path(path))
    assert os.stat(path).st_ino == before.st_ino


def test_a_page_does_not_take_the_place_of_a_trace(tmp_path: Path) -> None:
    (trace := tmp_path / "trace.csv").write_bytes(b"1,R,0,4096\n")
    with pytest.raises(WritecliffError, match="exists and is not an HTML page"):
        check_page(trace)
    (page := tmp_path / "page.html").write_bytes(b"\n<!DOCTYPE html>\n")
    check_page(page)
    check_page(tmp_path / "new.html")

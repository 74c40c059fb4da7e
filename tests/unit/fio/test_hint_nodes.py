"""Device nodes per hint: created, marked and removed. Skip without root."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import pytest

from tests.support.block_machine import Machine
from writecliff.engines.blockdev.topology import device_at
from writecliff.engines.fio import targets
from writecliff.engines.fio.targets import HintNodes


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create files instead of nodes, because the test has no device that it may open."""
    monkeypatch.setattr(os, "mknod", lambda path, mode, device: Path(path).touch())


@pytest.mark.usefixtures("plain")
def test_each_node_has_its_own_hint(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    disk = device_at(machine.system, machine.disk("sdb", (8, 16)))
    stale = machine.dev / "writecliff-999999999-x"
    other = machine.dev / "writecliff-1-x"
    stale.mkdir()
    other.mkdir()
    try:
        nodes = HintNodes(machine.system, disk)
    except OSError:
        pytest.skip("this kernel or file system takes no hints")
    for hint, path in enumerate(nodes.paths):
        with open(path, "rb") as file:
            inode_hint = fcntl.fcntl(file, 1035, struct.pack("=Q", 9))
        assert struct.unpack("=Q", inode_hint) == (hint,)
    assert (stale.exists(), other.exists()) == (False, True)
    nodes.close()
    nodes.close()
    assert list(machine.dev.glob("writecliff-*")) == [other]


@pytest.mark.usefixtures("plain")
def test_nothing_is_left_where_hints_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    machine = Machine(tmp_path)
    disk = device_at(machine.system, machine.disk("sdb", (8, 16)))
    monkeypatch.setattr(targets.fcntl, "fcntl", refuse)
    with pytest.raises(OSError, match="Invalid argument"):
        HintNodes(machine.system, disk)
    assert list(machine.dev.glob("writecliff-*")) == []

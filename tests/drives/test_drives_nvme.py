"""NVMe drives with both tool generations: write cache, format, health, identity."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive, namespaces_of
from writecliff.cli.cmd_device import show_real_drive
from writecliff.engines.base import CacheReport, PurgeReport
from writecliff.engines.blockdev.nvme.drive import NvmeDrive
from writecliff.engines.blockdev.tools import ToolResult
from writecliff.engines.blockdev.topology import System, device_at
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import BlockSize, Job, Workload

MIB = 1 << 20
PATTERN = bytes(range(256)) * 4096  # The pattern has 1 MiB.
OF_ALL = {
    "format": 0b011,
    "sanitize": 0b010,
}  # FNA: format affects all namespaces. SANICAP: block erase.


@contextmanager
def opened(drive: Drive) -> Iterator[FioEngine]:
    with FioEngine.open_device(drive.path, destroy_serial=drive.serial) as engine:
        yield engine


def fill(drive: Drive, offsets: tuple[int, ...]) -> None:
    with Path(drive.path).open("r+b", buffering=0) as node:
        for offset in offsets:
            node.seek(offset)
            node.write(PATTERN)
        os.fsync(node.fileno())


def read_back(drive: Drive, offset: int) -> bytes:
    """Read from the drive, not from the page cache."""
    fd = os.open(drive.path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(fd, MIB, offset)
    finally:
        os.close(fd)


def nvme(*words: str) -> str:
    done = subprocess.run(["nvme", *words], capture_output=True, text=True, check=True)
    return done.stdout


def namespace(drive: Drive) -> NvmeDrive:
    system = System()
    return NvmeDrive(system, device_at(system, Path(drive.path)))


def cache_of(drive: Drive) -> bool:
    """Return the write-cache state as read by another program."""
    return "0x00000001" in nvme("get-feature", namespace(drive).node, "--feature-id=6")


@pytest.mark.figure(cache="NVMe")
def test_the_write_cache_is_turned_off_and_on(nvme: Drive, generation: str) -> None:
    with opened(nvme) as engine:
        assert engine.set_write_cache(False) == CacheReport(False)
        assert not cache_of(nvme)
        assert engine.set_write_cache(True) == CacheReport(True)
        assert cache_of(nvme)


@pytest.mark.figure(cache="NVMe with FDP")
def test_the_write_cache_behind_multipath(nvme_fdp: Drive, generation: str) -> None:
    with opened(nvme_fdp) as engine:
        assert engine.set_write_cache(False) == CacheReport(False)
        assert not cache_of(nvme_fdp)


def purged(drive: Drive) -> PurgeReport:
    """Write at three offsets, purge, and check that the data are gone and the format is unchanged."""
    places = (0, drive.size_bytes // 2 // MIB * MIB, drive.size_bytes - MIB)
    fill(drive, places)
    assert all(read_back(drive, place) == PATTERN for place in places)
    before, size = namespace(drive).namespace(), drive.size_bytes
    with opened(drive) as engine:
        report = engine.purge()
        assert engine.identify().sector_bytes == before.layout.data_bytes
    assert not any(any(read_back(drive, place)) for place in places)
    assert namespace(drive).namespace() == before
    assert drive.size_bytes == size
    return report


@pytest.mark.figure(purge="NVMe format")
def test_a_purge_erases_and_keeps_the_layout(nvme: Drive, generation: str) -> None:
    report = purged(nvme)
    assert (report.method, report.conformant) == ("NVMe format (user data erase)", True)
    assert "kept LBA format 0 (512 bytes)" in report.note
    assert "0 of 3 blocks" in report.note or "blocks kept their content" in report.note


@pytest.mark.figure(purge="NVMe format with FDP")
def test_a_purge_of_a_shared_namespace(nvme_fdp: Drive) -> None:
    assert purged(nvme_fdp).method == "NVMe format (user data erase)"


@contextmanager
def detached_one(drive: Drive) -> Iterator[Drive]:
    """Attach the second namespace of a drive for the duration of the block."""
    node = namespace(drive).node
    number = json.loads(nvme("id-ctrl", node, "--output-format=json"))["cntlid"]
    words = ["--namespace-id=2", f"--controllers={number}"]
    nvme("attach-ns", node, *words)
    try:
        nvme("ns-rescan", node)
        yield namespaces_of(drive.serial)[2]
    finally:
        nvme("detach-ns", node, *words)
        nvme("ns-rescan", node)


@contextmanager
def keeps_the_detached_one(drive: Drive) -> Iterator[None]:
    """Check that the block does not change the data of the detached namespace."""
    with detached_one(drive) as other:
        fill(other, (0, MIB))
    assert set(namespaces_of(drive.serial)) == {1}
    yield
    with detached_one(drive) as other:
        assert all(read_back(other, place) == PATTERN for place in (0, MIB))


@pytest.mark.figure(purge="NVMe format beside a detached namespace")
def test_a_format_leaves_a_detached_namespace_alone(nvme_pair: Drive) -> None:
    with keeps_the_detached_one(nvme_pair):
        assert purged(nvme_pair).method == "NVMe format (user data erase)"


def test_nothing_that_would_erase_a_detached_namespace_is_sent(
    nvme_pair: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that no command that would erase a detached namespace is sent.

    QEMU formats only one namespace, so the Identify data are changed to report that a format
    affects all namespaces, and that sanitize is supported. The list of namespaces is unchanged.
    """
    is_so, send = NvmeDrive.controller, NvmeDrive.command
    sent = []

    def command(drive: NvmeDrive, *words: str, timeout_s: float = 30.0) -> ToolResult:
        sent.append(words[0])
        return send(drive, *words, timeout_s=timeout_s)

    monkeypatch.setattr(NvmeDrive, "controller", lambda drive: replace(is_so(drive), **OF_ALL))
    monkeypatch.setattr(NvmeDrive, "command", command)
    with keeps_the_detached_one(nvme_pair), opened(nvme_pair) as engine:
        fill(nvme_pair, (0,))
        report = engine.purge()
    assert (report.method, report.conformant) == ("blkdiscard", False)
    for command_of_all in ("format", "sanitize"):
        reason = f"{command_of_all}: would erase namespace 2 of the same drive too"
        assert reason in report.note and command_of_all not in sent
    assert "admin-passthru" in sent


# QEMU's LBA formats 0 to 3 have 512-byte sectors and formats 4 to 7 have 4096-byte sectors, each
# with 0, 8, 16 and 64 bytes of metadata.
@pytest.mark.figure(purge="NVMe format of 4 KiB sectors and of metadata")
@pytest.mark.parametrize(
    ("lbaf", "layout"),
    [(4, "LBA format 4 (4096 bytes)"), (1, "LBA format 1 (512 bytes and 8 of metadata)")],
)
def test_other_layouts_are_kept(plug: Callable[..., Drive], lbaf: int, layout: str) -> None:
    drive = plug(f"QFORM{lbaf}")
    nvme("format", drive.path, f"--lbaf={lbaf}", "--ses=0", "--force")
    nvme("ns-rescan", namespace(drive).node)
    assert f"kept {layout}" in purged(drive).note


def test_a_format_under_our_own_claim(nvme: Drive) -> None:
    """Check that the namespace stays claimed during a purge: exclusive opens fail."""
    with opened(nvme) as engine:
        with pytest.raises(OSError, match="busy"):
            os.close(os.open(nvme.path, os.O_RDONLY | os.O_EXCL))
        assert engine.purge().conformant


def test_counters_of_the_flash_from_the_ocp_log(nvme: Drive, generation: str) -> None:
    with opened(nvme) as engine:
        job = Job(name="w", block_sizes=(BlockSize(65536),), read_pct=0, volume_bytes=8 * MIB)
        result = engine.run(Workload("w", (job,)))
        health = engine.health()
    assert result.counted.nand_write_bytes == 8 * MIB
    assert result.waf == pytest.approx(
        1.0, abs=0.07
    )  # The drive counts host writes in units of 512,000 bytes.
    assert health is not None
    assert health["nand_write_source"] == "OCP SMART log (C0h)"
    assert health["temperature_c"] == 50.0
    assert health["attributes"]["data_units_written"] > 0


def test_a_drive_that_counts_nothing_has_no_waf(plug: Callable[..., Drive]) -> None:
    drive = plug("QNOCOUNT")
    with opened(drive) as engine:
        job = Job(name="w", block_sizes=(BlockSize(65536),), read_pct=0, volume_bytes=8 * MIB)
        result = engine.run(Workload("w", (job,)))
    assert result.waf is None and result.counted.nand_write_bytes is None


def test_the_identity_of_a_shared_namespace(nvme_fdp: Drive) -> None:
    with FioEngine.open_device(nvme_fdp.path, destroy_serial=None) as engine:
        identity = engine.identify()
    assert (identity.model, identity.serial) == ("QEMU NVMe Ctrl", "QFDP0001")
    assert (
        identity.firmware
        and identity.interface is not None
        and identity.interface.startswith("NVMe")
    )


def test_a_wrong_serial_number_changes_nothing(nvme: Drive) -> None:
    fill(nvme, (0,))
    with pytest.raises((TargetError, EngineError)):
        FioEngine.open_device(nvme.path, destroy_serial="QFDP0001")
    assert read_back(nvme, 0) == PATTERN


def test_device_show(drive: Drive, capsys: pytest.CaptureFixture[str]) -> None:
    """Show drives of all kinds, without changing them."""
    assert show_real_drive(drive.path, json=False) == 0
    shown = capsys.readouterr().out
    for text in (drive.path, drive.serial, "passed", "°C", "F_SET_RW_HINT"):
        assert text in shown

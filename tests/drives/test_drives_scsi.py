"""SCSI: caching mode page, permanent streams and the groups that hints arrive in, on scsi_debug."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.engines.blockdev.cache import set_write_cache
from writecliff.engines.blockdev.data_placement_probe import probe, verdict
from writecliff.engines.blockdev.scsi_commands import (
    REQUEST_SENSE,
    mode_page,
    parse_sense,
    read_capacity_16,
    send_command,
)
from writecliff.engines.blockdev.scsi_streams import read_streams
from writecliff.engines.blockdev.topology import System, device_at
from writecliff.engines.blockdev.vitals import disk_answer, disk_counters
from writecliff.engines.fio import FioEngine
from writecliff.workload.model import BlockSize, Job, Workload

SYSTEM = System()
GROUPS = Path("/sys/bus/pseudo/drivers/scsi_debug/group_number_stats")


@pytest.mark.figure(cache="SCSI")
def test_the_write_cache_is_what_the_mode_page_says(scsi: Drive) -> None:
    disk = device_at(SYSTEM, Path(scsi.path))
    for state in (False, True, False):
        report = set_write_cache(SYSTEM, disk, scsi.path, state)
        assert (report.enabled, report.note) == (state, "")
        page = mode_page(send_command, Path(scsi.path), 0x08, 0x00)
        assert bool(page[2] & 0x04) is state


def test_single_commands_and_their_sense_data(scsi: Drive) -> None:
    path = Path(scsi.path)
    answer = send_command(path, REQUEST_SENSE, 252)
    found = parse_sense(answer.data)
    assert found is not None and (found.key, found.asc) == (0, 0)
    sanitize = send_command(path, bytes([0x48, 2, *bytes(8)]), 0)
    assert sanitize.message == "the drive reports sense key 5h, 20h/00h"
    capacity = read_capacity_16(send_command, path)
    assert (int.from_bytes(capacity[:8], "big") + 1) * 512 == scsi.size_bytes


def test_smartctl_knows_the_logs_that_it_is_asked_for(scsi: Drive, sata: Drive) -> None:
    """Exit status bit 0: the command line was not understood."""
    for drive, ata in ((scsi, False), (sata, True)):
        answer = disk_answer(SYSTEM.run, drive.path, ata=ata)
        assert answer["smartctl"]["exit_status"] & 1 == 0
        found = disk_counters(answer)
        assert (found.host_write_bytes, found.nand_write_bytes) == (None, None)


def test_permanent_streams_are_found(scsi: Drive) -> None:
    found = read_streams(send_command, Path(scsi.path))
    assert (found.reduced_control, found.lifetimes) == (True, (1, 2, 3, 4, 5))
    assert found.steered == 5


def groups() -> dict[int, int]:
    """Writes by group number since the counters were last set to zero."""
    rows = (line.split() for line in GROUPS.read_text().splitlines())
    return {int(group): int(count) for group, count in rows if int(count)}


def test_hint_n_arrives_as_group_n(scsi: Drive, generation: str) -> None:
    """Jobs of one fio process that write side by side, each to its stream, with either fio."""
    jobs = tuple(
        Job(name=f"stream {n}", stream=n, block_sizes=(BlockSize(4096),), ios=100 * (n + 1))
        for n in range(6)
    )
    with FioEngine.open_device(scsi.path, destroy_serial=scsi.serial) as engine:
        GROUPS.write_text("0\n")
        result = engine.run(Workload("streams", jobs))
    assert [job.operations["write"].ios for job in result.jobs] == [100 * n for n in range(1, 7)]
    assert groups() == {n: 100 * (n + 1) for n in range(6)}
    assert list(Path("/dev").glob("writecliff-*")) == []


def test_a_hint_is_the_nodes_not_the_openers(scsi: Drive) -> None:
    """Why `write_hint` of fio is not used: of two openers of one node, both write with the hint
    that was set last.
    """
    opened = [os.open(scsi.path, os.O_WRONLY | os.O_DIRECT) for _ in range(2)]
    for fd, hint in zip(opened, (2, 5), strict=True):
        fcntl.fcntl(fd, 1036, struct.pack("=Q", hint))
    GROUPS.write_text("0\n")
    with mmap.mmap(-1, 4096) as block:
        os.pwritev(opened[0], [block], 0)
    assert groups() == {5: 1}
    fcntl.fcntl(opened[0], 1036, struct.pack("=Q", 0))  # as it was
    for fd in opened:
        os.close(fd)


def test_the_probe_says_what_hints_reach(scsi: Drive) -> None:
    found = probe(scsi.path)
    assert found.permanent_streams is not None and found.permanent_streams.count == 5
    said = verdict(found)
    assert "SCSI: 5 permanent streams, of relative lifetimes 1, 2, 3, 4, 5." in said
    assert not [text for text in said if "end in the kernel" in text]

"""SCSI on scsi_debug: caching mode page, permanent streams, and group numbers of write hints."""

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
    sense_data = parse_sense(answer.data)
    assert sense_data is not None and (sense_data.key, sense_data.asc) == (0, 0)
    sanitize = send_command(path, bytes([0x48, 2, *bytes(8)]), 0)
    assert sanitize.message == "the drive reports sense key 5h, 20h/00h"
    capacity = read_capacity_16(send_command, path)
    assert (int.from_bytes(capacity[:8], "big") + 1) * 512 == scsi.size_bytes


def test_smartctl_knows_the_logs_that_it_is_asked_for(scsi: Drive, sata: Drive) -> None:
    """Check bit 0 of the exit status: set if smartctl rejects the command line."""
    for drive, ata in ((scsi, False), (sata, True)):
        answer = disk_answer(SYSTEM.run, drive.path, ata=ata)
        assert answer["smartctl"]["exit_status"] & 1 == 0
        counters = disk_counters(answer)
        assert (counters.host_write_bytes, counters.nand_write_bytes) == (None, None)


def test_permanent_streams_are_found(scsi: Drive) -> None:
    streams = read_streams(send_command, Path(scsi.path))
    assert (streams.reduced_control, streams.lifetimes) == (True, (1, 2, 3, 4, 5))
    assert streams.steered == 5


def groups() -> dict[int, int]:
    """Return the writes by group number since the counters were last reset."""
    rows = (line.split() for line in GROUPS.read_text().splitlines())
    return {int(group): int(count) for group, count in rows if int(count)}


def test_hint_n_arrives_as_group_n(scsi: Drive, generation: str) -> None:
    """Run concurrent jobs of one fio process, each with a stream, with both fio versions."""
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


def test_a_hint_applies_to_the_node_not_to_one_descriptor(scsi: Drive) -> None:
    """Show why fio's `write_hint` is not used: it applies to the device node.

    Two descriptors of one node both write with the most recently set hint.
    """
    opened = [os.open(scsi.path, os.O_WRONLY | os.O_DIRECT) for _ in range(2)]
    for fd, hint in zip(opened, (2, 5), strict=True):
        fcntl.fcntl(fd, 1036, struct.pack("=Q", hint))
    GROUPS.write_text("0\n")
    with mmap.mmap(-1, 4096) as block:
        os.pwritev(opened[0], [block], 0)
    assert groups() == {5: 1}
    fcntl.fcntl(opened[0], 1036, struct.pack("=Q", 0))  # Reset the hint.
    for fd in opened:
        os.close(fd)


def test_the_probe_says_what_hints_reach(scsi: Drive) -> None:
    capabilities = probe(scsi.path)
    assert capabilities.permanent_streams is not None and capabilities.permanent_streams.count == 5
    lines = verdict(capabilities)
    assert "SCSI: 5 permanent streams, of relative lifetimes 1, 2, 3, 4, 5." in lines
    assert not [text for text in lines if "end in the kernel" in text]

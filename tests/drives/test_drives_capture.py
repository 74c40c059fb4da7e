"""Captures of block devices on drives other than loop devices, and on another kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.guest_drives import Drive
from writecliff.capture.block.run import capture_device
from writecliff.capture.trace import Trace, read_trace

KIB, MIB = 1 << 10, 1 << 20
LOAD = """
dd if=/dev/zero of={0} bs=16k count=20 seek=3 oflag=direct conv=fsync status=none
dd if={0} of=/dev/null bs=4k count=10 skip=700 iflag=direct status=none
blkdiscard --offset 8M --length 4M {0}
"""


def _captured(path: str, folder: Path) -> Trace:
    command = ["sh", "-ec", LOAD.format(path)]
    done = capture_device(Path(path), folder / "t.parquet", command=command)
    assert done.exit_code == 0
    assert done.metadata["lost_events"] == 0
    return read_trace(done.output)


def _check(trace: Trace) -> None:
    """Check the requests of `LOAD`."""
    assert trace.requests is not None
    flags = trace.requests["flags"].to_pylist()
    rows = [
        (row["op"], row["offset_bytes"], row["length_bytes"])
        for row, flag in zip(trace.table.to_pylist(), flags, strict=True)
        if row["process"] in ("dd", "blkdiscard") and (row["op"] != "read" or flag == "sync")
    ]
    by = {op: [row[1:] for row in rows if row[0] == op] for op in ("read", "write", "punch")}
    assert by["write"] == [((3 + place) * 16 * KIB, 16 * KIB) for place in range(20)]
    assert by["read"] == [((700 + place) * 4 * KIB, 4 * KIB) for place in range(10)]
    assert sum(length for _, length in by["punch"]) == 4 * MIB
    assert min(offset for offset, _ in by["punch"]) == 8 * MIB
    assert trace.requests["complete_ns"].null_count == 0
    assert set(trace.requests["errno"].to_pylist()) == {0}


def test_requests_to_each_drive_are_captured(drive: Drive, tmp_path: Path) -> None:
    if drive.path.startswith("/dev/sd"):
        discards = Path(f"/sys/block/{Path(drive.path).name}/queue/discard_max_bytes")
        if discards.read_text().strip() == "0":
            pytest.skip("this drive takes no discards")
    trace = _captured(drive.path, tmp_path)
    _check(trace)
    assert trace.metadata["device"]["requests"]


@pytest.fixture
def mapped(nvme: Drive) -> Iterator[str]:
    """Yield a bio-based linear mapping of a drive, excluding its first MiB."""
    subprocess.run(["modprobe", "dm-mod"], check=True)
    table = f"0 {64 * MIB // 512} linear {nvme.path} {MIB // 512}"
    subprocess.run(["dmsetup", "create", "captured", "--table", table], check=True)
    yield "/dev/mapper/captured"
    subprocess.run(["dmsetup", "remove", "captured"], check=True)


def test_bios_of_a_mapped_device_are_captured(mapped: str, tmp_path: Path) -> None:
    trace = _captured(mapped, tmp_path)
    _check(trace)
    assert not trace.metadata["device"]["requests"]

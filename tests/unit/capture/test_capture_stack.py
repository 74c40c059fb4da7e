"""Summaries of the I/O stack, from constructed rows and events."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from writecliff.capture.block.run import OtherEvent, Processes
from writecliff.capture.stack.extents import Extent, extents, waits
from writecliff.capture.stack.file_system import file_system_of
from writecliff.capture.stack.origins import DATA, JOURNAL, METADATA, OTHERS, WRITTEN_BACK, origins
from writecliff.capture.stack.result import PageCache
from writecliff.capture.stack.run import Collected, letters
from writecliff.capture.stack.steps import Traffic, traffic
from writecliff.errors import TargetError

KIB = 1024


def _numbers(*values: int) -> Any:
    return np.array(values, np.int64)


def test_sequential_streams_are_recognised_when_they_interleave() -> None:
    offsets = _numbers(0, 1 << 20, 4096, (1 << 20) + 4096, 8192, (1 << 20) + 8192)
    streams = traffic(offsets, np.full(6, 4096))
    assert streams.sequential_share == pytest.approx(4 / 6)
    assert (streams.count, streams.bytes, streams.median_bytes) == (6, 6 * 4096, 4096)
    backwards = traffic(offsets[::-1], np.full(6, 4096))
    assert backwards.sequential_share == 0


def test_the_same_offsets_of_other_files_are_not_sequential() -> None:
    offset, length = _numbers(0, 100, 200), _numbers(100, 100, 100)
    assert traffic(offset, length, _numbers(1, 1, 1)).sequential_share == pytest.approx(2 / 3)
    assert traffic(offset, length, _numbers(1, 2, 3)).sequential_share == 0


def test_sizes_are_the_most_frequent_ones_first() -> None:
    sizes = traffic(_numbers(*range(6)), _numbers(8, 8, 8, 4, 4, 2))
    assert list(sizes.sizes.items()) == [(8, 3), (4, 2), (2, 1)]
    assert traffic(_numbers(), _numbers()) == Traffic()


def _device(rows: list[tuple[str, str, str, int]]) -> tuple[pa.Table, pa.Table]:
    op, thread, flags, pid = zip(*rows, strict=True)
    table = pa.table({"op": list(op), "thread": list(thread)})
    return table, pa.table({"flags": list(flags), "pid": pa.array(pid, pa.int32())})


def test_requests_are_of_the_program_the_kernel_the_journal_or_others() -> None:
    table, requests = _device(
        [
            ("write", "db", "sync", 7),
            ("read", "db", "readahead", 7),
            ("read", "db", "metadata", 7),
            ("write", "kworker/u8:1", "", 90),
            ("write", "kworker/u8:1", "metadata", 90),
            ("write", "jbd2/sda1-8", "sync metadata", 91),
            ("write", "jbd2/sda1-8", "sync", 91),  # File data, which precede their commit.
            ("fsync", "jbd2/sda1-8", "", 91),
            ("write", "capture", "", 8),
            ("write", "backup", "sync", 9),
            ("write", "backup", "metadata", 9),
        ]
    )
    origin = origins(table, requests, kind="ext4", program={7}, capturing_pid=8)
    assert origin.tolist() == [
        DATA, DATA, METADATA, WRITTEN_BACK, METADATA, JOURNAL, WRITTEN_BACK, JOURNAL, WRITTEN_BACK,
        OTHERS, OTHERS,
    ]  # fmt: skip


def test_the_log_of_xfs_is_metadata_that_must_be_durable() -> None:
    table, requests = _device(
        [("write", "db", "sync fua metadata", 7), ("write", "db", "sync metadata", 7)]
    )
    assert origins(table, requests, kind="xfs", program={7}, capturing_pid=0).tolist() == [
        JOURNAL,
        METADATA,
    ]
    assert (
        origins(table, requests, kind="ext4", program={7}, capturing_pid=0).tolist()
        == [METADATA] * 2
    )


def _calls(*rows: tuple[int, str, int, int, int]) -> pa.Table:
    time_ns, op, file, offset, length = zip(*rows, strict=True)
    return pa.table(
        {
            "time_ns": list(time_ns),
            "op": list(op),
            "file": pa.array(file, pa.int32()),
            "offset_bytes": list(offset),
            "length_bytes": list(length),
        }
    )


def test_data_wait_from_their_last_call_until_the_driver_gets_them() -> None:
    calls = _calls(
        (100, "write", 0, 0, 4096),
        (200, "write", 0, 0, 100),  # Second write of the same page.
        (300, "write", 0, 4096, 4096),
        (400, "read", 0, 0, 4096),
        (500, "write", 1, 0, 4096),  # Write to a file that cannot be located.
    )
    places = {0: [Extent(0, 1 << 20, 4096), Extent(4096, 5 << 20, 4096)], 1: []}
    requests = (
        _numbers(1 << 20, 5 << 20, 5 << 20, 9 << 20),
        _numbers(4096, 4096, 4096, 4096),
        _numbers(1250, 1320, 1290, 2000),  # One row precedes the call.
    )
    waiting = waits(calls, requests, places, shift_ns=1000)
    assert waiting is not None
    assert (waiting.pages, waiting.of_pages) == (2, 4)
    assert (waiting.p50_ns, waiting.max_ns) == (20, 50)


def test_without_located_files_no_wait_is_known() -> None:
    calls = _calls((100, "write", 0, 0, 4096))
    requests = (_numbers(0), _numbers(4096), _numbers(200))
    assert waits(calls, requests, {}, 0) is None
    assert waits(_calls((1, "read", 0, 0, 10)), requests, {0: [Extent(0, 0, 4096)]}, 0) is None


def test_extents_cover_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(os.urandom(64 * KIB))
        # Allocate all extents, because the tests' `fsync` does nothing.
        os.fdatasync(file.fileno())
    try:
        listed = list(extents(path))
    except OSError as error:
        pytest.skip(f"this file system does not tell where its files are: {error}")
    assert sum(extent.length for extent in listed) >= 64 * KIB
    assert listed[0].logical == 0
    assert all(extent.physical % 512 == 0 for extent in listed)


def test_hits_are_what_was_not_read_in() -> None:
    def ratio(asked: int, read_in: int) -> float | None:
        return PageCache(asked, read_in, 0, 0, 0, 0).hit_ratio

    assert ratio(100, 25) == 0.75
    assert ratio(100, 130) == 0  # The read-ahead was useless.
    assert ratio(0, 10) is None


def test_letters_of_bios_are_bytes_in_a_number() -> None:
    assert letters(int.from_bytes(b"FWFSM\0\0\0", "little")) == "FWFSM"
    assert letters(int.from_bytes(b"RAMSFWDE", "little")) == "RAMSFWDE"
    assert letters(-1) == "\N{REPLACEMENT CHARACTER}" * 8
    assert letters(0) == ""


def test_events_are_kept_by_their_names() -> None:
    collected = Collected()
    events = [OtherEvent("a/b", "", ("x",)), OtherEvent("c/d", "", ("x", "y", "z"))]
    for kind, time_ns, values in (([1, 0], [5, 6], [1, 2, 3, 4, 0, 0]), ([1], [7], [5, 6, 7])):
        collected.add(
            {
                "event_kind": np.array(kind, np.uint16),
                "event_time_ns": np.array(time_ns, np.uint64),
                "event_values": np.array(values, np.int64),
            }
        )
    times, values = collected.of("c/d", events)
    assert (times.tolist(), values.tolist()) == ([5, 7], [[1, 2, 3], [5, 6, 7]])
    assert len(collected.of("not/there", events)[0]) == 0
    assert Collected().of("a/b", events)[1].shape == (0, 3)


def test_a_folder_without_a_block_device_is_refused(tmp_path: Path) -> None:
    stat = tmp_path.stat()
    number = f"{os.major(stat.st_dev)}:{os.minor(stat.st_dev)}"
    info = tmp_path / "mountinfo"
    info.write_text(f"22 1 {number} / / rw,relatime shared:1 - nfs server:/home rw\n")
    with pytest.raises(
        TargetError, match="is on a file system of type nfs, whose block device is unknown"
    ):
        file_system_of(tmp_path, info)
    info.write_text("garbage\n1 2 3\n22 1 0:99 / /x rw - ext4 /dev/x rw\n")
    with pytest.raises(TargetError, match="not mounted in this mount namespace"):
        file_system_of(tmp_path, info)
    with pytest.raises(TargetError, match="does not exist"):
        file_system_of(tmp_path / "absent")


def test_threads_are_of_processes_while_they_live(tmp_path: Path) -> None:
    for number in ("71", "72"):
        (tmp_path / number).mkdir()
    (tmp_path / "72/status").write_text("Name:\tworker\nUmask:\t0022\nTgid:\t71\nPid:\t72\n")
    (tmp_path / "71/comm").write_text("server\n")
    (tmp_path / "71/status").write_text("Name:\tserver\nno more")
    processes = Processes(tmp_path)
    assert processes.of(72, "worker") == (71, "server")
    # The result is incomplete because the process is ending.
    assert processes.of(71, "server") == (71, None)
    assert processes.of(73, "ended") == (73, None)
    (tmp_path / "71/comm").write_text("next\n")
    assert processes.of(72, "worker") == (71, "server")  # The first result remains valid.
    assert processes.of(72, "other") == (71, "next")  # The kernel has reused the process number.

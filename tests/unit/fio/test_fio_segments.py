"""Sequential streams in active-range segments, as fio actually issues them to a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from writecliff.engines.fio import FioEngine
from writecliff.engines.fio.mix import split
from writecliff.workload.model import BlockSize, Job, Segments, Workload

MIB = 1 << 20
BLOCK = 64 << 10
SEGMENTS = Segments(4, 12 * BLOCK)  # Each segment has three blocks.
SECOND = 1_000_000_000


def job(read_pct: float, **more: int) -> Job:
    return Job(
        pattern="sequential",
        read_pct=read_pct,
        block_sizes=(BlockSize(BLOCK),),
        offset_bytes=2 * MIB,
        range_bytes=2 * MIB,
        segments=SEGMENTS,
        duration_ns=SECOND // 2,
        **more,
    )


def issued(tmp_path: Path, load: Job) -> list[list[int]]:
    """Return the block numbers, from the start of the range, that each fio job issued."""
    with FioEngine.open_file(tmp_path / "drive", size_bytes=4 * MIB) as engine:
        text = engine.job_file(Workload("w", (load,)))
    logs, lines = [], []
    for line in text.splitlines():
        lines.append(line)
        if line.startswith("[") and line != "[global]":
            logs.append(tmp_path / f"log{len(logs)}")
            lines.append(f"write_iolog={logs[-1]}")
    (tmp_path / "job.fio").write_text("\n".join(lines))
    subprocess.run(["fio", str(tmp_path / "job.fio")], check=True, capture_output=True)
    return [_blocks(log) for log in logs]


def _blocks(log: Path) -> list[int]:
    rows = (line.split() for line in log.read_text().splitlines())
    offsets = [int(row[3]) for row in rows if len(row) == 5 and row[2] in ("read", "write")]
    return [(offset - 2 * MIB) // BLOCK for offset in offsets]


def passes(starts: list[int], count: int) -> list[int]:
    once = [start + block for start in starts for block in range(3)]
    return (once * (count // len(once) + 1))[:count]


@pytest.mark.parametrize("read_pct", [0.0, 100.0])
def test_each_segment_is_passed_through_in_order(tmp_path: Path, read_pct: float) -> None:
    (issued_ios,) = issued(tmp_path, job(read_pct))
    assert len(issued_ios) > 24
    assert issued_ios == passes([0, 8, 16, 24], len(issued_ios))


def test_a_stream_goes_on_at_a_later_segment(tmp_path: Path) -> None:
    (issued_ios,) = issued(tmp_path, job(0.0, start_bytes=2 * 3 * BLOCK))
    assert len(issued_ios) > 12
    assert issued_ios == passes([16, 24], len(issued_ios))


def test_reads_and_writes_of_a_mix_each_pass_through_all(tmp_path: Path) -> None:
    load = job(50.0, queue_depth=4)
    assert [part.read_pct for part in split(Workload("w", (load,))).run.jobs] == [100.0, 0.0]
    both = issued(tmp_path, load)
    assert len(both) == 2
    for issued_ios in both:
        assert len(issued_ios) > 24
        assert issued_ios == passes([0, 8, 16, 24], len(issued_ios))

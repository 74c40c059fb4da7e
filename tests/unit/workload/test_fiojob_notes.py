"""Reader of job files: notes on options that work differently on a simulated drive."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("extra", "note"),
    [
        ("iodepth=32", "no effect with the synchronous engine psync (fio's default)"),
        ("iodepth=32\nioengine=libaio\nrw=trim", "one at a time per thread"),
        ("rw=randwrite", "fio would write or read each once in a pass"),
        ("rw=randrw\nbs=4k,16k", "ends passes early"),
        ("direct=0", "no page cache"),
        ("buffered=1", "no page cache"),
        ("time_based", "no effect without runtime"),
        ("filename=/dev/nvme0n1", "filename=/dev/nvme0n1: replaced by the drive of the run"),
        ("directory=/mnt/x", "directory=/mnt/x: replaced by the drive of the run"),
        ("bs=64KiB\nsize=640KiB\nkb_base=1024", "powers of 1000"),
        ("bs=4k-8k", "as a list for read,write,trim"),
        ("rw=write\nend_fsync=1", "not flushed at the end"),
        ("rw=write\nsync=1", "a flush follows every write"),
        ("rw=randrw\nrate_iops=100\nrwmixread=70", "rwmixread=70 decides only"),
        ("randrepeat=0", "still repeat"),
        ("write_hist_log=x", "write_hist_log: not written"),
        ("verify=crc32c", "verification is skipped"),
        ("cmdprio_percentage=20\nprio=3", "serves all alike"),
        ("rw=trimwrite\nbs=4k,8k,4k", "the sizes of the preceding trims"),
        ("rw=trimwrite", "trims are queued like writes"),
        ("ss=iops:2%", "no effect without steadystate_duration"),
        ("nrfiles=4\nfile_service_type=random", "files take turns"),
        ("buffer_pattern=0xaa", "fully compressible"),
        ("rw=randread\nrandom_distribution=zipf:1.2:0.5", "the centre of zipf is not preserved"),
    ],
)
def test_what_differs_is_noted(extra: str, note: str, load) -> None:  # type: ignore[no-untyped-def]
    notes = load(f"[j]\nsize=1m\n{extra}\n").notes
    assert any(note in line for line in notes), notes

"""Percentages with a fraction in fio job files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from writecliff.workload.fiojob import FioJobFile, load_fio_job
from writecliff.workload.model import BlockSize

CAPACITY = 1 << 30


def _read(text: str, folder: Path) -> FioJobFile:
    file = folder / "job.fio"
    file.write_text(text)
    return load_fio_job(file, device_capacity_bytes=CAPACITY)


@pytest.mark.parametrize(
    ("line", "offset", "length"),
    [
        ("size=4k\noffset=99.99%", CAPACITY * 9999 // 10_000 // 4096 * 4096 + 4096, 4096),
        ("offset=50.5%\nsize=1m", -(-CAPACITY * 101 // 200 // 4096) * 4096, 1 << 20),
        ("size=12.25%", 0, CAPACITY * 49 // 400 // 4096 * 4096),
        ("size=1m\noffset_increment=0.5%\noffset=0", 0, 1 << 20),
    ],
)
def test_sizes_are_exact_shares_of_the_drive(
    line: str, offset: int, length: int, tmp_path: Path
) -> None:
    job_file = _read(f"[j]\nrw=read\nbs=4k\n{line}\n", tmp_path)
    job = job_file.workloads[0].jobs[0]
    assert (job.offset_bytes, job.range_bytes) == (offset, length)
    assert any("fio truncates it at the decimal point and uses" in note for note in job_file.notes)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("rw=randrw\nrwmixread=70.5", "read_pct", 70),
        ("rw=randrw\nrwmixwrite=30.9", "read_pct", 70),
        ("rw=randread\npercentage_random=33.3", "sequential_read_pct", 67),
        ("rw=randwrite\ndedupe_percentage=12.5", "duplicate_pct", 12),
        ("rw=randwrite\nbuffer_compress_percentage=12.5", "compressible_pct", 12),
        ("rw=randread\nbssplit=4k/33.3:8k/66.7", "block_sizes",
         (BlockSize(4096, 33), BlockSize(8192, 67))),
    ],
)  # fmt: skip
def test_fractions_of_percentages_are_cut_as_in_fio(
    line: str, name: str, value: object, tmp_path: Path
) -> None:
    job_file = _read(f"[j]\nsize=1m\n{line}\n", tmp_path)
    assert getattr(job_file.workloads[0].jobs[0], name) == value
    assert any(", as in fio" in note for note in job_file.notes)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_still_takes_a_fraction_of_the_drive_for_bytes(tmp_path: Path) -> None:
    words = (
        "fio --name=x --filename=x --filesize=1m --rw=read --bs=4k --ioengine=null --number_ios=1"
    )
    options = ["--offset=99.99%", "--write_iolog=log"]
    subprocess.run([*words.split(), *options], cwd=tmp_path, check=True, capture_output=True)
    assert re.search(r"^\d+ x read 99 4096$", (tmp_path / "log").read_text(), re.MULTILINE)

"""Conversion of commands that replace writes, and block sizes with metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import FioJobFile, load_fio_job
from writecliff.workload.model import BlockSize

CAPACITY = 1 << 30
KIB = 1024

# Options added to a plain job, and the job fields that they set.
FIELDS: list[tuple[str, dict[str, object]]] = [
    ("rw=write\nwrite_mode=write/40:zeroes/30:uncor/20:verify/10\niodepth=4",
     {"read_pct": 10.0, "trim_pct": 20.0, "one_position": True, "queue_depth": 4,
      "compressible_pct": 100 * 30 / 70}),
    ("rw=randwrite\nwrite_mode=write/50:verify/",
     {"read_pct": 50.0, "one_position": False, "compressible_pct": 0.0}),
    ("rw=write\nwrite_mode=zeroes", {"read_pct": 0.0, "trim_pct": 0.0, "compressible_pct": 100.0}),
    ("rw=write\nbs=4k,8k\nwrite_mode=zeroes\ndeac=1",
     {"trim_pct": 100.0, "block_sizes": (BlockSize(8 * KIB),), "one_position": False}),
    ("rw=rw\nwrite_mode=zeroes", {"read_pct": 50.0, "compressible_pct": 100.0}),
    ("rw=read\nwrite_mode=uncor", {"read_pct": 100.0, "trim_pct": 0.0}),
    ("rw=write\nsg_write_mode=verify_bytchk_01", {"read_pct": 100.0}),
    ("rw=write\nsg_write_mode=verify", {"read_pct": 0.0, "dsync": True}),
    ("rw=write\nsg_write_mode=write_same_ndob", {"read_pct": 0.0, "compressible_pct": 100.0}),
    ("rw=write\nsg_write_mode=write_stream\nstream_id=3", {"stream": 3, "trim_pct": 0.0}),
    ("bs=4160\npi_chk=GUARD", {"block_sizes": (BlockSize(4 * KIB),)}),
    ("bs=1040\npi_act=1", {"block_sizes": (BlockSize(KIB),)}),
]  # fmt: skip

REFUSALS = [
    (
        "rw=rw\nwrite_mode=verify",
        "a job with read and write cannot convert its writes",
        "a separate job for the reads",
    ),
    ("rw=write\nwrite_mode=uncor\nrate_min=1m", "rate_min counts writes", "omit the option"),
    ("rw=write\nwrite_mode=zone_append", "requires zones", "zonemode=zbd"),
    ("write_mode=write/60:zeroes/30", "add up to 90 %", ""),
    ("write_mode=write/60", "neither a mode nor", "write/60:zeroes/40"),
    ("bs=4100\npi_act=1", "block size 4100 is not a multiple", "512"),
]


def _load(folder: Path, options: str) -> FioJobFile:
    file = folder / "job.fio"
    file.write_text(f"[j]\nsize=1m\nioengine=libaio\n{options}\n")
    return load_fio_job(file, device_capacity_bytes=CAPACITY)


@pytest.mark.parametrize(("options", "fields"), FIELDS, ids=[options for options, _ in FIELDS])
def test_writes_become_what_costs_the_same(
    options: str, fields: dict[str, object], tmp_path: Path
) -> None:
    (workload,) = _load(tmp_path, options).workloads
    _native.check_workload(workload.to_json(), CAPACITY, 8)
    (job,) = workload.jobs
    assert {key: getattr(job, key) for key in fields} == fields


@pytest.mark.parametrize(("options", "message", "hint"), REFUSALS)
def test_what_has_no_equivalent_is_refused(
    options: str, message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, options)
    assert message in str(caught.value)
    assert hint in f"{caught.value} {caught.value.hint}"

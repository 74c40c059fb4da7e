"""Fixtures for tests of job files."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.workload.fiojob import FioJobFile, load_fio_job

CAPACITY = 1 << 30


@pytest.fixture
def load(tmp_path: Path):  # type: ignore[no-untyped-def]
    def read(text: str, **options: object) -> FioJobFile:
        path = tmp_path / "job.fio"
        path.write_text(text)
        return load_fio_job(path, device_capacity_bytes=CAPACITY, **options)  # type: ignore[arg-type]

    return read

"""Tests that data written to a loop device contain no duplicate blocks and cannot be compressed."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from writecliff.engines.fio import FioEngine
from writecliff.engines.fio.command import Target
from writecliff.engines.fio.targets import DeviceTarget
from writecliff.workload.model import KIB, BlockSize, Job, Workload

pytest.importorskip("writecliff._native", reason="the native module is not built")


PAGE = 4 * KIB
FILLS = {
    "large": Job(pattern="sequential", block_sizes=(BlockSize(128 * KIB),), queue_depth=32),
    "small": Job(pattern="sequential", queue_depth=32),
    "alone": Job(pattern="sequential"),
}


def filled(loop: str, job: Job, volume: int) -> tuple[int, dict[int, float]]:
    """Return the number of duplicate 4 KiB pages, and the compressed size by chunk size."""
    fill = Workload("fill", (replace(job, volume_bytes=volume, range_bytes=volume),))
    with FioEngine.open_device(loop, destroy_serial=loop) as engine:
        for seed in (1, 2, 3):  # Buffers change because they are scrambled repeatedly.
            engine.run(replace(fill, seed=seed))
    with Path(loop).open("rb") as device:
        data = device.read(volume)
    pages = [data[at : at + PAGE] for at in range(0, volume, PAGE)]
    return len(pages) - len(set(pages)), {
        chunk: compressed(data, chunk) for chunk in (PAGE, 16 * KIB, 64 * KIB)
    }


def compressed(data: bytes, chunk: int) -> float:
    """Return the ratio of compressed to original size for sampled chunks of the data."""
    places = range(0, len(data) - chunk, max(chunk, len(data) // 200 // chunk * chunk))
    sizes = [min(chunk, len(zlib.compress(data[at : at + chunk]))) for at in places]
    return sum(sizes) / chunk / len(sizes)


@pytest.mark.parametrize("job", FILLS.values(), ids=FILLS)
def test_generated_data_are_random(loop: str, job: Job) -> None:
    alike, sizes = filled(loop, job, 32 << 20)
    assert alike == 0
    assert min(sizes.values()) > 0.98


def test_scrambled_data_are_nearly_so(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = DeviceTarget.for_command

    def fast(self: DeviceTarget, how: object) -> Target:
        return replace(made(self, how), fast=True)  # type: ignore[arg-type]

    monkeypatch.setattr(DeviceTarget, "for_command", fast)
    alike, sizes = filled(loop, FILLS["large"], 96 << 20)
    assert alike == 0
    assert 0.88 < min(sizes.values()) < 0.95, sizes

"""Block-size mixes on drives with 4 KiB sectors: rounded up and disclosed, not rejected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fio_target import DISK, FIO
from writecliff.engines.fio.command import FioPlan, Target, plan
from writecliff.errors import EngineError
from writecliff.workload.model import Addresses, BlockSize, Job, Workload, Zone

GIB = 1 << 30
NATIVE = Target("/dev/sdx", 4 * GIB, 4096, False, "")
KIB = (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 8, 16, 32, 64)
SHARES = (4, 1, 1, 1, 1, 1, 1, 67, 10, 7, 3, 3)
COMPOSITE = Job(
    name="composite",
    read_pct=40,
    block_sizes=tuple(
        BlockSize(round(kib * 1024), share) for kib, share in zip(KIB, SHARES, strict=True)
    ),
    align_bytes=512,
    addresses=Addresses("zoned", zones=(Zone(50, 5), Zone(30, 15), Zone(20, 80))),
    ios=1000,
)


def made(job: Job, target: Target) -> FioPlan:
    return plan(Workload("w", (job,)), target, FIO)


def test_a_mix_that_fits_stays_as_it_is() -> None:
    done = made(COMPOSITE, DISK)
    assert "bssplit=512/4:1024/1:1536/1:2048/1:2560/1:3072/1:3584/1:4096/67:8192/10:" in done.text
    assert "blockalign=512\n" in done.text
    assert "random_distribution=zoned:50/5:30/15:20/80\n" in done.text
    assert done.warnings == ()


def test_sizes_below_the_sector_are_raised_and_named() -> None:
    done = made(COMPOSITE, NATIVE)
    assert "bssplit=4096/77:8192/10:16384/7:32768/3:65536/3\n" in done.text
    assert "blockalign=4096\n" in done.text
    assert done.warnings == (
        "job composite: block sizes that are not multiples of the 4096 B sector were rounded up:"
        " 512, 1024, 1536, 2048, 2560, 3072, 3584 B (10 % of the I/Os)",
        "job composite: addresses are aligned to the 4096 B sector instead of 512 B",
    )


def test_a_mix_that_falls_together_is_one_size() -> None:
    sizes = (BlockSize(512, 1), BlockSize(4096, 1))
    done = made(Job(ios=1, block_sizes=sizes), NATIVE)
    assert "\nbs=4096\n" in done.text


def test_a_single_size_is_refused_not_changed() -> None:
    half = replace(COMPOSITE, block_sizes=(BlockSize(512),))
    with pytest.raises(
        EngineError, match="512 bytes is not a multiple of the target's 4096-byte"
    ) as caught:
        made(half, NATIVE)
    assert caught.value.hint == "use a multiple of 4096 bytes"

"""Hard disks through the public API: supported and missing features, and published figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from writecliff import BlockSize, Job, SimEngine, Workload
from writecliff.devices import show_device
from writecliff.engines.base import StepResult
from writecliff.engines.scaled import ScaledEngine
from writecliff.errors import ConfigError

DISKS = ("hdd-15k-80", "hdd-sshd-7200-500")


def measured(device: str, job: Job, *, seconds: float = 120.0, cache: bool = False) -> StepResult:
    engine = SimEngine(device)
    engine.set_write_cache(cache)
    return engine.run(Workload("load", (job.with_duration_s(seconds),)))


def latency_ms(result: StepResult) -> tuple[float, float]:
    (operation,) = result.jobs[0].operations.values()
    assert operation.service.mean_ns is not None and operation.service.max_ns is not None
    return operation.service.mean_ns / 1e6, operation.service.max_ns / 1e6


@pytest.mark.parametrize("device", DISKS)
def test_what_belongs_to_flash_is_absent(device: str) -> None:
    described = show_device(device)
    assert described.kind == "disk" and described.streams == 1
    assert described.nand_type is described.raw_bytes is described.overprovision_pct is None
    engine = SimEngine(device)
    assert engine.identify().rotational is True and engine.identify().nand_type is None
    purge = engine.purge()
    assert purge.conformant and "not applicable" in purge.method
    result = engine.run(Workload("mix", (Job(read_pct=50, queue_depth=4, ios=200),)))
    after = result.counters_after
    assert after.host_write_bytes and after.host_read_bytes
    assert after.nand_write_bytes is after.erases_mean is after.percentage_used is None
    assert after.write_amplification_since(result.counters_before) is None
    assert np.isnan(result.intervals["waf"]).all()
    health = engine.health()
    assert health is not None and health["media_accesses"] and health["nand_write_bytes"] is None
    json.dumps(health)


# SNIA, "Solid State Storage Performance: A Primer" (2013), figure 3; write cache disabled, 32
# outstanding I/Os.
@pytest.mark.parametrize(
    ("device", "read_pct", "iops"),
    [
        ("hdd-15k-80", 0, 340),
        ("hdd-15k-80", 65, 398),
        ("hdd-15k-80", 100, 401),
        ("hdd-sshd-7200-500", 0, 147),
        ("hdd-sshd-7200-500", 65, 150),
        ("hdd-sshd-7200-500", 100, 135),
    ],
)
def test_random_accesses_are_near_the_published_ones(
    device: str, read_pct: float, iops: float
) -> None:
    result = measured(device, Job(read_pct=read_pct, threads=2, queue_depth=16), seconds=200)
    assert result.iops() == pytest.approx(iops, rel=0.12)


@pytest.mark.parametrize(
    ("device", "read_pct", "rate"),
    [
        ("hdd-15k-80", 0, 84e6),
        ("hdd-15k-80", 100, 90e6),
        ("hdd-sshd-7200-500", 0, 97e6),
        ("hdd-sshd-7200-500", 100, 99e6),
    ],
)
def test_sequential_rates_are_near_the_published_ones(
    device: str, read_pct: float, rate: float
) -> None:
    large = (BlockSize(1 << 20),)
    job = Job(pattern="sequential", read_pct=read_pct, queue_depth=4, block_sizes=large)
    result = measured(device, job, seconds=20)
    assert result.total()[1] / 20 == pytest.approx(rate, rel=0.13)


@pytest.mark.parametrize(
    ("device", "mean_ms", "max_ms"),
    [("hdd-15k-80", 5.39, 97.28), ("hdd-sshd-7200-500", 15.55, 44.84)],
)
def test_latencies_of_single_writes_are_near_the_published_ones(
    device: str, mean_ms: float, max_ms: float
) -> None:
    mean, longest = latency_ms(measured(device, Job(), seconds=1200))
    assert mean == pytest.approx(mean_ms, rel=0.10)
    assert longest == pytest.approx(max_ms, rel=0.35)


def test_a_restored_disk_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    load = Workload("mix", (Job(read_pct=60, queue_depth=8, ios=2000),))
    first, other = SimEngine("hdd-sshd-7200-500"), SimEngine("hdd-sshd-7200-500")
    first.run(load)
    first.save(tmp_path / "state")
    other.restore(tmp_path / "state")
    first.check()
    other.check()
    results = [engine.run(load) for engine in (first, other)]
    assert results[0].elapsed_ns == results[1].elapsed_ns
    assert latency_ms_of_all(results[0]) == latency_ms_of_all(results[1])
    with pytest.raises(ConfigError, match="a different device"):
        SimEngine("hdd-15k-80").restore(tmp_path / "state")


def latency_ms_of_all(result: StepResult) -> list[bytes]:
    return [op.service.to_bytes() for op in result.jobs[0].operations.values()]


def test_a_small_disk_answers_as_the_whole_one() -> None:
    engine = SimEngine("hdd-15k-80")
    load = Workload("reads", (Job(read_pct=100, queue_depth=8).with_duration_s(640),))
    small = ScaledEngine(engine, 16.0).run(load)
    whole = engine.run(load)
    assert small.elapsed_ns == pytest.approx(whole.elapsed_ns, rel=0.01)
    assert small.iops() == pytest.approx(whole.iops(), rel=0.03)


def test_trim_is_refused() -> None:
    with pytest.raises(ConfigError, match="job 'job' trims; the drive is a hard disk"):
        SimEngine("hdd-15k-80").run(Workload("trims", (Job(trim_pct=10, ios=100),)))

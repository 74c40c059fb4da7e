"""Storage-class memory through the public API: supported and missing features, no history."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from writecliff import BlockSize, Job, SimEngine, Workload
from writecliff.choice.candidates import find_candidates, omitted_candidates
from writecliff.choice.measured import _Wear, _wear
from writecliff.choice.question import Question
from writecliff.devices import drives_of_today, open_device, read_device_file, show_device
from writecliff.devices.quantities import size_bytes
from writecliff.engines.base import StepResult
from writecliff.engines.scaled import ScaledEngine
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.published.data_sheet import Sheet
from writecliff.twin.start import check_drive

DRIVE = "p5800x-400"


def measured(engine: SimEngine, job: Job, *, seconds: float = 0.02) -> StepResult:
    return engine.run(Workload("load", (job.with_duration_s(seconds),)))


def mean_us(result: StepResult) -> float:
    (operation,) = result.jobs[0].operations.values()
    assert operation.service.mean_ns is not None
    return operation.service.mean_ns / 1e3


def times_ns(device: str) -> dict[str, float]:
    """Return the times of a device file, by key."""
    values = {value.key: value.value.strip('"') for value in show_device(device).values}
    return {key: 1e3 * float(v.removesuffix(" us")) for key, v in values.items() if v[-3:] == " us"}


def test_what_belongs_to_flash_is_absent() -> None:
    described = show_device(DRIVE)
    assert described.kind == "scm" and described.streams == 1 and not described.write_cache
    assert described.nand_type is described.raw_bytes is described.overprovision_pct is None
    assert described.without_flash == "a drive of storage-class memory"
    engine = SimEngine(DRIVE)
    identity = engine.identify()
    assert identity.rotational is False and identity.nand_type == "storage-class memory"
    assert identity.without_flash == described.without_flash
    purge = engine.purge()
    assert purge.conformant and "simulated purge" in purge.method
    assert engine.set_write_cache(True).enabled is False
    result = engine.run(Workload("mix", (Job(read_pct=50, queue_depth=4, ios=200),)))
    after = result.counters_after
    assert after.media_write_bytes == after.host_write_bytes and after.host_read_bytes
    assert after.media_read_bytes == after.host_read_bytes and after.partial_units == 0
    assert after.nand_write_bytes is after.erases_mean is after.percentage_used is None
    assert after.write_amplification_since(result.counters_before) is None
    assert np.isnan(result.intervals["waf"]).all()
    health = engine.health()
    assert health is not None and health["nand_write_bytes"] is health["media_accesses"] is None
    json.dumps(health)
    assert SimEngine("sata-tlc-120").counters().media_write_bytes is None


def test_a_command_alone_takes_the_sum_of_the_device_file() -> None:
    t = times_ns(DRIVE)
    firmware = t["controller.latency"] + t["controller.command_time"] + t["controller.access_time"]
    link = 4096 / 7.5 + t["link.command"]
    read = mean_us(measured(SimEngine(DRIVE), Job(read_pct=100)))
    assert read == pytest.approx((firmware + 8 * t["media.read_time"] + link) / 1e3, abs=0.01)
    write = mean_us(measured(SimEngine(DRIVE), Job()))
    both_ways = link + t["link.command"]
    assert write == pytest.approx(
        (firmware + 8 * t["media.write_time"] + both_ways) / 1e3, abs=0.01
    )


def test_rates_are_those_of_the_slowest_part() -> None:
    deep = {"threads": 4, "queue_depth": 64}
    t = times_ns(DRIVE)
    reads = measured(SimEngine(DRIVE), Job(read_pct=100, **deep)).iops()
    of_controller = 1e9 / (t["controller.command_time"] + 8 * t["controller.access_time"])
    assert reads == pytest.approx(of_controller, rel=0.02)
    large = (BlockSize(128 << 10),)
    job = Job(pattern="sequential", queue_depth=32, block_sizes=large)
    written = measured(SimEngine(DRIVE), job, seconds=0.5)
    assert written.total()[1] / 0.5 == pytest.approx(
        7 * 512 / t["media.write_time"] * 1e9, rel=0.03
    )


def test_what_was_written_before_changes_nothing() -> None:
    """Check that a new drive and a drive with several random overwrites have equal figures.

    Check that random writes are equal in every interval, and so are the tails of a mix.
    """
    random_writes = Job(queue_depth=32, threads=2)
    mix = Job(read_pct=70, queue_depth=16)
    fresh, old = (ScaledEngine(SimEngine(DRIVE), 64.0) for _ in range(2))
    old.precondition(Workload("history", (Job(volume_bytes=3 * 400 * 10**9),)))
    results = [
        [engine.run(Workload("load", (job.with_duration_s(1.28),))) for job in (random_writes, mix)]
        for engine in (fresh, old)
    ]
    for new, aged in zip(*results, strict=True):
        assert aged.iops() == pytest.approx(new.iops(), rel=0.001)
        for name, of_new in new.jobs[0].operations.items():
            of_aged = aged.jobs[0].operations[name]
            for share in (0.5, 0.99, 0.999):
                aged_quantile, expected = (o.service.quantile(share) for o in (of_aged, of_new))
                assert aged_quantile.value_ns == pytest.approx(expected.value_ns, rel=0.03)


def test_reads_of_a_mix_wait_for_no_garbage_collection() -> None:
    """Return the 99.9th percentile of reads with equally many writes, one of each at a time."""
    pure = measured(SimEngine(DRIVE), Job(read_pct=100, queue_depth=2))
    mixed = measured(SimEngine(DRIVE), Job(read_pct=50, queue_depth=2), seconds=0.1)
    reads = next(o for name, o in mixed.jobs[0].operations.items() if "read" in str(name).lower())
    (alone,) = pure.jobs[0].operations.values()
    write_ns = 8 * times_ns(DRIVE)["media.write_time"]
    longest = (alone.service.max_ns or 0) + write_ns
    assert (reads.service.quantile(0.999).value_ns or 0) <= longest


def test_runs_are_repeatable_and_a_restored_drive_goes_on(tmp_path: Path) -> None:
    load = Workload("mix", (Job(read_pct=60, queue_depth=8, ios=5000),))
    first, other = SimEngine(DRIVE), SimEngine(DRIVE)
    assert first.run(load).elapsed_ns == other.run(load).elapsed_ns
    first.save(tmp_path / "state")
    third = SimEngine(DRIVE)
    third.restore(tmp_path / "state")
    third.check()
    again = [engine.run(load) for engine in (first, other, third)]
    assert len({result.elapsed_ns for result in again}) == 1
    histograms = [[o.service.to_bytes() for o in r.jobs[0].operations.values()] for r in again]
    assert histograms[0] == histograms[1] == histograms[2]
    with pytest.raises(ConfigError, match="a different device"):
        SimEngine("p5800x-800").restore(tmp_path / "state")


def test_trims_are_taken_and_free_nothing() -> None:
    result = measured(SimEngine(DRIVE), Job(trim_pct=50, read_pct=0, queue_depth=4))
    assert len(result.jobs[0].operations) == 2
    after = result.counters_after
    assert after.media_write_bytes == after.host_write_bytes


def test_a_part_of_a_unit_is_read_before_it_is_written() -> None:
    text, _ = read_device_file(DRIVE)
    assert 'unit = "512 B"' in text
    text = text.replace('unit = "512 B"', 'unit = "4 KiB"')
    engine = SimEngine("own.toml", device_file=(text, "own.toml"))
    job = Job(block_sizes=(BlockSize(512),), ios=1000)
    after = engine.run(Workload("small", (job,))).counters_after
    assert (after.partial_units, after.host_write_bytes) == (1000, 512_000)
    assert after.media_write_bytes == after.media_read_bytes == 4_096_000


def test_other_capacities_have_the_same_times_and_as_many_drive_writes() -> None:
    first, other = show_device(DRIVE), show_device("p5800x-1600")
    assert times_ns(first.name) == times_ns(other.name)
    assert first.device_hash != other.device_hash
    assert (first.rated_tbw_bytes or 0) / first.capacity_bytes == pytest.approx(100 * 365 * 5)
    assert 4 * (first.rated_tbw_bytes or 0) == other.rated_tbw_bytes


def test_it_is_a_candidate_of_choices() -> None:
    assert DRIVE in drives_of_today() and DRIVE not in find_candidates(["today"])
    assert DRIVE in find_candidates(["today"], include_discontinued=True)
    omitted = omitted_candidates([], "400GB..900GB")
    assert [*omitted] == ["p5800x-400", "p5800x-800"]
    assert set(omitted.values()) == {"was discontinued in 2022"}
    assert not omitted_candidates(["p5800x-*"], None)
    assert DRIVE in find_candidates(["p5800x-*"])
    assert DRIVE in find_candidates(["all"]) and "hdd-15k-80" not in find_candidates(["all"])


def test_its_life_in_a_choice_is_the_rated_one() -> None:
    """Check that 400 GB written 100 times a day last five years, if a rating is given."""
    question = Question(workload="load.toml", candidates=(DRIVE,), writes_per_day_bytes=40 * 10**12)
    wear = _Wear(host_bytes=1e12, nand_bytes=None, rate_bytes_per_s=1e9)
    (life,) = _wear(wear, show_device(DRIVE), question)
    assert (life.key, life.value) == ("life", pytest.approx(5.0))
    unrated = replace(show_device(DRIVE), rated_tbw_bytes=None)
    assert not list(_wear(wear, unrated, question))
    # For flash, the drive's rated cycles also count.
    (_, worn) = _wear(replace(wear, nand_bytes=1e12), show_device("sata-tlc-120"), question)
    assert worn.key == "life" and 0 < worn.value < 5


def test_its_data_sheet_says_nothing_of_flash() -> None:
    sheet = Sheet(show_device(DRIVE), (), 1.0)
    of_flash = {"Flash", "Program/erase cycles"}
    assert not of_flash & set(sheet.not_stated) and "Form factor" in sheet.not_stated
    assert of_flash <= set(Sheet(show_device("sata-tlc-120"), (), 1.0).not_stated)


def test_what_needs_flash_is_refused_in_one_line() -> None:
    device = open_device(*read_device_file(DRIVE))
    of = "is a drive of storage-class memory"
    with pytest.raises(ConfigError, match=f"{DRIVE} {of} and has no streams"), as_user_errors():
        device.for_streams(4)
    with pytest.raises(ConfigError, match=f"{of}, but a twin is a model of a flash drive"):
        check_drive(SimEngine(DRIVE).identify())
    with pytest.raises(ConfigError, match=f"{of}; a replay requires flash"):
        show_device(DRIVE).flash_bytes("a replay")
    with pytest.raises(ConfigError, match="a drive with storage-class memory has no dies"):
        SimEngine(DRIVE).lose_die(0)


@pytest.mark.parametrize(
    ("line", "by", "says"),
    [
        ("banks = 7", "bancs = 7", "unknown key 'bancs'|missing key 'banks'"),
        ("[media]", "[flash]\nchannels = 8\n[media]", "unknown key 'flash'"),
        ("[controller]", "[controller]\nwrite_buffer = '1 MiB'", "unknown key 'write_buffer'"),
        ("[media]", "[power]\nidle = '5 W'\n[media]", "unknown key 'power'"),
        ('unit = "512 B"', 'unit = "1000 B"', "must be a multiple of 512 B"),
    ],
)
def test_keys_that_it_does_not_have_are_refused(line: str, by: str, says: str) -> None:
    text, name = read_device_file(DRIVE)
    assert line in text
    with pytest.raises(ConfigError, match=says):
        open_device(text.replace(line, by), name)


def test_a_small_drive_answers_as_the_whole_one() -> None:
    engine = SimEngine(DRIVE)
    small = ScaledEngine(engine, 16.0)
    assert small.identify().scale == 16.0
    load = Workload("mix", (Job(read_pct=30, queue_depth=8).with_duration_s(0.64),))
    reduced, whole = small.run(load), SimEngine(DRIVE).run(load)
    assert reduced.iops() == pytest.approx(whole.iops(), rel=0.01)
    assert size_bytes("400 GB") == engine.identify().capacity_bytes

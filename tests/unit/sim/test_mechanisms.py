"""Optional sections of device files, through the simulated engine."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload, _native
from writecliff.devices import open_device
from writecliff.engines.base import StepResult
from writecliff.errors import ConfigError
from writecliff.workload.model import BlockSize

SECOND_NS = 1_000_000_000
MIB = 1 << 20
POWER = """
[power]
idle = "1.5 W"
active = "0.5 W"
read = "40 mW"
program = "60 mW"
erase = "60 mW"
transfer = "50 mW"
link = "100 mW"
"""
THERMAL = """
[thermal]
ambient = "25 C"
resistance = "20 C/W"
capacity = "0.01 J/C"
throttle_at = "70 C"
recover_at = "60 C"
throttle_factor = 3
"""
ECC = """
[ecc]
rber = 7e-3
rber_at_rated = 7e-3
codeword = "1 KiB"
correctable = 72
retry_time = "60 us"
retries_max = 5
"""
HOUSEKEEPING = """
[housekeeping]
media_interval = "2 ms"
media_time = "2.2 ms"
checkpoint_interval = "64 MiB"
checkpoint_time = "20 ms"
hiccup_probability = 0.001
hiccup_time = "400 us"
"""

SLC_CACHE = """
[slc_cache]
size = "64 MiB"
program = "300 us"
read = "30 us"
"""

REDUCTION = """
[reduction]
compression = true
min_stored_size = "1 KiB"
duplicates = true
"""


def engine_with(folder: Path, *sections: str) -> SimEngine:
    text = write_small_drive(folder).read_text()
    return SimEngine.from_text("\n".join((text, *sections)), "small.toml")


def run(engine: SimEngine, seconds: int, read_pct: float = 0, queue_depth: int = 8) -> StepResult:
    capacity = engine.identify().capacity_bytes
    engine.precondition(Workload("churn", (Job(volume_bytes=2 * capacity),), seed=9))
    job = Job(read_pct=read_pct, queue_depth=queue_depth, duration_ns=seconds * SECOND_NS)
    return engine.run(Workload("load", (job,)))


def test_watts_over_time_are_the_energy_of_the_step(tmp_path: Path) -> None:
    result = run(engine_with(tmp_path, POWER), seconds=3)
    joules = result.counted.energy_j
    assert joules is not None
    ends = np.unique(result.intervals["end_ns"])
    watts = [result.intervals["watts"][result.intervals["end_ns"] == end][0] for end in ends]
    widths = np.diff(ends, prepend=0) / 1e9
    assert float((np.array(watts) * widths).sum()) == pytest.approx(joules, rel=1e-6)
    # The power is at least the controller's, and at most that of all dies programming as well.
    assert all(2.0 <= value < 2.0 + 8 * 0.06 + 8 * 0.05 + 0.1 for value in watts)


def test_a_warm_drive_throttles_and_tells_its_temperature(tmp_path: Path) -> None:
    cool = run(engine_with(tmp_path, POWER), seconds=3)
    warm = run(engine_with(tmp_path, POWER, THERMAL), seconds=3)
    assert np.isnan(cool.intervals["temperature_c"]).all()
    degrees = warm.intervals["temperature_c"]
    # The controller alone adds 40 degrees, and the dies add heat until the drive throttles.
    assert ((degrees > 60) & (degrees < 80)).all()
    assert warm.total()[0] < 0.9 * cool.total()[0]
    throttled_ns = (warm.counters_after.throttled_ns or 0) - (
        warm.counters_before.throttled_ns or 0
    )
    assert 0 < throttled_ns < 3.2 * SECOND_NS


def test_a_second_stage_of_throttling_follows_the_first(tmp_path: Path) -> None:
    stages = THERMAL.replace('"70 C"', '["50 C", "68 C"]').replace('"60 C"', '["48 C", "66 C"]')
    stages = stages.replace("factor = 3", "factor = [1.2, 6]")
    result = run(engine_with(tmp_path, POWER, stages), seconds=3)
    counted = result.counted
    assert counted.throttled_ns and counted.throttled_most_ns
    assert 0 < counted.throttled_most_ns < counted.throttled_ns
    both = run(engine_with(tmp_path, POWER, THERMAL), seconds=1)
    # The only stage of this drive is not the last of several stages.
    assert both.counted.throttled_most_ns == 0


def test_a_drive_that_tells_no_power_has_none(tmp_path: Path) -> None:
    result = run(engine_with(tmp_path), seconds=1)
    assert result.counters_after.energy_j is None
    assert np.isnan(result.intervals["watts"]).all()


@pytest.mark.parametrize("sections", [(POWER,), ()])
def test_a_run_shows_the_power_that_its_drive_tells(
    sections: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(capsys)
    drive, load = tmp_path / "d.toml", tmp_path / "w.toml"
    drive.write_text("\n".join((write_small_drive(tmp_path).read_text(), *sections)))
    load.write_text('name = "w"\n\n[[job]]\nqueue_depth = 8\nduration = "1 s"\n')
    words = ["run", str(load), "--on", f"sim:{drive}", "--output"]
    shown = json.loads(cli([*words, str(tmp_path / "json"), "--json"]).out)["steps"][0]
    text_output = cli([*words, str(tmp_path / "text")]).out
    if not sections:
        assert (shown["watts"], shown["joules_per_io"]) == (None, None)
        assert " W, " not in text_output
        return
    (job,) = shown["jobs"]
    ios = sum(operation["ios"] for operation in job["operations"].values())
    seconds = shown["elapsed_ns"] / SECOND_NS
    assert 2.0 <= shown["watts"] == pytest.approx(shown["joules_per_io"] * ios / seconds)
    assert f"{shown['watts']:.2f} W, " in text_output


def test_read_retries_make_reads_longer_and_are_counted(tmp_path: Path) -> None:
    clean = run(engine_with(tmp_path), seconds=1, read_pct=100, queue_depth=1)
    worn = run(engine_with(tmp_path, ECC), seconds=1, read_pct=100, queue_depth=1)
    assert clean.counters_after.read_retries is None
    retries = (worn.counters_after.read_retries or 0) - (worn.counters_before.read_retries or 0)
    ios = worn.total()[0]
    longer_ns = SECOND_NS / ios - SECOND_NS / clean.total()[0]
    assert longer_ns == pytest.approx(60_000 * retries / ios, rel=0.05)
    assert retries > ios / 50


def test_a_checkpoint_is_the_longest_write(tmp_path: Path) -> None:
    plain = run(engine_with(tmp_path), seconds=3)
    housekept = run(engine_with(tmp_path, HOUSEKEEPING), seconds=3)
    maxima = [r.jobs[0].operations["write"].service.max_ns or 0 for r in (plain, housekept)]
    assert maxima[0] < 20_000_000 <= maxima[1]
    checkpoints = housekept.counters_after.checkpoints or 0
    assert checkpoints - (housekept.counters_before.checkpoints or 0) >= 2
    assert plain.counters_after.checkpoints is None


def written(engine: SimEngine, *, pause_ns: int = 0, duration_ns: int = SECOND_NS) -> StepResult:
    job = Job(
        block_sizes=(BlockSize(131_072),),
        pattern="sequential",
        queue_depth=8,
        burst_ns=SECOND_NS // 10 if pause_ns else 0,
        pause_ns=pause_ns,
        duration_ns=duration_ns,
    )
    return engine.run(Workload("bursts", (job,)))


def test_an_slc_cache_makes_bursts_fast_and_its_end_slow(tmp_path: Path) -> None:
    """Check that 64 MiB hold a 100 ms burst if it is folded in the following 2 s pause."""
    pauses = {"pause_ns": 2 * SECOND_NS, "duration_ns": 9 * SECOND_NS}
    plain = written(engine_with(tmp_path), **pauses)
    cached = written(engine_with(tmp_path, SLC_CACHE), **pauses)
    assert cached.total()[1] > 2 * plain.total()[1]
    counts = cached.counters_after
    assert counts.host_write_bytes == cached.total()[1] == counts.slc_write_bytes
    assert (counts.slc_fold_bytes or 0) > 0.7 * cached.total()[1]
    assert plain.counters_after.slc_write_bytes is None
    # Without pauses, the cache is full after an eighth of a second.
    full = written(engine_with(tmp_path, SLC_CACHE)).counters_after
    assert (full.slc_held_bytes, full.slc_fold_bytes) == (64 * MIB, 0)
    assert full.nand_write_bytes == full.host_write_bytes


def scaled(text: str, scale: float, largest_io_bytes: int = 4096) -> _native.Device:
    return open_device(text, "scaled.toml").scaled(scale, largest_io_bytes)


def test_an_slc_cache_follows_the_size_of_its_drive(tmp_path: Path) -> None:
    text = "\n".join((write_small_drive(tmp_path).read_text(), SLC_CACHE))
    small = tomllib.loads(scaled(text, 4).text)
    assert small["slc_cache"]["size"] == f"{16 * MIB} B"
    SimEngine.from_device(scaled(text, 8))
    tiny = scaled(text.replace("64 MiB", "1 MiB"), 8)
    least = tomllib.loads(tiny.text)["slc_cache"]["size"]
    dies, planes, page_bytes = 8, 2, 16_384
    assert least == f"{dies * planes * page_bytes} B"


def test_sections_are_shown_and_checked(tmp_path: Path) -> None:
    values = {v.key: v.value for v in engine_with(tmp_path, POWER, ECC).description.values}
    assert values["power.idle"] == '"1.5 W"'
    assert values["ecc.correctable"] == "72"
    with pytest.raises(ConfigError, match="unknown key 'idel' in power"):
        engine_with(tmp_path, POWER + 'idel = "1 W"\n')


def overwritten(engine: SimEngine, **data: float) -> StepResult:
    """Return a pass of random writes of identical data on a full drive."""
    size = engine.identify().capacity_bytes
    fill = Job(pattern="sequential", block_sizes=(BlockSize(65536),), volume_bytes=size, **data)
    engine.run(Workload("fill", (fill,)))
    engine.run(Workload("age", (Job(volume_bytes=2 * size, **data),), seed=2))
    return engine.run(
        Workload("measured", (Job(queue_depth=8, volume_bytes=size, **data),), seed=3)
    )


def test_a_drive_that_compresses_is_as_fast_as_the_data_are_small(tmp_path: Path) -> None:
    whole = overwritten(engine_with(tmp_path, REDUCTION))
    half = overwritten(engine_with(tmp_path, REDUCTION), compressible_pct=50.0)
    twice = overwritten(engine_with(tmp_path, REDUCTION), duplicate_pct=50.0)
    plain = overwritten(engine_with(tmp_path), compressible_pct=50.0)
    waf = [
        r.counters_after.write_amplification_since(r.counters_before)
        for r in (whole, half, twice, plain)
    ]
    assert waf[0] == waf[3]
    assert waf[0] > 1.5
    assert 0.5 <= waf[1] < 0.6
    assert 0.5 <= waf[2] < 1
    assert whole.counters_after.stored_bytes == whole.counters_after.host_write_bytes
    assert half.counters_after.stored_bytes == half.counters_after.host_write_bytes // 2
    size = half.counters_after.host_write_bytes - half.counters_before.host_write_bytes
    repeated = twice.counters_after.duplicate_bytes - twice.counters_before.duplicate_bytes
    assert repeated == pytest.approx(size / 2, rel=0.02)
    assert plain.counters_after.stored_bytes is None
    assert half.elapsed_ns < 0.7 * whole.elapsed_ns


def test_a_scaled_drive_that_compresses_has_room_for_its_pieces(tmp_path: Path) -> None:
    text = write_small_drive(tmp_path).read_text() + REDUCTION
    small = scaled(text, 4, largest_io_bytes=65536)
    assert tomllib.loads(small.text)["reduction"] == tomllib.loads(text)["reduction"]
    SimEngine.from_device(small)

"""`FioEngine` on a loop device and on files, with figures compared with fio's, and all failures."""

from __future__ import annotations

import os
import signal
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from tests.support.processes import fio_children
from writecliff.engines.base import Engine, Progress, StepResult
from writecliff.engines.blockdev.tools import find_tool
from writecliff.engines.disturbance import PREFIX
from writecliff.engines.fio import FioEngine
from writecliff.errors import EngineError, TargetError
from writecliff.workload.model import Addresses, BlockSize, Job, Workload, Zone

pytest.importorskip("writecliff._native", reason="the native module is not built")

MIB = 1 << 20
SECOND = 1_000_000_000
pytestmark = pytest.mark.usefixtures("no_fio_left")


def opened(loop: str) -> FioEngine:
    return FioEngine.open_device(loop, destroy_serial=loop)


def raw_jobs(result: StepResult) -> list[dict]:
    document = result.raw["fio"]
    assert isinstance(document, dict)
    return document["jobs"]


def remarks(result: StepResult) -> tuple[str, ...]:
    """Return all warnings except those about other load on the machine."""
    return tuple(text for text in result.warnings if not text.startswith(PREFIX))


@pytest.mark.measures
def test_figures_are_fios_own(loop: str) -> None:
    jobs = (
        Job(name="mix", read_pct=70, threads=2, queue_depth=4, duration_ns=SECOND * 3 // 2),
        Job(
            name="log",
            pattern="sequential",
            block_sizes=(BlockSize(65536),),
            rate_iops=200,
            duration_ns=SECOND,
            start_delay_ns=SECOND // 2,
        ),
    )
    seen: list[Progress] = []
    with opened(loop) as engine:
        contract: Engine = engine
        result = contract.run(Workload("w", jobs, interval_ns=SECOND // 4), seen.append)
    for raw, job in zip(raw_jobs(result), result.jobs, strict=True):
        for name, mine in job.operations.items():
            theirs = raw[name]
            assert mine.ios == theirs["total_ios"]
            assert mine.bytes == theirs["io_bytes"]
            assert mine.service.count == theirs["lat_ns"]["N"]
            assert mine.service.max_ns == theirs["lat_ns"]["max"]
            assert mine.service.mean_ns == pytest.approx(theirs["lat_ns"]["mean"], rel=1e-9)
            iops = mine.ios / (job.elapsed_ns / 1e9)
            assert iops == pytest.approx(theirs["iops"], rel=0.01)
            for percent, value in theirs["lat_ns"]["percentile"].items():
                ours = mine.service.quantile(float(percent) / 100).value_ns
                # The two values lie within one bin, and not above the maximum.
                if ours is not None:
                    assert ours == pytest.approx(value, rel=1 / 32)
                    assert ours <= theirs["lat_ns"]["max"]
    assert set(result.jobs[0].operations) == {"read", "write"}
    assert set(result.jobs[1].operations) == {"write"}
    assert result.jobs[1].operations["write"].ios == pytest.approx(200, abs=10)
    assert result.elapsed_ns == pytest.approx(1.5 * SECOND, rel=0.05)
    assert [warning.split(":")[0] for warning in remarks(result)] == ["job log"]
    assert len(seen) >= 4
    assert seen[-1].fraction == pytest.approx(1, abs=0.02)
    check_series(result)


def check_series(result: StepResult) -> None:
    columns = result.intervals
    assert columns["ios"].sum() == result.total()[0]
    assert columns["bytes"].sum() == result.total()[1]
    assert len(set(columns["end_ns"])) >= 5
    for index, job in enumerate(result.jobs):
        for code, name in enumerate(("read", "write", "trim")):
            mine = (columns["job"] == index) & (columns["operation"] == code)
            if name in job.operations:
                top = columns["latency_max_ns"][mine].max()
                assert top == job.operations[name].service.max_ns
    assert (columns["latency_mean_ns"] <= columns["latency_max_ns"]).all()


def test_ends_by_volume_and_count_are_exact(loop: str) -> None:
    fill = Job(
        pattern="sequential",
        block_sizes=(BlockSize(131072),),
        queue_depth=8,
        volume_bytes=160 * MIB,  # The volume exceeds the device size, so addresses wrap around.
    )
    with opened(loop) as engine:
        assert engine.run(Workload("fill", (fill,))).total() == (1280, 160 * MIB)
        counted = Job(threads=2, queue_depth=4, ios=3000, range_bytes=4 * MIB)
        assert engine.run(Workload("n", (counted,))).total("write") == (3000, 3000 * 4096)


def test_the_same_seed_writes_the_same_addresses(loop: str, image: Path) -> None:
    job = Job(ios=40, addresses=Addresses("hot_cold", zones=(Zone(90, 10),)))

    def places(seed: int) -> set[int]:
        with opened(loop) as engine:
            engine.purge()
            engine.run(Workload("w", (job,), seed=seed))
        return written(loop)

    first = places(11)
    assert places(11) == first
    assert places(12) != first
    hot = sum(at < len_of(image) // 10 for at in first)
    assert hot > len(first) // 2


def len_of(image: Path) -> int:
    return image.stat().st_size


def written(loop: str) -> set[int]:
    """Return the offsets of 4 KiB blocks that are not blank."""
    data = Path(loop).read_bytes()
    blank = bytes(4096)
    return {at for at in range(0, len(data), 4096) if data[at : at + 4096] != blank}


@pytest.mark.parametrize(
    ("job", "pieces"),
    [
        (Job(ios=300), [(0, 128)]),
        (Job(ios=300, offset_bytes=8 * MIB, range_bytes=4 * MIB), [(8, 12)]),
        (
            Job(
                pattern="sequential",
                offset_bytes=16 * MIB,
                range_bytes=32 * MIB,
                threads=4,
                thread_stride_bytes=8 * MIB,
                volume_bytes=4 * MIB,
            ),
            [(16, 17), (24, 25), (32, 33), (40, 41)],
        ),
        (
            Job(
                ios=300,
                range_bytes=64 * MIB,
                addresses=Addresses("zoned", zones=(Zone(100, 12.5),)),
            ),
            None,
        ),
    ],
    ids=["everywhere", "range", "strides", "refused"],
)
def test_writes_stay_where_they_belong(
    loop: str, job: Job, pieces: list[tuple[int, int]] | None
) -> None:
    with opened(loop) as engine:
        if pieces is None:
            with pytest.raises(EngineError, match=r"add up to 12\.5"):
                engine.run(Workload("w", (job,)))
            assert written(loop) == set()
            return
        engine.run(Workload("w", (job,)))
    blocks = written(loop)
    assert blocks
    for start, end in pieces:
        assert any(start * MIB <= at < end * MIB for at in blocks)
    for at in blocks:
        assert any(start * MIB <= at < end * MIB for start, end in pieces)
    if job.pattern == "sequential":
        assert len(blocks) == 4 * MIB // 4096


def test_fractional_zones_end_where_they_should(loop: str) -> None:
    """Send 90 % of the writes to the first 1/16 of the device, using a zone given in bytes."""
    job = Job(ios=400, addresses=Addresses("hot_cold", zones=(Zone(90, 6.25),)))
    with opened(loop) as engine:
        engine.run(Workload("w", (job,)))
    blocks = written(loop)
    cold = [at for at in blocks if at >= 8 * MIB]
    assert 15 <= len(cold) <= 70  # The expected count is 40, with a standard deviation of 6.
    assert max(cold) > 64 * MIB


@pytest.mark.parametrize(("asked", "low", "high"), [(0, 0.99, 1.01), (50, 0.4, 0.6)])
def test_data_is_as_compressible_as_asked(loop: str, asked: float, low: float, high: float) -> None:
    job = Job(
        pattern="sequential",
        block_sizes=(BlockSize(131072),),
        volume_bytes=4 * MIB,
        compressible_pct=asked,
    )
    with opened(loop) as engine:
        engine.run(Workload("w", (job,)))
    data = Path(loop).read_bytes()[: 4 * MIB]
    assert low <= len(zlib.compress(data, 1)) / len(data) <= high


def test_trims_and_flushes(loop: str) -> None:
    with opened(loop) as engine:
        trim = Job(trim_pct=100, block_sizes=(BlockSize(65536),), ios=100)
        assert engine.run(Workload("t", (trim,))).total("trim") == (100, 100 * 65536)
        flushed = engine.run(Workload("f", (Job(ios=100, flush_every_writes=10),)))
        assert raw_jobs(flushed)[0]["sync"]["total_ios"] == pytest.approx(10, abs=1)


def test_purge_identity_and_cache_of_a_loop_device(loop: str) -> None:
    with opened(loop) as engine:
        engine.run(Workload("w", (Job(ios=64),)))
        report = engine.purge()
        assert (report.method, report.conformant) == ("blkdiscard", False)
        identity = engine.identify()
        assert (identity.capacity_bytes, identity.sector_bytes) == (128 * MIB, 512)
        assert (identity.serial, identity.interface) == (None, "loop")
        assert "no settable write cache" in engine.set_write_cache(False).note
    with open(loop, "rb") as file:
        assert not any(file.read())


def test_streams_that_cannot_be_applied_are_refused(loop: str) -> None:
    with (
        opened(loop) as engine,
        pytest.raises(EngineError, match=f"{Path(loop).name} is neither an NVMe nor a SCSI drive"),
    ):
        engine.run(Workload("w", (Job(ios=8, stream=1),)))


@pytest.mark.measures
def test_killed_in_the_middle_keeps_what_was_measured(loop: str) -> None:
    def kill(progress: Progress) -> None:
        if progress.ios and progress.elapsed_ns > SECOND // 2:
            os.kill(fio_children()[0], signal.SIGKILL)

    with opened(loop) as engine:
        with pytest.raises(EngineError, match="fio failed: killed by SIGKILL") as caught:
            job = Job(duration_ns=20 * SECOND)
            engine.run(Workload("w", (job,), interval_ns=SECOND // 5), kill)
        partial = caught.value.partial
        assert partial is not None
        assert partial.total("write")[0] > 0
        assert SECOND // 2 < partial.elapsed_ns < 10 * SECOND
        assert partial.intervals["ios"].sum() == partial.total()[0]
        assert engine.run(Workload("again", (Job(ios=8),))).total() == (8, 8 * 4096)


def test_ctrl_c_keeps_what_was_measured(loop: str) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.elapsed_ns > SECOND // 2:
            raise KeyboardInterrupt

    with opened(loop) as engine, pytest.raises(EngineError, match="interrupted") as caught:
        job = Job(duration_ns=20 * SECOND)
        engine.run(Workload("w", (job,), interval_ns=SECOND // 5), interrupt)
    assert caught.value.partial is not None
    assert caught.value.partial.total()[0] > 0


def test_reading_needs_no_serial_and_writing_is_refused(loop: str, image: Path) -> None:
    with FioEngine.open_device(loop, destroy_serial=None) as engine:
        result = engine.run(Workload("r", (Job(read_pct=100, ios=100),)))
        assert result.total("read") == (100, 100 * 4096)
        for forbidden in (
            lambda: engine.run(Workload("w", (Job(ios=1),))),
            engine.purge,
            lambda: engine.set_write_cache(False),
        ):
            with pytest.raises(TargetError, match="is open for reading only"):
                forbidden()
    assert not any(image.read_bytes())


def test_file_target(tmp_path: Path) -> None:
    path = tmp_path / "target.img"
    with FioEngine.open_file(path, size_bytes=16 * MIB) as engine:
        identity = engine.identify()
        assert (identity.target, identity.capacity_bytes) == (f"file:{path}", 16 * MIB)
        result = engine.run(Workload("w", (Job(ios=500, queue_depth=8),)))
        assert result.total() == (500, 500 * 4096)
        assert engine.purge().method == "punch hole"
        with pytest.raises(EngineError, match="cannot trim regular files"):
            engine.run(Workload("t", (Job(ios=1, trim_pct=100),)))
        with pytest.raises(EngineError, match="cannot be restored"):
            engine.restore(tmp_path / "state")
        assert engine.save(tmp_path / "state") is False
    assert path.stat().st_size == 16 * MIB
    with pytest.raises(EngineError, match="closed"):
        engine.run(Workload("w", (Job(ios=1),)))


def test_a_file_of_a_decimal_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Accept sizes such as 10GB, which are not multiples of 4096 bytes."""
    load, path = tmp_path / "w.toml", tmp_path / "target.img"
    load.write_text('name = "w"\n[[job]]\nname = "j"\nios = 100\n')
    cli = CommandLine(capsys)
    # The last run repeats the command without --size.
    for run, size in enumerate(("--size 10MB", "--size 10MB", "")):
        output = cli(f"run {load} --on file:{path} {size} --output {tmp_path / str(run)}")
        assert output.code == 0, output.err
        rounded = f"{path}: the size was rounded down to whole sectors: 9998336 bytes"
        assert (rounded in output.err) == bool(size)
    assert path.stat().st_size == 9_998_336


def test_a_full_disk_is_reported_in_fios_words(tmp_path: Path, attach: Callable[..., str]) -> None:
    mkfs = find_tool("mkfs.ext4")
    if mkfs is None:
        pytest.skip("mkfs.ext4 is not installed")
    small = tmp_path / "small.img"
    small.write_bytes(bytes(16 * MIB))
    subprocess.run([mkfs, "-q", "-F", str(small)], check=True)
    mount = tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["mount", attach(small), str(mount)], check=True)
    try:
        path = mount / "sparse.img"
        with path.open("wb") as file:
            file.truncate(8 * MIB)
        fill = Job(pattern="sequential", block_sizes=(BlockSize(65536),), volume_bytes=8 * MIB)
        # The file system has enough free space.
        with FioEngine.open_file(path, size_bytes=None) as engine:
            (mount / "other.img").write_bytes(bytes(9 * MIB))
            with pytest.raises(EngineError, match="No space left on device") as caught:
                engine.run(Workload("fill", (fill,)))
        assert "\n" not in str(caught.value)
        assert caught.value.partial is not None
        assert 0 < caught.value.partial.total()[1] < 8 * MIB
    finally:
        subprocess.run(["umount", str(mount)], check=True)

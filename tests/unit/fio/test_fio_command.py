"""Workloads as fio job files: exact text, and clear errors for features that fio lacks."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from tests.support.fio_target import DISK, FILE, FIO, GIB
from writecliff.engines.fio.capability import DataPlacement, Fio
from writecliff.engines.fio.command import Target, add_job, plan, section_name
from writecliff.engines.fio.section import Section
from writecliff.errors import EngineError
from writecliff.workload.model import Addresses, BlockSize, Job, Segments, Workload, Zone

GLOBAL = dedent("""\
    [global]
    filename=/dev/sdx
    ioengine=io_uring
    direct=1
    allow_file_create=0
    thread
    group_reporting
    exitall_on_error
    random_generator=tausworthe64
    randrepeat=0
    randseed=7
    lat_percentiles=1
    clat_percentiles=0
    slat_percentiles=0
    percentile_list=50:99:99.9:99.99:99.999
    """)


def text_of(*jobs: Job, target: Target = DISK, fio: Fio = FIO) -> str:
    return plan(Workload("w", jobs, seed=7), target, fio).text


def options_of(job: Job, target: Target = DISK) -> dict[str, str]:
    section = Section(job, [])
    add_job(section, target, FIO)
    return dict(section.options)


def warnings_of(job: Job) -> tuple[str, ...]:
    return plan(Workload("w", (job,)), DISK, FIO).warnings


def test_random_write_for_a_time() -> None:
    job = Job(name="wsat", threads=2, queue_depth=16, duration_ns=60_000_000_000)
    assert text_of(job) == GLOBAL + dedent("""\

        [0-wsat]
        new_group
        rw=randwrite
        bs=4096
        numjobs=2
        iodepth=16
        offset=0
        size=4294967296
        norandommap
        refill_buffers
        runtime=60000000us
        time_based
        """)


def test_two_jobs_with_everything_that_fio_can_do() -> None:
    mix = Job(
        name="composite load",
        read_pct=40,
        block_sizes=(BlockSize(512, 4), BlockSize(4096, 67), BlockSize(65536, 29)),
        align_bytes=4096,
        queue_depth=32,
        offset_bytes=1 << 20,
        range_bytes=GIB,
        addresses=Addresses("zoned", zones=(Zone(50, 5), Zone(30, 15), Zone(20, 80))),
        compressible_pct=25,
        duplicate_pct=30,
        start_delay_ns=2_000_000_000,
        ramp_ns=3_000_000_000,
        flush_every_writes=8,
        volume_bytes=100 << 20,
    )
    log = Job(
        name="log",
        pattern="sequential",
        block_sizes=(BlockSize(131072),),
        threads=4,
        thread_stride_bytes=GIB,
        volume_bytes=4 * GIB,
        rate_bytes_per_s=8 << 20,
        think_ns=5_000_000,
        think_after_ios=10,
    )
    assert text_of(mix, log) == GLOBAL + dedent("""\

        [0-composite-load]
        new_group
        rw=randrw
        rwmixread=40
        bssplit=512/4:4096/67:65536/29
        numjobs=1
        iodepth=32
        offset=1048576
        size=1073741824
        blockalign=4096
        norandommap
        random_distribution=zoned:50/5:30/15:20/80
        refill_buffers
        buffer_compress_percentage=25
        dedupe_percentage=30
        startdelay=2000000us
        ramp_time=3000000us
        fsync=8
        io_size=104857600

        [1-log]
        new_group
        rw=write
        bs=131072
        numjobs=4
        iodepth=1
        offset=0
        size=1073741824
        offset_increment=1073741824
        refill_buffers
        rate=,2097152
        thinktime=5000us
        thinktime_blocks=10
        io_size=1073741824
        """)
    assert plan(Workload("w", (mix, log)), DISK, FIO).warnings == ()


FAST = replace(DISK, fast=True)
LARGE = Job(block_sizes=(BlockSize(128 << 10),), queue_depth=32, ios=1)


@pytest.mark.parametrize(
    ("job", "target", "scrambled"),
    [
        (LARGE, FAST, True),
        (LARGE, DISK, False),  # A thread generates data faster than the drive accepts them.
        # With one buffer, all writes have equal data.
        (replace(LARGE, queue_depth=1), FAST, False),
        # The I/O rate limits the thread, not the data rate.
        (Job(queue_depth=256, ios=1), FAST, False),
        (replace(LARGE, compressible_pct=50), FAST, False),
        (replace(LARGE, duplicate_pct=50), FAST, False),
    ],
)
def test_data_are_generated_for_each_write_unless_that_caps_the_drive(
    job: Job, target: Target, scrambled: bool
) -> None:
    made = plan(Workload("w", (job,)), target, FIO)
    assert ("scramble_buffers=1\n" in made.text) is scrambled
    assert ("refill_buffers\n" in made.text) is not scrambled
    assert any("10 % compressible" in text for text in made.warnings) is scrambled


def test_dsync_opens_the_drive_so() -> None:
    job = Job(dsync=True, ios=1)
    assert options_of(job)["sync"] == "dsync"
    assert "fsync" not in options_of(job)
    assert "sync" not in options_of(replace(job, read_pct=100))
    old = plan(Workload("w", (job,)), DISK, replace(FIO, version=(3, 23), version_text="fio-3.23"))
    assert "fdatasync=1\n" in old.text
    assert old.warnings == (
        "job job: fio-3.23 cannot open files with O_DSYNC, so a flush follows each write instead",
    )


def test_reads_carry_no_data_options_and_do_not_write() -> None:
    job = Job(read_pct=100, ios=1000)
    assert "refill_buffers" not in options_of(job)
    assert options_of(job)["rw"] == "randread"
    assert not plan(Workload("w", (job,)), DISK, FIO).writes
    assert plan(Workload("w", (Job(ios=1),)), DISK, FIO).writes


@pytest.mark.parametrize(
    ("pattern", "read_pct", "trim_pct", "rw"),
    [
        ("random", 0, 0, "randwrite"),
        ("random", 100, 0, "randread"),
        ("random", 65, 0, "randrw"),
        ("random", 0, 100, "randtrim"),
        ("sequential", 0, 0, "write"),
        ("sequential", 100, 0, "read"),
        ("sequential", 5, 0, "rw"),
        ("sequential", 0, 100, "trim"),
    ],
)
def test_directions(pattern: str, read_pct: float, trim_pct: float, rw: str) -> None:
    job = Job(pattern=pattern, read_pct=read_pct, trim_pct=trim_pct, ios=8)  # type: ignore[arg-type]
    assert options_of(job)["rw"] == rw


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (Addresses("zipf", theta=1.2), "zipf:1.2:0.5"),
        (Addresses("hot_cold", zones=(Zone(90, 10),)), "zoned:90/10:10/90"),
        # An eighth of the range is not a whole percentage, so sizes are in bytes and end at block
        # boundaries.
        (
            Addresses("hot_cold", zones=(Zone(90, 12.5),)),
            f"zoned_abs:90/{GIB // 8}:10/{GIB // 8 * 7}",
        ),
    ],
)
def test_distributions(addresses: Addresses, expected: str) -> None:
    job = Job(ios=1, addresses=addresses, range_bytes=GIB)
    assert options_of(job)["random_distribution"] == expected


def test_zone_lengths_are_whole_blocks_of_the_whole_range() -> None:
    zones = (Zone(50, 100 / 3), Zone(30, 100 / 3), Zone(20, 100 / 3))
    job = Job(ios=1, addresses=Addresses("zoned", zones=zones), range_bytes=4096 * 1000)
    text = options_of(job)["random_distribution"].removeprefix("zoned_abs:")
    lengths = [int(part.split("/")[1]) for part in text.split(":")]
    assert sum(lengths) == 4096 * 1000
    assert all(length % 4096 == 0 for length in lengths)


def test_a_rate_is_split_over_threads_and_directions() -> None:
    job = Job(read_pct=65, threads=2, rate_iops=1000, duration_ns=10**9)
    reads, writes = (int(part) for part in options_of(job)["rate"].split(","))
    assert (reads, writes) == (650 * 4096 // 2, 350 * 4096 // 2)


def test_poisson_arrivals_need_whole_rates_and_say_what_is_rounded() -> None:
    job = Job(threads=2, rate_iops=2000, arrival="poisson", duration_ns=10**9)
    assert options_of(job)["rate_iops"] == ",1000"
    assert options_of(job)["rate_process"] == "poisson"
    assert warnings_of(job) == ()
    fast = Job(rate_iops=30_000, arrival="poisson", duration_ns=10**9)
    assert warnings_of(fast) == (
        "job job: fio rounds 30000 poisson arrivals per second to 30766.8",
    )


def test_ends() -> None:
    both = options_of(Job(duration_ns=10**9, volume_bytes=1 << 20, threads=2))
    assert (both["runtime"], both["io_size"]) == ("1000000us", str(1 << 19))
    assert "time_based" not in both
    count = options_of(Job(ios=100, threads=4))
    assert (count["number_ios"], count["io_size"]) == ("25", str(25 * 4096))
    uneven = options_of(Job(volume_bytes=10_000, threads=2))
    # The size is a whole number of blocks and at least the volume.
    assert uneven["io_size"] == str(2 * 4096)


def test_threads_that_leave_their_stride_are_warned_of() -> None:
    job = Job(
        pattern="sequential",
        threads=2,
        thread_stride_bytes=GIB,
        duration_ns=10**9,
        range_bytes=None,
    )
    (warning,) = warnings_of(job)
    assert "stays within its stride" in warning


def test_streams_are_applied_where_possible_and_refused_where_not() -> None:
    job = Job(name="hot", stream=2, ios=1)
    with pytest.raises(EngineError, match="stream 2: sdx is not an NVMe drive") as refused:
        plan(Workload("w", (job,)), DISK, FIO)
    assert "writecliff device probe" in str(refused.value.hint)
    assert "plids" not in plan(Workload("w", (Job(ios=1),)), DISK, FIO).text
    drive = Target("/dev/nvme0n1", GIB, 512, False, DataPlacement("fdp", "/dev/ng0n1", 8))
    applied = plan(Workload("w", (job, Job(name="cold", ios=1))), drive, FIO)
    (warning_text,) = applied.warnings
    assert (
        warning_text
        == "streams are placement handles of the drive, by NVMe passthrough on /dev/ng0n1"
    )
    assert "filename=/dev/ng0n1\nioengine=io_uring_cmd\ncmd_type=nvme\n" in applied.text
    hot, cold = applied.text.split("[1-cold]")
    assert hot.rstrip().endswith("dataplacement=fdp\nplids=2")
    assert "plids" not in cold
    with pytest.raises(
        EngineError, match="stream 9 does not exist: the drive has placement handles 0 to 7"
    ):
        plan(Workload("w", (Job(stream=9, ios=1),)), drive, FIO)


def test_streams_as_hints_where_the_kernel_takes_them_for_streams() -> None:
    nodes = tuple(f"/dev/w/hint-{hint}" for hint in range(6))
    drive = Target("/dev/sdx", GIB, 512, False, DataPlacement("hint", "", 4, nodes))
    applied = plan(Workload("w", (Job(stream=3, ios=1), Job(ios=1))), drive, FIO)
    every, _, jobs = applied.text.partition("[0-")
    # fio would use a global file name in addition to the job's own.
    assert "filename=" not in every
    first, second = jobs.split("\n\n")
    assert "filename=/dev/w/hint-3\n" in first + "\n"
    assert "filename=/dev/w/hint-0\n" in second + "\n"
    # The hint belongs to the inode, so all jobs on it would share the hint.
    assert "write_hint" not in applied.text
    assert "io_uring_cmd" not in applied.text and applied.counted
    assert applied.warnings[0].startswith("streams are write hints")
    with pytest.raises(
        EngineError, match="stream 4 does not exist: the drive has write streams by hints up to 3"
    ):
        plan(Workload("w", (Job(stream=4, ios=1),)), drive, FIO)


def test_libaio_and_escaped_paths() -> None:
    old = Fio("/usr/bin/fio", (3, 20), "fio-3.20", "libaio")
    target = Target("/data/a:b.img", GIB, 512, True, "")
    text = text_of(Job(ios=1), target=target, fio=old)
    assert "filename=/data/a\\:b.img\nioengine=libaio\n" in text


def test_names_mean_nothing_to_fio() -> None:
    assert section_name(0, "global") == "0-global"
    assert section_name(3, "4k ${HOME}]") == "3-4k-HOME-"


def test_segments_are_strided_zones_that_reach_the_end_of_the_drive() -> None:
    offset = GIB
    job = Job(ios=1, offset_bytes=offset, segments=Segments(2048, GIB))
    options = options_of(job)
    size, pitch = int(options["zonerange"]), int(options["zonerange"]) + int(options["zoneskip"])
    assert (options["zonemode"], options["zonesize"], size) == ("strided", "512", GIB // 2048)
    assert 2048 * pitch >= 4 * GIB - offset  # fio starts over at the end of the device.
    assert offset + 2047 * pitch + size <= 4 * GIB
    assert any("evenly spaced" in text for text in warnings_of(job))


def test_streams_pass_through_each_segment() -> None:
    segments = Segments(2048, GIB)
    job = Job(ios=1, pattern="sequential", offset_bytes=GIB, segments=segments)
    first, later = options_of(job), options_of(replace(job, start_bytes=300 * (GIB // 2048)))
    assert first["zonesize"] == first["zonerange"] == str(GIB // 2048)
    pitch = int(first["zonerange"]) + int(first["zoneskip"])
    assert int(later["offset"]) == GIB + 300 * pitch and later["zoneskip"] == first["zoneskip"]
    assert int(later["offset"]) + int(later["size"]) == 4 * GIB


def test_sequential_shares_are_percentages_of_random_ios() -> None:
    job = Job(ios=1, read_pct=95, sequential_read_pct=100 * 24 / 95, sequential_write_pct=20)
    options = options_of(job)
    assert (options["rw"], options["rwmixread"]) == ("randrw", "95")
    assert options["percentage_random"] == "75,80"
    assert any("25 % of an operation's I/Os are sequential" in text for text in warnings_of(job))


REFUSED = [
    (
        Job(ios=1, range_bytes=2 * GIB, segments=Segments(2048, GIB)),
        "to the end of the target",
    ),
    (
        Job(
            ios=1,
            segments=Segments(8, GIB),
            block_sizes=(BlockSize(4096), BlockSize(8192)),
            align_bytes=4096,
        ),
        "would cross segment boundaries",
    ),
    (
        Job(ios=1, pattern="sequential", segments=Segments(8, GIB), start_bytes=4096),
        "start_bytes is supported only on simulated",
    ),
    (
        Job(
            ios=2,
            pattern="sequential",
            segments=Segments(8, GIB),
            threads=2,
            thread_stride_bytes=GIB // 2,
        ),
        "leave their segments",
    ),
    (
        Job(ios=1, pattern="sequential", start_bytes=4096),
        "start_bytes is supported only on simulated",
    ),
    (Job(), "has no stop condition"),
    (Job(ios=1, read_pct=65.5), "read_pct 65.5 % is not a whole percent"),
    (Job(ios=1, read_pct=50, trim_pct=10), "cannot mix trims"),
    (Job(ios=1, block_sizes=(BlockSize(1000),)), "512-byte sectors"),
    (Job(ios=1, block_sizes=()), "has no block size"),
    (
        Job(ios=1, block_sizes=(BlockSize(4096), BlockSize(8192, 2)), align_bytes=4096),
        "share of block size 4096 33.3333 %",
    ),
    (Job(ios=1, block_sizes=(BlockSize(4096), BlockSize(8192))), "aligns all I/Os of a mix"),
    (Job(ios=1, offset_bytes=4 * GIB), "not within the target"),
    (Job(ios=1, offset_bytes=GIB, range_bytes=4 * GIB), "not within the target"),
    (Job(ios=1, range_bytes=512), "smaller than its block size"),
    (Job(ios=1, offset_bytes=100), "not a multiple of 512"),
    (Job(ios=1, addresses=Addresses("zipf", theta=1.0)), "does not support zipf with theta 1"),
    (
        Job(ios=1, addresses=Addresses("hot_cold", zones=(Zone(90, 10),), scatter_bytes=4096)),
        "its zones are contiguous",
    ),
    (Job(ios=1, addresses=Addresses("zipf")), "require a theta"),
    (Job(ios=1, addresses=Addresses("zoned", zones=(Zone(50, 50),))), "add up to 50"),
    (Job(ios=1, addresses=Addresses("hot_cold", zones=(Zone(99.5, 5),))), "whole percent"),
    (Job(ios=1, pattern="sequential", addresses=Addresses("zipf", theta=2)), "only random jobs"),
    (Job(ios=1, rate_iops=1, rate_bytes_per_s=1), "are mutually exclusive"),
    (Job(ios=1, arrival="poisson"), "require a rate"),
    (Job(ios=2, threads=2, rate_iops=1, arrival="poisson"), "less than 1 IOPS per operation"),
    (Job(ios=1, think_ns=500), "whole microseconds"),
    (Job(ios=5, threads=2), "are not divisible"),
    (Job(ios=1, compressible_pct=33.3), "compressible_pct 33.3 %"),
    (Job(ios=1, duplicate_pct=33.3), "duplicate_pct 33.3 %"),
    (Job(ios=1, threads=0), "must each be at least 1"),
    (
        Job(ios=4, pattern="sequential", threads=4, thread_stride_bytes=2 * GIB),
        "exceed the range",
    ),
]


@pytest.mark.parametrize(("job", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_fio_cannot_express_is_refused(job: Job, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        plan(Workload("w", (job,)), DISK, FIO)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_cannot_be_trimmed_and_odd_paths_are_refused() -> None:
    with pytest.raises(EngineError, match="cannot trim regular files"):
        plan(Workload("w", (Job(ios=1, trim_pct=100),)), FILE, FIO)
    odd = Target("/data/${HOME}.img", GIB, 512, True, "")
    with pytest.raises(EngineError, match="job files do not allow"):
        plan(Workload("w", (Job(ios=1),)), odd, FIO)

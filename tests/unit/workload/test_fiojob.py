"""Reader of job files: conversion of each option, and errors for unsupported options."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import FioJobFile, read_fio_job
from writecliff.workload.fiojob.syntax import TOGETHER_MAX
from writecliff.workload.model import (
    Addresses,
    BlockSize,
    Job,
    LatencyTarget,
    LeastRate,
    OwnBlocks,
    SteadyEnd,
    Zone,
)

CAPACITY = 1 << 30
KIB, MIB, US, MS, S = 1024, 1 << 20, 1000, 10**6, 10**9


def _only_job(job_file: FioJobFile) -> Job:
    (workload,) = job_file.workloads
    (job,) = workload.jobs
    return job


# Options added one at a time to a plain job, and the job fields that they set.
FIELDS: list[tuple[str, dict[str, object]]] = [
    ("rw=randwrite", {"pattern": "random", "read_pct": 0.0}),
    ("rw=randread", {"pattern": "random", "read_pct": 100.0}),
    ("rw=write", {"pattern": "sequential", "read_pct": 0.0}),
    ("rw=rw", {"pattern": "sequential", "read_pct": 50.0}),
    ("rw=randrw\nrwmixread=65", {"pattern": "random", "read_pct": 65.0}),
    ("rw=randrw\nrwmixwrite=65", {"read_pct": 35.0}),
    ("rw=randtrim", {"pattern": "random", "read_pct": 0.0, "trim_pct": 100.0}),
    ("rw=trim\nbs=4k,8k,64k", {"trim_pct": 100.0, "block_sizes": (BlockSize(64 * KIB),)}),
    ("bs=(4k*2)", {"block_sizes": (BlockSize(8 * KIB),)}),
    ("iodepth=32", {"queue_depth": 32}),
    ("iodepth=32\nioengine=psync", {"queue_depth": 1}),
    ("iodepth=32\nrw=randtrim", {"queue_depth": 1}),
    ("numjobs=4\ngroup_reporting", {"threads": 4, "volume_bytes": 4 * MIB}),
    ("numjobs=4\ngroup_reporting\nnumber_ios=10", {"ios": 40}),
    ("numjobs=4\ngroup_reporting\nrate_iops=100", {"rate_iops": 400.0}),
    ("rate=1m", {"rate_bytes_per_s": 1.0 * MIB}),
    ("rate_iops=250\nrate_process=poisson", {"rate_iops": 250.0, "arrival": "poisson"}),
    ("rate=1m\nrate_process=poisson\nbs=4k", {"rate_iops": 256.0, "arrival": "poisson"}),
    ("rw=randrw\nrate_iops=300,100", {"rate_iops": 400.0, "read_pct": 50.0, "rate_read_pct": 75.0}),
    ("rate_iops=9\nthinktime=1ms\nrate_ignore_thinktime=1", {"rate_ignores_think": True}),
    ("rw=randread\nbssplit=4k/50:8k/50", {"addresses": Addresses("once")}),
    ("runtime=90", {"duration_ns": 90 * S, "volume_bytes": MIB}),
    ("runtime=500ms\ntime_based", {"duration_ns": 500 * MS, "volume_bytes": None}),
    ("runtime=2m\ntime_based\nnumber_ios=5", {"duration_ns": 120 * S, "ios": None}),
    ("timeout=1h\ntime_based=1", {"duration_ns": 3600 * S}),
    ("time_based", {"duration_ns": None, "volume_bytes": MIB}),
    ("thinktime=50\nthinktime_blocks=8", {"think_ns": 50 * US, "think_after_ios": 8}),
    ("thinktime=2ms", {"think_ns": 2 * MS, "think_after_ios": 1}),
    ("thinktime=2ms\nthinktime_iotime=3", {"burst_ns": 3000 * MS, "pause_ns": 2 * MS}),
    ("thinktime_iotime=3", {"burst_ns": 0, "think_ns": 0}),
    ("startdelay=3", {"start_delay_ns": 3 * S}),
    ("fsync=16\nrw=write", {"flush_every_writes": 16}),
    ("fdatasync=1\nrw=write", {"flush_every_writes": 1}),
    ("fsync=16\nrw=read", {"flush_every_writes": 0}),
    ("sync=dsync\nrw=write", {"dsync": True, "flush_every_writes": 0}),
    ("sync=0\nrw=write", {"dsync": False, "flush_every_writes": 0}),
    ("buffer_compress_percentage=40", {"compressible_pct": 40.0}),
    ("dedupe_percentage=30", {"duplicate_pct": 30.0}),
    ("zero_buffers", {"compressible_pct": 100.0}),
    ("zero_buffers=0", {"compressible_pct": 0.0}),
    ("buffer_pattern=0xdeadbeef", {"compressible_pct": 100.0}),
    ("rw=write\nwrite_hint=short", {"stream": 2}),
    ("rw=write\nwrite_hint=extreme", {"stream": 5}),
    ("rw=read\nwrite_hint=short", {"stream": 0}),
    ("rw=write\nfdp=1\nplids=3", {"stream": 3}),
    ("rw=write\ndataplacement=streams\nplids=2\nplid_select=roundrobin", {"stream": 2}),
    ("rw=write\nplids=3", {"stream": 0}),
    ("rw=randread\nblockalign=64k", {"align_bytes": 64 * KIB}),
    ("rw=randread\nbssplit=4k/30:64k/70",
     {"align_bytes": 4 * KIB, "block_sizes": (BlockSize(4 * KIB, 30.0), BlockSize(64 * KIB, 70.0))}),
    ("rw=randread\nrandom_distribution=zipf:1.2",
     {"addresses": Addresses("zipf", theta=1.2, generator="fio")}),
    ("rw=randread\nrandom_distribution=zipf", {"addresses": Addresses("zipf", theta=1.1, generator="fio")}),
    ("rw=randwrite\nrandom_distribution=zoned:50/50:50/50,90/10:10/90",
     {"addresses": Addresses("zoned", zones=(Zone(90.0, 10.0), Zone(10.0, 90.0)))}),
    ("rw=randread\nrandom_distribution=zoned:80/10:20/40",
     {"range_bytes": MIB // 2, "addresses": Addresses(
         "zoned", zones=(Zone(80.0, 20.0), Zone(20.0, 80.0)))}),
    ("rw=read\nrandom_distribution=zipf:1.2", {"addresses": Addresses()}),
    ("rw=randread\nrandom_distribution=pareto:0.3",
     {"addresses": Addresses("pareto", hot_pct=30.0)}),
    ("rw=randread\nrandom_distribution=normal:0",
     {"addresses": Addresses("normal", deviation_pct=100 / 12)}),
    ("rw=randrw\nbs=4k,8k",
     {"block_sizes": (BlockSize(4 * KIB),), "writes": OwnBlocks((BlockSize(8 * KIB),))}),
    ("rw=randrw\nbssplit=4k/50:8k/50,16k",
     {"align_bytes": 4 * KIB, "writes": OwnBlocks((BlockSize(16 * KIB),))}),
    ("rw=rw\nbsrange=4k-4k,4k-8k",
     {"block_sizes": (BlockSize(4 * KIB),), "writes": OwnBlocks(
         (BlockSize(4 * KIB, 4096.0), BlockSize(8 * KIB, 4096.0 + 0.0)))}),
    ("rw=randrw\nblockalign=4k,8k",
     {"align_bytes": 4 * KIB, "writes": OwnBlocks((BlockSize(4 * KIB),), 8 * KIB)}),
    ("rw=randrw\nbs=4k,16k\nrate=1m,1m", {"rate_read_pct": 50.0, "rate_bytes_per_s": 2.0 * MIB}),
    ("rw=randread:8", {"run_ios": 8, "hole_bytes": 0}),
    ("rw=read:-8k", {"run_ios": 1, "hole_bytes": -8 * KIB}),
    ("rw=trimwrite", {"trim_first": True, "trim_pct": 0.0, "volume_bytes": 2 * MIB}),
    ("nrfiles=4", {"files": 4}),
    ("nrfiles=4\nfile_service_type=sequential", {"files": 1}),
    ("nrfiles=4\nrw=randread", {"files": 1}),
    ("nrfiles=4\nfilesize=64k\nsize=0", {"files": 4, "range_bytes": 256 * KIB}),
    ("rw=write\nfdp=1\nplids=1,3-4", {"stream": 0, "streams": (1, 3, 4)}),
    ("rw=write\nfdp=1\nplids=1,2\nplid_select=random", {"stream_order": "random"}),
    ("rw=write\nwritefua=1", {"dsync": True}),
    ("ss=iops:2%\nss_dur=30\nss_ramp=5s", {"until_steady": SteadyEnd(
        metric="iops", limit=2.0, window_ns=30 * S, ramp_ns=5 * S)}),
    ("ss=lat_slope:50us\nss_dur=20\nss_interval=2", {"until_steady": SteadyEnd(
        metric="latency", limit=50_000.0, relative=False, slope=True, window_ns=20 * S,
        check_ns=2 * S)}),
    ("latency_target=500\nlatency_window=5s\nlatency_percentile=99.9",
     {"latency_target": LatencyTarget(latency_ns=500 * US, percentile=99.9, window_ns=5 * S)}),
    ("rate_iops_min=100", {"least_rates": (LeastRate(operation=0, iops=100.0),)}),
    ("rw=randrw\nrate_min=1m,2m\nratecycle=500\nnumjobs=2\ngroup_reporting", {"least_rates": (
        LeastRate(operation=0, bytes_per_s=2.0 * MIB, cycle_ns=500 * MS),
        LeastRate(operation=1, bytes_per_s=4.0 * MIB, cycle_ns=500 * MS))}),
    ("verify=crc32c\nprio=3\ncmdprio_percentage=20\npool=x", {"volume_bytes": MIB}),
    ("percentage_random=0", {}),
    ("rw=randwrite\npercentage_random=50,100", {"sequential_write_pct": 0.0}),
    (
        "rw=randrw\npercentage_random=75,80",
        {"sequential_read_pct": 25.0, "sequential_write_pct": 20.0},
    ),
    ("kb_base=1000\nsize=512k\nbs=512", {"volume_bytes": 512_000}),
    ("exitall", {"ends_all": True}),
    ("rw=read\nzonemode=strided\nzonesize=64k\nzoneskip=2g",
     {"hole_bytes": 2 << 30, "hole_after_bytes": 64 * 1024}),
    ("rw=read\nzonesize=64k\nzonerange=128k",
     {"hole_bytes": 64 * 1024, "hole_after_bytes": 64 * 1024}),
    ("rw=read\nzonesize=64k", {"hole_bytes": 0}),
    ("name=other", {"name": "other"}),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "fields"), FIELDS, ids=[extra for extra, _ in FIELDS])
def test_option_sets_its_fields(extra: str, fields: dict[str, object], load) -> None:  # type: ignore[no-untyped-def]
    engine = "" if "ioengine" in extra else "ioengine=libaio\n"
    job_file = load(f"[j]\nsize=1m\n{engine}{extra}\n")
    job = _only_job(job_file)
    _native.check_workload(job_file.workloads[0].to_json(), CAPACITY, 8)
    assert {key: getattr(job, key) for key in fields} == fields


REFUSALS: list[tuple[str, str, str]] = [
    (
        "blocksize_unalign",
        "unknown option 'blocksize_unalign'",
        "did you mean 'blocksize_unaligned'?",
    ),
    ("iodpeth=4", "unknown option 'iodpeth'", "did you mean 'iodepth'?"),
    ("zzzzqqqq=1", "unknown option 'zzzzqqqq'", "docs"),
    ("exec_prerun=rm -rf /", "option exec_prerun is not supported", "not executed"),
    ("rw=randread\nzonesize=64k\nzoneskip=1m", "random I/O in strided zones", "a job for each"),
    ("rw=read:4k\nzonesize=64k\nzoneskip=1m", "holes within zones", ""),
    (
        "rw=read\nzonesize=64k\nzoneskip=1000",
        "zoneskip is not a multiple of the sector size",
        "512",
    ),
    ("profile", "option profile is not supported", "built-in"),
    ("flow=2\nrate_iops=100", "flow cannot be combined with rates", "remove either flow"),
    ("rate_process=poisson\nrate=2\nbs=4k", "too slow", ""),
    ("rw=randrw\nrate_iops=100,", "a limit must apply to both read and write", "limit both"),
    ("rw=randtrim\npercentage_random=50", "may be partly sequential", "remove percentage_random"),
    ("rw=randread:4\npercentage_random=50", "may be partly sequential", "remove percentage_random"),
    (
        "rw=randread\nrandom_distribution=pareto:1.2",
        "the pareto parameter h 1.2 is out of range",
        "below 1",
    ),
    ("rw=randread\nrandom_distribution=sequence:", "not a list of 1 to 64", "sequence:2,0,1"),
    ("rw=randread:0", "rw=randread:0: a run of 0 I/Os", "1 or more"),
    ("rw=read:100", "hole of 100 bytes", "multiple of 512"),
    (
        "rw=randread:8\nrw_sequencer=identical",
        "several I/Os to the same address",
        "omit rw_sequencer",
    ),
    ("nrfiles=300", "1048576 bytes in 300 files", "fewer files"),
    ("read_iolog=/none/there", "cannot read /none/there: no such file", ""),
    ("verify_only=1", "option verify_only is not supported", "data are not stored"),
    ("ss=iops", "'iops' has no limit", "iops:2%"),
    ("ss=waf:2%", "'waf' is unknown", "use iops, bw or lat"),
    ("ss=bw:1%\nss_dur=1", "shorter than two check intervals", "longer"),
    ("latency_target=500", "requires a latency_window", "latency_window=5s"),
    ("ioengine=nfs", "files or objects of a server", "libaio"),
    ("ioengine=libai", "ioengine=libai is unknown", "did you mean 'libaio'?"),
    ("rw=randread\nrandom_distribution=zoned_abs:50/1m:50/1m", "exceed the range", "larger size"),
    (
        "rw=randrw\nrandom_distribution=zoned:50/50:50/50,90/10:10/90",
        "different zones",
        "a separate job for each",
    ),
    ("size=2g", "more than the drive's", "100%"),
    ("offset=2g", "beyond the drive", "smaller"),
    ("offset=100%", "beyond the drive", "smaller"),
    ("size=1.5m", "not a whole number", "decimal point"),
    ("size=1x", "unknown size unit", "use the unit k"),
    ("size=3z", "zones", ""),
    ("size=120%", "percentage must be 0% to 100%", ""),
    ("bs=1000", "not a multiple of the drive's sector size", "512"),
    ("bs=4k,8k,16k,32k", "more than three comma-separated values", "read,write,trim"),
    ("runtime=10min", "microseconds", "us, ms, s, m, h or d"),
    ("runtime=10:30", "not a time", "30s"),
    ("iodepth=0", "0 is out of range", "1 to 65536"),
    ("iodepth=8\nioengine=libaio\niodepth_low=4", "iodepth_low=4", "then stays full"),
    (
        "iodepth=8\nioengine=libaio\niodepth_batch_complete=4",
        "waiting for several",
        "then stays full",
    ),
    ("ioengine=cpuio", "uses the processor", "libaio"),
    ("ioengine=psync\nio_submit_mode=offload", "offload", "libaio"),
    ("filename=/dev/sda:/dev/sdb", "several drives", "each"),
    ("rw=write\nfsync=4\nfdatasync=8", "different intervals", "remove either fsync"),
    ("rw=write\nfdp=1", "plids is missing", "plids=0-3"),
    (
        "rw=write\nwrite_hint=short\nfdp=1\nplids=7",
        "different streams",
        "remove one of these options",
    ),
    ("rw=write\ndataplacement=fdp\nplid_select=scheme\nplids=1", "scheme", "range"),
    ("bssplit=4k/80:8k/50", "add up to 130 %", ""),
    ("bssplit=4k/50\nbsrange=4k-8k", "are mutually exclusive", "remove one of the two options"),
    ("direct=yes", "neither 0 nor 1", ""),
    (
        "rate=1m\nthinktime=1ms\nthinktime_iotime=1",
        "thinktime_iotime and rate",
        "remove one of the two options",
    ),
    (
        "thinktime=1ms\nthinktime_iotime=1\nthinktime_blocks=2",
        "thinktime_blocks",
        "remove one of the two options",
    ),
    ("fill_device=1\nrw=randwrite", "requires sequential writes", "size=100%"),
    ("filesize=1m-2m", "random file sizes", "filesize="),
    ("percentile_list=0:50", "not a valid percentile", "100"),
    ("size=8*$mb_memory/0", "division by zero", ""),
    ("bs=${NO_SUCH_VARIABLE}", "environment variable NO_SUCH_VARIABLE is not set", "NO_SUCH"),
    ("include missing.fio", "include", ""),
    ("numjobs=1m", "out of range", "1 to 4096"),
    ("number_ios=99999999999999999999p", "too large", ""),
    ("number_ios=8000p\nloops=2000000", "too large", ""),
    ("rate=2t", "too fast", ""),
    ("runtime=999999999999h", "too long", ""),
    (
        "rw=randread\nrandom_distribution=zipf:nan",
        "the zipf theta nan is out of range",
        "at most 10",
    ),
    ("iodepth", "option iodepth requires a value", ""),
    ("description=", "the value is missing", ""),
]


@pytest.mark.parametrize(("extra", "message", "hint"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_refusal_names_file_line_and_reason(extra: str, message: str, hint: str, load) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as caught:
        load(f"[j]\nsize=1m\n{extra}\n", environment={})
    text = str(caught.value)
    place, _, rest = text.partition(": ")
    name, _, line = place.rpartition(":")
    assert name.endswith("job.fio") and 1 <= int(line) <= 2 + extra.count("\n") + 1
    assert message in rest and "\n" not in text
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no job"),
        ("[global]\nbs=4k\n", "contains no job"),
        ("bs=4k\n[j]\n", "job.fio:1: 'bs=4k' is outside any section"),
        ("[j\nsize=1m\n", "job.fio:1: '[j' is not a valid section heading"),
        ("[j]\nsize=1m\n=4k\n", "contains no option name"),
        ("[j]\nsize=1m\n\0", "not a text file"),
    ],
)
def test_broken_files(text: str, message: str, load) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert message in str(caught.value)


def test_all_problems_of_a_file_are_told_at_once(load) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as caught:
        load(
            "[global]\nsize=1m\n[a]\nbs=1000\nioengine=libaio\niodepth=4\niodepth_low=2\n"
            "[b]\niodpeth=4\nopendir=/x\n[c]\nbs=${NONE}\n[d]\nioengine=net\nbs=77\n",
            environment={},
        )
    first, *lines = str(caught.value).split("\n")
    assert first.endswith("job.fio: the file has 6 problems")
    numbers = sorted(int(line.split("job.fio:")[1].split(":")[0]) for line in lines)
    assert numbers == [4, 7, 9, 10, 12, 14], lines
    assert "(did you mean 'iodepth'?)" in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.fio: no such file"):
        read_fio_job(tmp_path / "gone.fio", device_capacity_bytes=CAPACITY)
    with pytest.raises(ConfigError, match="is a directory"):
        read_fio_job(tmp_path, device_capacity_bytes=CAPACITY)


def test_refused_options_are_accepted_with_a_value_without_effect(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load("[j]\nsize=1m\nverify=0\nzonemode=none\nrate_min=0\ndo_verify=0\ndirect=1\n")
    assert _only_job(job_file).volume_bytes == MIB
    assert job_file.notes == ()


def test_global_sections_add_up_and_concern_later_jobs_only(load) -> None:  # type: ignore[no-untyped-def]
    text = """
    ; a comment
    [global]
    size=1m        # another
    ioengine=libaio
    iodepth=4
    [a]
    [global]
    iodepth=8
    [b]
    rw=randwrite
    norandommap
    [c]
    iodepth=2
    """
    job_file = load(text)
    (workload,) = job_file.workloads
    assert [(job.name, job.queue_depth) for job in workload.jobs] == [("a", 4), ("b", 8), ("c", 2)]
    assert job_file.global_options == {"size": "1m", "ioengine": "libaio", "iodepth": "8"}
    options = dict(job_file.steps[0].sections[1].options)
    assert options == {"rw": "randwrite", "norandommap": ""}


def test_includes_are_relative_and_errors_name_their_line(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.inc").write_text("ioengine=libaio\ninclude two.inc\n")
    (tmp_path / "parts" / "two.inc").write_text("\niodepth=16\n")
    assert _only_job(load("[j]\nsize=1m\ninclude parts/one.inc\n")).queue_depth == 16
    (tmp_path / "parts" / "two.inc").write_text("\nqueue=16\n")
    with pytest.raises(ConfigError, match=r"two\.inc:2: unknown option 'queue'"):
        load("[j]\nsize=1m\ninclude parts/one.inc\n")
    (tmp_path / "parts" / "two.inc").write_text("[k]\n")
    with pytest.raises(
        ConfigError, match=r"two\.inc:1: the included file contains the section \[k\]"
    ):
        load("[j]\nsize=1m\ninclude parts/one.inc\n")
    (tmp_path / "parts" / "two.inc").write_text("include two.inc\n")
    with pytest.raises(ConfigError, match="include each other"):
        load("[j]\nsize=1m\ninclude parts/one.inc\n")


def test_environment_and_keywords(load) -> None:  # type: ignore[no-untyped-def]
    text = "[j]\nsize=${AMOUNT}m\nbs=2*$pagesize\n"
    job = _only_job(load(text, environment={"AMOUNT": "3"}))
    page = os.sysconf("SC_PAGE_SIZE")
    assert job.volume_bytes == 3 * MIB and job.block_sizes == (BlockSize(2 * page),)


@pytest.mark.parametrize(
    ("text", "value"),
    [("(4k*2)", 8192), ("(2^3*512-1k)", 3072), ("(1m/3%4k)", 1365), ("(-(1-3)*512)", 1024)],
)
def test_sums_in_parentheses(text: str, value: int, load) -> None:  # type: ignore[no-untyped-def]
    assert _only_job(load(f"[j]\nsize=64m\nnumber_ios={text}\n")).ios == value


@pytest.mark.parametrize("text", ["(4k*2", "(4k**2)", "(4k)2k", "(4k/0)", "(2^99)", "(a)", "()"])
def test_broken_sums(text: str, load) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=r"job\.fio:3: number_ios: "):
        load(f"[j]\nsize=64m\nnumber_ios={text}\n")


def test_stonewall_makes_steps_and_new_group_does_not(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load(
        "[global]\nsize=1m\n[a]\nstonewall\n[b]\nnew_group\n[c]\nwait_for_previous\n[d]\nwait_for=c\n"
    )
    names = [[job.name for job in workload.jobs] for workload in job_file.workloads]
    assert names == [["a", "b"], ["c"], ["d"]]
    groups = [section.group_id for step in job_file.steps for section in step.sections]
    assert groups == [0, 1, 2, 2]
    assert [workload.name for workload in job_file.workloads] == ["job-1", "job-2", "job-3"]


def test_waiting_for_some_of_the_running_jobs_is_refused(load) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="only some of the running jobs"):
        load("[global]\nsize=1m\n[a]\n[b]\n[c]\nwait_for=a\n")


def test_stonewall_in_global_separates_all_jobs(load) -> None:  # type: ignore[no-untyped-def]
    assert len(load("[global]\nsize=1m\nstonewall\n[a]\n[b]\n[c]\n").workloads) == 3


def test_sections_can_be_chosen(load) -> None:  # type: ignore[no-untyped-def]
    text = "[global]\nsize=1m\n[a]\n[b]\nstonewall\nfilename=/dev/sdb\n[c]\nfilename=/dev/sdc\n"
    assert [job.name for job in load(text, sections=("b",)).workloads[0].jobs] == ["b"]
    with pytest.raises(ConfigError, match=r"no job section \[d\]"):
        load(text, sections=("a", "d"))
    with pytest.raises(ConfigError, match=r"different drives \(/dev/sdb, /dev/sdc\)"):
        load(text)


def test_files_share_the_drive_of_the_run(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load("[global]\nsize=1m\n[a]\nfilename=one\n[b]\nfilename=two\n")
    assert [note.split(":")[0] for note in job_file.notes] == ["filename=one", "filename=two"]
    assert all(note.endswith("whose addresses its jobs share") for note in job_file.notes)


def test_jobs_that_end_others(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load(
        "[global]\nsize=1m\nexitall\n[a]\nnew_group\n[b]\nexit_what=stonewall\nnew_group\n"
        "[c]\nstonewall\nexit_what=all\n[d]\nstonewall\n"
    )
    ends = {job.name: job.ends_all for load in job_file.workloads for job in load.jobs}
    # Job a is a separate group, and job d never runs.
    assert ends == {"a": False, "b": True, "c": True}
    assert any("exit_what=all: the steps after" in note for note in job_file.notes)
    with pytest.raises(ConfigError, match="one of several reporting groups"):
        load("[global]\nsize=1m\nexitall\n[a]\nnumjobs=2\n[b]\nnew_group\n")


def test_threads_with_their_own_ranges_are_jobs_of_their_own(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load("[j]\nsize=1m\nnumjobs=3\noffset=1m\noffset_increment=10%\ngroup_reporting\n")
    (workload,) = job_file.workloads
    step = -(-CAPACITY // 10 // 4096) * 4096
    starts = [job.offset_bytes for job in workload.jobs]
    assert starts[0] == MIB and len(starts) == 3
    assert all(start % 4096 == 0 for start in starts)
    assert abs(starts[2] - MIB - 2 * step) <= 8192
    assert [job.name for job in workload.jobs] == ["j.0", "j.1", "j.2"]
    assert all(job.volume_bytes == MIB and job.threads == 1 for job in workload.jobs)
    assert job_file.steps[0].sections[0].jobs == (0, 1, 2)


def test_each_job_has_its_own_ramp(load) -> None:  # type: ignore[no-untyped-def]
    job_file = load("[global]\nsize=1m\nruntime=10s\n[a]\nramp_time=5s\n[b]\n")
    (workload,) = job_file.workloads
    assert [job.ramp_ns for job in workload.jobs] == [5 * S, 0]
    assert {(job.duration_ns, job.volume_bytes) for job in workload.jobs} == {(10 * S, MIB)}


def test_start_delays_count_from_the_start_of_the_run(load) -> None:  # type: ignore[no-untyped-def]
    timed = "[global]\nsize=1m\ntime_based\nruntime=2\n[a]\nstartdelay=1\n[b]\nstonewall\n"
    for asked, left in ((5, 2), (3, 0), (1, 0)):
        workloads = load(f"{timed}startdelay={asked}\n").workloads
        assert [load.jobs[0].start_delay_ns for load in workloads] == [1 * S, left * S]
    ramped = "[global]\nsize=1m\ntime_based\nruntime=2\nramp_time=1\nstartdelay=4\n[a]\n"
    workloads = load(f"{ramped}[b]\nstonewall\nramp_time=0\nstartdelay=9\n").workloads
    assert [load.jobs[0].start_delay_ns for load in workloads] == [4 * S, 2 * S]
    with pytest.raises(ConfigError, match="counts the delay from its own start"):
        load("[global]\nsize=1m\n[a]\n[b]\nstonewall\nstartdelay=5\n")


def test_seed_and_width_of_the_series(load) -> None:  # type: ignore[no-untyped-def]
    (workload,) = load("[j]\nsize=1m\n").workloads
    assert workload.seed == 0x89 and workload.interval_ns == S
    (workload,) = load("[j]\nsize=1m\nrandseed=0x10\nlog_avg_msec=500\n").workloads
    assert workload.seed == 16 and workload.interval_ns == 500 * MS
    notes = load("[a]\nsize=1m\nrandseed=1\n[b]\nsize=1m\nrandseed=2\n").notes
    assert any("randseed differs" in note for note in notes)


def test_read_fio_job_returns_the_workloads_in_order(tmp_path: Path) -> None:
    path = tmp_path / "two.fio"
    path.write_text("[fill]\nrw=write\nbs=128k\n[test]\nstonewall\nrw=randread\nnumber_ios=100\n")
    fill, test = read_fio_job(path, device_capacity_bytes=CAPACITY)
    assert (fill.name, test.name) == ("two-1", "two-2")
    assert fill.jobs[0].volume_bytes == CAPACITY
    assert test.jobs[0].ios == 100


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("rw=randrw\nrate_iops=100,0", 4),
        ("rw=randwrite\nstream_id=3\nwrite_hint=long", 5),
        ("rw=randwrite\niodepth=4\niodepth_low=2\nioengine=libaio", 5),
        ("rw=read\noffset=1g", 4),
    ],
)
def test_an_error_names_the_line_of_its_option(options: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "j.fio"
    path.write_text(f"[j]\nsize=1m\n{options}\n")
    with pytest.raises(ConfigError) as caught:
        read_fio_job(path, device_capacity_bytes=CAPACITY)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_jobs_that_run_together_are_as_many_as_the_simulator_takes(tmp_path: Path) -> None:
    assert dict(_native.limits())["jobs"] == TOGETHER_MAX
    path = tmp_path / "many.fio"
    path.write_text(f"[a]\nsize=1m\nnumjobs={TOGETHER_MAX}\n[b]\nsize=1m\n")
    with pytest.raises(
        ConfigError, match=r"many\.fio:4: 2,001 concurrent jobs exceed the limit of 2,000"
    ):
        read_fio_job(path, device_capacity_bytes=CAPACITY)

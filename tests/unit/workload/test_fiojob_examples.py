"""Job files similar to fio's examples: each runs, or is rejected for a valid reason.

The files are generated from engine, direction, and matching options.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import load_fio_job
from writecliff.workload.fiojob.engines import ASYNCHRONOUS, NOT_A_DRIVE, SYNCHRONOUS

BLOCK_ENGINES = sorted(SYNCHRONOUS | ASYNCHRONOUS)
KINDS = [
    "rw=read\nzonemode=strided\nzonesize=64k\nzoneskip=256k", "rw=randwrite\nexitall",
    "rw=randread", "rw=write\nverify=crc32c\nverify_backlog=8\ndo_verify=1",
    "rw=read:-8k", "rw=write:8k\nloops=2", "rw=randrw:4\nrwmixwrite=40", "rw=trimwrite",
    "rw=randrw\nbssplit=4k/40:16k/60,16k/100\ncmdprio_bssplit=4k/25/1/1:16k/75,16k/0",
    "rw=randrw\nbsrange=4k-16k,4k-8k", "rw=randread\ncmdprio_percentage=20\nprioclass=3",
    "rw=randrw\nbssplit=512/10:1k/30:4k/60\nblockalign=4k\nrandom_distribution=zoned:50/5:30/15:20/80",
    "rw=randread\nrandom_distribution=pareto:0.3\nnorandommap",
    "rw=randwrite\nrandom_distribution=normal:10", "rw=randread\nrandom_distribution=zipf:0.5",
    "rw=write\nnrfiles=4\nopenfiles=2\nfilename_format=f.$jobnum", "rw=randtrim\nnum_range=8",
    "rw=randwrite\nfdp=1\nfdp_pli=0,1\nplid_select=random",
    "rw=randread\nlatency_target=500\nlatency_window=8ms\nlatency_percentile=99\niodepth=16",
    "rw=randread\nss=iops:10%\nss_dur=8ms\nss_interval=2ms\nlog_avg_msec=2",
    "rw=read\nrate_iops=5000\nrate_iops_min=1\nio_submit_mode=offload",
    "rw=randread\nrate_iops=5000\nrate_process=poisson\nthinktime=0", "rw=write\nsync=1\nfsync=0",
    "rw=read\nrate=4m\nratemin=1k\nstartdelay=1ms",
    "rw=write\ndedupe_percentage=50\nbuffer_compress_percentage=50\ndedupe_mode=working_set",
    "rw=randread\nthread\ngroup_reporting\nnumjobs=4\ncpus_allowed_policy=split\nnuma_mem_policy=bind:0",
    "rw=randread\nflow=2\nflow_sleep=1000", "rw=randwrite\nsprandom=1\nspr_num_regions=4",
    "rw=randrw\nrandom_distribution=sequence:2,0,1\nrandom_sequence_stride=1",
    "rw=write\nzonemode=zbd\nzonesize=256k\nverify=crc32c", "rw=randread\nzonemode=zbd\nzonesize=1m",
    "rw=randwrite\nzonemode=zbd\nzonesize=256k\nmax_open_zones=2\nsize=4z\noffset=1z\nnumjobs=3",
    "rw=randwrite\nzonemode=zbd\nzonesize=1m\nzone_reset_threshold=0.7\nzone_reset_frequency=0.125",
    "rw=randtrim\nzonemode=zbd\nzonesize=256k\nbs=256k", "rw=randrw\nzonemode=zbd\nzonesize=512k",
    "rw=randwrite\nwrite_mode=zone_append\nzonemode=zbd\nzonesize=1m",
    "rw=write\nwrite_mode=write/40:zeroes/30:uncor/20:verify/10", "rw=write\nwrite_mode=verify",
    "rw=write\nsg_write_mode=verify_bytchk_11\nbuffer_pattern=0x01", "rw=write\nwrite_mode=zeroes",
    "rw=write\nbs=4160\npi_act=0\npi_chk=GUARD,APPTAG\napptag=0x0888\nmd_per_io_size=64",
    "rw=write\nbs=16k,4k\nwrite_bw_log\nwrite_lat_log=x\nlog_prio=1\ngtod_reduce=0",
]  # fmt: skip
REFUSED = {
    "zonemode=zbd\nrw=write\nzonesize=8k\nbs=64k": "exceeds the zone capacity of 8192 bytes",
    "num_range=8\nrw=write": "applies only to trims",
    "sprandom=1\nrw=randread": "rw=randwrite",
    "rw=rw\nsg_write_mode=verify_bytchk_01": "cannot convert its writes",
}


def _text(engine: str, options: str) -> str:
    return (
        f"[global]\nioengine={engine}\nsize=2m\nnumber_ios=60\nruntime=1\ndirect=1\n"
        f"libblkio_path=/dev/x\nrbdname=y\n[job]\n{options}\n[after]\nstonewall\nrw=randread\n"
    )


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> SimEngine:
    folder = tmp_path_factory.mktemp("drive")
    return SimEngine(str(write_small_drive(folder)))


def test_every_kind_runs_on_every_engine_of_a_drive(drive: SimEngine, tmp_path: Path) -> None:
    file = tmp_path / "kind.fio"
    capacity = drive.identify().capacity_bytes
    run = 0
    for index, (kind, engine) in enumerate(product(KINDS, BLOCK_ENGINES)):
        if "offload" in kind and engine in SYNCHRONOUS:
            continue
        file.write_text(_text(engine, kind))
        job_file = load_fio_job(file, device_capacity_bytes=capacity)
        if index % 7 == 0:  # All files load. Some files also run, with each kind and engine.
            for workload in job_file.workloads:
                assert sum(drive.run(workload).total()) > 0, kind
                run += 1
    assert run > len(KINDS)


@pytest.mark.parametrize("engine", sorted(NOT_A_DRIVE))
def test_engines_without_a_drive_are_refused_once_for_what_they_do(
    engine: str, tmp_path: Path
) -> None:
    file = tmp_path / "other.fio"
    options = "hostname=h\nlisten\nnfs_url=x\npool=p\ncpuload=50\ndonorname=d\nvolume=v\nrw=write"
    file.write_text(_text(engine, options))
    with pytest.raises(ConfigError) as caught:
        load_fio_job(file, device_capacity_bytes=1 << 30)
    assert str(caught.value) == f"{file}:2: ioengine={engine} {NOT_A_DRIVE[engine]}"


@pytest.mark.parametrize(("options", "reason"), REFUSED.items())
def test_what_a_drive_lacks_is_refused_with_its_reason(
    options: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "refused.fio"
    file.write_text(_text("io_uring_cmd", options))
    with pytest.raises(ConfigError) as caught:
        load_fio_job(file, device_capacity_bytes=1 << 30)
    assert reason in f"{caught.value} {caught.value.hint}"

"""The reader compared with fio: jobs match the I/Os that fio actually issues for a job file.

A single fio run executes all cases on a small sparse file and logs every address (write_iolog).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.fio_figures import compare, job_file
from tests.support.processes import WAIT_LIMIT_S
from writecliff import SimEngine, _native
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import load_fio_job
from writecliff.workload.model import Job

FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")
# Seeds for the compared job files. `python -m tests.support.fio_figures` compares more seeds.
SEEDS = range(int(os.environ.get("WRITECLIFF_FIO_FILES", "4")))
CAPACITY = 8 << 20
MIB = 1 << 20

# Cases whose passes cover their range completely, where fio's addresses must equal the job's
# exactly.
EXACT = {
    "plain": "size=1m",
    "unit-b": "size=1048576b",
    "unit-kb": "size=64kB",
    "unit-kib": "size=64KiB\nbs=512",
    "unit-ki": "size=64Ki",
    "unit-hex": "size=0x10000",
    "kb-base": "size=64k\nkb_base=1000\nbs=512",
    "kb-base-late": "size=64k\nbs=512\nkb_base=1000",
    "kb-base-kib": "kb_base=1000\nsize=64KiB\nbs=4KiB",
    "whole": "bs=64k",
    "half": "size=50%",
    "offset-half": "size=1m\noffset=50%",
    "offset-percent": "size=1m\noffset=33%",
    "offset-aligned": "size=1m\noffset=33%\noffset_align=64k",
    "offset-rest": "offset=7m",
    "offset-half-rest": "offset=25%\nsize=50%",
    "odd-percent": "size=33%",
    "odd-size": "size=10k",
    "odd-size-loops": "size=10k\nloops=2",
    "odd-size-at-end": "offset=8380416",
    "odd-size-at-end-loops": "offset=8380416\nloops=2\nbs=3k",
    "random-odd": "rw=randread\nsize=10k",
    "filesize": "filesize=2m\nsize=4m",
    "filesize-percent": "filesize=2m\nsize=50%",
    "filesize-offset": "filesize=3m\noffset=1m",
    "loops": "size=1m\nloops=3",
    "io-size": "size=1m\nio_size=3m",
    "io-size-loops": "size=256k\nio_size=512k\nloops=3",
    "io-size-loops-random": "rw=randread\nsize=64k\nio_size=128k\nloops=3",
    "io-size-loops-map-less": "rw=randread\nnorandommap\nsize=64k\nio_size=128k\nloops=3",
    "io-size-below": "size=1m\nio_size=512k\nloops=3",
    "io-size-percent": "size=1m\nio_size=50%\nloops=2",
    "io-size-percent-whole": "io_size=25%",
    "filesize-small-pass": "filesize=2m\nsize=64k\nloops=2",
    "io-limit": "size=1m\nio_limit=2m",
    "ios": "size=16k\nio_size=1m\nnumber_ios=12",
    "ios-loops": "size=16k\nio_size=1m\nnumber_ios=5\nloops=3",
    "bs-list-read": "size=1m\nbs=8k,16k",
    "bs-list-write": "size=1m\nrw=write\nbs=8k,16k",
    "bs-list-late": "size=1m\nrw=write\nbs=,16k",
    "bs-trailing-comma": "size=1m\nrw=write\nbs=8k,",
    "bs-dash": "size=1m\nrw=write\nbs=8k-16k",
    "bs-alias": "size=1m\nblocksize=32k",
    "bsrange-beats-bs": "size=1m\nbsrange=8k-8k\nbs=16k",
    "bssplit-single": "size=1m\nrw=write\nbssplit=4k/100,8k/100",
    "randread": "rw=randread\nsize=1m",
    "randwrite": "rw=randwrite\nsize=1m\nbs=8k",
    "randread-offset": "rw=randread\nsize=1m\noffset=1m",
    "mix-all-reads": "rw=randrw\nrwmixread=100\nsize=512k",
    "mix-all-writes": "rw=randrw\nrwmixwrite=100\nsize=512k",
    "mix-last-wins": "rw=randrw\nrwmixread=100\nrwmixwrite=100\nsize=512k",
    "time-without-base": "size=256k\nruntime=1h",
    "base-without-time": "size=256k\ntime_based",
    "comment": "size=256k ; twice\nbs=8k # eight",
    "spaces": "size = 262144",
    "readwrite-alias": "readwrite=write\nsize=256k",
    "mix-bs": "rw=randrw\nrwmixread=100\nbs=4k,8k\nsize=512k",
    "fill": "rw=write\nfill_device=1\nsize=1m",
}

# Cases with a choice of sizes, mixes or positions, where fractions must agree within five standard
# deviations.
SHARES = {
    "bssplit": "rw=randread\nsize=4m\nio_size=16m\nbssplit=4k/60:8k/40\nnorandommap",
    "bssplit-rest": "rw=randread\nsize=4m\nio_size=16m\nbssplit=4k/50:8k/:16k/\nnorandommap",
    "bssplit-short": "rw=randread\nsize=4m\nio_size=16m\nbssplit=4k/30:8k/30\nnorandommap",
    "bssplit-cut": "rw=randread\nsize=4m\nio_size=8m\nbssplit=4k/50:6k/20:8k/30\nnorandommap",
    "bssplit-write": "rw=randwrite\nsize=4m\nio_size=8m\nbssplit=4k/50:8k/50,8k/30:16k/70\n"
    "norandommap",
    "bsrange": "rw=randread\nsize=4m\nio_size=32m\nbsrange=4k-16k\nnorandommap",
    "bsrange-odd": "rw=randread\nsize=4m\nio_size=32m\nbsrange=4k-10k\nnorandommap",
    "blockalign": "rw=randread\nsize=4m\nio_size=8m\nbs=4k\nblockalign=16k\nnorandommap",
    "bs-by-operation": "rw=randrw\nbs=4k,16k\nsize=4m\nio_size=16m\nnorandommap",
    "split-by-operation": "rw=randrw\nbssplit=4k/30:8k/70,16k/50:32k/50\nsize=4m\nio_size=32m\n"
    "norandommap",
    "mix": "rw=randrw\nrwmixread=70\nsize=4m\nio_size=8m\nnorandommap",
    "zoned": "rw=randread\nsize=4m\nio_size=16m\nrandom_distribution=zoned:60/10:40/90",
    "zoned-short": "rw=randread\nsize=4m\nio_size=16m\nrandom_distribution=zoned:70/20:30/30",
    "zoned-rest": "rw=randread\nsize=4m\nio_size=16m\nrandom_distribution=zoned:50/10:30/:20/",
    "zoned-bytes": "rw=randread\nsize=4m\nio_size=16m\n"
    "random_distribution=zoned_abs:80/512k:20/1536k",
}


@dataclass(frozen=True)
class Issued:
    """Return the I/Os that fio issued in a section, in order."""

    ios: tuple[tuple[str, int, int], ...]  # Operation, offset and length of each I/O.

    @property
    def bytes(self) -> int:
        return sum(length for _, _, length in self.ios)

    def shares(self) -> dict[int, float]:
        counts = Counter(length for _, _, length in self.ios)
        return {length: count / len(self.ios) for length, count in counts.items()}


def _run_fio(directory: Path, cases: dict[str, str]) -> dict[str, Issued]:
    target = directory / "target.img"
    with target.open("wb") as file:
        file.truncate(CAPACITY)
    logs = {name: directory / f"{name}.log" for name in cases}
    text = f"[global]\nfilename={target}\nthread\n" + "".join(
        f"[{name}]\nwrite_iolog={logs[name]}\n{body}\n" for name, body in cases.items()
    )
    job_file = directory / "all.fio"
    job_file.write_text(text)
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", str(job_file)],
        cwd=directory, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout[:2000]
    issued = {}
    for name, log in logs.items():
        lines = re.findall(r"^\S.*\b(read|write) (\d+) (\d+)$", log.read_text(), re.MULTILINE)
        issued[name] = Issued(tuple((op, int(start), int(size)) for op, start, size in lines))
    return issued


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Issued]:
    return _run_fio(tmp_path_factory.mktemp("fio"), EXACT | SHARES)


def _job(directory: Path, body: str) -> Job:
    file = directory / "case.fio"
    file.write_text(f"[case]\n{body}\n")
    (workload,) = load_fio_job(file, device_capacity_bytes=CAPACITY).workloads
    _native.check_workload(workload.to_json(), CAPACITY, 1)  # A drive can run the workload.
    (job,) = workload.jobs
    return job


def _expected_bytes(job: Job) -> int:
    (block,) = job.block_sizes
    ends = [job.volume_bytes, None if job.ios is None else job.ios * block.bytes]
    return min(end for end in ends if end is not None)


@needs_fio
@pytest.mark.parametrize("name", EXACT)
def test_range_and_volume_are_those_of_fio(
    name: str, issued: dict[str, Issued], tmp_path: Path
) -> None:
    job, real = _job(tmp_path, EXACT[name]), issued[name]
    assert job.range_bytes is not None
    assert real.bytes == _expected_bytes(job)
    assert {length for _, _, length in real.ios} == {job.block_sizes[0].bytes}
    assert min(offset for _, offset, _ in real.ios) == job.offset_bytes
    end = min(job.offset_bytes + job.range_bytes, job.offset_bytes + _expected_bytes(job))
    assert max(offset + length for _, offset, length in real.ios) == end
    operations = {"read"} if job.read_pct == 100 else {"write"}
    assert {operation for operation, _, _ in real.ios} == operations
    steps = {b[1] - a[1] == a[2] for a, b in zip(real.ios, real.ios[1:], strict=False)}
    if job.pattern == "random" and len(real.ios) > 8:
        assert False in steps


def _near(share: float, expected: float, count: int) -> bool:
    return abs(share - expected) <= 5 * (expected * (1 - expected) / count) ** 0.5 + 1e-9


@needs_fio
@pytest.mark.parametrize("name", SHARES)
def test_shares_are_those_of_fio(name: str, issued: dict[str, Issued], tmp_path: Path) -> None:
    job, real = _job(tmp_path, SHARES[name]), issued[name]
    count = len(real.ios)
    for operation in {operation for operation, _, _ in real.ios}:
        selected = Issued(tuple(io for io in real.ios if io[0] == operation))
        sizes = job.block_sizes_of(operation)
        assert set(selected.shares()) == {size.bytes for size in sizes}
        for size in sizes:
            expected = size.weight / sum(size.weight for size in sizes)
            assert _near(selected.shares()[size.bytes], expected, len(selected.ios)), size
    reads = sum(operation == "read" for operation, _, _ in real.ios) / count
    assert _near(reads, job.read_pct / 100, count)
    align = job.align_bytes or job.block_sizes[0].bytes
    assert {(offset - job.offset_bytes) % align for _, offset, _ in real.ios} == {0}
    if job.align_bytes:
        # The alignment is not coarser either.
        assert any(offset % (2 * align) for _, offset, _ in real.ios)
    assert job.range_bytes is not None and job.volume_bytes is not None
    assert all(offset + length <= job.offset_bytes + job.range_bytes + align
               for _, offset, length in real.ios)  # fmt: skip
    start = 0.0
    for zone in job.addresses.zones:
        low = start * job.range_bytes / 100
        start += zone.size_pct
        high = start * job.range_bytes / 100
        inside = sum(low <= offset < high for _, offset, _ in real.ios) / count
        # fio truncates zone ends to whole blocks, so allow one block on either side.
        blocks = job.range_bytes / align
        assert abs(inside - zone.access_pct / 100) < 5 * (0.25 / count) ** 0.5 + 2 / blocks


REJECTED = {
    "unknown": "size=1m\nqueue_depth=4",
    "no-number": "size=large",
    "word-as-boolean": "size=1m\ndirect=true",
    "rw-unknown": "size=1m\nrw=randomread",
    "rw-case": "size=1m\nrw=READ",
    "blank-before-word": "size=1m\nrw= read",
    "blank-before-unit": "size= 256k",
    "bs-empty": "bs=\nsize=1m",
    "size-below-block": "size=1k",
    "depth-zero": "size=1m\niodepth=0",
    "mix-beyond": "size=1m\nrwmixread=101",
    "two-rates": "size=1m\nrate=1m\nrate_iops=100",
    "zipf-one": "size=1m\nrw=randread\nrandom_distribution=zipf:1.0",
    "zones-short": "size=1m\nrw=randread\nrandom_distribution=zoned:50/50:20/50",
    "io-size-beyond": "size=1m\nio_size=150%",
    "engine": "size=1m\nioengine=nonesuch",
    "wait-for-nobody": "size=1m\nwait_for=nobody",
    "value-missing": "size",
    "hint-unknown": "size=1m\nwrite_hint=eternal",
}


@needs_fio
@pytest.mark.parametrize("name", REJECTED)
def test_what_fio_rejects_is_rejected(name: str, tmp_path: Path) -> None:
    file = tmp_path / "case.fio"
    body = REJECTED[name] + ("" if "ioengine" in REJECTED[name] else "\nioengine=null")
    file.write_text(f"[case]\n{body}\n")
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", str(file)],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode != 0 or '"jobs"' not in done.stdout
    with pytest.raises(ConfigError, match=r"case\.fio:\d+: "):
        load_fio_job(file, device_capacity_bytes=CAPACITY)


GROUPS = """
[global]
ioengine=null
size=64k
bs=4k,8k
[a]
numjobs=2
[b]
new_group
rw=write
[global]
bs=16k
group_reporting
[c]
stonewall
numjobs=3
[d]
name=other
bs=,32k
rw=write
[e]
stonewall
stats=0
[globally]
numjobs=2
[f]
new_group
"""


@needs_fio
def test_groups_names_options_and_totals_are_those_of_fio(tmp_path: Path) -> None:
    file = tmp_path / "groups.fio"
    file.write_text(GROUPS)
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", str(file)],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout[done.stdout.index("{") :])
    loaded = load_fio_job(file, device_capacity_bytes=CAPACITY)
    ours = []
    for step in loaded.steps:
        for section in step.sections:
            jobs = [step.workload.jobs[index] for index in section.jobs]
            size = sum(job.volume_bytes or 0 for job in jobs)
            ours.append((section, size))
    assert _valued(loaded.global_options) == _valued(document["global options"])
    real: dict[tuple[str, int], list[Any]] = {}
    for entry in document["jobs"]:
        key = (entry["jobname"], entry["groupid"])
        moved = entry["read"]["io_bytes"] + entry["write"]["io_bytes"]
        real.setdefault(key, [0, entry["job options"]])[0] += moved
    # fio merges c and d (group_reporting) and omits e (stats=0).
    names = {("a", 0): ["a"], ("b", 1): ["b"], ("c", 2): ["c", "other"], ("f", 4): ["f"]}
    assert set(real) == set(names)
    for key, members in names.items():
        sections = [(section, size) for section, size in ours if section.name in members]
        assert {section.group_id for section, _ in sections} == {key[1]}
        assert sum(size for _, size in sections) == real[key][0]
        # fio 3.33 attaches the options of the last member to a group.
        assert _valued(dict(sections[-1][0].options)) == _valued(real[key][1])


def _valued(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with a value; fio 3.33 does not list the others."""
    return {name: value for name, value in options.items() if value}


# Options, and the reads and writes per second that fio performs with these options.
RATES = {
    "mix": ("rw=randrw\nrwmixread=70\nrate_iops=200", 200, 200),
    "two": ("rw=randrw\nrwmixread=70\nrate_iops=300,100", 300, 100),
    "bytes": ("rw=randread\nrate=1m", 256, 0),
    "sizes": ("rw=randread\nbssplit=4k/50:8k/50\nrate_iops=300", 200, 0),
    "threads": ("rw=randread\nnumjobs=2\ngroup_reporting\nrate_iops=150", 300, 0),
}


@needs_fio
def test_rates_are_those_of_fio(tmp_path: Path) -> None:
    file = tmp_path / "rates.fio"
    head = "[global]\nioengine=null\nsize=64m\nnorandommap\ntime_based\nruntime=1s\n"
    bodies = "".join(f"[{name}]\nnew_group\n{row[0]}\n" for name, row in RATES.items())
    file.write_text(head + bodies)
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", str(file)],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    entries = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    (workload,) = load_fio_job(file, device_capacity_bytes=64 * MIB).workloads
    assert [entry["jobname"] for entry in entries] == [job.name for job in workload.jobs]
    for job, entry in zip(workload.jobs, entries, strict=True):
        _, reads, writes = RATES[job.name]
        weight = sum(size.weight for size in job.block_sizes)
        mean = sum(size.bytes * size.weight for size in job.block_sizes) / weight
        rate = job.rate_iops or (job.rate_bytes_per_s or 0) / mean
        read_pct = job.read_pct if job.rate_read_pct is None else job.rate_read_pct
        assert rate * read_pct / 100 == pytest.approx(reads)
        assert rate * (100 - read_pct) / 100 == pytest.approx(writes)
        assert entry["read"]["total_ios"] == pytest.approx(reads, rel=0.15)
        assert entry["write"]["total_ios"] == pytest.approx(writes, rel=0.15, abs=1)


@needs_fio
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.measures
def test_figures_of_random_job_files_are_those_of_fio(seed: int, tmp_path: Path) -> None:
    assert FIO is not None
    file = job_file(seed)
    assert not compare(file, tmp_path, FIO).differences, file.text


# Options, and the reads and writes that fio 3.33 performs in two seconds with these options.
PACED = {
    "catches-up": ("rate_iops=400\nthinktime=100ms\nthinktime_blocks=50", (390, 801), None),
    "every-io": ("rate_iops=200\nthinktime=1ms\nthinktime_blocks=1", (396, 401), None),
    "cannot": ("rate_iops=100\nthinktime=500ms\nthinktime_blocks=100", (178, 201), None),
    "moves": (
        "rate_iops=400\nthinktime=100ms\nthinktime_blocks=50\nrate_ignore_thinktime=1",
        (446, 452),
        None,
    ),
    "directions": ("rw=rw\nbs=64k\nrate=8m,2m", (256, 256), (64, 64)),
}


@pytest.mark.parametrize("name", PACED)
def test_paced_ios_are_those_of_fio(name: str, tmp_path: Path) -> None:
    options, reads, writes = PACED[name]
    file = tmp_path / "case.fio"
    file.write_text(f"[case]\nrw=randread\nsize=16m\nruntime=2\ntime_based\n{options}\n")
    (workload,) = load_fio_job(file, device_capacity_bytes=64 * MIB).workloads
    (result,) = SimEngine("nvme-ms-480").run(workload).jobs
    assert reads[0] <= result.operations["read"].ios <= reads[1]
    if writes is not None:
        assert writes[0] <= result.operations["write"].ios <= writes[1]


@pytest.mark.parametrize("options", ["rw=read", "rw=randread", "rw=write\nnumjobs=2"])
@pytest.mark.parametrize("sizes", ["bssplit=4k/30:64k/70", "bsrange=4k-64k"])
def test_several_sizes_end_with_the_size(options: str, sizes: str, tmp_path: Path) -> None:
    file = tmp_path / "case.fio"
    file.write_text(f"[case]\nsize=10485760\n{options}\n{sizes}\ngroup_reporting\n")
    (workload,) = load_fio_job(file, device_capacity_bytes=64 * MIB).workloads
    result = SimEngine("nvme-ms-480").run(workload)
    assert result.total()[1] == 10485760 * len(result.jobs)


# Queue depth and I/Os between pauses of 100 ms, and the number of pauses for 40 I/Os with libaio.
# For "fewer", fio 3.33 makes 16 pauses and fio 3.41 makes 15, because it reaps one or several
# completions at a time.
DEEP = {"more-than-the-depth": (4, 10, 3), "fewer": (4, 2, 15), "one-at-a-time": (1, 10, 4)}


@pytest.mark.parametrize("name", DEEP)
def test_pauses_of_a_deep_queue_are_those_of_fio(name: str, tmp_path: Path) -> None:
    depth, blocks, pauses = DEEP[name]
    file = tmp_path / "case.fio"
    file.write_text(
        f"[case]\nrw=randread\nsize=16m\nnumber_ios=40\nioengine=libaio\niodepth={depth}\n"
        f"thinktime=100ms\nthinktime_blocks={blocks}\n"
    )
    (workload,) = load_fio_job(file, device_capacity_bytes=64 * MIB).workloads
    (result,) = SimEngine("nvme-ms-480").run(workload).jobs
    assert result.elapsed_ns // 100_000_000 == pauses

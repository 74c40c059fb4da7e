"""zonemode=zbd: its conversion, and the rules that fio itself follows on a file without zones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import FioJobFile, load_fio_job
from writecliff.workload.load import LoadStep, load_workload
from writecliff.workload.model import HostZones
from writecliff.workload.stored import stored_steps
from writecliff.workload.unwritten import reads_unwritten

FIO = shutil.which("fio")
MIB = 1 << 20
CAPACITY = 8 * MIB
ZONED = "zonemode=zbd\nzonesize=1m\n"
KIB64 = 64 << 10


def _load(folder: Path, text: str, capacity: int = CAPACITY) -> FioJobFile:
    file = folder / "z.fio"
    file.write_text(text)
    return load_fio_job(file, device_capacity_bytes=capacity)


def _zones(folder: Path, options: str) -> HostZones | None:
    (workload,) = _load(folder, f"[j]\n{ZONED}{options}\n").workloads
    return workload.jobs[0].host_zones


def test_options_become_zones(tmp_path: Path) -> None:
    plain = HostZones(size_bytes=MIB)
    full = replace(plain, begin_full=True)
    for options, zones in {
        "rw=randwrite": plain,
        "rw=write\nzonecapacity=640k": replace(plain, capacity_bytes=640 << 10),
        "rw=write\nzonecapacity=1m": plain,
        "rw=randwrite\nmax_open_zones=4\njob_max_open_zones=1": replace(
            plain, max_open=4, max_open_per_thread=1
        ),
        "rw=randwrite\nzone_reset_threshold=0.7\nzone_reset_frequency=0.125": replace(
            plain, reset_above_pct=70.0, reset_every_writes=8
        ),
        "rw=randread\nread_beyond_wp=1": replace(plain, read_unwritten=True),
        "rw=randread": full,
        "rw=randtrim\nbs=1m": full,
        "rw=write\nwrite_zone_remainder=1": replace(plain, short_writes=True),
    }.items():
        assert _zones(tmp_path, options) == zones, options


def test_ranges_are_whole_zones_and_sizes_may_count_them(tmp_path: Path) -> None:
    for options, expected in {
        "size=3m\noffset=100k": (MIB, 2 * MIB, 2 * MIB),
        "size=3z\noffset=2z\nio_size=4z": (2 * MIB, 3 * MIB, 4 * MIB),
        "size=2z\nzonecapacity=600k": (0, 2 * MIB, 2 * 9 * KIB64),
        "size=100%": (0, 8 * MIB, 8 * MIB),
    }.items():
        (workload,) = _load(tmp_path, f"[j]\n{ZONED}rw=write\nbs=64k\n{options}\n").workloads
        job = workload.jobs[0]
        assert (job.offset_bytes, job.range_bytes, job.volume_bytes) == expected, options


def test_zones_without_a_size_are_those_of_a_hard_disk(tmp_path: Path) -> None:
    loaded = _load(tmp_path, "[j]\nzonemode=zbd\nsize=1z\nrw=write\n", 1 << 30)
    (job,) = loaded.workloads[0].jobs
    assert (job.range_bytes, job.host_zones) == (256 * MIB, HostZones(size_bytes=256 * MIB))
    assert "zonesize is not set" in "\n".join(loaded.notes)


def test_later_steps_find_what_was_written(tmp_path: Path) -> None:
    text = (
        f"[global]\n{ZONED}rw=randwrite\nbs=64k\n[a]\n[b]\nstonewall\n[c]\nstonewall\nrw=randread\n"
    )
    loaded = _load(tmp_path, text)
    states = [step.workload.jobs[0].host_zones.begin_full for step in loaded.steps]  # type: ignore[union-attr]
    assert states == [False, True, True]
    assert sum("zones are initially full" in note for note in loaded.notes) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("rw=write\nzoneskip=1m", "zoneskip=1048576 is not supported with zonemode=zbd"),
        ("rw=write\nnrfiles=2", "nrfiles=2 is not supported"),
        ("rw=write:4k", "rw=write:4k is not supported"),
        ("rw=randtrim\nbs=64k", "trims reset whole zones"),
        ("rw=write\nbs=2m", "exceeds the zone capacity of 1048576 bytes"),
        ("rw=write\nzonecapacity=2m", "exceeds the zone size"),
        ("rw=write\nsize=512k", "do not contain a whole zone"),
        ("rw=write\njob_max_open_zones=2", "requires max_open_zones"),
        ("rw=write\nzone_reset_frequency=2", "is not a number from 0 to 1"),
        ("rw=write\nzonesize=1000000", "zonesize is not a multiple of the sector size"),
    ],
)
def test_what_fio_or_the_drive_cannot_do_is_refused(
    options: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        _load(tmp_path, f"[j]\n{ZONED}{options}\n")


def test_jobs_that_run_together_have_the_same_zones(tmp_path: Path) -> None:
    text = "[global]\nzonemode=zbd\nzonesize=1m\nrw=write\n[a]\n[b]\n"
    for option, name in {
        "zonesize=2m": "zonesize", "max_open_zones=2": "max_open_zones",
        "zonecapacity=512k": "zonecapacity",
    }.items():  # fmt: skip
        with pytest.raises(ConfigError, match=rf"z\.fio:7: {name} differs between jobs"):
            _load(tmp_path, text + option)
        _load(tmp_path, f"{text}stonewall\n{option}")


def test_sizes_in_zones_need_zones(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="size is a number of zones, but the zone size is unknown"
    ):
        _load(tmp_path, "[j]\nsize=4z\nrw=write\n")


def test_only_reads_of_what_was_not_written_need_a_filled_drive(tmp_path: Path) -> None:
    for options, needs in {"rw=randrw": False, "rw=randread": True}.items():
        steps = _load(tmp_path, f"[j]\n{ZONED}{options}\n").steps
        assert reads_unwritten([LoadStep(s.workload) for s in steps], CAPACITY) is needs


def test_jobs_share_zones_and_runs_repeat(tmp_path: Path) -> None:
    drive = write_small_drive(tmp_path)
    text = (
        f"[global]\n{ZONED}bs=64k\nsize=4z\nioengine=libaio\niodepth=4\nnumber_ios=300\n"
        "max_open_zones=2\ntime_based=0\nio_size=1g\n[w]\nrw=randwrite\nnumjobs=3\n"
        "[m]\nrw=randrw\n[t]\nrw=randtrim\nbs=1m\nnumber_ios=10\n"
    )
    results = []
    for _ in range(2):
        engine = SimEngine(str(drive))
        (workload,) = _load(tmp_path, text, engine.identify().capacity_bytes).workloads
        results.append(engine.run(workload))
    first, second = results
    assert first.counters_after == second.counters_after
    assert first.elapsed_ns == second.elapsed_ns
    ios = {job.name: sum(result.ios for result in job.operations.values()) for job in first.jobs}
    assert ios == {"w.0": 300, "w.1": 300, "w.2": 300, "m": 300, "t": 10}


def test_a_drive_at_a_fraction_of_its_size_has_zones_too(tmp_path: Path) -> None:
    engine = SimEngine(str(write_small_drive(tmp_path)))
    text = f"[global]\n{ZONED}zonecapacity=960k\noffset=40z\nsize=200z\nbs=64k\n"
    for options in ("rw=write", "rw=randread", "rw=randwrite\n[t]\nrw=randtrim\nbs=1m"):
        loaded = _load(tmp_path, f"{text}[j]\n{options}\n", engine.identify().capacity_bytes)
        (workload,) = loaded.workloads
        small = engine.scaled(engine.scales()[-1], largest_io_bytes=MIB)
        whole, estimated = engine.run(workload), small.run(workload)
        small.close()
        for operation in ("read", "write", "trim"):
            _, expected = whole.total(operation)
            assert estimated.total(operation)[1] == pytest.approx(expected, rel=0.1), options


@pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")
def test_fio_keeps_the_same_rules(tmp_path: Path) -> None:
    """Check that fio runs have the properties that the test of `host_zones` checks.

    Check that writes continue or restart a zone, within its capacity and the open-zone limit. Check
    that a mix starts with a write and reads written data.
    """
    cases = {
        "order": ("rw=write\nsize=4m\noffset=1m\nzonecapacity=640k", 640 << 10, 8),
        "open": ("rw=randwrite\nsize=8m\nio_size=16m\nmax_open_zones=3\nnorandommap", MIB, 3),
        "mix": ("rw=randrw\nsize=8m\nmax_open_zones=3", MIB, 3),
        "nothing": ("rw=randread\nsize=8m", MIB, 8),
    }
    for name, (options, capacity, most) in cases.items():
        ios = _ios_of_fio(tmp_path, f"[j]\n{ZONED}bs=64k\n{options}\n")
        assert bool(ios) == (name != "nothing")
        written: dict[int, int] = {}
        for operation, offset, length in ios:
            zone, at = divmod(offset, MIB)
            if operation == "read":
                assert at + length <= written[zone]
                continue
            if at != written.get(zone, 0):
                assert at == 0 and written[zone] == capacity
            written[zone] = at + length
            assert written[zone] <= capacity
            assert sum(0 < result < capacity for result in written.values()) <= most
        if name == "nothing":
            continue
        job = _load(tmp_path, f"[j]\n{ZONED}bs=64k\n{options}\n").workloads[0].jobs[0]
        assert sum(length for _, _, length in ios) == job.volume_bytes


def _ios_of_fio(folder: Path, text: str) -> list[tuple[str, int, int]]:
    target, log = folder / "target.img", folder / "io.log"
    log.unlink(missing_ok=True)  # fio would append to an existing log.
    with target.open("wb") as file:
        file.truncate(CAPACITY)
    file_of_jobs = folder / "real.fio"
    file_of_jobs.write_text(f"{text}filename={target}\nwrite_iolog={log}\nthread\n")
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", str(file_of_jobs)],
        cwd=folder, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    assert "jobs" in json.loads(done.stdout[done.stdout.index("{") :])
    lines = re.findall(r"^\S.*\b(read|write) (\d+) (\d+)$", log.read_text(), re.MULTILINE)
    return [(operation, int(offset), int(length)) for operation, offset, length in lines]


def test_zoned_jobs_are_loaded_and_stored(tmp_path: Path) -> None:
    """Check the zone limit of a drive; an unknown drive may have as many as the host supports."""
    file = tmp_path / "z.fio"
    file.write_text("[j]\nrw=write\nzonemode=zbd\nzonesize=1m\n")
    steps = load_workload(file, capacity_bytes=915 * MIB).steps
    assert stored_steps(json.loads(json.dumps([asdict(step) for step in steps])), file) == steps

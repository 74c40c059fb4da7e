"""The fio-compatible JSON: the structure of fio's own, and arithmetic between its figures."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import statistics
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.guest.fetch import cache
from tests.support.processes import WAIT_LIMIT_S
from tests.support.small_drive import write_small_drive
from writecliff import SimEngine
from writecliff._native import Histogram
from writecliff.engines.base import JobResult, OperationResult, StepResult
from writecliff.engines.counters import Counters
from writecliff.engines.fiojson import fio_json, to_fio_json
from writecliff.engines.fiojson_stats import latency_block, latency_distribution
from writecliff.workload.fiojob import FioJobFile, load_fio_job
from writecliff.workload.model import BlockSize, Job, Workload

FIO = shutil.which("fio")
FIOS = ["installed", "newer"]
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")
SECOND_NS = 1_000_000_000
AT = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)
CODES = {"read": 0, "write": 1, "trim": 2}


@pytest.fixture
def fio(request: pytest.FixtureRequest) -> str:
    """Return the fio on the search path, or the newer one of the guest's tools."""
    newer = cache() / "tools-newer/commands/fio"
    if request.param == "newer" and not newer.exists():
        pytest.skip("the guest's newer fio has not been downloaded: no cross-check with it")
    if request.param == "installed" and FIO is None:
        pytest.skip("fio is not installed: no cross-check with it")
    return str(newer) if request.param == "newer" else str(FIO)


def _real(fio: str, text: str, folder: Path) -> dict[str, Any]:
    """Return fio's own JSON for a job file."""
    (folder / "real.fio").write_text(text)
    done = subprocess.run(
        [fio, "--output-format=json+", "real.fio"],
        cwd=folder, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    document: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return document


def _histogram(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


def _operation(ios: int, seed: int, block: int = 4096) -> tuple[OperationResult, list[int]]:
    draw = random.Random(seed)
    values = [int(draw.lognormvariate(11.5, 0.8)) for _ in range(ios)]
    return OperationResult(ios, ios * block, _histogram(values)), values


def _step(
    jobs: list[dict[str, OperationResult]],
    seconds: float = 3.25,
    elapsed: list[float] | None = None,
) -> StepResult:
    """Return a step whose rows spread each operation's I/Os evenly; the last row is shorter."""
    ends = [*range(SECOND_NS, int(seconds * SECOND_NS), SECOND_NS), int(seconds * SECOND_NS)]
    columns: dict[str, list[float]] = {key: [] for key in ("end_ns", "job", "operation", "ios")}
    columns["bytes"] = []
    for index, operations in enumerate(jobs):
        for name, result in operations.items():
            before = 0
            for end in ends:
                share = (end - before) / ends[-1]
                row = (end, index, CODES[name], result.ios * share, result.bytes * share)
                for column, value in zip(("end_ns", "job", "operation", "ios", "bytes"), row,
                                         strict=True):  # fmt: skip
                    columns[column].append(value)
                before = end
    times = elapsed or [seconds] * len(jobs)
    results = tuple(
        JobResult(f"j{index}", int(time * SECOND_NS), operations)  # type: ignore[arg-type]
        for index, (operations, time) in enumerate(zip(jobs, times, strict=True))
    )
    arrays = {key: np.array(values) for key, values in columns.items()}
    return StepResult(0, ends[-1], results, arrays, Counters(), Counters())


def _job_file(directory: Path, text: str) -> FioJobFile:
    path = directory / "job.fio"
    path.write_text(text)
    return load_fio_job(path, device_capacity_bytes=1 << 30)


MIX = """
[global]
size=1m
ioengine=libaio
[mix]
rw=randrw
iodepth=8
norandommap
percentile_list=50:99:99.9
description=a mix
"""


def _shape(value: Any, path: str = "") -> Any:
    """Return keys and types, except for keys that depend on the measurement."""
    if isinstance(value, dict):
        if path.endswith(("options", ".bins")):
            return {"*": "str" if path.endswith("options") else "int"}
        return {key: _shape(inner, f"{path}.{key}") for key, inner in value.items()}
    if isinstance(value, list):
        return [_shape(inner, path) for inner in value] if path != ".disk_util" else []
    return type(value).__name__


def _without(value: Any, names: set[str]) -> Any:
    """Return the document without keys of these names."""
    if isinstance(value, dict):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


STEADY_MIX = "runtime=3\ntime_based\nrate_iops=400\nss=iops:90%\nss_dur=2"


@pytest.mark.parametrize("fio", FIOS, indirect=True)
@pytest.mark.parametrize(
    "extra",
    ["", "lat_percentiles=1\nclat_percentiles=0", "unified_rw_reporting=1", "disable_clat=1",
     "unified_rw_reporting=mixed", "unified_rw_reporting=both", "group_reporting\nnumjobs=2",
     "numjobs=2\nstonewall", "gtod_reduce=1", "fsync=3", "fdatasync=1\nunified_rw_reporting=both",
     "fsync=3\nlat_percentiles=1\nclat_percentiles=0", "fsync=3\ndisable_clat=1", STEADY_MIX,
     f"{STEADY_MIX}\nnumjobs=2\ngroup_reporting", "rate=40m,10m", "disk_util=0",
     "latency_target=10ms\nlatency_window=100ms\nlatency_percentile=99",
     "continue_on_error=all", "rw=trimwrite", "rw=randtrim\nunified_rw_reporting=1"],
)  # fmt: skip
def test_structure_is_that_of_fio(extra: str, fio: str, tmp_path: Path) -> None:
    text = MIX + extra + "\n"
    if "trim" in extra:  # On a file, fio trims nothing.
        text = text.replace("libaio", "null") + "disk_util=0\n"
    (tmp_path / "target.img").write_bytes(bytes(1 << 20))
    target = f"filename={tmp_path / 'target.img'}\nthread"
    real = _real(fio, text.replace("[global]", f"[global]\n{target}"), tmp_path)
    job_file = _job_file(tmp_path, text)
    engine = SimEngine(str(write_small_drive(tmp_path)))
    results = [engine.run(step.workload) for step in job_file.steps]
    ours = fio_json(job_file, results, version="0.1.0", at=AT)
    if "job_start" not in real["jobs"][0]:  # The recorded version is older than fio 3.36.
        ours = _without(ours, {"job_start"})
    assert _shape(ours) == _shape(real)
    assert list(ours) == list(real)
    for entry, real_entry in zip(ours["jobs"], real["jobs"], strict=True):
        assert list(entry) == list(real_entry)
        for section in entry.keys() & {"read", "write", "trim", "mixed", "sync", "steadystate"}:
            assert list(entry[section]) == list(real_entry[section])
        assert entry.get("steadystate", {}).get("ss") == real_entry.get("steadystate", {}).get("ss")
        listed, real_options = entry["job options"], real_entry["job options"]
        if "fio-3.33" in real["fio version"]:  # fio 3.33 omits options that take no value.
            listed = {name: value for name, value in listed.items() if value}
        assert list(listed.items()) == list(real_options.items())


@pytest.mark.parametrize("fio", FIOS[1:], indirect=True)
def test_options_without_a_value_and_units_are_listed_as_by_fio(fio: str, tmp_path: Path) -> None:
    text = (
        "[global]\nfilename=target.img\nthread\nsize=1m\nkb_base=1000\ninvalidate=0\n"
        "group_reporting\n[a]\nrw=write\ntime_based\nruntime=100ms\nunit_base=8\n"
        "[b]\nstonewall\nrw=randread\nnorandommap\n"
    )
    real = _real(fio, text, tmp_path)
    job_file = _job_file(tmp_path, text)
    engine = SimEngine(str(write_small_drive(tmp_path)))
    ours = fio_json(job_file, [engine.run(step.workload) for step in job_file.steps])
    assert list(ours["global options"].items()) == list(real["global options"].items())
    options = [list(job["job options"].items()) for job in ours["jobs"]]
    assert options == [list(job["job options"].items()) for job in real["jobs"]]
    assert ("stonewall", "") in options[1] and ("norandommap", "") in options[1]


def test_version_names_both_programs_and_begins_as_fio_does() -> None:
    document = to_fio_json([], [], version="0.1.0", at=AT)
    assert re.match(r"fio-3\.\d+\b", document["fio version"])
    assert "writecliff 0.1.0" in document["fio version"]
    assert document["timestamp"] == 1772368215
    assert document["timestamp_ms"] == 1772368215000
    assert document["time"] == "Sun Mar  1 12:30:15 2026"


def test_figures_agree_with_each_other(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, MIX)
    reads, read_values = _operation(3900, 1)
    writes, _ = _operation(1300, 2)
    step = _step([{"read": reads, "write": writes}])
    (entry,) = fio_json(job_file, [step], version="0")["jobs"]
    read = entry["read"]
    assert read["io_bytes"] == 3900 * 4096
    assert read["io_kbytes"] == read["io_bytes"] // 1024
    assert read["runtime"] == 3250
    assert read["bw_bytes"] == read["io_bytes"] * 1000 // 3250
    assert read["bw"] == read["bw_bytes"] // 1024
    assert read["iops"] * read["runtime"] / 1000 == pytest.approx(read["total_ios"])
    assert entry["trim"]["total_ios"] == 0 and entry["trim"]["iops"] == 0.0
    for latency in (read["clat_ns"], read["lat_ns"]):
        assert latency["N"] == 3900
        assert latency["min"] == min(read_values) and latency["max"] == max(read_values)
        assert latency["mean"] == pytest.approx(statistics.fmean(read_values), abs=1e-5)
        assert latency["stddev"] == pytest.approx(statistics.pstdev(read_values), rel=0.01)
    assert "percentile" not in read["lat_ns"]
    assert read["slat_ns"]["N"] == 0
    assert read["iops_mean"] == pytest.approx(1200) == read["iops_max"] == read["iops_min"]
    assert read["iops_samples"] == read["bw_samples"] == 3  # The last quarter second is excluded.
    assert read["bw_mean"] == pytest.approx(1200 * 4) == read["bw_max"]
    assert read["bw_agg"] == pytest.approx(100)
    assert read["bw_dev"] == pytest.approx(0, abs=1e-6)
    assert entry["job_runtime"] == 3250 and entry["elapsed"] == 4
    assert entry["iodepth_level"] == {
        "1": 0, "2": 0, "4": 0, "8": 100, "16": 0, "32": 0, ">=64": 0
    }  # fmt: skip
    assert entry["desc"] == "a mix"


def test_percentiles_are_upper_bounds_within_the_maximum(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, MIX)
    reads, values = _operation(5000, 7)
    step = _step([{"read": reads}])
    (entry,) = fio_json(job_file, [step], version="0")["jobs"]
    values.sort()
    shown = entry["read"]["clat_ns"]["percentile"]
    assert list(shown) == ["50.000000", "99.000000", "99.900000"]
    for name, value in shown.items():
        exact = values[math.ceil(float(name) / 100 * 5000 - 1e-9) - 1]
        assert exact <= value <= min(exact * (1 + 1 / 64), values[-1])


def test_a_percentile_of_few_samples_is_their_maximum() -> None:
    block = latency_block(_histogram([1000, 2000, 100_003]), (50.0, 99.99, 100.0))
    assert block["percentile"]["99.990000"] == 100_003 == block["percentile"]["100.000000"]
    assert 2000 <= block["percentile"]["50.000000"] < 2000 * (1 + 1 / 64)


@needs_fio
def test_bins_are_keyed_as_by_fio(tmp_path: Path) -> None:
    """Check that every key that fio prints is the key of its own value and of its bucket's ends."""
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--name=n", "--ioengine=null", "--size=200m", "--output-format=json+"],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    bins = json.loads(done.stdout)["jobs"][0]["read"]["clat_ns"]["bins"]
    keys = [int(key) for key in bins]
    assert len(keys) > 5
    assert list(latency_block(_histogram(keys), (50.0,))["bins"]) == [str(key) for key in keys]


@pytest.mark.parametrize(
    ("value", "midpoint"),
    [(0, 0), (127, 127), (128, 129), (129, 129), (130, 131), (255, 255), (256, 258), (259, 258),
     (1_000_000, 1_003_520), (1 << 34, (1 << 34) + (1 << 27))],
)  # fmt: skip
def test_bin_midpoints(value: int, midpoint: int) -> None:
    assert latency_block(_histogram([value]), (50.0,))["bins"] == {str(midpoint): 1}


def test_bins_hold_every_io(tmp_path: Path) -> None:
    block = latency_block(_operation(4000, 3)[0].service, (50.0,))
    assert sum(block["bins"].values()) == 4000
    keys = [int(key) for key in block["bins"]]
    assert keys == sorted(keys)


def test_latency_distribution_puts_every_io_on_one_level() -> None:
    values = [1, 3, 999, 1500, 15_000, 999_000, 1_500_000, 3_000_000, 1_500_000_000, 9_000_000_000]
    levels = latency_distribution(_histogram(values))
    shown = {
        (unit, name): share
        for unit, shares in levels.items()
        for name, share in shares.items()
        if share
    }
    assert shown == {
        ("latency_ns", "2"): 10, ("latency_ns", "4"): 10, ("latency_ns", "1000"): 10,
        ("latency_us", "2"): 10, ("latency_us", "20"): 10, ("latency_us", "1000"): 10,
        ("latency_ms", "2"): 10, ("latency_ms", "4"): 10, ("latency_ms", "2000"): 10,
        ("latency_ms", ">=2000"): 10,
    }  # fmt: skip


def test_a_level_with_any_io_is_never_zero() -> None:
    histogram = Histogram()
    histogram.record(5_000, 1_000_000)
    histogram.record(5_000_000_000, 1)
    assert latency_distribution(histogram)["latency_ms"][">=2000"] == 0.01


GROUPED = """
[global]
size=1m
group_reporting
[a]
rw=write
numjobs=2
[b]
rw=write
[c]
rw=read
new_group
"""


def test_group_reporting_merges_jobs_of_a_group(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, GROUPED)
    first, first_values = _operation(1000, 1)
    second, second_values = _operation(500, 2)
    third, _ = _operation(700, 3)
    step = _step([{"write": first}, {"write": second}, {"read": third}], 2.0, [2.0, 1.0, 2.0])
    entries = fio_json(job_file, [step], version="0")["jobs"]
    assert [(entry["jobname"], entry["groupid"]) for entry in entries] == [("a", 0), ("c", 1)]
    write = entries[0]["write"]
    assert write["total_ios"] == 1500 and write["clat_ns"]["N"] == 1500
    assert write["clat_ns"]["mean"] == pytest.approx(statistics.fmean(first_values + second_values))
    assert write["runtime"] == 2000 and write["iops"] == pytest.approx(750)
    assert entries[0]["job_runtime"] == 2 * 2000 + 1000
    # In fio, the options also belong to the last member.
    assert entries[0]["job options"] == {"rw": "write"}
    assert first.service.count == 1000  # The results themselves remain unchanged.


def test_threads_are_entries_without_group_reporting(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, GROUPED.replace("group_reporting", ""))
    results = [{"write": _operation(10 * n, n)[0]} for n in (1, 2, 3)]
    results.append({"read": _operation(40, 4)[0]})
    entries = fio_json(job_file, [_step(results)], version="0")["jobs"]
    assert [entry["jobname"] for entry in entries] == ["a", "a", "b", "c"]
    assert [entry["write"]["total_ios"] for entry in entries] == [10, 20, 30, 0]
    assert sum(entry["write"]["bw_agg"] for entry in entries) == pytest.approx(100, abs=0.1)


def test_steps_are_matched_without_ramps_and_unwanted_jobs_are_left_out(tmp_path: Path) -> None:
    text = "[global]\nsize=1m\nramp_time=5s\n[a]\n[b]\nstats=0\n[c]\nstonewall\n"
    job_file = _job_file(tmp_path, text)
    two = [{"read": _operation(100, 1)[0]}, {"read": _operation(200, 2)[0]}]
    last = [{"read": _operation(300, 3)[0]}]
    results = [_step(two), _step(last)]
    document = fio_json(job_file, results, version="0")
    shown = [(entry["jobname"], entry["read"]["total_ios"]) for entry in document["jobs"]]
    assert shown == [("a", 100), ("c", 300)]
    partial = fio_json(job_file, results[:1], version="0")
    assert [entry["jobname"] for entry in partial["jobs"]] == ["a"]


def test_start_delay_is_no_part_of_the_runtime(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, "[a]\nsize=1m\nstartdelay=2s\n")
    step = _step([{"read": _operation(300, 1)[0]}], 4.0, [2.0])
    step = replace(step, jobs=(replace(step.jobs[0], began_ns=2 * SECOND_NS),))
    (entry,) = fio_json(job_file, [step], version="0")["jobs"]
    assert entry["read"]["runtime"] == 2000
    assert entry["read"]["iops_samples"] == 2


def test_workloads_without_a_job_file_describe_themselves() -> None:
    jobs = (
        Job(name="mix", read_pct=65.0, queue_depth=32, threads=4, duration_ns=60 * SECOND_NS),
        Job(name="sizes", block_sizes=(BlockSize(512, 4.0), BlockSize(65536, 1.0)), ios=100),
        Job(name="trim", trim_pct=100.0, pattern="sequential", volume_bytes=1 << 20),
    )
    workload = Workload("w", jobs)
    step = _step([{"read": _operation(5, 1)[0]}, {"write": _operation(5, 1)[0]},
                  {"trim": _operation(5, 1)[0]}])  # fmt: skip
    entries = to_fio_json([step], [workload], version="0")["jobs"]
    assert entries[0]["job options"] == {
        "rw": "randrw", "rwmixread": "65", "bs": "4k", "iodepth": "32", "numjobs": "4",
        "runtime": "60",
    }  # fmt: skip
    assert entries[1]["job options"]["bssplit"] == "512/80:64k/20"
    assert entries[2]["job options"]["rw"] == "trim"
    assert entries[2]["trim"]["total_ios"] == 5


def test_depth_is_not_made_up_for_jobs_held_by_a_rate(tmp_path: Path) -> None:
    job_file = _job_file(tmp_path, "[a]\nsize=1m\nioengine=libaio\niodepth=8\nrate_iops=100\n")
    step = _step([{"read": _operation(100, 1)[0]}])
    (entry,) = fio_json(job_file, [step], version="0")["jobs"]
    assert set(entry["iodepth_level"].values()) == {0.0}


def test_more_results_than_workloads_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="1 results were given for 0 steps"):
        to_fio_json([_step([{}])], [], version="0")


STEADY = (
    "[a]\nioengine=null\nrw=randread\nsize=1m\ntime_based\nruntime=3\nrate_iops=500\nss_dur={}\n"
)


@pytest.mark.parametrize(
    ("asked", "criterion", "deviation", "slope"),
    [
        ("iops:50%", "15.384615%", 20.0, 0.0),
        ("iops_slope:50", "20.000000", 0.0, 20.0),
        ("bw:1m", "81920.000000", 81920.0, 0.0),
        ("bw_slope:20%", "15.384615%", 0.0, 81920.0),
    ],
)
def test_steady_state_shows_what_it_was_judged_by(
    asked: str, criterion: str, deviation: float, slope: float, tmp_path: Path
) -> None:
    """Computed by hand for 90, 100, 110, 130 and 150 reads in five seconds, last three used."""
    step = _step([{"read": _operation(580, 1)[0]}], seconds=5.0)
    ios = np.array([90.0, 100.0, 110.0, 130.0, 150.0])
    rows = {**step.intervals, "ios": ios, "bytes": ios * 4096, "latency_mean_ns": ios * 0 + 1000}
    job_file = _job_file(tmp_path, f"{STEADY.format(3)}ss={asked}\n")
    (job,) = fio_json(job_file, [replace(step, intervals=rows)], at=AT)["jobs"]
    shown = job["steadystate"]
    assert shown["criterion"] == criterion
    assert (shown["max_deviation"], shown["slope"], shown["attained"]) == (deviation, slope, 0)
    assert shown["data"] == {
        "bw_mean": 532_480,
        "iops_mean": 130,
        "iops": [110, 130, 150],
        "bw": [450_560, 532_480, 614_400],
    }
    job_file = _job_file(tmp_path, f"{STEADY.format(7)}ss={asked}\n")
    (job,) = fio_json(job_file, [replace(step, intervals=rows)], at=AT)["jobs"]
    assert job["steadystate"]["data"]["iops"] == [90, 100, 110, 130, 150, 0, 0]
    assert (job["steadystate"]["max_deviation"], job["steadystate"]["slope"]) == (0.0, 0.0)

"""All forms of fio's JSON output: a correct import, or a one-line error."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runs.test_fio_json import _direction, _latency, document
from writecliff.engines.fio.finished import finished_steps
from writecliff.errors import ConfigError
from writecliff.runs.fio_json import read_fio_json, store_fio_json


def _rates(output: dict[str, Any]) -> list[dict[str, float]]:
    """Return the IOPS of each job, by step."""
    steps = finished_steps(output, "x")
    return [
        {job.name: sum(o.ios for o in job.operations.values()) / (job.elapsed_ns / 1e9)
         for job in step.result.jobs if job.elapsed_ns}
        for step in steps
    ]  # fmt: skip


def _mixed(direction: str) -> dict[str, Any]:
    output = document()
    job = output["jobs"][0]
    job["mixed"] = job.pop("read")
    del job["write"], job["trim"]
    job["job options"]["rw"] = direction
    return output


def test_unified_reporting_of_one_direction_is_that_direction() -> None:
    first = finished_steps(_mixed("randwrite"), "x")[0].result.jobs[0]
    assert {name: operation.ios for name, operation in first.operations.items()} == {"write": 100}


def test_unified_reporting_of_a_mix_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"job r reports its reads and writes together") as caught:
        finished_steps(_mixed("randrw"), "x")
    assert "unified_rw_reporting=both" in (caught.value.hint or "")


def test_unified_reporting_of_both_counts_no_io_twice() -> None:
    output = document()
    output["jobs"][0]["mixed"] = output["jobs"][0]["read"]
    assert _rates(output) == [{"r": 50.0}, {"w": 50.0}]


def _of_clients() -> dict[str, Any]:
    output = document()
    jobs = output.pop("jobs")
    listed = [{**job, "hostname": host, "port": 8765} for host in ("a", "b") for job in jobs]
    total = {**copy.deepcopy(jobs[0]), "jobname": "All clients", "hostname": "a", "port": 8765}
    del total["job options"]
    return {**output, "client_stats": [*listed, total]}


def test_clients_run_side_by_side_and_their_sum_is_no_job() -> None:
    assert _rates(_of_clients()) == [
        {"r@a:8765": 50.0, "r@b:8765": 50.0},
        {"w@a:8765": 50.0, "w@b:8765": 50.0},
    ]


def test_old_versions_count_in_kib_and_have_no_bins() -> None:
    output = json.loads(json.dumps(document(bins=False)))
    output["fio version"] = "fio-2.1.11"
    for job in output["jobs"]:
        for name in ("read", "write", "trim"):
            section = job[name]
            section["io_bytes"] //= 1024
            section["lat"] = section.pop("lat_ns")
            del section["clat_ns"]
    first = finished_steps(output, "x")[0].result
    assert first.total("read") == (100, 409_600)
    assert first.jobs[0].operations["read"].service.count == 0


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        ({}, {}, 1),
        ({}, {"startdelay": "2"}, 2),
        ({}, {"startdelay": "1500ms"}, 1),
        ({"startdelay": "1"}, {"ramp_time": "3s"}, 2),
    ],
)
def test_jobs_of_a_group_that_did_not_overlap_are_steps(
    first: dict[str, str], second: dict[str, str], steps: int
) -> None:
    """Check that both jobs measure for 2 s."""
    output = document()
    for job, options in zip(output["jobs"], (first, second), strict=True):
        job["groupid"] = 0
        job["job options"] |= options
    assert len(finished_steps(output, "x")) == steps


@pytest.mark.parametrize(("later_ms", "steps"), [(0, 1), (1500, 1), (1995, 2), (2300, 2)])
def test_the_start_of_a_job_counts_more_than_its_group(later_ms: int, steps: int) -> None:
    output = document(second="new_group")
    for job, start_ms in zip(output["jobs"], (0, later_ms), strict=True):
        job["job_start"] = 1_772_000_000_000 + start_ms
    made = finished_steps(output, "x")
    assert len(made) == steps
    assert sum(rate for step in _rates(output) for rate in step.values()) == 100.0
    if later_ms == 1500:
        assert [job.began_ns for job in made[0].result.jobs] == [0, 1_500_000_000]
        assert made[0].result.elapsed_ns == 3_500_000_000


def test_the_last_document_among_other_output_is_read(tmp_path: Path) -> None:
    first, last = document(lat=True), document(lat=True)
    first["jobs"][0]["jobname"] = "early"
    path = tmp_path / "x.json"
    path.write_text(
        "fio: {a warning} with braces\n3;fio-3.33;r;0;0;400\n"
        f"{json.dumps(first, indent=1)}\n{{not JSON\n{json.dumps(last, indent=1)}\n"
        "r: (groupid=0, jobs=1): err= 0\n"
    )
    assert read_fio_json(path) == last


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value)
    paths = []
    for key, child in children:
        paths.append((*path, key))
        if isinstance(child, dict | list):
            paths += _places(child, (*path, key))
    return paths


@pytest.mark.parametrize("form", [document(lat=True), _of_clients(), _mixed("write")])
def test_any_damage_is_one_clear_line(form: dict[str, Any], tmp_path: Path) -> None:
    draw = random.Random(7)
    places, refused = _places(form), 0
    for number in range(150):
        damaged = copy.deepcopy(form)
        place = draw.choice(places)
        holder: Any = damaged
        for key in place[:-1]:
            holder = holder[key]
        if number % 3:
            del holder[place[-1]]
        else:
            holder[place[-1]] = draw.choice([None, -1, "x", [], {}, 1e300, True])
        path = tmp_path / "x.json"
        path.write_text(json.dumps(damaged))
        try:
            finished_steps(read_fio_json(path), "x")
        except ConfigError as error:
            refused += 1
            text = str(error)
            assert "\n" not in text and "Error" not in text, (place, text)
    assert refused > 10


def test_a_form_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(_mixed("randrw")))
    with pytest.raises(ConfigError):
        store_fio_json(path, tmp_path / "run", capacity_bytes=1 << 30)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_flushes_and_empty_latencies_are_read() -> None:
    output = document()
    output["jobs"][0]["sync"] = {
        "total_ios": 10, "lat_ns": _latency({"100352": 10}, 100_000.0, 110_000)
    }  # fmt: skip
    output["jobs"][1]["sync"] = {"total_ios": 0, "lat_ns": _direction(0)}
    flush = [step.result.jobs[0].flush for step in finished_steps(output, "x")]
    assert flush[0] is not None and flush[0].ios == 10
    assert flush[1] is None

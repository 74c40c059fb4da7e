"""WSAT's options: editions, disclosure of deviations, clear refusals, the plan."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.support.fake_engine import FakeEngine
from tests.support.io_capture import required_options
from writecliff.errors import ConfigError
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.model import History, Plan
from writecliff.procedures.registry import PROCEDURES, procedure_from_mapping
from writecliff.procedures.wsat import Wsat, WsatOptions

IDENTITY = FakeEngine().identify()  # The fake drive has 480 GB and a SATA interface.
HOUR_NS = 3600 * 10**9


def wsat(**options: object) -> Wsat:
    return Wsat(WsatOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edition", "revision", "title", "cache", "threads", "depth", "hours", "histogram"),
    [
        ("pts-e", "1.x", "PTS-E 1.1", False, 4, 32, 24, False),
        ("pts-c", "1.x", "PTS-C 1.2", True, 2, 16, 24, False),
        ("pts-e", "2.0", "PTS 2.0.2 (enterprise)", False, 4, 32, 6, True),
        ("pts-c", "2.0", "PTS 2.0.2 (client)", True, 2, 16, 6, True),
    ],
)
def test_editions(
    edition: str,
    revision: str,
    title: str,
    cache: bool,
    threads: int,
    depth: int,
    hours: float,
    histogram: bool,
) -> None:
    test = wsat(edition=edition, revision=revision)
    assert test.edition == title
    assert test.write_cache is cache
    stages = test.stages(IDENTITY)
    share = 75 if (edition, revision) == ("pts-c", "2.0") else 100
    (job,) = stages[0].steps(History(), 1)[0].workload.jobs
    assert (job.threads, job.queue_depth) == (threads, depth)
    assert (job.pattern, job.read_pct, job.block_sizes[0].bytes) == ("random", 0, 4096)
    assert (job.range_bytes, job.duration_ns) == (
        share * IDENTITY.capacity_bytes // 100 // 4096 * 4096,
        60 * 10**9,
    )
    assert test.options.time_hours == hours
    assert [stage.phase for stage in stages[1:]] == (["rth"] if histogram else [])
    assert test.deviations() == ()


def test_deviations_are_disclosed() -> None:
    test = wsat(
        edition="pts-c", write_cache=False, queue_depth=64, sample_seconds=10, round_minutes=2
    )
    assert [str(deviation) for deviation in test.deviations()] == snapshot(
        [
            "write_cache is off; required by PTS write cache: on",
            "queue_depth is 64; recommended by PTS WSAT: 16",
            "sample_seconds is 10; required by PTS WSAT: 60",
            "round_minutes is 2; required by PTS WSAT: 31",
        ]
    )


def test_options_survive_the_manifest() -> None:
    test = wsat(edition="pts-c", end=("capacity",), drive_fills=2.0, seed=7)
    again = procedure_from_mapping("wsat", json.loads(json.dumps(test.options_mapping())))
    assert isinstance(again, Wsat)
    assert again.options == test.options


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"end": ()}, "--end is empty", "--end"),
        ({"end": ("steady", "never")}, "unknown end 'never'", "steady, capacity, time"),
        ({"edition": "pts-x"}, "unknown edition 'pts-x'", "did you mean 'pts-e'?"),
        ({"revision": "3"}, "unknown revision '3'", "1.x"),
        ({"threads": 0}, "threads must be at least 1, not 0", None),
        ({"time_hours": -1.0}, "time_hours must be more than 0", None),
        ({"sample_seconds": float("nan")}, "sample_seconds must be at least 0.01, not nan", None),
        ({"time_hours": float("inf")}, "time_hours must be a finite number", None),
        ({"max_rounds": 4}, "max_rounds must be at least 5", None),
        ({"active_range_pct": 101.0}, "active_range_pct must be at most 100", None),
        ({"compressible_pct": -1.0}, "compressible_pct must be at least 0", None),
        ({"seed": -1}, "seed must be at least 0", None),
        ({"threads": 4097}, "threads must be at most 4096, not 4097", None),
        ({"queue_depth": 10**20}, "queue_depth must be at most 65536", None),
        ({"drive_fills": 1e300}, "drive_fills must be at most 100000", None),
        ({"time_hours": 1e9}, "time_hours must be at most 8784", None),
        ({"sample_seconds": 1e-7}, "sample_seconds must be at least 0.01", None),
        ({"round_minutes": 1.5}, "not a whole number of steps", "the nearest is 120 s (2 min)"),
    ],
)
def test_what_cannot_mean_anything_is_refused(
    options: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        wsat(**options)
    assert message in str(caught.value)
    assert (hint or "") in (caught.value.hint or "")


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="unknown option 'thread'") as caught:
        Wsat.from_mapping({"thread": 4})
    assert caught.value.hint == "did you mean 'threads'?"


def plan(**options: object) -> Plan:
    return wsat(**options).plan(IDENTITY)


def test_plan_of_the_time_end() -> None:
    bounds = plan(end=("time",))
    assert (bounds.steps_min, bounds.steps_max) == (1440, 1440)
    assert bounds.device_time_min_ns == bounds.device_time_max_ns == 24 * HOUR_NS
    assert bounds.write_bytes_max == 24 * 3600 * 600_000_000


def test_plan_of_the_capacity_end() -> None:
    bounds = plan(end=("capacity",))
    # 4 x 480 GB at 600 MB/s take at least 53.3 minutes. There is no upper bound.
    assert (bounds.steps_min, bounds.steps_max) == (54, None)
    assert bounds.write_bytes_max == 4 * 480_000_000_000 + 60 * 600_000_000


def test_plan_of_the_steady_end() -> None:
    bounds = plan(end=("steady",))
    assert (bounds.steps_min, bounds.steps_max) == (155, 775)


def test_an_end_named_twice_is_named_once() -> None:
    assert wsat(end=("steady", "steady")).ends(IDENTITY)[-1].name == "rounds"


@pytest.mark.parametrize("seconds", [5.0, 7.0, 60.0])
def test_the_time_end_comes_when_the_plan_says(seconds: float, tmp_path: Path) -> None:
    test = wsat(
        end=("time",), time_hours=0.02, sample_seconds=seconds, round_minutes=3 * seconds / 60
    )
    steps = len(run_procedure(test, FakeEngine(), tmp_path / "r").history.rows)
    bounds = test.plan(IDENTITY)
    assert (bounds.steps_min, bounds.steps_max) == (steps, steps)


def test_plan_of_all_ends_with_histogram() -> None:
    bounds = plan(revision="2.0", end=("steady", "capacity", "time"))
    assert (bounds.steps_min, bounds.steps_max) == (54 + 1, 360 + 1)
    assert bounds.phases[-1] == "response-time histogram, 1200 s"


def test_registry_is_in_step_with_the_classes(tmp_path: Path) -> None:
    for name, entry in PROCEDURES.items():
        procedure = procedure_from_mapping(name, required_options(name, tmp_path))
        assert (procedure.name, procedure.title) == (name, entry.title)
        assert entry.load_report().__name__ == f"{type(procedure).__name__}Report"
        for edition in entry.editions:
            procedure_from_mapping(name, {"edition": edition})


@pytest.mark.parametrize("name", list(PROCEDURES))
def test_texts_of_options_leave_the_default_to_the_help(name: str) -> None:
    for item in fields(PROCEDURES[name].load_procedure().options_type):
        assert "default" not in item.metadata["help"], item.name
        if item.metadata["unset"]:
            assert item.default is None, item.name
            assert item.metadata["rule"] is None, item.name


def test_a_step_of_a_run_has_the_seed_of_its_path() -> None:
    # Seeds from version 0.1. They must not depend on names in the code, because old runs could then
    # not be repeated.
    (stage, *_) = wsat(seed=7).stages(IDENTITY)
    assert stage.steps(History(), 2)[3].workload.seed == 8_456_943_506_946_004_098

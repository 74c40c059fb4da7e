"""Loads that a drive cannot sustain: not steady; effects on verdict, limits, choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff.choice.certainty import ModelError
from writecliff.choice.load_kinds import LoadKinds
from writecliff.choice.question import Question
from writecliff.choice.ranking import rank
from writecliff.engines.sim import SimEngine
from writecliff.procedures.sustained import shortfall_text, shortfalls
from writecliff.report.headline import Headline
from writecliff.store.tables import job_row
from writecliff.workload.model import IoLog, Job, Workload

SECOND_NS = 1_000_000_000


def row(done: int, *, seconds: float = 1.0, size: int = 4096, **schedule: float) -> dict[str, Any]:
    """Return a job in a row of the table `rounds`."""
    none = dict.fromkeys(f"{op}_{what}" for op in ("write", "trim") for what in ("ios", "bytes"))
    return {
        "name": "j", "elapsed_ns": round(seconds * SECOND_NS), "read_ios": done,
        "read_bytes": done * size, **none, **{f"schedule_{k}": v for k, v in schedule.items()},
    }  # fmt: skip


OVERLOAD = {"ios": 8237, "span_ns": 8 * 10**8, "slope": 0.214, "slope_error": 1e-4,
            "last_age_ns": 17 * 10**7}  # fmt: skip
RATED = Job(rate_iops=10_000.0)


@pytest.mark.parametrize(
    ("job", "rows", "text"),
    [
        (RATED, [row(8237, **OVERLOAD)], "load not sustained: 82 % of 10,000 IOPS"),
        # The backlog of the burst has drained by the end.
        (RATED, [row(8237, **{**OVERLOAD, "last_age_ns": 10**6})], ""),
        # The first slope is within the noise, and the second slope is below 1 %.
        (RATED, [row(8237, **{**OVERLOAD, "slope_error": 0.1})], ""),
        (RATED, [row(9950, **{**OVERLOAD, "slope": 0.004, "last_age_ns": 4 * 10**6})], ""),
        # Two rounds of a window of five, then three rounds.
        (RATED, [row(8237, **OVERLOAD)] * 2 + [row(9999, **{**OVERLOAD, "slope": 0.0})] * 3, ""),
        (RATED, [row(8237, **OVERLOAD)] * 3 + [row(9999, **{**OVERLOAD, "slope": 0.0})] * 2,
         "load not sustained: 82 % of 10,000 IOPS"),
        (Job(rate_bytes_per_s=40_960_000.0), [row(8237, **OVERLOAD)],
         "load not sustained: 82 % of 41.0 MB/s"),
        (Job(log=IoLog("rr", (0, 0), (4096, 4096), (0, 1))), [row(8237, **OVERLOAD)],
         "load not sustained: 80 % of 10,296 IOPS"),
        # fio reports only counts.
        (RATED, [row(8237)], "load not sustained: 82 % of 10,000 IOPS"),
        (RATED, [row(9_900)], ""),
        (Job(rate_iops=10_000.0, think_ns=1000), [row(8237)], ""),
        (Job(), [row(8237)], ""),
    ],
)  # fmt: skip
def test_the_backlog_decides(job: Job, rows: list[dict[str, Any]], text: str) -> None:
    load = Workload("w", (job,))
    assert shortfall_text(shortfalls(load, [[row] for row in rows]), 1) == text


def measured(engine: SimEngine, *jobs: Job) -> str:
    load = Workload("w", jobs)
    result = engine.run(load)
    missed = shortfalls(load, [[job_row(job) for job in result.jobs]])
    return shortfall_text(missed, len(jobs))


def reads(**more: Any) -> Job:
    """Read from a drive that serves about 10,000 reads per second at queue depth 1."""
    return Job(read_pct=100, **{"duration_ns": SECOND_NS // 4, **more})


def test_a_simulated_drive_keeps_up_or_not(tmp_path: Path) -> None:
    with_data = SimEngine(str(write_small_drive(tmp_path)))
    full = with_data.identify().capacity_bytes
    with_data.precondition(Workload("fill", (Job(pattern="sequential", volume_bytes=full),)))
    alone = with_data.run(Workload("w", (reads(),))).iops()
    for arrival in ("linear", "poisson"):
        job = reads(rate_iops=2 * alone, arrival=arrival)
        assert measured(with_data, job).startswith(("load not sustained: 49 %",
                                                    "load not sustained: 50 %"))  # fmt: skip
        # A queue that holds the whole backlog does not hide the backlog, because the drive then
        # serves more I/Os.
        deep = measured(with_data, reads(rate_iops=50 * alone, arrival=arrival, queue_depth=4096))
        assert deep.startswith("load not sustained: ")
        assert measured(with_data, reads(rate_iops=0.8 * alone, arrival=arrival)) == ""
    sustained, behind = (
        reads(name="kept", rate_iops=100.0),
        reads(name="behind", rate_iops=2 * alone),
    )
    assert measured(with_data, sustained, behind).startswith("load not sustained: behind 4")
    # 200 reads arrive at once, followed by a pause that is longer than the reads take.
    ios, end_ns = 200, 4 * round(200 / alone * SECOND_NS)
    times = (*range(ios), end_ns)
    burst = IoLog("r" * (ios + 1), tuple(4096 * n for n in range(ios + 1)), (4096,) * (ios + 1),
                  times)  # fmt: skip
    assert measured(with_data, Job(log=burst, ios=ios + 1)) == ""


def test_an_overload_is_in_verdict_limits_and_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drive = write_small_drive(tmp_path)
    (tmp_path / "load.toml").write_text(
        'name = "hot"\n[[step]]\nname = "hot"\nuntil = "steady"\n[[step.job]]\nname = "hot"\n'
        'read = "100 %"\nrate = "40000 IOPS"\nduration = "50 ms"\n'
    )
    words = ["run", str(tmp_path / "load.toml"), "--on", f"sim:{drive}", "--json", "--quiet",
             "--output", str(tmp_path / "run")]  # fmt: skip
    limits = ["p99 <= 1 us", "p99 <= 10 s", "service/p99 <= 10 s"]
    completed = CommandLine(capsys)(
        [*words, *(word for limit in limits for word in ("--expect", limit))]
    )
    assert completed.code == 3, completed.err
    answer = json.loads(completed.out)
    late = answer["steps"][0]["not_sustained"]
    assert late.startswith("load not sustained: 2") and late.endswith(" % of 40,000 IOPS")
    assert answer["verdict"].startswith(f"L{late[1:]};") and "p99" not in answer["verdict"]
    results = [(limit["result"], limit["note"]) for limit in answer["expectations"]]
    assert results == [("missed", late), ("unknown", late), ("met", "")]
    page = (tmp_path / "run/report.html").read_text()
    assert late[1:] in page and "Steady state reached" not in page


def test_a_drive_that_does_not_keep_up_does_not_pass() -> None:
    late = "load not sustained: 82 % of 10,000 IOPS"
    figure = Headline(key="p99.99", label="", value=1.0, unit="ms", higher_is_better=False)
    marked = Headline(key="p99.99", label="", value=0.5, unit="ms", higher_is_better=False,
                      steady=False, not_sustained=late)  # fmt: skip
    error = ModelError(LoadKinds(("mixes",), ("reads", "writes")))
    drives = {
        name: (name, {"p99.99": marking}, error) for name, marking in (("a", marked), ("b", figure))
    }
    for limits in ((), ("p99.99 <= 2 ms",)):
        question = Question(workload="w", candidates=("a", "b"), limits=limits)
        first, second = rank(drives, question, {"p99.99": 1.0})
        assert (first.name, first.passes) == ("b", True)
        assert (second.name, second.passes, second.why) == ("a", False, late)

"""Latency by cause, from the simulated drive to the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.small_drive import write_small_drive
from writecliff import Job, SimEngine, Workload
from writecliff.cli.main import main
from writecliff.engines.base import StepResult
from writecliff.latency_causes import SLOWEST, LatencyCauses, causes
from writecliff.report import build_report, summarise
from writecliff.store.rundir import RunDirectory

MIX = Workload("mix", (Job(read_pct=70, queue_depth=16, ios=20_000),))


def run(path: Path, *, attribute_latency: bool) -> StepResult:
    engine = SimEngine(str(path), attribute_latency=attribute_latency)
    capacity = engine.identify().capacity_bytes
    engine.precondition(Workload("churn", (Job(volume_bytes=3 * capacity),)))
    return engine.run(MIX)


def test_causes_change_nothing_and_add_up_in_every_bucket(tmp_path: Path) -> None:
    path = write_small_drive(tmp_path)
    plain = run(path, attribute_latency=False)
    answer = run(path, attribute_latency=True)
    assert (answer.elapsed_ns, answer.counters_after) == (plain.elapsed_ns, plain.counters_after)
    for name, operation in answer.jobs[0].operations.items():
        before = plain.jobs[0].operations[name]
        assert before.causes is None and operation.service == before.service
        buckets = operation.causes
        assert buckets is not None
        for column, expected in zip(
            (buckets.lower_ns, buckets.upper_ns, buckets.ios), operation.service.buckets(),
            strict=True,
        ):  # fmt: skip
            assert (column == expected).all()
        sums = buckets.spent_ns.sum(axis=1)
        assert (buckets.lower_ns * buckets.ios <= sums).all()
        assert (sums <= buckets.upper_ns * buckets.ios).all()
        mean_ns = operation.service.mean_ns
        assert sums.sum() / operation.ios == pytest.approx(mean_ns, rel=1e-12)


def test_reads_wait_for_programs_and_writes_for_the_buffer(tmp_path: Path) -> None:
    operations = run(write_small_drive(tmp_path), attribute_latency=True).jobs[0].operations
    reads, writes = (operations[name].causes for name in ("read", "write"))
    assert reads is not None and writes is not None
    fastest, slowest = reads.bands()[0], reads.bands()[-1]
    waits = ("program", "erase", "collection")
    share = [sum(b.mean_ns[c] for c in waits) / b.latency_ns for b in (fastest, slowest)]
    assert share[0] < 0.5 < share[1], "a slow read is one that met other work on its die"
    full = sum(ns for c, ns in writes.bands()[-1].mean_ns.items() if c.startswith("buffer_"))
    assert full > 0.5 * writes.bands()[-1].latency_ns


def buckets(*rows: tuple[int, int, int]) -> LatencyCauses:
    """Return rows of (latency, I/Os, flash ns of each I/O); the remaining time is the link's."""
    latency, ios, flash = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
    spent = dict.fromkeys(causes(), 0 * ios)
    spent |= {"flash": ios * flash, "link": ios * (latency - flash)}
    return LatencyCauses.of({"lower_ns": latency, "upper_ns": latency, "ios": ios, **spent})


def test_bands_divide_a_bucket_that_two_of_them_share() -> None:
    bands = {band.name: band for band in buckets((100, 80, 60), (200, 20, 20)).bands()}
    assert [*bands] == ["to p50", "p50-p90", "p90-p99", "p99-p99.9", SLOWEST]
    assert (bands["to p50"].ios, bands["to p50"].latency_ns) == (50, 100)
    both = bands["p50-p90"]  # 30 I/Os are in the first bucket and 10 are in the second bucket.
    assert (both.ios, both.latency_ns, both.mean_ns["flash"]) == (40, 125, 50)
    assert bands[SLOWEST].ios == 20
    assert bands[SLOWEST].largest() == [("link", 90), ("flash", 10)]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attributed")
    drive = write_small_drive(folder)
    words = f"test wsat --on sim:{drive} --attribute-latency --output {folder / 'r'} --quiet"
    words += " --end time --time-hours 0.0005 --sample-seconds 0.1 --round-minutes 0.005"
    assert main(words.split()) == 0
    return folder / "r"


def test_a_run_stores_the_causes_and_its_report_draws_them(reported: Path) -> None:
    run = RunDirectory.open(reported)
    sums = "+".join(f"{cause}_ns" for cause in causes())
    wrong = run.query(
        f"select count(*) as n from histograms where kind = 'service' "
        f"and not ({sums}) between lower_ns * count and upper_ns * count"
    )
    assert run.attributes_latency and wrong["n"].to_pylist() == [0]
    model = build_report(run)
    (where,) = (part for part in model.sections if part.title == "Latency by cause")
    assert [figure.name for figure in where.figures] == ["causes-write"]
    (file,) = (file for file in model.data if file.name == "latency-causes-write.csv")
    assert file.text.splitlines()[0].startswith("label,band,ios,latency_mean_ns,host_queue_mean_ns")
    bands = summarise(reported)["latency_causes"]["write"]
    for band in json.loads(json.dumps(bands)):
        assert sum(band["causes_mean_ns"].values()) == pytest.approx(band["latency_mean_ns"])


def test_a_run_without_causes_has_no_trace_of_them(good_run: Path) -> None:
    run = RunDirectory.open(good_run)
    assert not run.attributes_latency and run.latency_causes([1]) == {}
    assert "latency_causes" not in summarise(good_run)

"""Benchmark of run store lists, filters and SQL queries over many small runs.

The simulator executes one short run. All further runs are copies that differ in drive, seed, age,
tags and figures. Each command is measured as a whole, in a separate process, from the start of
Python to the last line. Work that a command does only once for new runs is a separate case.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from writecliff.engines.target import open_target
from writecliff.errors import ConfigError
from writecliff.lab.bench.sim import measured
from writecliff.procedures.framework import run_procedure
from writecliff.procedures.progress import RunProgress
from writecliff.procedures.workload import WorkloadRun
from writecliff.report import write_report
from writecliff.report.kept_figures import KEPT_NAME, manifest_digest
from writecliff.report.kept_figures import SCHEMA as FIGURES_SCHEMA
from writecliff.runs.place import open_place
from writecliff.runs.tags import SCHEMA as TAGS_SCHEMA
from writecliff.runs.tags import TAGS_NAME, change_tags
from writecliff.store.checksums import read_document, sealed_document
from writecliff.store.manifest import MANIFEST_NAME, SCHEMA, read_manifest
from writecliff.workload.load import LoadStep
from writecliff.workload.model import Job, Workload

RUNS = 10_000
LIST_GOAL_S, SQL_GOAL_S = 0.5, 2.0
Row = Mapping[str, Any]

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_TABLES = ("rounds.parquet", "intervals.parquet", "histograms.parquet")
_IOPS = "key like '%reads/iops'"
CASES: Mapping[str, tuple[tuple[str, ...], float | None]] = {
    "index": (("index",), None),
    "list": (("list", "--limit", "50"), LIST_GOAL_S),
    "filter": (("list", "--test", "workload", "--device", "drive 7", "--tag", "nightly",
                "--since", "2026-01-05", "--limit", "50"), LIST_GOAL_S),
    "where": (("list", "--where", "seed % 7 = 3 and capacity_bytes > 1e9", "--limit", "50"),
              LIST_GOAL_S),
    "sql-runs": (("sql", "select drive, status, count(*) from runs group by all"), SQL_GOAL_S),
    "sql-figures": (("sql", "select drive, avg(value), min(low), max(high) from figures join runs "
                     f"using (run) where {_IOPS} group by drive"), SQL_GOAL_S),
    "copy-tables": (("index", "--tables"), None),
    "sql-rounds": (("sql", "select drive, sum(ios), max(latency_max_ns) from rounds join runs "
                    "using (run) group by drive"), SQL_GOAL_S),
    "sql-intervals": (("sql", "select avg(ios), max(latency_max_ns) from intervals"), SQL_GOAL_S),
    "sql-histograms": (("sql", "select operation, sum(count) from histograms group by operation"),
                       SQL_GOAL_S),
    "change-one": (("list", "--limit", "50"), None),
}  # fmt: skip


def run(folder: Path, *, runs: int = RUNS) -> Iterator[Row]:
    """Create `runs` runs in `folder`, then yield a row per case.

    Rows contain `case`, `wall_s` and `cpu_s` (fastest of three, if the case can be repeated) and
    `goal_s`.

    Raises:
        ConfigError: If `runs` is out of range, or a command failed.
    """
    if not 1 <= runs <= 1_000_000:
        raise ConfigError(f"--runs must be 1 to 1,000,000, not {runs}")
    begin_s = time.monotonic()
    fill(folder, runs)
    yield {"case": "make", "wall_s": time.monotonic() - begin_s, "cpu_s": None, "goal_s": None}
    for case, (words, goal_s) in CASES.items():
        if case == "change-one":
            change_tags(open_place(str(folder)), "runs/run-00000", add=["changed"])
        took = [_command(folder, words) for _ in range(3 if goal_s is not None else 1)]
        wall_s, cpu_s = min(took)
        yield {"case": case, "wall_s": wall_s, "cpu_s": cpu_s, "goal_s": goal_s}


def fill(folder: Path, runs: int) -> None:
    """Create `runs` small runs in `folder`."""
    job = Job(name="mix", read_pct=70.0, queue_depth=8, range_bytes=1 << 28, duration_ns=10_000_000)
    template = folder / ".template"
    step = LoadStep(Workload("mix", (job,), interval_ns=1_000_000))
    run_procedure(
        WorkloadRun(file="mix.toml", steps=(step,)),
        open_target("sim:sata-tlc-120"),
        template,
        RunProgress(),
    )
    write_report(template)
    for number in range(runs):
        _copy(template, folder / "runs" / f"run-{number:05d}", number)
    shutil.rmtree(template)


def _copy(template: Path, target: Path, number: int) -> None:
    """Copy a run, changing its manifest and figures."""
    rng = Random(number)
    target.mkdir(parents=True)
    for name in _TABLES:
        shutil.copyfile(template / name, target / name)
    before = read_manifest(template)
    begun = (_FIRST + timedelta(minutes=7 * number)).isoformat(timespec="seconds")
    device = replace(before.device, model=f"drive {number % 40}", target=f"sim:drive-{number % 40}")
    manifest = replace(before, device=device, seed=number, created=begun, updated=begun)
    data = sealed_document(SCHEMA, asdict(manifest))
    (target / MANIFEST_NAME).write_bytes(data)
    saved = read_document(template / KEPT_NAME, FIGURES_SCHEMA)
    for figure in saved["figures"]:
        figure["value"] *= rng.uniform(0.9, 1.1)
    saved["manifest"] = manifest_digest(data)
    (target / KEPT_NAME).write_bytes(sealed_document(FIGURES_SCHEMA, saved))
    if number % 3 == 0:
        (target / TAGS_NAME).write_bytes(_tags(["nightly", f"batch-{number // 100}"]))


def _tags(tags: list[str]) -> bytes:
    return sealed_document(TAGS_SCHEMA, {"tags": tags})


def _command(folder: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """Wall and CPU time of `writecliff runs WORDS`. Raises ConfigError if the command fails."""
    ran = measured(["runs", *words, "--store", str(folder), "--json"])
    if ran.exit_code:
        raise ConfigError(f"`writecliff runs {words[0]}` failed: {ran.stderr.strip()}")
    json.loads(ran.stdout)
    return ran.wall_s, ran.cpu_s

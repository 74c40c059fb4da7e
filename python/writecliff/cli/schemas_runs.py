"""What the commands of the run store print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.cli.schema import Schema

_STORE = "folder or URL of the store"
_REFERENCE = "columns of the view `runs` ([reference](run-store.md))"

RUNS: Mapping[str, Schema] = {
    "runs-list": Schema(
        "runs list",
        {
            "store": _STORE,
            "runs": "of each `run` (its name), `status`, `test`, `target`, `drive`, `created_utc`, "
            "`verdict`, `tags`, `member_of`, `kind`, `limits_met` and `damage`: "
            f"{_REFERENCE}",
        },
    ),
    "runs-show": Schema(
        "runs show",
        {
            "store": _STORE,
            "run": f"all {_REFERENCE}",
            "figures": "of each `key`, `label`, `value`, `unit`, the interval `low` to `high` and "
            "what it is the `interval_of`, `higher_is_better`, `at` and `steady`",
            "expectations": "limits and what became of them, as the manifest has them",
        },
    ),
    "runs-tag": Schema("runs tag", {"run": "its name", "tags": "all tags that it has now"}),
    "runs-delete": Schema("runs delete", {"store": _STORE, "deleted": "names of runs"}),
    "runs-export": Schema(
        "runs export",
        {"store": _STORE, "runs": "names of runs and suites", "output": "archive or folder"},
    ),
    "runs-import": Schema("runs import", {"store": _STORE, "runs": "names of new runs and suites"}),
    "runs-sql": Schema(
        "runs sql",
        {
            "store": _STORE,
            "columns": "`name` and `type` of each",
            "rows": "an object each, by the names of the columns",
        },
    ),
    "runs-diff": Schema(
        "runs diff",
        {
            "runs": "names of A and B",
            "differences": "in the set-up: `what`, `values`, `tests` (of several)",
            "environment": "in versions and host: `what`, `values`",
            "figures": "as `compare --json` prints them, each with its `judgement`: B is "
            '`"better"`, `"worse"` or `"equal"`, or `"cannot tell"`',
            "rule": "what counts as more than noise",
            "judgement": "of all figures: better or worse if some are and none is the other",
            "verdict": "a sentence",
        },
    ),
    "bench-store": Schema(
        "bench store",
        {
            "runs": "how many were made",
            "rows": "of each command `case`, `wall_s` and `cpu_s` (the quickest of three), and "
            "`goal_s`, or `null`",
        },
    ),
    "bench-choose": Schema(
        "bench choose",
        {
            "rows": "of each `case` (the first time, with states cached) `wall_s`, `goal_s` (of 20 "
            "drives), `drives`, and whether the answer is the `same` as the first time",
        },
    ),
    "bench-sweep": Schema(
        "bench sweep",
        {
            "cells": "runs of each sweep",
            "rows": "of each pair `jobs_wall_s`, `dask_wall_s`, `jobs_cpu_s`, `dask_cpu_s` (of all "
            "processes), `ratio` (wall time with Dask by that with `--jobs 2`), and `identical` "
            "(every table of every cell)",
        },
    ),
    "ui": Schema(
        "ui",
        {
            "address": "what to open in a browser, with the token; printed when it is ready",
            "store": _STORE,
            "allow_changes": "whether tags can be changed and runs be deleted",
        },
    ),
    "bench-trace": Schema(
        "bench trace",
        {
            "lines": "of the trace",
            "rows": "of each case `case`, `lines`, `bytes`, `cpu_s`, `wall_s`, `lines_per_cpu_s` "
            "and `peak_rss_mib`",
        },
    ),
    "runs-index": Schema(
        "runs index",
        {
            "store": _STORE,
            "runs": "how many there are",
            "read": "how many had changed",
            "gone": "how many had gone",
            "damaged": "`run` and `damage` of each run of which something cannot be read",
        },
    ),
}

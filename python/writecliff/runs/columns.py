"""The tables for SQL over all runs, and their columns, as data: views and the reference follow.

Kinds are those of DuckDB. Times are UTC without a zone, because DuckDB needs another package for
zones. Unknown is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str
    text: str


RUNS: Sequence[Column] = tuple(
    Column(*each)
    for each in (
        ("run", "varchar", "name of the run: the path of its directory in the store"),
        ("name", "varchar", "last part of that path"),
        ("member_of", "varchar", "the suite or sweep that the run is part of"),
        ("kind", "varchar", "`test`, `campaign`, `workload`, `replay`, `served`, `twin`"),
        ("test", "varchar", "the test: `wsat`; `workload`, `trace_replay`, `served`, `twin`"),
        ("title", "varchar", "title of the test"),
        ("edition", "varchar", "edition of the standard"),
        ("status", "varchar",
         "`complete`, `running`, `interrupted`, `failed`, `planned`, `damaged`"),
        ("damage", "varchar", "why the run, its tags or its figures cannot be read"),
        ("target", "varchar", "the drive as it was named: `sim:sata-tlc-120`, `/dev/sdb`"),
        ("drive", "varchar", "vendor and model"),
        ("serial", "varchar", "serial number"),
        ("firmware", "varchar", "revision of the firmware"),
        ("capacity_bytes", "bigint", "user capacity"),
        ("interface", "varchar", "`SATA 6Gb/s`, `NVMe`"),
        ("simulated", "boolean", "or a real drive"),
        ("scale", "double", "simulated so many times smaller; 1: whole"),
        ("device_hash", "varchar", "hash of the description of a simulated drive"),
        ("seed", "bigint", "of all random choices"),
        ("options_json", "varchar",
         "options of the test as JSON; of workloads, replays and served drives only what is short"),
        ("command", "varchar", "the command line"),
        ("created_utc", "timestamp", "begin of the run"),
        ("updated_utc", "timestamp", "last change of the run"),
        ("ended_by", "varchar", "name of the end that was reached"),
        ("reason", "varchar", "why the run ended, in words"),
        ("steps", "bigint", "steps that were measured"),
        ("device_time_ns", "bigint", "length of all steps by the clock of the drive"),
        ("host_write_bytes", "bigint", "written by the host in all steps"),
        ("verdict", "varchar", "the outcome in one line"),
        ("stamp", "varchar", "`NOT PTS-CONFORMANT` and the like; empty: as the standard says"),
        ("limits_met", "boolean", "whether all limits are met; null: the run had none"),
        ("warnings", "bigint", "number of warnings"),
        ("writecliff_version", "varchar", "that made the run"),
        ("fio_version", "varchar", "of the load generator, of real drives"),
        ("kernel", "varchar", "of the host"),
        ("cpu", "varchar", "of the host"),
        ("tags", "varchar[]", "tags of the run"),
    )
)  # fmt: skip

FIGURES: Sequence[Column] = tuple(
    Column(*each)
    for each in (
        ("run", "varchar", "name of the run"),
        ("key", "varchar", "name of the figure, the same in all runs of a test: `iops_4k_0_100`"),
        ("label", "varchar", "the figure in words"),
        ("value", "double", "in `unit`"),
        ("unit", "varchar", "`IOPS`, `ms`, `MB/s`; empty for ratios"),
        ("low", "double", "lower end of the 95 % interval, in `unit`; null: a single value"),
        ("high", "double", "upper end"),
        ("interval_of", "varchar", "what the interval is of"),
        ("higher_is_better", "boolean", "null: neither direction is better"),
        ("at", "varchar", "the load that the run itself chose to measure at"),
        ("steady", "boolean", "whether the drive was in steady state"),
    )
)

TAGS: Sequence[Column] = (
    Column("run", "varchar", "name of the run"),
    Column("tag", "varchar", "one of its tags"),
)

# Tables of every run, with its name before their own columns (docs/reference/run-directory.md).
STEP_TABLES = ("rounds", "intervals", "histograms")
CATALOGUE_TABLES: Mapping[str, Sequence[Column]] = {"runs": RUNS, "figures": FIGURES, "tags": TAGS}

# In the catalogue's file only.
TOKEN, DIGEST, HAS_FIGURES, UNENDED = "token", "manifest_sha256", "has_figures", "unended"

"""SQL tables over all runs, with the columns from which the views and the reference are generated.

The column types are those of DuckDB. Times are in UTC without a time zone, because DuckDB requires
another package for time zones. Unknown values are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A table column."""

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
        ("damage", "varchar", "reason why the run, its tags or its figures cannot be read"),
        ("target", "varchar", "target as given by the user: `sim:sata-tlc-120`, `/dev/sdb`"),
        ("drive", "varchar", "vendor and model"),
        ("serial", "varchar", "serial number"),
        ("firmware", "varchar", "firmware revision"),
        ("capacity_bytes", "bigint", "user capacity"),
        ("interface", "varchar", "`SATA 6Gb/s`, `NVMe`"),
        ("simulated", "boolean", "`true` for a simulated drive, `false` for a real one"),
        ("scale", "double", "factor by which the simulated drive was scaled down; 1: full size"),
        ("device_hash", "varchar", "hash of the description of a simulated drive"),
        ("seed", "bigint", "seed of all random choices"),
        ("options_json", "varchar",
         "options of the test as JSON; workloads, replays and served drives: only short options"),
        ("command", "varchar", "the command line"),
        ("created_utc", "timestamp", "start of the run"),
        ("updated_utc", "timestamp", "last change of the run"),
        ("ended_by", "varchar", "name of the end condition"),
        ("reason", "varchar", "reason for the end of the run"),
        ("steps", "bigint", "number of measured steps"),
        ("device_time_ns", "bigint", "total length of all steps, by the clock of the drive"),
        ("host_write_bytes", "bigint", "bytes written by the host in all steps"),
        ("verdict", "varchar", "outcome in one line"),
        ("stamp", "varchar", "stamp such as `NOT PTS-CONFORMANT`; empty for a conforming run"),
        ("limits_met", "boolean", "`true` if all limits are met; null: the run has no limits"),
        ("warnings", "bigint", "number of warnings"),
        ("writecliff_version", "varchar", "version of writecliff that executed the run"),
        ("fio_version", "varchar", "version of fio, for real drives"),
        ("kernel", "varchar", "kernel of the host"),
        ("cpu", "varchar", "CPU of the host"),
        ("tags", "varchar[]", "tags of the run"),
    )
)  # fmt: skip

FIGURES: Sequence[Column] = tuple(
    Column(*each)
    for each in (
        ("run", "varchar", "name of the run"),
        ("key", "varchar", "name of the figure, the same in all runs of a test: `iops_4k_0_100`"),
        ("label", "varchar", "description of the figure"),
        ("value", "double", "value in `unit`"),
        ("unit", "varchar", "`IOPS`, `ms`, `MB/s`; empty for ratios"),
        ("low", "double", "lower end of the 95 % interval, in `unit`; null: a single value"),
        ("high", "double", "upper end of the interval"),
        ("interval_of", "varchar", "quantity of the interval"),
        ("higher_is_better", "boolean", "null: neither direction is better"),
        ("at", "varchar", "load at which the figure was measured, if the run chose it"),
        ("steady", "boolean", "`true` if the drive was in steady state"),
    )
)

TAGS: Sequence[Column] = (
    Column("run", "varchar", "name of the run"),
    Column("tag", "varchar", "tag of the run"),
)

# Tables present in every run. Each table starts with a column for the run's name
# (docs/reference/run-directory.md).
STEP_TABLES = ("rounds", "intervals", "histograms")
CATALOGUE_TABLES: Mapping[str, Sequence[Column]] = {"runs": RUNS, "figures": FIGURES, "tags": TAGS}

# Catalogue file columns that the views omit.
TOKEN, DIGEST, HAS_FIGURES, UNENDED = "token", "manifest_sha256", "has_figures", "unended"

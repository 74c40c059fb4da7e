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
        ("name", "varchar", "last component of the directory path"),
        ("member_of", "varchar", "suite or sweep that includes the run"),
        ("kind", "varchar",
         "kind of run: `test`, `campaign`, `workload`, `replay`, `served`, `twin`"),
        ("test", "varchar",
         "name of the test (for example `wsat`), or `workload`, `trace_replay`, `served`, `twin`"),
        ("title", "varchar", "title of the test"),
        ("edition", "varchar", "edition of the standard"),
        ("status", "varchar",
         "run status: `complete`, `running`, `interrupted`, `failed`, `planned`, `damaged`"),
        ("damage", "varchar", "reason why the run, its tags or its figures cannot be read"),
        ("target", "varchar", "target as given by the user: `sim:sata-tlc-120`, `/dev/sdb`"),
        ("drive", "varchar", "vendor and model of the drive"),
        ("serial", "varchar", "serial number of the drive"),
        ("firmware", "varchar", "firmware revision of the drive"),
        ("capacity_bytes", "bigint", "user capacity in bytes"),
        ("interface", "varchar", "drive interface: `SATA 6Gb/s`, `NVMe`"),
        ("simulated", "boolean", "`true` for a simulated drive, `false` for a real drive"),
        ("scale", "double", "factor by which the simulated drive was scaled down; 1: full size"),
        ("device_hash", "varchar", "hash of the simulated drive's description"),
        ("seed", "bigint", "seed of all random choices"),
        ("options_json", "varchar",
         "test options as JSON; for workloads, replays and served drives, only short options"),
        ("command", "varchar", "command line of the run"),
        ("created_utc", "timestamp", "start time of the run"),
        ("updated_utc", "timestamp", "time of the last change to the run"),
        ("ended_by", "varchar", "name of the end condition"),
        ("reason", "varchar", "reason why the run ended"),
        ("steps", "bigint", "number of measured steps"),
        ("device_time_ns", "bigint", "total duration of all steps, in device time"),
        ("host_write_bytes", "bigint", "bytes that the host wrote in all steps"),
        ("verdict", "varchar", "one-line summary of the outcome"),
        ("stamp", "varchar", "stamp, for example `NOT PTS-CONFORMANT`; empty for a conforming run"),
        ("limits_met", "boolean", "`true` if the run meets all limits; null if it has no limits"),
        ("warnings", "bigint", "number of warnings"),
        ("writecliff_version", "varchar", "writecliff version that executed the run"),
        ("fio_version", "varchar", "fio version, for runs on real drives"),
        ("kernel", "varchar", "host kernel version"),
        ("cpu", "varchar", "host CPU"),
        ("tags", "varchar[]", "tags of the run"),
    )
)  # fmt: skip

FIGURES: Sequence[Column] = tuple(
    Column(*each)
    for each in (
        ("run", "varchar", "name of the run"),
        ("key", "varchar", "figure name, identical in all runs of a test (`iops_4k_0_100`)"),
        ("label", "varchar", "description of the figure"),
        ("value", "double", "figure value in `unit`"),
        ("unit", "varchar", "unit of the value: `IOPS`, `ms`, `MB/s`; empty for ratios"),
        ("low", "double", "lower bound of the 95 % interval, in `unit`; null for a single value"),
        ("high", "double", "upper bound of the 95 % interval, in `unit`"),
        ("interval_of", "varchar", "quantity that the interval describes"),
        (
            "higher_is_better",
            "boolean",
            "`true`: higher is better; null: neither is better",
        ),
        ("at", "varchar", "load that the figure was measured at, if the run chose the load"),
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

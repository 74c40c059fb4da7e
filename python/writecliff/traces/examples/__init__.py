"""Captured traces that ship with writecliff: `example:NAME`.

Each trace contains the I/Os of a database on ext4 on a loop device, captured at the block layer by
`tools/capture-examples`, which also defines the loads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import ConfigError

FOLDER = Path(__file__).parent
SCHEME = "example:"
_TITLES = {
    "cassandra": "Cassandra 5.0.2: 150,000 records of 300 bytes loaded, 150,000 operations, half "
    "of them reads",
    "postgres": "PostgreSQL: pgbench on 100,000 accounts with 4 clients, the first 9,000 I/Os",
    "rocksdb": "RocksDB: db_bench, 120,000 records of 416 bytes in random order, as many "
    "overwrites",
    "sqlite": "SQLite: 30,000 rows of 200 bytes in a write-ahead log, then durable updates of few "
    "rows, the first 9,000 I/Os",
}


@dataclass(frozen=True)
class Example:
    """A trace that ships with writecliff."""

    name: str
    title: str
    path: Path


def examples() -> list[Example]:
    """Return all example traces, by name."""
    return [Example(name, title, FOLDER / f"{name}.parquet") for name, title in _TITLES.items()]


def trace_path(path: str | Path) -> Path:
    """Return the path of a trace file, or of the example for "example:NAME".

    Raises:
        ConfigError: If the example does not exist.
    """
    text = str(path)
    if not text.startswith(SCHEME):
        return Path(path)
    name = text.removeprefix(SCHEME)
    if name not in _TITLES:
        raise ConfigError.unknown("example", name, list(_TITLES))
    return FOLDER / f"{name}.parquet"

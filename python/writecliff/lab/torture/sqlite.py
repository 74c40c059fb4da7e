"""SQLite in WAL mode under power cuts: `python -m writecliff.lab.torture.sqlite`.

See `ledger.main`.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from writecliff.lab.torture import ledger

_FILE = "torture.db"


def prepare() -> None:
    """Create the database."""
    with sqlite3.connect(_FILE) as made:
        made.execute("CREATE TABLE rows (number INTEGER, row INTEGER, data BLOB)")
        made.execute("CREATE INDEX by_number ON rows (number, row)")


def write(sync: bool) -> None:
    """Commit transactions until the drive fails."""
    database = sqlite3.connect(_FILE, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    # In WAL mode, FULL makes each commit durable, but NORMAL may lose the last commits.
    database.execute(f"PRAGMA synchronous = {'FULL' if sync else 'OFF'}")
    # A low page count makes power cuts during checkpoints likely.
    database.execute("PRAGMA wal_autocheckpoint = 50")
    number = 0
    while True:
        number += 1
        rows = [(number, row, ledger.payload(number, row)) for row in range(ledger.ROWS)]
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
        database.execute("COMMIT")
        ledger.acknowledge(number)


def check() -> list[str]:
    """Return the problems of the database, which recovers when it is opened."""
    if not Path(_FILE).exists():
        return [f"{_FILE} is missing"]
    try:
        database = sqlite3.connect(_FILE)
        messages = [str(line) for (line,) in database.execute("PRAGMA integrity_check(3)")]
        if messages != ["ok"]:
            return [f"integrity_check: {messages[0]}"]
        return ledger.wrong_with(database.execute("SELECT number, row, data FROM rows"))
    except sqlite3.DatabaseError as error:
        return [f"cannot be read: {error}"]


if __name__ == "__main__":
    sys.exit(ledger.main(prepare, write, check))

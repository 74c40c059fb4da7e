"""RocksDB with log, young levels and old levels on separate file systems.

The tree is small: memory tables and files of 1 MiB, and a first level of 6 MiB. Each further level
is seven times larger. RocksDB determines where it stores a level's files (`db_paths`) and its log
(`wal_dir`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from writecliff.capture.apps.process import run_client
from writecliff.errors import TargetError, WritecliffError
from writecliff.lab.experiments.live.model import MIB, Client, Part

_TABLE_BYTES = MIB
_CLIENT = "writecliff.lab.experiments.live.rocksdb_client"
_PACKAGE = "rocksdict"

LOG, YOUNG, MIDDLE, OLD = "log", "young", "middle", "old"


@dataclass(frozen=True)
class RocksDB:
    """Random overwrites of all records at full speed."""

    records: int = 650_000
    value_bytes: int = 400
    aging: int = 600_000  # Number of overwrites that age the database.
    operations: int = 200_000  # Number of measured overwrites.
    slow_down: float = 60.0
    unit_bytes: int = 9 * MIB // 2
    parts: tuple[Part, ...] = (
        Part(LOG, "write-ahead log", 24 * MIB, 1),
        Part(YOUNG, "levels 0 and 1, manifest", 96 * MIB, 2),
        Part(MIDDLE, "level 2", 128 * MIB, 3),
        Part(OLD, "level 3 and beyond", 336 * MIB, 4),
    )
    name: str = "streams-rocksdb"
    title: str = "RocksDB with and without streams, live"
    claim: str = (
        "up to 25 % fewer flash writes (Axboe's write hints in an internal RocksDB load, Linux "
        "kernel mailing list, 2017), a lifetime ratio of 1.33"
    )
    claimed_lifetime: float = 1.33
    claimed_io: float | None = None
    client: str = "puts of the client's single thread, one at a time"

    @property
    def about(self) -> str:
        """Sentence that states the version and the load."""
        return (
            f"RocksDB ({_PACKAGE} {_version()}): {self.records:,} records of {self.value_bytes} "
            f"bytes in {_TABLE_BYTES // MIB} MiB tables without compression, {self.aging:,} random "
            f"overwrites of preparation, {self.operations:,} measured"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that state the experiment's limitations."""
        return (
            "The client only writes. Most of RocksDB's own reads are served from the page cache.",
            "RocksDB writes through the page cache and starts writeback every 512 KiB "
            "(bytes_per_sync); the client syncs the log after every MiB of records. Otherwise the "
            "log would be deleted before it is written.",
            f"A reclaim unit holds {self.unit_bytes / _TABLE_BYTES:.1f} tables, just as a unit of "
            f"302 MB holds 4.5 of RocksDB's usual tables of 64 MiB.",
        )

    def check(self) -> None:
        """Check that RocksDB is installed.

        Raises:
            TargetError: If the package is missing.
        """
        if find_spec(_PACKAGE) is None:
            raise TargetError(
                f"{_PACKAGE} (RocksDB) is not installed", hint="pip install 'writecliff[rocksdb]'"
            )

    def prepare(self, folders: Mapping[str, Path], work: Path, seed: int) -> None:
        """Insert all records and overwrite `aging` random records."""
        self._run(folders, work, seed, "prepare", self.aging)

    def measure(self, folders: Mapping[str, Path], work: Path, seed: int) -> Client:
        """Overwrite `operations` random records and return the client's figures."""
        self._run(folders, work, seed + 1, "measure", self.operations)
        return client_of((work / "measure.json").read_text("utf-8"))

    def _run(
        self, folders: Mapping[str, Path], work: Path, seed: int, phase: str, operations: int
    ) -> None:
        orders = {
            "phase": phase,
            "log": str(folders[LOG]),
            "database": str(folders[YOUNG] / "database"),
            "paths": [str(folders[name] / "tables") for name in (YOUNG, MIDDLE, OLD)],
            "records": self.records,
            "value_bytes": self.value_bytes,
            "table_bytes": _TABLE_BYTES,
            "operations": operations,
            "seed": seed,
            "result": str(work / f"{phase}.json"),
        }
        run_client([sys.executable, "-m", _CLIENT, json.dumps(orders)], work / f"{phase}.log")

    def shortened(self, factor: float) -> RocksDB:
        """Return the application with its overwrites reduced by `factor`."""
        return replace(
            self, aging=round(self.aging / factor), operations=round(self.operations / factor)
        )


def client_of(text: str) -> Client:
    """Parse the figures that the client reports.

    Raises:
        WritecliffError: If `text` has another format.
    """
    try:
        figures = json.loads(text)
        return Client(figures["operations"], figures["seconds"], figures["latency_ns"])
    except (ValueError, KeyError, TypeError) as error:
        raise WritecliffError(f"RocksDB's client reported no figures: {text[:80]!r}") from error


def _version() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return "of unknown version"

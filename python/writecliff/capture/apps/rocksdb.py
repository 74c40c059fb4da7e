"""A db_bench load for RocksDB (package rocksdb-tools) with inserts followed by overwrites.

The tree is small (2 MiB memtables and files, an 8 MiB first level, and a factor of five between
levels), so that a few hundred thousand records reach level 3. The run waits for pending
compactions, because a longer run would complete them.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.capture.apps.process import last_lines, version_of
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log, Size
    from writecliff.capture.run import Captured, Options

RECORDS = 500_000
OPERATIONS = 500_000
VALUE_BYTES = 400
MIB = 1 << 20


def command(program: str, database: Path, records: int, operations: int) -> list[str]:
    """Return the db_bench command line."""
    return [
        program,
        "--benchmarks=fillrandom,waitforcompaction,overwrite,waitforcompaction",
        f"--db={database}",
        f"--num={records}",
        f"--writes={operations}",
        "--key_size=16",
        f"--value_size={VALUE_BYTES}",
        "--compression_type=none",
        f"--write_buffer_size={2 * MIB}",
        f"--target_file_size_base={2 * MIB}",
        f"--max_bytes_for_level_base={8 * MIB}",
        "--max_bytes_for_level_multiplier=5",
        "--max_background_jobs=2",
        "--stats_interval_seconds=86400",  # A long interval suppresses progress output.
        "--seed=1",
    ]


def run(options: Options, size: Size, folder: Path, log: Log) -> Captured:
    """Run and capture the load.

    Raises:
        TargetError: If db_bench is not installed.
    """
    from writecliff.capture.run import capture

    program = shutil.which("db_bench")
    if program is None:
        raise TargetError(
            "RocksDB's db_bench is not installed", hint="on Debian: apt-get install rocksdb-tools"
        )
    records, operations = size.records or RECORDS, size.operations or OPERATIONS
    log(f"db_bench: {records:,} records, then {operations:,} overwrites")
    root = folder / "rocksdb"
    root.mkdir()
    output = folder / "db_bench.log"
    with output.open("wb") as file:
        done = capture(
            command(program, root, records, operations),
            replace(options, root=options.root or root),
            stdout=file.fileno(),
            stderr=file.fileno(),
            program_name=f"rocksdb {version_of(program)}".strip(),
        )
    if done.exit_code:
        log(f"db_bench failed: {last_lines(output)}")
    return done

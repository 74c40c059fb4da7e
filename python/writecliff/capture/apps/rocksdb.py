"""RocksDB: its own db_bench (Debian: rocksdb-tools), random loading, then random overwriting.

The load is small, so the tree is made small with it: 4 MiB memtables and files, so that data reach
level 3 and more with a few hundred thousand records.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Size, Tell
    from writecliff.capture.run import Captured, Options

RECORDS = 500_000
OPERATIONS = 500_000
VALUE_BYTES = 400
MIB = 1 << 20


def command(program: str, folder: Path, records: int, operations: int) -> list[str]:
    """The command line of db_bench."""
    return [
        program,
        "--benchmarks=fillrandom,overwrite,readrandomwriterandom",
        f"--db={folder / 'db'}",
        f"--num={records}",
        f"--writes={operations}",
        f"--reads={max(1, operations // 10)}",
        "--key_size=16",
        f"--value_size={VALUE_BYTES}",
        "--compression_type=none",
        f"--write_buffer_size={4 * MIB}",
        f"--target_file_size_base={4 * MIB}",
        f"--max_bytes_for_level_base={16 * MIB}",
        "--max_background_jobs=2",
        "--threads=1",
        "--seed=1",
    ]


def run(options: Options, size: Size, folder: Path, tell: Tell) -> Captured:
    """Capture the load. Raises TargetError if db_bench is not installed."""
    import sys

    from writecliff.capture.run import capture

    program = shutil.which("db_bench")
    if program is None:
        raise TargetError(
            "RocksDB's db_bench is not installed", hint="on Debian: apt-get install rocksdb-tools"
        )
    records, operations = size.records or RECORDS, size.operations or OPERATIONS
    tell(f"db_bench: {records:,} records, then {operations:,} overwrites")
    argv = command(program, folder, records, operations)
    root = options.root or folder
    return capture(
        argv,
        replace(options, root=root),
        stdout=sys.stderr.fileno(),
        program_name=f"rocksdb {version(program)}".strip(),
    )


def version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(?:\.\d+)?", said.stdout + said.stderr)
    return found[0] if found else ""

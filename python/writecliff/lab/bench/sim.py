"""Benchmark of the simulator: the CPU cost of fixed cases on this machine.

Times are CPU times (user and system), which other programs hardly affect. Compare ratios within a
run instead of absolute figures. `docs/performance.md` describes the cases.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors
from writecliff.parallel import SLOT_BYTES

if TYPE_CHECKING:
    from writecliff.capture.rules import Rules

DEVICE = "nvme-tlc-960"

Row = Mapping[str, str | float | int | None]


def cases() -> list[str]:
    """Return the names of all cases, in suite order."""
    return [*_native.bench_cases(), *CASES]


def chosen(names: str | None) -> list[str]:
    """Return the cases in a comma-separated list, or all cases for None, in suite order.

    Raises:
        ConfigError: If a case is unknown.
    """
    if names is None:
        return cases()
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in cases():
            raise ConfigError.unknown("benchmark case", name, cases())
    return [name for name in cases() if name in wanted]


def run(names: list[str], *, device: str = DEVICE, scale: float = 1.0) -> Iterator[Row]:
    """Run cases one after another on a device, and yield a row for each.

    Raises:
        ConfigError: If `scale` is out of range, or the device cannot be used.
    """
    if not 0.0 < scale <= 100.0:
        raise ConfigError(f"--scale is {scale:g}; it must be above 0 and at most 100")
    opened = open_device(*read_device_file(device))
    describe(opened).flash_bytes("the benchmark")
    with as_user_errors():
        bench = _native.SimBench(opened, scale)
    for name in names:
        if name in CASES:
            continue
        with as_user_errors():
            yield {key: _plain(value) for key, value in bench.run(name).items()}
    yield from run_replay([name for name in names if name in CASES], device=device, scale=scale)


def _plain(value: str | float) -> str | float | int | None:
    """Convert NaN to None, and whole numbers to integers."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return None
    return int(value) if value == int(value) else value


# -- replay ----------------------------------------------------------------------------------------

# Benchmark of a whole replay, from a trace file to write amplification.
#
# The native `replay` case starts with events in memory. In contrast, this benchmark's trace is a
# Parquet file with the full schema. The times include everything that `writecliff replay` does: it
# reads and checks the trace, assigns writes to streams by rules, passes the trace columns on,
# prepares the trace for a drive that it fills to 85 %, and replays it once. The times exclude file
# creation, library loading and printing. The `replay-file` case has a stream per kind of file and
# no garbage collection. The `replay-file-collect` case has small tables, all in one stream.

# Bytes per table of the store by case, and `True` if the store's writes are assigned to streams.
CASES = {"replay-file": (1 << 20, True), "replay-file-collect": (1 << 17, False)}
_LOGGED_BYTES = 1 << 28  # Bytes logged at scale 1; the store writes about 20 times this volume.
_MIN_BYTES = 1 << 26


def run_replay(names: list[str], *, device: str, scale: float) -> Iterator[Row]:
    """Yield a row for each of `names`, on a drive sized for the trace.

    Raises:
        ConfigError: If the device cannot be used.
    """
    from writecliff.capture.rules import parse_rules
    from writecliff.capture.trace import write_trace
    from writecliff.replay.synthetic import RULES, synthetic_table

    if not names:
        return
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
        path = Path(folder) / "store.parquet"
        logged = max(round(_LOGGED_BYTES * scale), _MIN_BYTES)
        rules = parse_rules(RULES, "bench.toml")
        for name in names:
            table = synthetic_table(
                table_bytes=CASES[name][0], chunk_bytes=SLOT_BYTES, logged_bytes=logged
            )
            write_trace(path, table, {"command": ["synthetic store"]})
            del table
            if name == names[0]:
                # The first run loads libraries, so it is not timed.
                _case(name, path, rules, device)
            yield _case(name, path, rules, device)


def _case(name: str, path: Path, rules: Rules, device: str) -> Row:
    from writecliff.capture.trace import read_trace
    from writecliff.replay.columns import file_io
    from writecliff.replay.model import Sizing, lay_out, replay

    streams = CASES[name][1]
    wall, begin = time.monotonic(), time.process_time()
    trace = read_trace(path)
    read = time.process_time()
    io = file_io(trace.table, rules)
    converted = time.process_time()
    setup = lay_out(io, f"sim:{device}", Sizing(repeats=1))
    laid_out = time.process_time()
    done = replay(setup, "rules" if streams else "none", setup.simulated.streams if streams else 1)
    cpu_s = time.process_time() - begin
    writes = setup.blocks.written_bytes // SLOT_BYTES
    programs = int(done.nand_bytes[-1]) // SLOT_BYTES
    return {
        "case": name,
        "host_ios": writes,
        "cpu_s": cpu_s,
        "wall_s": time.monotonic() - wall,
        "ios_per_cpu_s": writes / cpu_s,
        "ns_per_host_io": cpu_s * 1e9 / writes,
        "ns_per_page_program": cpu_s * 1e9 / programs,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "waf": programs / writes,
        "rows": trace.rows,
        "read_cpu_s": read - begin,
        "convert_cpu_s": converted - read,
        "lay_out_cpu_s": laid_out - converted,
        "replay_cpu_s": begin + cpu_s - laid_out,
    }


# -- command ---------------------------------------------------------------------------------------

# Benchmark of a whole command in a separate process, timed from the start of Python.
#
# The command runs like an installed program, whose compiled modules Python caches. Some
# environments disable this cache (PYTHONDONTWRITEBYTECODE), so that each start would recompile all
# modules.


@dataclass(frozen=True)
class Ran:
    """A finished command; `cpu_s` includes all its processes."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float


def measured(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Ran:
    """Run `writecliff` with `words`; `environment` is added to this process's environment."""
    ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, begin_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "writecliff", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**ours, **(environment or {})},
    )
    wall_s, after = time.monotonic() - begin_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(done.returncode, done.stdout, done.stderr, wall_s, cpu_s)

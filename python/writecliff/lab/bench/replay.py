"""Benchmark of a whole replay, from a trace file to write amplification.

The native case `replay` begins with events in memory. Here the trace is a Parquet file with its
whole schema, and everything that `writecliff replay` does is counted: reading and checking it,
assigning writes to streams by rules, handing its columns over, preparing it for a drive that it
fills to 85 %, and replaying it once. Creating the file, loading libraries and printing results are
not counted. `replay-file` has a stream for each kind of file and no garbage collection;
`replay-file-collect` has small tables, all in one stream.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.parallel import SLOT_BYTES

if TYPE_CHECKING:
    from writecliff.capture.rules import Rules
    from writecliff.lab.bench.sim import Row

# By the name of the case: bytes in a table of the store, whether its writes go to streams.
CASES = {"replay-file": (1 << 20, True), "replay-file-collect": (1 << 17, False)}
_LOGGED_BYTES = 1 << 28  # at scale 1; the store writes about 20 times as much
_MIN_BYTES = 1 << 26


def run(names: list[str], *, device: str, scale: float) -> Iterator[Row]:
    """A row for each of `names`, on the drive cut down. Raises ConfigError."""
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
                _case(name, path, rules, device)  # loads libraries, which are not counted
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

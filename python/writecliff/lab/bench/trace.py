"""Benchmark of reading and characterising a block trace in MSR Cambridge format.

The benchmark creates the trace: random and sequential I/Os of five sizes, with hot and cold
addresses and response times. Times are measured in this process on a single processor.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from writecliff import _native
from writecliff.errors import ConfigError

LINES_MIN, LINES_MAX = 1000, 1_000_000_000
_AT_ONCE = 1_000_000
_SIZES = ([512, 4096, 8192, 16_384, 65_536], [0.05, 0.5, 0.2, 0.15, 0.1])
_RANGE_BYTES = 1 << 36


def check(lines: int) -> None:
    """Check the option.

    Raises:
        ConfigError: If `lines` is out of range.
    """
    if not LINES_MIN <= lines <= LINES_MAX:
        raise ConfigError(f"--lines is {lines}; it must be {LINES_MIN:,} to {LINES_MAX:,}")


def run(lines: int, *, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row per case: reading only, and reading with characterisation.

    Raises:
        ConfigError: `lines` is out of range.
    """
    check(lines)
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-", dir=folder) as text:
        trace = Path(text) / "trace.csv"
        _make(trace, lines)
        yield _row("read", trace, _read)
        yield _row("characterise", trace, _measure)


def _make(trace: Path, lines: int) -> None:
    """Write the trace in batches."""
    writer = _native.TraceWriter(trace, "msr")
    random = np.random.default_rng(1)
    begin_ns = 0
    for first in range(0, lines, _AT_ONCE):
        count = min(_AT_ONCE, lines - first)
        times = begin_ns + np.cumsum(random.exponential(200_000, count)).astype(np.int64)
        begin_ns = int(times[-1])
        hot = (random.zipf(1.2, count) % (_RANGE_BYTES // 8192)) * 8192
        run = (first + np.arange(count)) * 16_384 % _RANGE_BYTES
        columns = {
            "time_ns": times,
            "volume": np.zeros(count, np.int32),
            "operation": (random.random(count) < 0.6).astype(np.uint8),
            "offset_bytes": np.where(random.random(count) < 0.3, run, hot).astype(np.int64),
            "length_bytes": random.choice(_SIZES[0], count, p=_SIZES[1]).astype(np.int64),
            "response_ns": random.exponential(800_000, count).astype(np.int64),
            "process": np.zeros(count, np.int32),
            "content": np.zeros(count, np.uint64),
        }
        writer.add(columns, ["src1.0"], [""])
    writer.finish()


def _read(trace: Path) -> int:
    reader, lines = _native.TraceReader(trace), 0
    while (batch := reader.next()) is not None:
        lines += len(batch["time_ns"])
    return lines


def _measure(trace: Path) -> int:
    reader, measures = _native.TraceReader(trace), _native.TraceMeasures()
    while measures.take(reader):
        pass
    measures.result()
    return measures.ios


def _row(case: str, trace: Path, run: Callable[[Path], int]) -> dict[str, Any]:
    begin, wall = time.process_time(), time.monotonic()
    lines = run(trace)
    cpu_s = time.process_time() - begin
    return {
        "case": case,
        "lines": lines,
        "bytes": trace.stat().st_size,
        "cpu_s": cpu_s,
        "wall_s": time.monotonic() - wall,
        "lines_per_cpu_s": lines / cpu_s,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }

"""Benchmark of `choose`, which runs 1 to 2 TB drives twice under a 30-minute mixed load.

In the first run, every drive must be preconditioned. In the second run, every drive's state is in
the cache. Each run is a whole command with a separate cache, timed from the start of Python to the
finished page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from writecliff.devices import preset_names, show_device
from writecliff.engines.state_cache import FOLDER as CACHE
from writecliff.errors import ConfigError
from writecliff.lab.bench.sim import measured

DRIVES = 20
LEAST_BYTES, MOST_BYTES = 900 * 10**9, 2 * 10**12
FIRST_GOAL_S, CACHED_GOAL_S = 900.0, 180.0
_LOAD = """
name = "mixed"
[[job]]
name = "mixed"
read = "70 %"
block_size = "8 KiB"
queue_depth = 32
rate = "15000 IOPS"
duration = "30 min"
"""
Row = Mapping[str, Any]


def drives(count: int) -> list[str]:
    """Return at most `count` catalogue drives of 1 to 2 TB.

    Raises:
        ConfigError: If `count` is below 2 or above the number of drives.
    """
    names = []
    for name in preset_names():
        device = show_device(name)
        if device.kind == "ssd" and LEAST_BYTES <= device.capacity_bytes <= MOST_BYTES:
            names.append(name)
    if not 2 <= count <= len(names):
        raise ConfigError(f"--drives must be 2 to {len(names)}, not {count}")
    return names[:count]


def run(folder: Path, *, count: int = DRIVES, jobs: int | None = None) -> Iterator[Row]:
    """Yield a row per run.

    Rows contain `case`, `wall_s`, `goal_s` (for 20 drives), `drives`, and `same`, which is `True`
    if the output equals the first run's.

    Raises:
        ConfigError: If `count` is out of range, or `choose` failed.
    """
    names = drives(count)
    load = folder / "load.toml"
    load.write_text(_LOAD)
    before: Any = None
    for case, goal_s in (("first", FIRST_GOAL_S), ("states cached", CACHED_GOAL_S)):
        begin_s = time.monotonic()
        answer = _choose(load, names, folder, case.partition(" ")[0], jobs)
        yield {
            "case": case, "wall_s": time.monotonic() - begin_s, "goal_s": goal_s,
            "drives": len(names), "same": before in (None, answer),
        }  # fmt: skip
        before = answer


def _choose(load: Path, names: list[str], folder: Path, output: str, jobs: int | None) -> Any:
    """Ranking and what-if analysis of `choose`, excluding the paths of the runs."""
    words = ["choose", "--workload", str(load), "--candidates", ",".join(names), "--quiet"]
    words += ["--limit", "p99.99 <= 5 ms", "--json", "--output", str(folder / output)]
    words += [] if jobs is None else ["--jobs", str(jobs)]
    ran = measured(words, {CACHE: str(folder / "cache")})
    if not ran.stdout:
        raise ConfigError(f"choose failed: {ran.stderr.strip()}")
    answer = json.loads(ran.stdout)
    rows = [{k: v for k, v in row.items() if k != "runs"} for row in answer["ranking"]]
    return rows, answer["what_if"]

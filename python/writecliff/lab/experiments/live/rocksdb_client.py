"""RocksDB's client: `python -m writecliff.lab.experiments.live.rocksdb_client ORDERS`.

ORDERS is JSON; see `rocksdb.RocksDB`. The phase "prepare" creates and overwrites the database. The
phase "measure" overwrites the database, and measures the latency of each put. Both phases write
their result as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rocksdict import DBCompressionType, DBPath, Options, Rdict

MIB = 1 << 20
_SYNC_BYTES = MIB // 2
_FIRST_LEVEL_BYTES, _MULTIPLIER = 6 * MIB, 7
_DRAW = 1 << 16  # Number of keys drawn at once.


def options_of(orders: Mapping[str, Any]) -> Options:
    """Return RocksDB's options, with paths for levels 0 and 1, level 2, and all other levels."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_wal_dir(orders["log"])
    # RocksDB places a level on the first path that has room for this level and the preceding
    # levels.
    second = _MULTIPLIER * _FIRST_LEVEL_BYTES
    sizes = (2 * _FIRST_LEVEL_BYTES, second, 1 << 40)
    options.set_db_paths(
        [DBPath(path, size) for path, size in zip(orders["paths"], sizes, strict=True)]
    )
    # RocksDB does not support this option with several paths.
    options.set_level_compaction_dynamic_level_bytes(False)
    options.set_max_bytes_for_level_base(_FIRST_LEVEL_BYTES)
    options.set_max_bytes_for_level_multiplier(_MULTIPLIER)
    options.set_write_buffer_size(orders["table_bytes"])
    options.set_target_file_size_base(orders["table_bytes"])
    options.set_level_zero_slowdown_writes_trigger(8)
    options.set_level_zero_stop_writes_trigger(16)
    # Compactions must keep up with the writes so that the levels have their intended sizes.
    options.set_soft_pending_compaction_bytes_limit(64 * MIB)
    options.set_hard_pending_compaction_bytes_limit(128 * MIB)
    options.set_max_background_jobs(4)
    options.set_bytes_per_sync(_SYNC_BYTES)
    options.set_compression_type(DBCompressionType.none())
    return options


def summary(latency_ns: Any, seconds: float) -> dict[str, Any]:
    """Return the figures of a phase."""
    points = {"p50": 50, "p99": 99, "p99_9": 99.9, "max": 100}
    return {
        "operations": len(latency_ns),
        "seconds": seconds,
        "latency_ns": {
            "mean": float(latency_ns.mean()),
            **{
                name: float(np.percentile(latency_ns, at, method="inverted_cdf"))
                for name, at in points.items()
            },
        },
    }


def overwrite(database: Rdict, orders: Mapping[str, Any]) -> dict[str, Any]:
    """Put random records, sync the log after every MiB, and return the figures."""
    operations = orders["operations"]
    random, size = np.random.default_rng(orders["seed"]), orders["value_bytes"]
    taken = np.empty(operations, np.int64)
    often = max(1, MIB // size)
    clock, begun, done = time.perf_counter_ns, time.perf_counter(), 0
    while done < operations:
        count = min(_DRAW, operations - done)
        data = random.bytes(size + count)
        for at, key in enumerate(random.integers(orders["records"], size=count).tolist()):
            name, value = b"user%012d" % key, data[at : at + size]
            start = clock()
            database[name] = value
            if done % often == 0:
                database.flush_wal(True)
            taken[done] = clock() - start
            done += 1
    return summary(taken, time.perf_counter() - begun)


def fill(database: Rdict, orders: Mapping[str, Any]) -> None:
    """Put every record once, in random order."""
    random, size = np.random.default_rng(orders["seed"]), orders["value_bytes"]
    data = random.bytes(size + orders["records"])
    for at, key in enumerate(random.permutation(orders["records"]).tolist()):
        database[b"user%012d" % key] = data[at : at + size]


def main(orders: Mapping[str, Any]) -> None:
    """Run a phase."""
    for path in orders["paths"]:
        Path(path).mkdir(exist_ok=True)
    database = Rdict(orders["database"], options_of(orders))
    if orders["phase"] == "prepare":
        fill(database, orders)
    result = overwrite(database, orders)
    database.close()
    Path(orders["result"]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

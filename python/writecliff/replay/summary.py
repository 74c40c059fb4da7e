"""Replays as plain data, for `--json` and report pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from writecliff import units
from writecliff.parallel import SLOT_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from writecliff.replay.model import Replayed, ReplaySetup

REPLAY_SCHEMA = "writecliff/replay/1"
_NAMED_SHARE = 0.1  # Minimum fraction of a stream's bytes for an origin to be named.


def trace_mapping(trace: Path, setup: ReplaySetup) -> dict[str, object]:
    """Return the trace in the format of `writecliff replay --json`."""
    return {
        "path": str(trace),
        "rows": setup.io.rows,
        "rows_without_effect": setup.io.left_out,
        "duration_ns": setup.io.duration_ns,
        "written_bytes": setup.written_bytes,
        "peak_bytes": setup.peak_bytes,
        "rounds": setup.blocks.rounds,
        "redrawn_bytes": setup.blocks.redrawn_bytes,
        "undrawn_bytes": setup.blocks.undrawn_bytes,
        "replayed_bytes": setup.blocks.written_bytes,
        "writeback": setup.sizing.writeback,
        "write_rate_bytes_per_s": setup.write_rate_bytes_per_s,
        "write_rate_from": "trace" if setup.writes_per_day_bytes is None else "--writes-per-day",
        "copies": setup.sizing.copies,
        "allocator": setup.sizing.allocator,
        "trim": setup.sizing.trim,
        "mean_bytes": setup.blocks.mean_bytes,
    }


def device_mapping(setup: ReplaySetup) -> dict[str, object]:
    """Return the real and simulated drives in the format of `writecliff replay --json`."""
    return {
        "name": setup.device.name,
        "capacity_bytes": setup.device.capacity_bytes,
        "rated_cycles": setup.device.rated_cycles,
        "simulated_capacity_bytes": setup.simulated.capacity_bytes,
        "simulated_raw_bytes": setup.simulated.raw_bytes,
        "simulated_overprovision_pct": setup.simulated.overprovision_pct,
        "reclaim_units": setup.simulated.reclaim_units,
        "reclaim_unit_bytes": setup.unit_bytes,
        "streams": setup.simulated.streams,
    }


def result_mapping(setup: ReplaySetup, done: Replayed) -> dict[str, object]:
    """Return a replay's figures in the format of `writecliff replay --json`.

    Latencies are null if the replay was not timed. Figures that depend on write amplification are
    null if write amplification is not reported.
    """
    reason = setup.not_quoted
    waf = done.waf if reason is None else None
    timed = done.reads.count > 0
    rate = done.timed_written_bytes / done.timed_ns * 1e9 if done.timed_ns else None
    return {
        "assign": done.scheme,
        "streams": done.streams,
        "mistag_pct": done.mistag_pct,
        "waf": waf,
        "waf_drift": None if waf is None else done.waf_drift,
        "not_quoted": reason,
        "mapped_bytes": done.mapped_bytes,
        "endurance_bytes": None if waf is None else setup.endurance_bytes(waf),
        "years": None if waf is None else setup.years(waf),
        "read_p9999_ns": done.read_p9999_ns,
        "read_mean_ns": done.reads.mean_ns if timed else None,
        "reads": done.reads.count,
        "write_bytes_per_s": rate,
        "oracle": done.oracle,
        "statistics": done.statistics.mapping(),
        "overflow_bytes": {str(number): size for number, size in done.overflow.items()},
        "data_placement": None if done.data_placement is None else done.data_placement.mapping(),
    }


def replay_mapping(trace: Path, setup: ReplaySetup, done: Replayed) -> dict[str, object]:
    """Return a replay in the format of `writecliff replay --json`."""
    return {
        "schema": REPLAY_SCHEMA,
        "trace": trace_mapping(trace, setup),
        "device": device_mapping(setup),
        **result_mapping(setup, done),
        "verdict": verdict_text(setup, done),
        "by_stream": stream_rows(setup, done),
        "series": {
            "host_bytes": done.host_bytes.tolist(),
            "nand_bytes": done.nand_bytes.tolist(),
        },
    }


WRITEBACK_TEXT = {
    "page-cache": "from the page cache: at fsync, after 30 s, or when 1 GiB waits",
    "immediate": "at once, as with direct or synchronous I/O",
}
"""Times at which writes reach the drive, as text."""


def redrawn_text(setup: ReplaySetup) -> str:
    """Return a sentence about the overwrite order that further rounds assume."""
    size = setup.blocks.redrawn_bytes
    if setup.blocks.rounds < 2:
        return "The trace was replayed once."
    if not size:
        return "Each further round overwrites data in the order of the trace."
    return (
        f"Each further round writes {units.size(size)} to addresses drawn anew, because the trace "
        "does not show in which order its data are overwritten next."
    )


def rate_text(setup: ReplaySetup) -> str:
    """Return the write rate for lifetime calculations, as text."""
    if setup.writes_per_day_bytes is not None:
        return f"{units.size(setup.writes_per_day_bytes)} written a day"
    return f"the rate of the trace, {units.throughput(setup.write_rate_bytes_per_s or 0)}"


def verdict_text(setup: ReplaySetup, done: Replayed) -> str:
    """Return the one-line result that the command prints last."""
    if setup.not_quoted is not None:
        return f"Write amplification and lifetime are {setup.not_quoted}"
    years = setup.years(done.waf)
    life = "" if years is None else f"{years:.3g} years at {rate_text(setup)}, "
    written = units.size(setup.endurance_bytes(done.waf))
    p9999 = units.latency(done.read_p9999_ns, digits=3)
    slow = f"; reads p99.99 {p9999}, not at the trace's pace" if done.reads.count else ""
    several = done.streams > 1 and done.scheme != "none"
    streams = f"{done.streams} streams by {done.scheme}" if several else "one stream"
    return f"{life}{written} written in its life: WAF {done.waf:.3f} with {streams}{slow}"


def overflow_text(done: Replayed) -> str | None:
    """Return a note on writes to streams that the drive could not open, or `None`."""
    total = sum(done.overflow.values())
    if not total:
        return None
    numbers = ", ".join(map(str, done.overflow))
    return (
        f"{total / 1e6:,.1f} MB of streams {numbers} went to the default stream: "
        f"{done.streams} streams could be used"
    )


def stream_rows(setup: ReplaySetup, done: Replayed) -> list[dict[str, Any]]:
    """Return the bytes, origins and lifetimes for each stream that was used."""
    rows = []
    for stream in range(done.streams):
        blocks = done.blocks[:, stream, :]
        by_origin = blocks.sum(axis=1)
        total = int(by_origin.sum())
        if total == 0:
            continue
        order = np.argsort(-by_origin.astype(np.int64), kind="stable")
        named = [int(n) for n in order if by_origin[n] >= _NAMED_SHARE * total]
        rows.append(
            {
                "stream": stream,
                "name": setup.io.streams.get(stream, "") if done.scheme == "rules" else "",
                "written_bytes": total * SLOT_BYTES,
                "median_lifetime_bytes": median_lifetime_bytes(blocks.sum(axis=0)),
                "alive_at_end_bytes": int(blocks[:, -1].sum()) * SLOT_BYTES,
                "origins": [setup.io.origins[n] for n in named],
                "by_origin_bytes": {
                    name: int(by_origin[n]) * SLOT_BYTES for n, name in enumerate(setup.io.origins)
                },
            }
        )
    return rows


def median_lifetime_bytes(blocks: NDArray[np.uint64]) -> float | None:
    """Return the median lifetime in host bytes written, interpolated within its bucket.

    The result is `None` if half of the data outlived the trace. `BlockTrace.replay` describes the
    buckets.
    """
    total = int(blocks.sum())
    upto = np.cumsum(blocks.astype(np.int64))
    bucket = int(np.searchsorted(upto, total / 2))
    if total == 0 or bucket >= len(blocks) - 1:
        return None
    low = 2.0 ** (bucket - 1) if bucket else 0.0
    below = int(upto[bucket - 1]) if bucket else 0
    inside = (total / 2 - below) / max(1, int(blocks[bucket]))
    high = 2.0**bucket if bucket else 1.0
    return (low + (high - low) * inside) * SLOT_BYTES

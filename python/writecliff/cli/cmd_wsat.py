"""`writecliff test wsat`: options of WSAT on the command line."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from writecliff.cli.run_options import NEW_RUN, RunOptions
from writecliff.cli.runner import run_test
from writecliff.cli.target_options import NO_TARGET, TargetOptions
from writecliff.cli.values import Whole
from writecliff.errors import ConfigError

NO_NEGATIVE = Parameter(negative=())


def wsat(
    *,
    target: TargetOptions = NO_TARGET,
    run: RunOptions = NEW_RUN,
    edition: Literal["pts-e", "pts-c"] | None = None,
    revision: Literal["1.x", "2.0"] | None = None,
    end: str | None = None,
    time_hours: float | None = None,
    drive_fills: float | None = None,
    max_rounds: Whole = None,
    threads: Whole = None,
    queue_depth: Whole = None,
    write_cache: Literal["on", "off"] | None = None,
    round_minutes: float | None = None,
    sample_seconds: float | None = None,
    active_range_pct: float | None = None,
    compressible_pct: float | None = None,
    histogram: Annotated[bool | None, Parameter(negative="--no-histogram")] = None,
    histogram_seconds: float | None = None,
    seed: Whole = None,
    json: Annotated[bool, NO_NEGATIVE] = False,
) -> int:
    """See `cmd_test.WSAT_HELP`.

    Parameters
    ----------
    edition
        pts-e (enterprise, default): write cache off, TC 4 / QD 32. pts-c (client): cache on,
        TC 2 / QD 16.
    revision
        Revision of the standard. 1.x (default) limits the time to 24 h, 2.0 to 6 h; 2.0 adds the
        response-time histogram.
    end
        What may end the run, a list of steady,capacity,time (default: all three). The first one
        that is reached ends it.
    time_hours
        Device time of the end "time".
    drive_fills
        User capacities of the end "capacity" (standard: 4).
    max_rounds
        With only "steady" enabled: rounds after which to give up (standard: 25).
    threads
        Threads that issue I/O (TC).
    queue_depth
        Outstanding I/Os of a thread (QD).
    write_cache
        State of the volatile write cache.
    round_minutes
        Minutes from one steady-state sample to the next (standard: 31).
    sample_seconds
        Length of a step (standard: 60).
    active_range_pct
        Share of the addresses that is written (standard: 100).
    compressible_pct
        Compressibility of the data (standard: 0, random data).
    histogram
        Measure a response-time histogram at the end.
    histogram_seconds
        Length of that step (standard: 1200).
    seed
        Fixes every random choice (default: 1).
    json
        Print the outcome as JSON on stdout.
    """
    given = {
        "edition": edition,
        "revision": revision,
        "end": None if end is None else _ends(end),
        "time_hours": time_hours,
        "drive_fills": drive_fills,
        "max_rounds": max_rounds,
        "threads": threads,
        "queue_depth": queue_depth,
        "write_cache": None if write_cache is None else write_cache == "on",
        "round_minutes": round_minutes,
        "sample_seconds": sample_seconds,
        "active_range_pct": active_range_pct,
        "compressible_pct": compressible_pct,
        "histogram": histogram,
        "histogram_seconds": histogram_seconds,
        "seed": seed,
    }
    options = {name: value for name, value in given.items() if value is not None}
    return run_test("wsat", options, target, run, as_json=json)


def _ends(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError("--end is empty", hint="give a list of steady, capacity, time")
    return names

"""Benchmark of the simulator: the cost of fixed cases on this machine.

Times are CPU times (user + system), which a shared machine hardly affects; compare ratios within
one run, not absolute figures. `docs/performance.md` describes the cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.errors import ConfigError
from writecliff.lab.bench import replay
from writecliff.native_errors import as_user_errors

DEVICE = "nvme-tlc-960"

Row = Mapping[str, str | float | int | None]


def cases() -> list[str]:
    """The names of all cases, in the order of the suite."""
    return [*_native.bench_cases(), *replay.CASES]


def chosen(names: str | None) -> list[str]:
    """The cases of a comma-separated list (None: all), in order. Raises ConfigError."""
    if names is None:
        return cases()
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in cases():
            raise ConfigError.unknown("benchmark case", name, cases())
    return [name for name in cases() if name in wanted]


def run(names: list[str], *, device: str = DEVICE, scale: float = 1.0) -> Iterator[Row]:
    """Run cases one after the other on one device and yield the row of each. Raises ConfigError."""
    if not 0.0 < scale <= 100.0:
        raise ConfigError(f"--scale is {scale:g}; it must be above 0, and 100 at most")
    opened = open_device(*read_device_file(device))
    describe(opened).flash_bytes("the benchmark")
    with as_user_errors():
        bench = _native.SimBench(opened, scale)
    for name in names:
        if name in replay.CASES:
            continue
        with as_user_errors():
            yield {key: _plain(value) for key, value in bench.run(name).items()}
    yield from replay.run(
        [name for name in names if name in replay.CASES], device=device, scale=scale
    )


def _plain(value: str | float) -> str | float | int | None:
    """NaN as None; whole numbers as integers."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return None
    return int(value) if value == int(value) else value

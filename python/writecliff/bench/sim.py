"""Benchmark of the simulator: what fixed cases cost this machine.

Times are CPU times (user + system), so that a shared machine disturbs them little; compare
ratios of one run, not absolute figures. The cases are described in `docs/performance.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from writecliff import _native
from writecliff.bench import replay
from writecliff.devices import describe, open_device, read_device_file
from writecliff.errors import ConfigError
from writecliff.native_errors import as_user_errors

DEVICE = "nvme-tlc-960"

Row = Mapping[str, str | float | int | None]


def cases() -> list[str]:
    return [*_native.bench_cases(), *replay.CASES]


def chosen(names: str | None) -> list[str]:
    """The cases of a comma-separated list, in the order of the suite. Raises ConfigError."""
    if names is None:
        return cases()
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in cases():
            raise ConfigError.unknown("benchmark case", name, cases())
    return [name for name in cases() if name in wanted]


def run(names: list[str], *, device: str = DEVICE, scale: float = 1.0) -> Iterator[Row]:
    """Run cases one after the other on one device and yield a row for each as it is done."""
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
    """NaN has no JSON; whole counts are integers."""
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return None
    return int(value) if value == int(value) else value

"""Benchmark of a fit of six parameters to ten figures of a 1 TB drive.

The drive is a client NVMe drive with an SLC cache, derived from a data sheet. The figures to fit
are simulated on a smaller drive with six other parameter values, which are the true values. The
times exclude this simulation and the loading of libraries. The errors at full size therefore
include the fit error and the scale error.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from writecliff.devices.derive import device_text
from writecliff.devices.edit import value_of
from writecliff.devices.free import fit_specification
from writecliff.devices.quantities import number
from writecliff.devices.sheet import sheet_of
from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure, unit_of
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.fit.solve import Fit
from writecliff.published.fit.specification import read_specification
from writecliff.published.measure import ComparedDrive, measure
from writecliff.published.scores import row_of
from writecliff.published.sheet_check import SMALL_BYTES, fitting_scale

SHEET = {
    "name": "bench",
    "interface": "pcie3",
    "capacity": "1TB",
    "year": "2019",
    "sequential_read": "3400MB/s",
    "sequential_write": "2500MB/s",
    "random_read": "400000",
    "random_write": "350000",
    "slc_cache": "12GB",
    "write_after_cache": "1000MB/s",
    "read_latency": "80us",
}
# True values relative to the derived values.
FACTORS = {
    "flash.read": 1.2,
    "flash.program": 0.75,
    "controller.latency": 0.5,
    "controller.mapping_update_time": 1.3,
    "controller.relocation_time": 2.5,
    "slc_cache.program": 0.8,
}
# Access pattern, size in KiB, read percentage, outstanding I/Os, metric.
_MEASURED = (
    ("random", 4, 100.0, 1, "latency_avg"),
    ("random", 128, 100.0, 1, "latency_avg"),
    ("random", 4, 0.0, 1, "latency_avg_burst"),
    ("random", 4, 100.0, 128, "iops"),
    ("random", 4, 0.0, 32, "iops"),
    ("random", 4, 0.0, 32, "iops_burst"),
    ("random", 4, 70.0, 32, "iops"),
    ("sequential", 128, 100.0, 32, "throughput"),
    ("sequential", 128, 0.0, 32, "throughput"),
    ("sequential", 128, 0.0, 32, "throughput_burst"),
)  # fmt: skip


def run(log: Callable[[str], None], *, capacity: str = "1TB") -> dict[str, Any]:
    """Run the fit, and return its duration and the errors of the fitted values."""
    sheet = sheet_of(SHEET | {"capacity": capacity})
    text = device_text(sheet)
    truth = {key: number(value_of(text, key)) * share for key, share in FACTORS.items()}
    with tempfile.TemporaryDirectory(prefix="writecliff-bench-") as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(text, encoding="utf-8")
        scale = fitting_scale(text, str(path), SMALL_BYTES)
        specification = Path(folder) / "fit.toml"
        specification.write_text(fit_specification(text, str(path), scale), encoding="utf-8")
        spec = read_specification(specification)
        log("simulating the figures to fit (not timed)")
        figures = _figures(str(path), with_numbers(text, truth), scale)
        began_s, cpu_s = time.monotonic(), _cpu_s()
        lines: list[tuple[float, str]] = []

        def note(line: str) -> None:
            lines.append((time.monotonic() - began_s, line))
            log(line)

        result = Fit(spec, figures, note).run(whole=True)
    wall_s = time.monotonic() - began_s
    scaled_s = next(at for at, line in lines if "full size" in line)
    return {
        "capacity_bytes": sheet.capacity,
        "parameters": len(result.estimates),
        "figures": len(figures),
        "first_output_s": lines[0][0],
        "scaled_s": scaled_s,
        "wall_s": wall_s,
        "cpu_s": _cpu_s() - cpu_s,
        "simulations": result.simulations,
        "rows": [
            {
                "key": estimate.key,
                "truth": truth[estimate.key],
                "start": estimate.start,
                "found": estimate.value,
                "error_pct": 100 * (estimate.value / truth[estimate.key] - 1),
                "determined": estimate.determined,
            }
            for estimate in result.estimates
        ],
        "figure_errors_pct": [row.error_pct for row in result.whole],
    }


def _figures(device: str, truth: str, scale: float) -> list[PublishedFigure]:
    figures = [
        PublishedFigure(
            source="bench", item="", device=device, baseline="", access=access,
            block_bytes=kib * 1024, read_pct=read, outstanding=depth, metric=metric, value=1.0,
            unit=unit_of(metric), note="",
        )
        for access, kib, read, depth, metric in _MEASURED
    ]  # fmt: skip
    loads = {c.load for f in figures if (c := condition(f)) and c.load}
    brief = {load: replace(load, seconds=min(load.seconds, 6.0)) for load in loads}
    drive = ComparedDrive("truth", truth, "truth.toml").scaled(scale)
    measured = measure(drive, set(brief.values()))
    results = {device: {load: measured[short] for load, short in brief.items()}}
    return [
        replace(f, value=value)
        for f in figures
        if (value := row_of(f, results, {}).simulated) is not None
    ]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

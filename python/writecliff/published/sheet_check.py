"""Data sheet figures, and the errors of a simulated drive relative to them.

The figures have the format of a figure table, so `reproduce` and `fit` also accept them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from writecliff.csv_cells import cell
from writecliff.devices import describe_device, open_device
from writecliff.devices.sheet import DataSheet
from writecliff.published.conditions import Load, condition
from writecliff.published.figures import COLUMNS, STATE, PublishedFigure
from writecliff.published.fit.progress import FitProgress
from writecliff.published.measure import ComparedDrive, measure
from writecliff.published.scores import Row, row_of

SMALL_BYTES = 8e9  # Minimum capacity of the simulated drive, in bytes.
SECONDS_MAX = 4.0


def sheet_figures(sheet: DataSheet, device: str) -> tuple[PublishedFigure, ...]:
    """Return the data sheet figures for `device`, the path of a device file."""
    sequential = ("sequential", 128 * 1024)
    random = ("random", 4096)
    depth = 32 if sheet.interface in ("sata", "sas") else 256
    first_write = "throughput_burst" if sheet.has_cache else "throughput"
    burst = "iops" if sheet.enterprise else "iops_burst"
    mb_s, ms = 1e6, 1e6
    rows = (
        (*sequential, 100.0, 32, "throughput", sheet.sequential_read, mb_s, "MB/s"),
        (*sequential, 0.0, 32, first_write, sheet.sequential_write, mb_s, "MB/s"),
        (*sequential, 0.0, 32, "throughput", sheet.write_after_cache, mb_s, "MB/s"),
        (*random, 100.0, depth, "iops", sheet.random_read, 1.0, "IOPS"),
        (*random, 0.0, depth, burst, sheet.random_write, 1.0, "IOPS"),
        (*random, 0.0, depth, "iops", sheet.sustained_write, 1.0, "IOPS"),
        (*random, 100.0, 1, "latency_avg", sheet.read_latency, ms, "ms"),
        (*random, 0.0, 1, "latency_avg_burst", sheet.write_latency, ms, "ms"),
    )
    return tuple(
        PublishedFigure(
            source="data sheet", item="", device=device, baseline="", access=access,
            block_bytes=block, read_pct=read, outstanding=qd, metric=metric,
            value=value / scale, unit=unit, note="",
        )
        for access, block, read, qd, metric, value, scale, unit in rows
        if value is not None
    )  # fmt: skip


def figures_csv(figures: Sequence[PublishedFigure]) -> str:
    """Return figures as a CSV table that `read_figures` can read."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = (*COLUMNS, STATE) if any(figure.state for figure in figures) else COLUMNS
    writer.writerow(columns)
    for figure in figures:
        cells = {**figure.columns, STATE: figure.state}
        values = ("" if (v := cells[name]) is None else v for name in columns)
        writer.writerow(cell(v) if isinstance(v, str) else v for v in values)
    return out.getvalue()


def check(
    text: str,
    file_name: str,
    figures: Sequence[PublishedFigure],
    log: Callable[[str], None] = lambda text: None,
) -> tuple[Row, ...]:
    """Simulate each figure on a drive scaled down to several GB.

    Raises:
        ConfigError: If the device file is invalid.
    """
    drive = ComparedDrive(file_name, text, file_name)
    scale = fitting_scale(text, file_name, SMALL_BYTES)
    if scale > 1:
        drive = drive.scaled(scale)
    loads: dict[Load, Load] = {}
    for figure in figures:
        taken_under = condition(figure)
        if taken_under is not None and taken_under.load is not None:
            loads[taken_under.load] = _brief(taken_under.load)
    measured = measure(drive, set(loads.values()), log=log, observer=FitProgress(log))
    results = {file_name: {load: measured[brief] for load, brief in loads.items()}}
    return tuple(row_of(figure, results, {}) for figure in figures)


def fitting_scale(text: str, file_name: str, least_bytes: float) -> float:
    """Return the largest scale where the drive has at least `least_bytes`.

    Only scales that preserve the drive's over-provisioning are considered; 1 if no scale fits.
    """
    device = open_device(text, file_name)
    most = describe_device(text, file_name).capacity_bytes / least_bytes
    return max((scale for scale in device.scales() if scale <= most), default=1.0)


def _brief(load: Load) -> Load:
    from dataclasses import replace

    return replace(load, seconds=min(load.seconds, SECONDS_MAX))

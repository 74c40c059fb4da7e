"""Data sheet of a simulated drive: values stated by its maker, and values measured on it.

Every row has a source: a value in the device file with its reason, a published figure, or the load
that it was measured with ("measured here by ..."). Values without a source are omitted rather than
guessed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from writecliff import units
from writecliff.devices import DeviceDescription, DeviceValue
from writecliff.devices.class_defaults import CLASS_DEFAULT
from writecliff.published.conditions import ALIASES, Load
from writecliff.published.figures import SHIPPED, PublishedFigure, read_figures
from writecliff.published.fit.progress import FitProgress
from writecliff.published.measure import ComparedDrive, measure
from writecliff.published.modern import MODERN
from writecliff.published.sheet_check import fitting_scale
from writecliff.report.model import Section
from writecliff.report.pages import Page
from writecliff.report.table import table

SMALL_BYTES = 8e9  # Minimum capacity of the scaled-down drive, in bytes.
KIB = 1024
SECONDS = 4.0
_CLASS_DEFAULTS = "Class defaults"
GROUPS = (
    "Drive", "Rates", "Latency", "Quality of service", "Power", "Endurance", "Reliability",
    _CLASS_DEFAULTS,
)  # fmt: skip

# Device file keys, with the group and name of their table rows.
_STATED: tuple[tuple[str, str, str], ...] = (
    ("user_capacity", "Drive", "Capacity"),
    ("link.interface", "Drive", "Interface"),
    ("form_factor", "Drive", "Form factor"),
    ("flash.cell", "Drive", "Flash"),
    ("controller.power_loss_protection", "Drive", "Power-loss protection"),
    ("rated_writes", "Endurance", "Total bytes written (TBW)"),
    ("flash.rated_cycles", "Endurance", "Program/erase cycles"),
    ("uber", "Reliability", "Uncorrectable bit error rate (UBER)"),
    ("mtbf", "Reliability", "Mean time between failures (MTBF)"),
)
# Metrics in the published table, with the group and name of their table rows.
_PUBLISHED: Mapping[str, tuple[str, str]] = {
    "throughput": ("Rates", "throughput"),
    "iops": ("Rates", "IOPS"),
    "latency_avg": ("Latency", "average latency"),
    "latency_p99.9": ("Quality of service", "99.9th percentile"),
    "latency_p99.99": ("Quality of service", "99.99th percentile"),
    "power_active_read_max": ("Power", "reading, at most"),
    "power_active_write_max": ("Power", "writing, at most"),
    "power_idle": ("Power", "idle"),
    "tbw": ("Endurance", "total bytes written"),
    "dwpd": ("Endurance", "drive writes per day"),
}


@dataclass(frozen=True)
class SheetRow:
    """A line of a data sheet; `value` is printed with its unit."""

    group: str
    name: str
    value: str
    source: str


@dataclass(frozen=True)
class Sheet:
    """Data sheet of a simulated drive, measured at 1/`scale` of its capacity."""

    drive: DeviceDescription
    rows: tuple[SheetRow, ...]
    scale: float

    @property
    def not_stated(self) -> tuple[str, ...]:
        """Usual data sheet rows without a value in the device file and in the figures."""
        named = {row.name for row in self.rows}
        unknown = [row for row in _STATED if row[2] not in named]
        if self.drive.without_flash:
            unknown = [row for row in unknown if not row[0].startswith("flash.")]
        return tuple(name for _, _, name in unknown)

    def mapping(self) -> dict[str, Any]:
        """Return the data sheet in its JSON form."""
        return {
            "name": self.drive.name,
            "description": self.drive.description,
            "device_hash": self.drive.device_hash,
            "scale": self.scale,
            "rows": [asdict(row) for row in self.rows],
            "not_stated": self.not_stated,
        }


def sheet_of(
    drive: ComparedDrive,
    *,
    whole: bool = False,
    log: Callable[[str], None] = lambda text: None,
) -> Sheet:
    """Return a drive's data sheet.

    Rates are measured on a drive scaled down to several GB because they do not depend on the drive
    size.

    Args:
        drive: The drive.
        whole: `True` to measure the drive at full size, including the high percentiles, which are
            too low on a scaled-down drive.
        log: Function called with progress messages.

    Raises:
        ConfigError: If the device file is invalid.
    """
    described = drive.describe()
    scale = 1.0 if whole else fitting_scale(drive.text, drive.file_name, SMALL_BYTES)
    scale = max(scale, described.least_scale)
    measured = drive if scale <= 1 else drive.scaled(scale)
    rows = [*_stated(described), *_published(drive.name)]
    if described.kind != "disk":
        rows += _measured(measured, described, log)
    rows.sort(key=lambda row: GROUPS.index(row.group))
    return Sheet(described, tuple(rows), measured.scale)


def _stated(drive: DeviceDescription) -> Iterator[SheetRow]:
    values: dict[str, DeviceValue] = {value.key: value for value in drive.values}
    defaults = ((key, _CLASS_DEFAULTS, key) for key, value in values.items() if _is_default(value))
    for key, group, name in (*_STATED, *defaults):
        if (value := values.get(key)) is not None:
            where = f"device file, line {value.line}"
            source = f"{where}: {value.source}" if value.source else where
            yield SheetRow(group, name, _shown(value), source)
    if drive.rated_tbw_bytes:
        per_day = drive.rated_tbw_bytes / drive.capacity_bytes / (365 * 5)
        source = "derived: TBW over the capacity and five years"
        yield SheetRow("Endurance", "Drive writes per day (DWPD)", _days(per_day), source)


def _is_default(value: DeviceValue) -> bool:
    return CLASS_DEFAULT in (value.source or "")


def _shown(value: DeviceValue) -> str:
    given = tomllib.loads(f"value = {value.value}")["value"]
    if isinstance(given, bool):
        return "yes" if given else "no"
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _days(per_day: float) -> str:
    return f"{per_day:.2g}" if per_day < 99.5 else f"{per_day:.0f}"


def _published(name: str) -> Iterator[SheetRow]:
    """Yield rows for the shipped tables' figures, except figures relative to another drive."""
    for figure in (*read_figures(SHIPPED), *read_figures(MODERN)):
        row_name = _PUBLISHED.get(figure.metric)
        if row_name is None or ALIASES.get(figure.device, figure.device) != name or figure.baseline:
            continue
        if not _simple(figure):
            continue
        group, what = row_name
        label = f"{figure.label}, {what}" if figure.label else what
        source = f"published: {figure.source}, {figure.item}".rstrip(", ")
        value = f"{units.significant(figure.value, 4)} {figure.unit}"
        yield SheetRow(group, _capital(label), value, source)


def _simple(figure: PublishedFigure) -> bool:
    """Return `True` for a pure load; data sheets do not list mixed loads."""
    power = figure.metric.startswith(("power", "tbw", "dwpd"))
    return power or (figure.read_pct in (0.0, 100.0) and figure.access in ("random", "sequential"))


def _loads(nvme: bool) -> list[Load]:
    deep = 256 if nvme else 32
    shapes: list[tuple[Any, Any, int, int]] = [
        ("fill", "sequential", 128, 32),
        ("sustained", "random", 4, deep),
        ("sustained", "random", 4, 1),
    ]
    return [
        Load(state, pattern, kib * KIB, read_pct, depth, SECONDS)
        for state, pattern, kib, depth in shapes
        for read_pct in (100.0, 0.0)
    ]


def _measured(
    drive: ComparedDrive, whole: DeviceDescription, log: Callable[[str], None]
) -> Iterator[SheetRow]:
    loads = _loads("NVMe" in whole.interface)
    results = measure(drive, loads, log=log, observer=FitProgress(log))
    state_words = {"fill": "filled once", "sustained": "in steady state"}
    if whole.without_flash:  # Drives that have no flash have a single state.
        state_words = dict.fromkeys(state_words, "in any state")
    size = f", at 1/{drive.scale:g} of its capacity" if drive.scale > 1 else ""
    for load in loads:
        metrics, way = results[load], "reads" if load.read_pct else "writes"
        name = f"{load.pattern} {(load.block_bytes or 0) / KIB:g} KiB {way}, QD {load.outstanding}"
        source = f"measured here by {name} for {load.seconds:g} s, {state_words[load.state]}{size}"
        for group, what, text in _figures(load, metrics, drive.scale):
            yield SheetRow(group, _capital(f"{name}: {what}"), text, source)


def _figures(
    load: Load, metrics: Mapping[str, float], scale: float
) -> Iterator[tuple[str, str, str]]:
    """Yield the group, name and value of each figure that a load measures."""
    if load.pattern == "sequential":
        yield "Rates", "throughput", f"{metrics['throughput']:,.0f} MB/s"
    elif load.outstanding != 1:
        yield "Rates", "IOPS", f"{metrics['iops']:,.0f} IOPS"
    else:
        yield "Latency", "average latency", _time(metrics["latency_avg"])
    if load.pattern == "random" and scale == 1:
        for metric, nines in (("latency_p99.9", "99.9 %"), ("latency_p99.99", "99.99 %")):
            if metric in metrics:
                yield "Quality of service", f"{nines} within", _time(metrics[metric])
    if metrics.get("power", 0.0) > 0 and load.outstanding != 1:
        yield "Power", "active power", f"{metrics['power']:.2f} W"


def _time(ms: float) -> str:
    return f"{units.significant(ms * 1000, 3)} µs" if ms < 1 else f"{units.significant(ms, 3)} ms"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def page_of(sheet: Sheet) -> Page:
    """Return the data sheet as a page."""
    drive = sheet.drive
    sections = []
    for group, rows in of_groups(sheet.rows):
        cells = [(row.name, row.value, row.source) for row in rows]
        shown = table(group, ("", "Value", "Source"), cells, "lrl")
        sections.append(Section(group, "", tables=(shown,)))
    small = (
        f"The drive was simulated at 1/{sheet.scale:g} of its capacity. Rates and average latencies"
        " are close to those of the whole drive. High percentiles can be slower or faster, so they"
        " are left out; --whole measures them."
    )
    left_out = f"Without a source: {', '.join(sheet.not_stated)}." if sheet.not_stated else ""
    disclosed = (small if sheet.scale > 1 else "", left_out)
    return Page(
        title=f"{drive.name}: data sheet",
        intro=f"{drive.description}. Stated values with their sources, and values that the"
        " simulated drive measures under the loads of data sheets.",
        sections=tuple(sections),
        summary=sheet.mapping(),
        disclosures=tuple(filter(None, disclosed)),
    )


def of_groups(rows: Sequence[SheetRow]) -> Iterator[tuple[str, Sequence[SheetRow]]]:
    """Iterate over the non-empty groups, in data sheet order."""
    for group in GROUPS:
        if here := [row for row in rows if row.group == group]:
            yield group, here

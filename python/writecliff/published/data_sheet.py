"""A drive as a data sheet: what its maker states, and what the simulated drive does.

Every row has its source: a value of the device file with the reason beside it, a published figure,
or "measured here by" the load that measured it. What nobody states is left out, not guessed.
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

SMALL_BYTES = 8e9  # of the drive that is measured unless it is to be the whole one
KIB = 1024
SECONDS = 4.0
_CLASS_DEFAULTS = "Class defaults"
GROUPS = (
    "Drive", "Rates", "Latency", "Quality of service", "Power", "Endurance", "Reliability",
    _CLASS_DEFAULTS,
)  # fmt: skip

# Keys of device files: the group and the name of the row.
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
# Metrics of the published table: the group and the name.
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
    """One line of a sheet: `value` with its unit as it is printed."""

    group: str
    name: str
    value: str
    source: str


@dataclass(frozen=True)
class Sheet:
    """The sheet of a simulated drive, measured at 1/`scale` of its capacity."""

    drive: DeviceDescription
    rows: tuple[SheetRow, ...]
    scale: float

    @property
    def not_stated(self) -> tuple[str, ...]:
        """What sheets have and neither the device file nor a published figure says."""
        named = {row.name for row in self.rows}
        unknown = [row for row in _STATED if row[2] not in named]
        if self.drive.without_flash:
            unknown = [row for row in unknown if not row[0].startswith("flash.")]
        return tuple(name for _, _, name in unknown)

    def mapping(self) -> dict[str, Any]:
        """The JSON form."""
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
    """The data sheet of a drive. Its rates do not depend on its size, so they are measured on a
    drive scaled down to some GB; `whole` measures the drive itself, and the slowest I/Os, which a
    small drive makes too fast. Raises ConfigError.
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
    """Figures of the shipped tables that are of this drive alone."""
    for figure in (*read_figures(SHIPPED), *read_figures(MODERN)):
        known = _PUBLISHED.get(figure.metric)
        if known is None or ALIASES.get(figure.device, figure.device) != name or figure.baseline:
            continue
        if not _simple(figure):
            continue
        group, what = known
        label = f"{figure.label}, {what}" if figure.label else what
        source = f"published: {figure.source}, {figure.item}".rstrip(", ")
        value = f"{units.significant(figure.value, 4)} {figure.unit}"
        yield SheetRow(group, _capital(label), value, source)


def _simple(figure: PublishedFigure) -> bool:
    """Of one kind of access, as data sheets have them; mixes are for comparisons."""
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
    if whole.without_flash:  # has one state
        state_words = dict.fromkeys(state_words, "in any state")
    size = f", at 1/{drive.scale:g} of its capacity" if drive.scale > 1 else ""
    for load in loads:
        found, way = results[load], "reads" if load.read_pct else "writes"
        name = f"{load.pattern} {(load.block_bytes or 0) / KIB:g} KiB {way}, QD {load.outstanding}"
        source = f"measured here by {name} for {load.seconds:g} s, {state_words[load.state]}{size}"
        for group, what, text in _figures(load, found, drive.scale):
            yield SheetRow(group, _capital(f"{name}: {what}"), text, source)


def _figures(
    load: Load, found: Mapping[str, float], scale: float
) -> Iterator[tuple[str, str, str]]:
    """Group, name and value of what a load says."""
    if load.pattern == "sequential":
        yield "Rates", "throughput", f"{found['throughput']:,.0f} MB/s"
    elif load.outstanding != 1:
        yield "Rates", "IOPS", f"{found['iops']:,.0f} IOPS"
    else:
        yield "Latency", "average latency", _time(found["latency_avg"])
    if load.pattern == "random" and scale == 1:
        for metric, nines in (("latency_p99.9", "99.9 %"), ("latency_p99.99", "99.99 %")):
            if metric in found:
                yield "Quality of service", f"{nines} within", _time(found[metric])
    if found.get("power", 0.0) > 0 and load.outstanding != 1:
        yield "Power", "active power", f"{found['power']:.2f} W"


def _time(ms: float) -> str:
    return f"{units.significant(ms * 1000, 3)} µs" if ms < 1 else f"{units.significant(ms, 3)} ms"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def page_of(sheet: Sheet) -> Page:
    """The sheet as a page."""
    drive = sheet.drive
    sections = []
    for group, rows in of_groups(sheet.rows):
        cells = [(row.name, row.value, row.source) for row in rows]
        shown = table(group, ("", "Value", "Source"), cells, "lrl")
        sections.append(Section(group, "", tables=(shown,)))
    small = (
        f"The drive was simulated at 1/{sheet.scale:g} of its capacity: rates and average latencies"
        " are close to those of the whole drive; its slowest I/Os may be slower or faster, so"
        " they are left out (--whole measures them)."
    )
    left_out = f"Nobody states: {', '.join(sheet.not_stated)}." if sheet.not_stated else ""
    disclosed = (small if sheet.scale > 1 else "", left_out)
    return Page(
        title=f"{drive.name}: data sheet",
        intro=f"{drive.description}. Stated values with their source; what the simulated drive does"
        " under the loads of data sheets.",
        sections=tuple(sections),
        summary=sheet.mapping(),
        disclosures=tuple(filter(None, disclosed)),
    )


def of_groups(rows: Sequence[SheetRow]) -> Iterator[tuple[str, Sequence[SheetRow]]]:
    """The rows of each group that has any, in the order of a sheet."""
    for group in GROUPS:
        if here := [row for row in rows if row.group == group]:
            yield group, here

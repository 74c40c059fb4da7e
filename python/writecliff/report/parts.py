"""Parts that reports of several tests have: determination table, notes, footer."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from writecliff import units
from writecliff.report.disclosure import grave_idle, idle_text
from writecliff.report.model import Table
from writecliff.store.host import writecliff_version

if TYPE_CHECKING:
    from writecliff.procedures.steady import SteadyState
    from writecliff.report.testdata import Reported


def device_text(data: Reported) -> str:
    """ "writecliff simulated SATA TLC 120 GB": vendor, model and, if that does not say it, size."""
    device = data.manifest.device
    name = " ".join(filter(None, (device.vendor, device.model)))
    size = units.size(device.capacity_bytes)
    return name if size in name else f"{name}, {size}"


def determination(
    state: SteadyState,
    unit: str = "IOPS",
    *,
    digits: int = 1,
    title: str = "Steady-state determination",
    data: str = "",
) -> Table:
    """The steady-state determination table of the standard, with allowed and measured values.

    `unit` is that of the tracking variable, shown with `digits` after the point; `data` names a
    `DataFile` with the numbers.
    """

    def value(number: float) -> str:
        return f"{units.number(number, digits)} {unit}"

    def row(name: str, allowed: str, measured: str, ok: bool | None) -> tuple[str, ...]:
        return (name, allowed, measured, {True: "met", False: "NOT met", None: ""}[ok])

    r = units.UNKNOWN if state.r is None else f"{state.r:.4f}"
    return Table(
        title,
        ("Quantity", "Allowed", "Measured", ""),
        (
            row("Rounds", "", f"{state.rounds[0]} - {state.rounds[-1]}", None),
            row("Average", "", value(state.average), None),
            row(
                "Data excursion, max - min (20 % of average)",
                value(state.data_excursion_allowed),
                value(state.data_excursion),
                state.data_ok,
            ),
            row(
                "Slope excursion, |slope| x 4 (10 % of average)",
                value(state.slope_excursion_allowed),
                value(state.slope_excursion),
                state.slope_ok,
            ),
            row("Least-squares line, R = round", "", state.formula, None),
            row("Correlation coefficient r", "", r, None),
        ),
        ("left", "right", "right", "left"),
        "" if state.steady else "NOT STEADY STATE",
        data,
    )


def notes(data: Reported) -> tuple[str, ...]:
    """What any report must say of its units, its dates and its drive."""
    found = [
        "Sizes are decimal (1 GB = 10^9 bytes), block sizes binary (4 KiB = 4096 bytes). "
        f"Drive fills count the user capacity of {units.size(data.capacity_bytes)}.",
        "This page is a function of the run directory alone. Its Report Run Date is that of the "
        "last change of the data, so that it comes out the same, byte for byte, whenever it is "
        "made.",
    ]
    if data.manifest.device.simulated:
        found.append("The drive is simulated: times are virtual and exact, not wall-clock times.")
    if (idle := idle_text(data)) is not None and not grave_idle(data):
        found.append(idle)
    return tuple(found)


def footer(data: Reported) -> tuple[tuple[str, str], ...]:
    manifest = data.manifest
    versions = ", ".join(
        f"{name} {version.removeprefix(f'{name}-')}"  # fio calls its own version fio-3.33
        for name, version in manifest.versions.items()
        if version is not None and not (name == "fio" and manifest.device.simulated)
    )
    return (
        ("Command", shlex.join(manifest.command)),
        ("Seed", str(manifest.seed)),
        ("Device hash", manifest.device.device_hash or units.UNKNOWN),
        ("Versions", versions),
        ("Report by", f"writecliff {writecliff_version()}"),
        ("Run directory", data.name),
        ("Status", data.status + (f": {manifest.reason}" if manifest.reason else "")),
    )

"""The section that describes the test platform: what issued the I/Os, and what is between it and
the drive. The standard wants figures of different drives to come from one reference test platform,
and the platform to be disclosed where they do not (PTS, "Reference Test Platform").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.report.header import NOT_KNOWN, none_for_nvme
from writecliff.report.model import Section, section
from writecliff.report.power import power_of
from writecliff.report.power_meter import readings_of
from writecliff.report.table import table

if TYPE_CHECKING:
    from writecliff.report.testdata import TestData

TITLE = "Reference test platform"
_INTRO = (
    "What issued the I/Os, and what was between it and the drive. Figures of two drives compare "
    "drives only if both were measured on the same platform."
)
_SIMULATED = (
    "The drive and the host that loads it are simulated. Nothing of the machine that ran the "
    "simulation is in the figures: the same drive, load and seed give the same bytes anywhere."
)
Rows = list[tuple[str, str, str]]


def platform_section(data: TestData) -> Section:
    """The platform of a run, a line for each of its parts and what that means for the figures."""
    simulated = data.manifest.device.simulated
    rows = _simulated(data) if simulated else _real(data)
    head = ("Part", "Here", "What it means for the figures")
    return section(TITLE, _SIMULATED if simulated else _INTRO, table(TITLE, head, rows, "lll"))


def _simulated(data: TestData) -> Rows:
    manifest = data.manifest
    device = manifest.device
    scale = device.scale_text.capitalize() or "Whole drive"
    return [
        ("Clock", "Virtual, in nanoseconds", "Times are exact and do not depend on the machine."),
        ("Host", "Simulated", "It issues an I/O at once: response times are those of the drive and "
         "its link, without time of an operating system."),
        ("Host interface", device.interface or NOT_KNOWN, "Its limits are part of the drive."),
        ("Drive", device.target, f"Described by a file, hash {(device.device_hash or '-')[:12]}."),
        ("Scale", scale, "Times and amounts are shown as those of the whole drive."),
        _power(data),
        ("Load generator", f"writecliff {manifest.versions.get('writecliff') or units.UNKNOWN}",
         f"Seed {manifest.seed}."),
    ]  # fmt: skip


def _real(data: TestData) -> Rows:
    manifest = data.manifest
    device, host, versions = manifest.device, manifest.host, manifest.versions
    virtual = host.get("virtual_machine")
    guest = "Another layer of software is between load and drive." if virtual == "yes" else ""
    adapter = none_for_nvme(data) or device.adapter
    rows = [
        ("Machine", host.get("platform"), ""),
        ("Architecture", host.get("machine"), ""),
        ("Virtual machine", virtual, guest),
        ("Motherboard", host.get("motherboard"), ""),
        ("CPU", host.get("cpu"), "Too few cores limit small I/Os before the drive does."),
        ("CPU frequency governor", host.get("cpu_governor"),
         "Any but 'performance' lengthens response times at low load."),
        ("Memory", host.get("memory"), ""),
        ("Operating system", host.get("operating_system"), ""),
        ("Kernel", versions.get("kernel"), "Its block layer is in every response time."),
        ("Host adapter", adapter, "Its queue and link bound what the drive can show."),
        ("PCIe link", device.pcie, ""),
        ("Host interface", device.interface, ""),
        *_power_state(data),
        _power(data),
        ("Load generator", versions.get("fio"), "Direct I/O, past the page cache."),
        ("Test software", f"writecliff {versions.get('writecliff') or units.UNKNOWN}", ""),
    ]  # fmt: skip
    return [(name, value or NOT_KNOWN, meaning) for name, value, meaning in rows]


def _power(data: TestData) -> tuple[str, str, str]:
    """Where figures of power come from, or that there are none."""
    if readings_of(data.run.path) is not None:
        return "Power", "A meter on the drive's supply", "Its log was given to the report."
    timed = [row for row in data.rows if row.elapsed_ns]  # others have no series
    if power_of(data, timed[:1]) is not None:
        return "Power", "Modelled", "From the section [power] of the drive's file."
    if data.manifest.device.simulated:
        return "Power", "Not modelled", "The drive's file has no section [power]."
    return "Power", "Not measured", "The log of a meter can be added: report --power."


_MODELLED_STATE = (
    "Dies read, program and erase up to the limit at once; others wait. The watts are the most "
    "that the section [power] of the drive's file adds up to."
)


def _power_state(data: TestData) -> Rows:
    """The state of an NVMe drive, or a simulated one with states; nothing for other drives."""
    power = data.manifest.power
    if power is None:
        return []
    if data.manifest.device.simulated:
        return [("Power state", power.text, _MODELLED_STATE)]
    means = "The most power that the drive says it draws in it bounds its speed."
    if power.before is not None:
        found = "was in it" if power.before == power.state else f"was found in {power.before}"
        means = f"Asked for; the drive {found}. {means}"
    if power.autonomous:
        means += " When idle it goes to states without I/O by itself, and takes time to return."
    return [("NVMe power state", power.text, means)]

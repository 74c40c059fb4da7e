"""The header block of the standard's report pages: four columns of ten rows.

Unknown values are "-". A simulated drive has no platform: its column says so instead of naming the
machine that ran the simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.procedures.registry import PROCEDURES
from writecliff.report.model import Header, HeaderColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.report.testdata import TestData

Row = tuple[str, str]
Rows = tuple[Row, ...]

ROWS = 10
OWN_PARAMETER = "test: "
SPECIFICATION = "Solid State Storage Performance Test Specification (PTS)"
NOT_APPLICABLE = "N/A"
_SIMULATED = "N/A (simulated)"


def header(data: TestData, title: str, ss_rounds: str, own: Sequence[Row] | None) -> Header:
    """The header block of the test `title`.

    `ss_rounds` are the rounds of the steady-state window ("Rounds 1 - 5"), or why there are none.
    The fourth column shows `own`, the test's parameters. Without them it is made of the keys that
    the procedure's `setup` gives: "test: LABEL" in their order or, for a loop of mixes and block
    sizes, `test_stimulus`, `rw_mix`, `block_sizes`, `toio`, `test_stimulus_2` and `toio_2`. The
    third column reads `precondition`, `precondition_toio`, `precondition_duration`,
    `precondition_2` and `precondition_2_toio`; both read `data_pattern`, `active_range`,
    `ar_segments` and `ar_amount`.
    """
    manifest = data.manifest
    device = manifest.device
    entry = PROCEDURES[manifest.procedure]
    need = "" if entry.campaign else f" ({'REQUIRED' if entry.required else 'OPTIONAL'})"
    return Header(
        test_run_date=units.date_time(manifest.created),
        report_run_date=units.date_time(manifest.updated),
        page_title=f"{title}{need} - Report Page",
        specification=f"After {entry.campaign}" if entry.campaign else SPECIFICATION,
        subtitle=setup(data, "subtitle"),
        revision=units.UNKNOWN if entry.campaign else manifest.edition or units.UNKNOWN,
        vendor=device.vendor or units.UNKNOWN,
        model=device.model or units.UNKNOWN,
        sponsor=setup(data, "sponsor"),
        columns=(
            HeaderColumn("Test Platform", _platform(data)),
            HeaderColumn("Device Under Test", _device(data)),
            HeaderColumn("Set Up Parameters", _set_up(data, ss_rounds)),
            HeaderColumn("Test Parameters", _test(data, ss_rounds, own)),
        ),
    )


def setup(data: TestData, name: str, default: str = units.UNKNOWN) -> str:
    """A parameter that the procedure gave for the header block."""
    return data.manifest.setup.get(name) or default


def _platform(data: TestData) -> Rows:
    manifest = data.manifest
    simulated = manifest.device.simulated

    def host(name: str) -> str:
        return _SIMULATED if simulated else manifest.host.get(name) or units.UNKNOWN

    software = f"writecliff {manifest.versions.get('writecliff') or units.UNKNOWN}"
    generator = "simulation" if simulated else manifest.versions.get("fio") or units.UNKNOWN
    return (
        ("Ref Test Platform", "Simulated, virtual time" if simulated else host("machine")),
        ("Motherboard", host("motherboard")),
        ("CPU", host("cpu")),
        ("Memory", host("memory")),
        ("Operating System", host("operating_system")),
        ("Test SW", software),
        ("Test SW Info", generator),
        ("Test ID No.", data.name),
        ("HBA", _SIMULATED if simulated else units.UNKNOWN),
        ("PCIe", _SIMULATED if simulated else units.UNKNOWN),
    )


def _device(data: TestData) -> Rows:
    manifest = data.manifest
    device = manifest.device
    interface = device.interface or units.UNKNOWN
    if device.interface is None:
        pcie = units.UNKNOWN
    else:
        pcie = interface if "nvme" in interface.lower() else NOT_APPLICABLE
    cache = manifest.write_cache
    enabled = cache.enabled if cache is not None else None
    return (
        ("Mfgr", device.vendor or units.UNKNOWN),
        ("Model No.", device.model or units.UNKNOWN),
        ("S/N", device.serial or units.UNKNOWN),
        ("Firmware ver", device.firmware or units.UNKNOWN),
        ("Capacity", units.size(device.capacity_bytes)),
        ("Interface", interface),
        ("NAND Type", NOT_APPLICABLE if device.rotational else device.nand_type or units.UNKNOWN),
        ("PCIe NVM", pcie),
        ("Purge Method", manifest.purge.method if manifest.purge else units.UNKNOWN),
        ("Write Cache", {True: "WCE", False: "WCD", None: units.UNKNOWN}[enabled]),
    )


def _set_up(data: TestData, ss_rounds: str) -> Rows:
    return (
        ("Data Pattern", setup(data, "data_pattern")),
        ("(PC) AR", setup(data, "active_range")),
        ("AR Segments", setup(data, "ar_segments")),
        ("Pre Condition 1", setup(data, "precondition")),
        ("TOIO - TC/QD", setup(data, "precondition_toio", NOT_APPLICABLE)),
        ("Duration", setup(data, "precondition_duration", NOT_APPLICABLE)),
        ("Pre Condition 2", setup(data, "precondition_2", "None")),
        ("TOIO - TC/QD", setup(data, "precondition_2_toio", NOT_APPLICABLE)),
        ("SS Rounds", ss_rounds),
        ("Note", "Simulated drive" if data.manifest.device.simulated else units.UNKNOWN),
    )


def _test(data: TestData, ss_rounds: str, own: Sequence[Row] | None) -> Rows:
    given = data.manifest.setup
    if own is None:
        own = [
            (name.removeprefix(OWN_PARAMETER), text)
            for name, text in given.items()
            if name.startswith(OWN_PARAMETER)
        ] or (
            ("Test Stimulus 1", setup(data, "test_stimulus")),
            ("RW Mix (Outer Loop)", setup(data, "rw_mix")),
            ("Block Sizes (Inner Loop)", setup(data, "block_sizes")),
            ("TOIO - TC/QD", setup(data, "toio")),
            ("Steady State", ss_rounds),
            ("Test Stimulus 2", setup(data, "test_stimulus_2", "None")),
            ("TOIO - TC/QD", setup(data, "toio_2", NOT_APPLICABLE)),
            ("Steady State", NOT_APPLICABLE),
        )
    first = (("Data Pattern", setup(data, "data_pattern")), ("AR & Amount", _amount(data)))
    return tuple([*first, *own, *[("", "")] * ROWS][:ROWS])


def _amount(data: TestData) -> str:
    """The active range and its size."""
    given = data.manifest.setup.get("ar_amount")
    if given:
        return given
    text = setup(data, "active_range")
    try:
        share = float(text.rstrip("% ")) / 100
    except ValueError:
        return text
    return f"{text}, {units.size(round(share * data.capacity_bytes))}"

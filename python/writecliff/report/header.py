"""Header block of the standard's report pages, with four columns of ten rows.

Unknown facts about a real drive or its machine are shown as "not known", and other missing values
as "-". A simulated drive has no platform, so its column shows "N/A (simulated)" instead of the
machine that ran the simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from writecliff import units
from writecliff.procedures.registry import entry_of
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
NOT_KNOWN = "not known"
_SIMULATED = "N/A (simulated)"


def header(data: TestData, title: str, ss_rounds: str, parameters: Sequence[Row] | None) -> Header:
    """Return the header block for the test `title`.

    `ss_rounds` names the rounds in the steady-state window ("Rounds 1 - 5"), or gives the reason
    why there is no window. The fourth column shows the test `parameters`. If these are not given,
    it shows keys of the procedure's `setup`: "test: LABEL" in their order or, for a loop of mixes
    and block sizes, `test_stimulus`, `rw_mix`, `block_sizes`, `toio`, `test_stimulus_2` and
    `toio_2`. The third column reads `precondition`, `precondition_toio`, `precondition_duration`,
    `precondition_2` and `precondition_2_toio`; both read `data_pattern`, `active_range`,
    `ar_segments` and `ar_amount`.
    """
    manifest = data.manifest
    device = manifest.device
    entry = entry_of(manifest.procedure)
    need = f" ({'REQUIRED' if entry.required else 'OPTIONAL'})"
    specification = SPECIFICATION
    if entry.campaign or entry.is_user_load:
        need, specification = "", f"After {entry.campaign}" if entry.campaign else "Own load"
    return Header(
        test_run_date=units.date_time(manifest.created),
        report_run_date=units.date_time(manifest.updated),
        page_title=f"{title}{need} - Report Page",
        specification=specification,
        subtitle=setup(data, "subtitle"),
        revision=units.UNKNOWN if entry.campaign else manifest.edition or units.UNKNOWN,
        vendor=device.vendor or NOT_KNOWN,
        model=device.model or NOT_KNOWN,
        sponsor=device.remarks.get("sponsor") or units.UNKNOWN,
        columns=(
            HeaderColumn("Test Platform", _platform(data)),
            HeaderColumn("Device Under Test", _device(data)),
            HeaderColumn("Set Up Parameters", _set_up(data, ss_rounds)),
            HeaderColumn("Test Parameters", _test(data, ss_rounds, parameters)),
        ),
    )


def setup(data: TestData, name: str, default: str = units.UNKNOWN) -> str:
    """Return a header block parameter provided by the procedure."""
    return data.manifest.setup.get(name) or default


def _platform(data: TestData) -> Rows:
    manifest = data.manifest
    simulated = manifest.device.simulated

    def host(name: str) -> str:
        return _SIMULATED if simulated else manifest.host.get(name) or NOT_KNOWN

    def place(value: str | None) -> str:
        return _SIMULATED if simulated else value or NOT_KNOWN

    software = f"writecliff {manifest.versions.get('writecliff') or units.UNKNOWN}"
    generator = "simulation" if simulated else manifest.versions.get("fio") or units.UNKNOWN
    return (
        ("Ref Test Platform", "Simulated, virtual time" if simulated else _machine(data)),
        ("Motherboard", host("motherboard")),
        ("CPU", host("cpu")),
        ("Memory", host("memory")),
        ("Operating System", host("operating_system")),
        ("Test SW", software),
        ("Test SW Info", generator),
        ("Test ID No.", data.name),
        ("HBA", place(none_for_nvme(data) or manifest.device.adapter)),
        ("PCIe", place(manifest.device.pcie)),
    )


def _machine(data: TestData) -> str:
    """Return the make and architecture of the machine that contains the drive."""
    host = data.manifest.host
    names = filter(None, (host.get("platform"), host.get("machine")))
    return ", ".join(names) or NOT_KNOWN


def none_for_nvme(data: TestData) -> str | None:
    """Return "N/A" for an NVMe drive, which has no host adapter, otherwise None."""
    return NOT_APPLICABLE if _is_nvme(data) else None


def _is_nvme(data: TestData) -> bool:
    return "nvme" in (data.manifest.device.interface or "").lower()


def _device(data: TestData) -> Rows:
    manifest = data.manifest
    device = manifest.device
    interface = ", ".join(filter(None, (device.interface, device.form_factor))) or NOT_KNOWN
    if device.interface is None:
        pcie = NOT_KNOWN
    else:
        pcie = device.pcie or interface if _is_nvme(data) else NOT_APPLICABLE
    cache = manifest.write_cache
    enabled = cache.enabled if cache is not None else None
    return (
        ("Mfgr", device.vendor or NOT_KNOWN),
        ("Model No.", device.model or NOT_KNOWN),
        ("S/N", device.serial or NOT_KNOWN),
        ("Firmware ver", device.firmware or NOT_KNOWN),
        ("Capacity", units.size(device.capacity_bytes)),
        ("Interface", interface),
        ("NAND Type", NOT_APPLICABLE if device.rotational else device.nand_type or NOT_KNOWN),
        ("PCIe NVM", pcie),
        ("Purge Method", manifest.purge.method if manifest.purge else units.UNKNOWN),
        ("Write Cache", {True: "WCE", False: "WCD", None: NOT_KNOWN}[enabled]),
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
        ("Note", _note(data)),
    )


def _note(data: TestData) -> str:
    """Return the user's note about the run."""
    device = data.manifest.device
    simulated = (device.scale_text or "simulated drive").capitalize() if device.simulated else ""
    return "; ".join(filter(None, (simulated, device.remarks.get("note")))) or units.UNKNOWN


def _test(data: TestData, ss_rounds: str, parameters: Sequence[Row] | None) -> Rows:
    given = data.manifest.setup
    if parameters is None:
        parameters = [
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
    return tuple([*first, *parameters, *[("", "")] * ROWS][:ROWS])


def _amount(data: TestData) -> str:
    """Return the active range and its size."""
    given = data.manifest.setup.get("ar_amount")
    if given:
        return given
    text, share_pct = setup(data, "active_range"), data.procedure.active_range_pct
    if share_pct is None:
        return text
    return f"{text}, {units.size(round(share_pct / 100 * data.capacity_bytes))}"

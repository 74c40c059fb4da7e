"""The header block of the standard's report pages: four columns of ten rows, WSAT variant.

Unknown is "-". A simulated drive has no platform: its column says so instead of naming the machine
that computed it.
"""

from __future__ import annotations

from writecliff.report import units
from writecliff.report.data import RunData
from writecliff.report.model import Header, HeaderColumn

SPECIFICATION = "Solid State Storage Performance Test Specification (PTS)"
NOT_APPLICABLE = "N/A"
_SIMULATED = "N/A (simulated)"


def header(data: RunData) -> Header:
    manifest = data.manifest
    device = manifest.device
    return Header(
        test_run_date=units.date_time(manifest.created),
        report_run_date=units.date_time(manifest.updated),
        page_title="Write Saturation Test (REQUIRED) - Report Page",
        specification=SPECIFICATION,
        subtitle=_setup(data, "subtitle", "WSAT - RND 4KiB 100% W"),
        revision=manifest.edition or units.UNKNOWN,
        vendor=device.vendor or units.UNKNOWN,
        model=device.model or units.UNKNOWN,
        sponsor=_setup(data, "sponsor"),
        columns=(
            HeaderColumn("Test Platform", _platform(data)),
            HeaderColumn("Device Under Test", _device(data)),
            HeaderColumn("Set Up Parameters", _set_up(data)),
            HeaderColumn("Test Parameters", _test(data)),
        ),
    )


def _setup(data: RunData, name: str, default: str = units.UNKNOWN) -> str:
    return data.manifest.setup.get(name) or default


def _platform(data: RunData) -> tuple[tuple[str, str], ...]:
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


def _device(data: RunData) -> tuple[tuple[str, str], ...]:
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
        ("Capacity", units.capacity(device.capacity_bytes)),
        ("Interface", interface),
        ("NAND Type", device.nand_type or units.UNKNOWN),
        ("PCIe NVM", pcie),
        ("Purge Method", manifest.purge.method if manifest.purge else units.UNKNOWN),
        ("Write Cache", {True: "WCE", False: "WCD", None: units.UNKNOWN}[enabled]),
    )


def _set_up(data: RunData) -> tuple[tuple[str, str], ...]:
    return (
        ("Data Pattern", _setup(data, "data_pattern")),
        ("(PC) AR", _setup(data, "active_range")),
        ("AR Segments", _setup(data, "ar_segments")),
        ("Pre Condition 1", _setup(data, "precondition")),
        ("TOIO - TC/QD", NOT_APPLICABLE),
        ("Duration", NOT_APPLICABLE),
        ("Pre Condition 2", "None"),
        ("TOIO - TC/QD", NOT_APPLICABLE),
        ("SS Rounds", NOT_APPLICABLE),
        ("Note", "Simulated drive" if data.manifest.device.simulated else units.UNKNOWN),
    )


def _test(data: RunData) -> tuple[tuple[str, str], ...]:
    rth = data.latency_source == "rth"
    return (
        ("Data Pattern", _setup(data, "data_pattern")),
        ("AR & Amount", _amount(data)),
        ("Test Stimulus 1", _setup(data, "test_stimulus")),
        ("TOIO - TC/QD", _setup(data, "toio")),
        ("Steady State", steady_text(data)),
        ("Time", units.duration(data.elapsed_ns)),
        ("Test Stimulus 2", "RND 4KiB W (RTH)" if rth else "None"),
        ("TOIO - TC/QD", _setup(data, "toio") if rth else NOT_APPLICABLE),
        ("Steady State", NOT_APPLICABLE),
        ("Time", units.duration(data.rth_elapsed_ns) if rth else NOT_APPLICABLE),
    )


def _amount(data: RunData) -> str:
    """Active range, and how much of the drive that is."""
    text = _setup(data, "active_range")
    try:
        share = float(text.rstrip("% ")) / 100
    except ValueError:
        return text
    return f"{text}, {units.capacity(round(share * data.capacity_bytes))}"


def steady_text(data: RunData) -> str:
    """The rounds of the window as the standard prints them, or why there are none."""
    if data.decision is None:
        return f"undecided ({len(data.tracker.rounds)} of 5 rounds)"
    rounds = data.decision.rounds
    text = f"Rounds {rounds[0]} - {rounds[-1]}"
    if data.state == "left":
        return f"{text}, then left"
    return text if data.state == "steady" else "NOT ACHIEVED"

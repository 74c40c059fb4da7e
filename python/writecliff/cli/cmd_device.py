"""Show, export and create simulated drives; probe real drives."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from writecliff import units
from writecliff.cli.device_cache import app as cache
from writecliff.cli.device_new import new
from writecliff.cli.options import OutputPath
from writecliff.cli.output import JsonFlag, emit_json, latency_text, log, pairs, table
from writecliff.errors import ConfigError, encoded

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, PowerStates

GROUP = "drives", 1

app = App(name="device", help=__doc__)
app.command(new)
app.command(cache)


@app.command(name="list")
def list_command(*, json: JsonFlag = False) -> int:
    """List the simulated drives, which other commands accept as sim:NAME.

    Current drives can be used at other capacities, such as sim:pm9a3-1920, whose parameters are
    derived.
    """
    from writecliff.devices import list_devices

    devices = [asdict(device) for device in list_devices()]
    if json:
        from writecliff.api.answers.devices import DriveList, ListedDrive

        emit_json(DriveList([ListedDrive(**device) for device in devices]))
    elif devices:
        scales = [device.pop("least_scale") for device in devices]
        header = tuple(devices[0])
        rows = [
            [*(value_text(name, device[name]) for name in header),
             "whole" if scale == 1 else f"at 1/{scale:g}"]
            for device, scale in zip(devices, scales, strict=True)
        ]  # fmt: skip
        print(table([*(label(name) for name in header), "simulated"], rows))
    return 0


@app.command
def show(
    name: str,
    *,
    sheet: bool = False,
    page: OutputPath = None,
    whole: bool = False,
    json: JsonFlag = False,
) -> int:
    """Show a simulated drive's parameters and their sources, or the properties of a real drive.

    Parameters
    ----------
    name
        Name from `writecliff device list`, path of a .toml file, or block device such as
        /dev/nvme0n1. For a block device, the command shows the identity, the health, and the write
        hints and streams that reach the device.
    sheet
        Show a simulated drive as a data sheet, with stated and published values, their sources, and
        simulated performance under the loads that data sheets quote.
    page
        Also write the sheet to this HTML file.
    whole
        Simulate the whole drive for the sheet, including its slowest I/Os; by default, the drive is
        scaled down to a few GB, which takes seconds.
    """
    if sheet or page is not None or whole:
        return show_sheet(name, page, whole=whole, as_json=json)
    from writecliff.devices import is_real_drive, show_device

    if is_real_drive(name):
        return show_real_drive(name, json=json)
    description = asdict(show_device(name.removeprefix("sim:")))
    states = description["power_states"]
    if json:
        description["power_states"] = [
            {"max_active_dies": dies, "watts_max": watts} for dies, watts in states
        ]
        from writecliff.api.answers.devices import SimulatedDrive

        emit_json(SimulatedDrive(**description))
        return 0
    values = description.pop("values")
    least = description["least_scale"]
    why = (
        "32-bit page numbers can address at most 16 TiB of flash"
        if least > 1
        else "simulated at full capacity"
    )
    description["least_scale"] = f"{least:g} ({why})"
    reports = description.pop("data_placement_reports")
    description["power_states"] = [
        f"{n}: {dies} active dies, {watts:.3g} W at most" for n, (dies, watts) in enumerate(states)
    ] or "one, without a limit on active dies"
    print(pairs((label(key), value_text(key, value)) for key, value in description.items()))
    if reports:
        print(f"\n{description['data_placement_interface']}, as a new drive reports it")
        print(pairs((label(key), _report_text(key, value)) for key, value in reports.items()))
    print()
    rows = [
        (row["key"], row["value"], row["source"])
        for row in values
        if row["source"] or "." in row["key"]
    ]
    print(table(("key", "value", "source or rationale"), rows))
    return 0


@app.command
def export(name: str, *, output: OutputPath = None, json: JsonFlag = False) -> int:
    """Print the device file of a simulated drive.

    The device file of a family variant is printed in full. To modify a drive, export it
    (`writecliff device export sata-tlc-120 --output my.toml`), edit the file, and use it with
    `--on sim:my.toml`.

    Parameters
    ----------
    name
        Name from `writecliff device list`, or path of a .toml file.
    output
        Write the device file to this path, which must not exist (default: stdout).
    """
    from writecliff.devices import read_device_file
    from writecliff.store.files import write_atomically

    text, _ = read_device_file(name.removeprefix("sim:"))
    if output is not None:
        if output.exists():
            raise ConfigError(
                f"{output} already exists",
                hint="choose another file name, or remove the existing file",
            )
        write_atomically(output, encoded(text))
    if json:
        from writecliff.api.answers.devices import DeviceFile

        emit_json(DeviceFile(name.removeprefix("sim:"), output, text))
    elif output is None:
        sys.stdout.write(text)
    else:
        print(output)
    return 0


@app.command(name="probe")
def probe_command(path: str, *, json: JsonFlag = False) -> int:
    """Test which write hints and streams the kernel and a drive accept, but write no data.

    The command tries every write hint (F_SET_RW_HINT), restores the previous hint, and reads the
    queue's write streams. It also queries an NVMe drive for FDP and the Streams directive if
    nvme-cli is installed, and a SCSI drive for its permanent streams.

    Parameters
    ----------
    path
        Block device, file or folder to probe. In a folder, the command probes an unnamed file.
    """
    from writecliff.engines.blockdev.data_placement_probe import probe, verdict

    probed = probe(path)
    if json:
        from writecliff.api.answers.devices import ProbedDrive

        emit_json(ProbedDrive(**probed.mapping()))
        return 0
    rows = [(answer.call, answer.hint, answer.refused or "accepted") for answer in probed.hints]
    print(table(("call", "hint", "kernel"), rows))
    print()
    shown = asdict(probed)
    for name in ("hints", "notes", "path"):
        shown.pop(name)
    shown["streams"] = shown["streams"] and ", ".join(
        f"{name} {value}" for name, value in shown["streams"].items()
    )
    permanent = probed.permanent_streams
    shown["permanent_streams"] = None if permanent is None else permanent.count or "none"
    print(pairs((label(name), _seen_text(name, value)) for name, value in shown.items()))
    print()
    for sentence in (*verdict(probed), *probed.notes):
        print(sentence)
    return 0


def _seen_text(name: str, value: Any) -> str:
    if name in ("fdp_handles", "streams") and value is not None and not value:
        return "none"
    return value_text(name, value)


def _report_text(name: str, value: Any) -> str:
    """Format an FDP report value, with a count if many handles have the same type."""
    if name == "handles":
        return ", ".join(f"{value.count(kind)} {kind}" for kind in dict.fromkeys(value))
    return value_text(name, value)


_UNIT_SUFFIXES = ("_bytes", "_ns", "_pct")


def label(name: str) -> str:
    """Return a field name without the unit, which `value_text` adds to the value."""
    for suffix in _UNIT_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.replace("_", " ")


def value_text(name: str, value: Any) -> str:
    """Format a field's value, using the unit in the field's name."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(name, item) for item in value)
    if not isinstance(value, int | float):
        return str(value)
    if name.endswith("_bytes"):
        # Page and block sizes are powers of two, but capacities are decimal.
        small = value < 1 << 30 and value % 1024 == 0 and value > 0
        return f"{value // 1024:,} KiB" if small else units.size(value)
    if name.endswith("_ns"):
        return latency_text(value) if value < 60e9 else units.duration(value)
    if name.endswith("_pct"):
        return f"{value:g} %"
    return units.number(value) if isinstance(value, int) else f"{value:g}"


def show_sheet(name: str, page: Path | None, *, whole: bool, as_json: bool) -> int:
    """Measure a drive, print its data sheet, and write the sheet to any given `page`."""
    from writecliff.devices import is_real_drive

    if is_real_drive(name):
        raise ConfigError(
            f"{name} is a real drive, but --sheet, --page and --whole require a simulated drive",
            hint="use `writecliff test datacentre` to measure data sheet loads on real drives",
        )
    from writecliff.published.data_sheet import of_groups, page_of, sheet_of
    from writecliff.published.measure import ComparedDrive
    from writecliff.report.pages import write_page

    measured = sheet_of(ComparedDrive.preset(name.removeprefix("sim:")), whole=whole, log=log)
    if page is not None:
        write_page(page_of(measured), page)
    if as_json:
        from writecliff.api.answers.devices import DataSheet

        emit_json(DataSheet.of(measured.mapping(), page=page))
        return 0
    for group, rows in of_groups(measured.rows):
        print(f"{group}\n")
        print(table(("", "value", "source"), [(r.name, r.value, r.source) for r in rows], "lrl"))
        print()
    if measured.not_stated:
        print(f"not stated: {', '.join(measured.not_stated)}")
    if page is not None:
        print(page)
    return 0


_UNITS = {"temperature_c": " °C", "power_on_hours": " h", "percentage_used": " %"}


def show_real_drive(path: str, *, json: bool) -> int:
    """Print the identity, health and data placement of a block device, without writing to it.

    Raises:
        TargetError: If the device cannot be identified.
    """
    from writecliff.engines.blockdev.data_placement_probe import probe, verdict
    from writecliff.engines.blockdev.identity import identify_device, is_nvme
    from writecliff.engines.blockdev.nvme.drive import NvmeDrive
    from writecliff.engines.blockdev.nvme.power import power_states
    from writecliff.engines.blockdev.topology import System, device_at, whole_disk
    from writecliff.engines.blockdev.vitals import health_report

    system = System()
    disk = whole_disk(system, device_at(system, Path(path)))
    node = str(disk.node(system))
    identity, health = identify_device(system, disk, node), health_report(system, disk, node)
    probed = probe(node, system)
    power = power_states(NvmeDrive(system, disk)) if is_nvme(disk) else None
    if json:
        from writecliff.api.answers.devices import RealDrive

        emit_json(RealDrive(identity, health, power, probed.mapping()))
        return 0
    print(pairs(_identity_lines(identity)))
    print()
    if health is None:
        print("health: not reported by the drive, or no tool that can read it is installed")
    else:
        print(pairs(_health_lines(health)))
    if power is not None:
        print()
        print(pairs(_power_lines(power)))
    print()
    for sentence in (*verdict(probed), *probed.notes):
        print(sentence)
    return 0


def _identity_lines(identity: DeviceIdentity) -> Iterator[tuple[str, str]]:
    left_out = ("simulated", "remarks", "device_hash", "rated_cycles", "rated_tbw_bytes")
    for name, value in asdict(identity).items():
        if name not in left_out and not (name == "backing" and value is None):
            yield label(name), value_text(name, value)


def _power_lines(power: PowerStates) -> Iterator[tuple[str, str]]:
    yield "power state", power.text
    for state in power.states:
        use = "" if state.operational else ", no I/O"
        times = f"enters in {state.entry_us} µs, leaves in {state.exit_us} µs"
        yield f"  {state.number}", f"{state.limits_text}{use}; {times}"
    if power.autonomous is not None:
        yield "autonomous transitions", "on" if power.autonomous else "off"


def _health_lines(health: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the summary, followed by the non-zero counters in the drive's log."""
    for name, value in health.items():
        if isinstance(value, dict | list):
            continue
        text = value_text(name, value)
        yield label(name).removesuffix(" c"), text + _UNITS.get(name, "") * (value is not None)
    for name, count in health.get("marks", {}).items():
        if count:
            yield name.replace("_", " "), str(count)

"""What `writecliff device show /dev/NAME` shows: identity, health and data placement of a drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.cli.output import emit_json, pairs

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, PowerStates

_UNITS = {"temperature_c": " °C", "power_on_hours": " h", "percentage_used": " %"}


def show_real_drive(path: str, *, json: bool) -> int:
    """Print what a block device says of itself; nothing is written. Raises TargetError."""
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
    found = probe(node, system)
    power = power_states(NvmeDrive(system, disk)) if is_nvme(disk) else None
    if json:
        from writecliff.api.answers.devices import RealDrive

        emit_json(RealDrive(identity, health, power, found.mapping()))
        return 0
    print(pairs(_identity_lines(identity)))
    print()
    if health is None:
        print("health: not reported by the drive, or no tool that reads it is installed")
    else:
        print(pairs(_health_lines(health)))
    if power is not None:
        print()
        print(pairs(_power_lines(power)))
    print()
    for sentence in (*verdict(found), *found.notes):
        print(sentence)
    return 0


def _identity_lines(identity: DeviceIdentity) -> Iterator[tuple[str, str]]:
    from writecliff.cli.cmd_device import label, value_text

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
    """The summary, then the counters of the drive's log that are not zero."""
    from writecliff.cli.cmd_device import label, value_text

    for name, value in health.items():
        if isinstance(value, dict | list):
            continue
        text = value_text(name, value)
        yield label(name).removesuffix(" c"), text + _UNITS.get(name, "") * (value is not None)
    for name, count in health.get("marks", {}).items():
        if count:
            yield name.replace("_", " "), str(count)

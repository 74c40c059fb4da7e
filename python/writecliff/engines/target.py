"""Open the engine for a target string such as "sim:nvme-tlc-960" or "/dev/nvme0n1"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.blockdev.identity import is_nvme, namespace_of
from writecliff.engines.blockdev.topology import (
    BlockDevice,
    System,
    label_of,
    parse_number,
    read_text,
)
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.engines.base import Engine
    from writecliff.engines.fio import FioEngine
    from writecliff.engines.sim import SimEngine

SIMULATED = "sim:"
FORMS = "sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME"


def is_simulated(target: str) -> bool:
    """Return True if the target is a simulated drive."""
    return target.startswith(SIMULATED)


def open_target(
    text: str,
    *,
    destroy_serial: str | None = None,
    allow_signatures: bool = False,
    power_state: int | None = None,
    seed: int = 1,
    size_bytes: int | None = None,
    described: Mapping[str, str] | None = None,
    attribute_latency: bool = False,
    device_file: tuple[str, str] | None = None,
    look_only: bool = False,
) -> Engine:
    """Open a target and return its engine, which the caller must close.

    Args:
        text: The target: sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME.
        destroy_serial: Serial number of a real drive whose data may be destroyed.
        allow_signatures: `True` to allow writes to a drive that has file systems or partitions.
        power_state: Power state of an NVMe drive until the engine is closed, or a power state in
            the simulated drive's device file.
        seed: Random seed for a simulated drive.
        size_bytes: Size of the file to create, in bytes.
        described: The user's entries in the report header: "nand_type", "form_factor",
            "sponsor" and "note".
        attribute_latency: `True` to record the causes of a simulated drive's latency.
        device_file: Text and name of a device file that does not exist on this machine.
        look_only: `True` to not claim a real drive, even if the user consented to writing. In this
            case, the engine's `write_refusal` is the reason why a run would be rejected.

    Raises:
        TargetError: If the target does not exist or is in use, or if consent is missing.
        ConfigError: If the device file is invalid.
    """
    if is_simulated(text) and text != SIMULATED:
        from writecliff.engines.sim import SimEngine

        name = text.removeprefix(SIMULATED)
        engine: SimEngine | FioEngine = SimEngine(
            name,
            seed=seed,
            attribute_latency=attribute_latency,
            power_state=power_state,
            device_file=device_file,
        )
    else:
        engine = _real(
            text, destroy_serial, allow_signatures, power_state, size_bytes, look_only=look_only
        )
    engine.described = dict(described or {})
    return engine


def target_now(before: DeviceIdentity) -> str:
    """Return the current target of an identified drive, whose name may differ after a reboot."""
    if not before.target.startswith("/dev/"):
        return before.target

    return node_now(before)


def _real(
    text: str,
    destroy_serial: str | None,
    allow_signatures: bool,
    power_state: int | None,
    size_bytes: int | None,
    *,
    look_only: bool,
) -> FioEngine:
    scheme, _, rest = text.partition(":")
    if text.startswith("/dev/"):
        from writecliff.engines.fio import FioEngine

        return FioEngine.open_device(
            text,
            destroy_serial=destroy_serial,
            allow_signatures=allow_signatures,
            power_state=power_state,
            look_only=look_only,
        )
    if scheme == "file" and rest:
        from writecliff.engines.fio import FioEngine

        return FioEngine.open_file(rest, size_bytes=size_bytes)
    raise TargetError(f"invalid target '{text}'", hint=_meant(text))


def _meant(text: str) -> str:
    """Return a hint with the target that the user may have meant, or with all target forms."""
    from difflib import get_close_matches

    from writecliff.devices import preset_names
    from writecliff.devices.capacities import family_and_capacity

    near = get_close_matches(text, preset_names(), n=1)
    if text.endswith(".toml") and Path(text).is_file():
        meant = f"sim:{text}"
    elif Path("/sys/class/block", text).exists() and "/" not in text.strip("."):
        meant = f"/dev/{text}"
    elif Path(text).is_file():
        meant = f"file:{text}"
    elif family_and_capacity(text):
        meant = f"sim:{text}"
    elif near:
        meant = f"sim:{near[0]}"
    else:
        return f"targets are {FORMS}"
    return f"did you mean '{meant}'?"


# -- renamed drives --------------------------------------------------------------------------------

# The kernel numbers drives in discovery order, so `/dev/nvme1n1` may be `/dev/nvme0n1` after a
# reboot. A resumed run must continue on the drive that it started on.

# Only whole disks are considered, because a partition can be nearly as large as its disk and has
# the same serial number.
_WHOLE_DISK = re.compile(r"nvme\d+n\d+|sd[a-z]+|vd[a-z]+")


def node_now(before: DeviceIdentity, system: System | None = None) -> str:
    """Find the node of a previously identified drive by serial number and size.

    The function returns `before.target` if the drive's name is unchanged or the drive is missing,
    because opening the node checks the drive's identity again. Only sysfs is read.
    """
    system = system or System()
    path = Path(before.target)
    if before.serial is None or path.parent != system.dev or not _WHOLE_DISK.fullmatch(path.name):
        return before.target
    disks = _disks(system)
    same = [disk for disk in disks if _is(disk, before)]
    if len(same) != 1 or same[0].name == path.name:
        return before.target
    return str(same[0].node(system))


def _is(disk: BlockDevice, before: DeviceIdentity) -> bool:
    if label_of(disk).serial != before.serial or disk.size_bytes != before.capacity_bytes:
        return False
    return not is_nvme(disk) or before.backing in (None, namespace_of(disk))


def _disks(system: System) -> list[BlockDevice]:
    names = [path.name for path in sorted((system.sys / "block").iterdir())]
    disks = []
    for name in filter(_WHOLE_DISK.fullmatch, names):
        directory = (system.sys / "block" / name).resolve()
        number = read_text(directory / "dev")
        if number is not None:
            disks.append(BlockDevice(name, parse_number(number), directory, name))
    return disks

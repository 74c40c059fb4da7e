"""Opens the engine for a target as users name it."""

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
    """Whether the target is a simulated drive."""
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
    """Open a target and return its engine; close it when done.

    `destroy_serial` and `allow_signatures` are the user's consent for real drives, `power_state`
    is one of an NVMe drive's, set for the time until it is closed, or one of those that a simulated
    drive's file describes; `size_bytes` is the size of a
    file to be created. `described` is what the user says of drive and test for
    the report's header, by the names "nand_type", "form_factor", "sponsor" and "note".
    `attribute_latency` has a simulated drive record what latency is spent on. `device_file`, text
    and name, is that of a simulated drive, where the file itself may not be. With
    `look_only` a real drive is not claimed, whatever the consent: `write_refusal` of the engine is
    why a run would be refused. Raises TargetError, ConfigError.
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
    """The target that an identified drive has now: a restart may have given it another name."""
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
    """The target that the text may stand for; else all forms that a target may have."""
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


# -- finds a drive again that the kernel has named anew --------------------------------------------

# The kernel numbers drives in the order in which they answer, so that after a restart
# `/dev/nvme0n1` may be what was `/dev/nvme1n1`. A run that is resumed then must go on with its own
# drive.

# A partition keeps its name: as large as its disk is in no list, it could be taken for that.
_WHOLE_DISK = re.compile(r"nvme\d+n\d+|sd[a-z]+|vd[a-z]+")


def node_now(before: DeviceIdentity, system: System | None = None) -> str:
    """The node of a drive that was identified earlier, by its serial number and size.

    It is `before.target` for a drive that has still that name, and for one that is not found: what
    is opened is checked in any case. Reads sysfs only.
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
    found = []
    for name in filter(_WHOLE_DISK.fullmatch, names):
        directory = (system.sys / "block" / name).resolve()
        number = read_text(directory / "dev")
        if number is not None:
            found.append(BlockDevice(name, parse_number(number), directory, name))
    return found

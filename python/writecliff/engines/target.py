"""Opens the engine for a target as users name it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Engine
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
    from writecliff.engines.blockdev.renamed import node_now

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

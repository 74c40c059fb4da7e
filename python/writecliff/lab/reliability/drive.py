"""The drives of a campaign: device files with sections added, and smaller drives."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from writecliff.devices import describe_device, open_device
from writecliff.devices.edit import with_values
from writecliff.engines.scaled import SLOT_BYTES
from writecliff.engines.sim import SimEngine
from writecliff.lab.reliability.model import Setting

Section = Mapping[str, tuple[str, str]]  # (TOML value, source) by key
OWN = "the drive's file"


def with_section(text: str, name: str, values: Section) -> tuple[str, list[Setting]]:
    """The text with the section `name`, and what it says. A section that is there stays as it is:
    only the keys that it lacks are added.
    """
    there = tomllib.loads(text).get(name)
    if there is None:
        lines = [f"{key} = {value}  # {source}" for key, (value, source) in values.items()]
        text = "\n".join([text.rstrip("\n"), "", f"[{name}]", *lines, ""])
        there = {}
    else:
        missing = {f"{name}.{key}": pair for key, pair in values.items() if key not in there}
        text = with_values(text, missing)
    said = [
        Setting(f"{name}.{key}", str(there[key]) if key in there else value.strip('"'),
                OWN if key in there else source)
        for key, (value, source) in values.items()
    ]  # fmt: skip
    return text, said


def variant(text: str, changes: Mapping[str, str]) -> str:
    """The text with other values, by dotted key: a variant of the campaign's drive."""
    return with_values(text, {key: (value, "variant") for key, value in changes.items()})


def scale_for(text: str, file_name: str, slots_max: float) -> float:
    """The smallest scale at which the drive has no more than `slots_max` user slots of 4 KiB, or
    the largest that there is. Raises ConfigError.
    """
    device = open_device(text, file_name)
    slots = describe_device(text, file_name).capacity_bytes / SLOT_BYTES
    scales = sorted((1.0, *device.scales()))
    return next((scale for scale in scales if slots / scale <= slots_max), scales[-1])


def opened(text: str, file_name: str, scale: float = 1.0, *, io_bytes: int = 4096) -> SimEngine:
    """A new drive, `scale` times smaller. Raises ConfigError."""
    device = open_device(text, file_name)
    return SimEngine.from_device(device if scale == 1.0 else device.scaled(scale, io_bytes))

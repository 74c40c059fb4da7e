"""Campaign drives: device files with added sections, and scaled-down drives."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

from writecliff.devices import describe_device, open_device
from writecliff.devices.edit import with_values
from writecliff.engines.scaled import SLOT_BYTES
from writecliff.engines.sim import SimEngine
from writecliff.lab.reliability.model import Setting

Section = Mapping[str, tuple[str, str]]  # TOML value and source by key.
FROM_FILE = "the drive's file"


def with_section(text: str, name: str, values: Section) -> tuple[str, list[Setting]]:
    """Add the section `name` to a device file, and return its settings.

    Existing values in the section are retained, and only missing keys are added.
    """
    there = tomllib.loads(text).get(name)
    if there is None:
        lines = [f"{key} = {value}  # {source}" for key, (value, source) in values.items()]
        text = "\n".join([text.rstrip("\n"), "", f"[{name}]", *lines, ""])
        there = {}
    else:
        missing = {f"{name}.{key}": pair for key, pair in values.items() if key not in there}
        text = with_values(text, missing)
    settings = [
        Setting(f"{name}.{key}", str(there[key]) if key in there else value.strip('"'),
                FROM_FILE if key in there else source)
        for key, (value, source) in values.items()
    ]  # fmt: skip
    return text, settings


def variant(text: str, changes: Mapping[str, str]) -> str:
    """Return the device file of a variant, with other values for some dotted keys."""
    return with_values(text, {key: (value, "variant") for key, value in changes.items()})


def scale_for(text: str, file_name: str, slots_max: float) -> float:
    """Return the smallest scale at which the drive has at most `slots_max` user slots of 4 KiB.

    If no scale is small enough, the largest scale is returned.

    Raises:
        ConfigError: If the device file is invalid.
    """
    device = open_device(text, file_name)
    slots = describe_device(text, file_name).capacity_bytes / SLOT_BYTES
    scales = sorted((1.0, *device.scales()))
    return next((scale for scale in scales if slots / scale <= slots_max), scales[-1])


def opened(text: str, file_name: str, scale: float = 1.0, *, io_bytes: int = 4096) -> SimEngine:
    """Create a new drive, scaled down by `scale`.

    Raises:
        ConfigError: If the device file is invalid, or the drive cannot be scaled.
    """
    device = open_device(text, file_name)
    return SimEngine.from_device(device if scale == 1.0 else device.scaled(scale, io_bytes))

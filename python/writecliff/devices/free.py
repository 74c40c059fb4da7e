"""Free parameters for fitting a drive that was derived from a data sheet."""

from __future__ import annotations

from writecliff.devices.derive import quoted_time
from writecliff.devices.edit import value_of
from writecliff.devices.generations import PROGRAM_BOUNDS, READ_BOUNDS
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError

FREE = {
    "flash.read": READ_BOUNDS,
    "flash.program": PROGRAM_BOUNDS,
    "controller.latency": (0.2, 5.0),
    "controller.mapping_update_time": (0.5, 2.0),
    "controller.relocation_time": (0.2, 5.0),
    "slc_cache.program": (0.5, 2.0),
}
"""Parameters that a fit may change, with bounds relative to their values."""


def fit_specification(text: str, device: str, scale: float) -> str:
    """Return a specification for `writecliff lab fit`, with free parameters and their bounds.

    Args:
        text: Derived device file.
        device: Path of the derived device file.
        scale: Factor by which the fit scales the drive down.
    """
    lines = [
        "# Parameters that measurements may change, with bounds, for `writecliff lab fit`.",
        "",
        f'drives = ["{device}"]',
        f"scale = {scale:g}",
    ]
    for key, (low, high) in FREE.items():
        try:
            value = number(value_of(text, key))
        except ConfigError:
            continue
        if value > 0:
            bounds = (quoted_time(value * share) for share in (low, high))
            lines += ["", f'[parameters."{key}"]']
            lines += [
                f"{name} = {bound}" for name, bound in zip(("from", "to"), bounds, strict=True)
            ]
    return "\n".join(lines) + "\n"

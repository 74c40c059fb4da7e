"""Formatting of fitted values for device files."""

from __future__ import annotations

from collections.abc import Mapping

from writecliff.devices.edit import value_of, with_values
from writecliff.devices.quantities import number


def with_numbers(text: str, values: Mapping[str, float]) -> str:
    """Return the device file with new values, preserving its comments and list proportions.

    Times are in ns, rates in bytes/s and sizes in bytes, as in `quantities.number`.
    """

    def written(raw: object, value: float) -> str:
        if not isinstance(raw, list):
            return _quantity(raw, value)
        factor = value / number(raw)
        return (
            "[" + ", ".join(_quantity(element, number(element) * factor) for element in raw) + "]"
        )

    return with_values(
        text, {key: (written(value_of(text, key), value), None) for key, value in values.items()}
    )


def unit_of(raw: object) -> str:
    """Return the unit of a device file value: "ns", "bytes/s", "bytes", or "" for a count."""
    first = raw[0] if isinstance(raw, list) else raw
    if not isinstance(first, str):
        return ""
    return "bytes/s" if first.endswith("/s") else "bytes" if first.endswith("B") else "ns"


def _quantity(raw: object, value: float) -> str:
    """Format `value` as TOML in the unit of `raw`."""
    unit = unit_of(raw)
    if not unit:
        return str(round(value)) if isinstance(raw, int) else f"{value:.4g}"
    if unit == "bytes/s":
        return f'"{value / 1e6:.4g} MB/s"'
    if unit == "bytes":
        return f'"{max(1, round(value / 1024))} KiB"'
    whole_ns = round(float(f"{value:.4g}"))  # The simulator counts time in nanoseconds.
    return f'"{whole_ns / 1e3:g} us"' if whole_ns < 1e6 else f'"{whole_ns / 1e6:g} ms"'

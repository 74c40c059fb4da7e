"""Convert sizes, times and rates in device files to numbers."""

from __future__ import annotations

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.input_files import shortened
from writecliff.native_errors import as_user_errors

NUMBER_MAX = 1e18  # Maximum value in ns, bytes and bytes/s: 30 years, or an exabyte.


def size_bytes(text: str) -> int:
    """Return a size such as "960 GB" or "4 MiB" in bytes.

    Raises:
        ConfigError: If the text is not a size.
    """
    with as_user_errors():
        return _native.parse_size(text)


def number(value: object) -> float:
    """Return a device file value as a number.

    Times are in ns, rates in bytes/s and sizes in bytes. The mean represents a list.

    Raises:
        ConfigError: If the value is not a quantity, or is too large.
    """
    if isinstance(value, list) and value:
        return sum(map(number, value)) / len(value)
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{shortened(value)} is not a quantity")
        if not abs(value) <= NUMBER_MAX:
            raise ConfigError(f"{shortened(value)} is too large")
        return float(value)
    if value.endswith("/s"):
        return float(size_bytes(value.removesuffix("/s")))
    if value.rstrip().endswith("B"):
        return float(size_bytes(value))
    with as_user_errors():
        return float(_native.parse_time(value))

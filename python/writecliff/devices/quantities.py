"""Sizes, times and rates as device files write them, for those who compute with them."""

from __future__ import annotations

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.input_files import shortened
from writecliff.native_errors import as_user_errors

NUMBER_MAX = 1e18  # of ns, bytes, bytes/s: 30 years, an exabyte


def size_bytes(text: str) -> int:
    """ "960 GB", "4 MiB". Raises ConfigError."""
    with as_user_errors():
        return _native.parse_size(text)


def number(value: object) -> float:
    """Any value of a device file as a number: times in ns, rates in bytes/s, sizes in bytes, lists
    by their mean. Raises ConfigError.
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

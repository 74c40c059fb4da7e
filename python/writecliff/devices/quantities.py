"""Sizes, times and rates as device files write them, for those who compute with them."""

from __future__ import annotations

from writecliff import _native
from writecliff.native_errors import as_user_errors


def size_bytes(text: str) -> int:
    """ "960 GB", "4 MiB". Raises ConfigError."""
    with as_user_errors():
        return _native.parse_size(text)


def number(value: object) -> float:
    """Any value of a device file as a number: times in ns, rates in bytes/s, sizes in bytes, lists
    by their mean. Raises ConfigError."""
    if isinstance(value, list):
        return sum(map(number, value)) / len(value)
    if not isinstance(value, str):
        return float(value)  # type: ignore[arg-type]
    if value.endswith("/s"):
        return float(size_bytes(value.removesuffix("/s")))
    if value.rstrip().endswith("B"):
        return float(size_bytes(value))
    with as_user_errors():
        return float(_native.parse_time(value))

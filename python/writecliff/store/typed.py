"""Stored documents as the dataclasses that they were: every value has the type of its field.

A document whose checksum is right can still be somebody's own: "device.serial is a list" is said
when it is read, not by whatever stumbles over it later. msgspec compares values with annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from writecliff.input_files import placed
from writecliff.store.checksums import damaged

T = TypeVar("T")


def typed(document: Mapping[str, object], kind: type[T], path: Path) -> T:
    """The dataclass `kind` with the values of `document`, read from `path`; keys that it does not
    know are left out. Raises StoreError: a key is missing, or a value is of another type.
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise damaged(path, placed(error)) from None

"""Conversion of stored documents to dataclasses, with a check of the type of every value.

A document with a correct checksum may have been written by a user. So a wrong type, such as
"device.serial is a list", is reported when the document is read. msgspec does the check.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from writecliff.input_files import placed
from writecliff.store.checksums import damaged

T = TypeVar("T")


def typed(document: Mapping[str, object], kind: type[T], path: Path) -> T:
    """Return the dataclass `kind` with the values of a document; ignore unknown keys.

    Raises:
        StoreError: a key is missing, or a value has another type; names `path`.
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise damaged(path, placed(error)) from None

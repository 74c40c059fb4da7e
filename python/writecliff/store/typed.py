"""Conversion of stored documents to dataclasses, with a type check of every value.

Even a document with a correct checksum may have been written by a user. A wrong type
("device.serial is a list") is therefore reported when the document is read; msgspec performs the
check.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from writecliff.input_files import placed
from writecliff.store.checksums import damaged

T = TypeVar("T")


def typed(document: Mapping[str, object], kind: type[T], path: Path) -> T:
    """Return an instance of the dataclass `kind` with a document's values, ignoring unknown keys.

    Raises:
        StoreError: If a key is missing or a value has the wrong type; the message names `path`.
    """
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise damaged(path, placed(error)) from None

"""Checksums: every file that figures are read from carries the SHA-256 of its own content.

The digest is inside the file, so that file and digest cannot be out of step after a crash, and a
file that is copied alone can still be verified. It is a key `sha256` of a JSON document, and a key
`writecliff.sha256` in the metadata of a Parquet file, which is calculated with zeros in its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from writecliff.errors import StoreError
from writecliff.store.files import write_atomically

PARQUET_KEY = b"writecliff.sha256"
NO_DIGEST = b"0" * 64  # the value of `PARQUET_KEY` that `seal_parquet` expects
_JSON_KEY = "sha256"
_BEFORE_DIGEST = PARQUET_KEY + b"\x18\x40"  # Thrift, compact protocol: next field, 64 bytes


def damaged(path: Path, why: str) -> StoreError:
    """The error for a file whose content is not what was written."""
    return StoreError(
        f"damaged: {path}: {why}", hint="restore the file from a copy, or run the test again"
    )


def write_document(path: Path, schema: str, fields: Mapping[str, Any]) -> None:
    """Replace `path` atomically by a JSON document with its schema and checksum.

    Raises StoreError if it cannot be written, ValueError for what JSON cannot express.
    """
    document = {"schema": schema, **fields}
    sealed = {**document, _JSON_KEY: _json_digest(document)}
    write_atomically(path, (json.dumps(sealed, indent=2, allow_nan=False) + "\n").encode())


def read_document(path: Path, schema: str) -> dict[str, Any]:
    """The fields of a document that `write_document` wrote.

    Raises FileNotFoundError or NotADirectoryError, and StoreError if it is unreadable, damaged or
    of another schema.
    """
    try:
        document = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise damaged(path, f"not JSON: {error}") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema:
        raise StoreError(
            f"{path} has schema {json.dumps(found)}, this version reads {json.dumps(schema)}"
        )
    if document.pop(_JSON_KEY, None) != _json_digest(document):
        raise damaged(path, "checksum mismatch")
    del document["schema"]
    return dict(document)


def _json_digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, allow_nan=False).encode()).hexdigest()


def seal_parquet(data: bytes) -> bytes:
    """A Parquet file that holds `NO_DIGEST` under `PARQUET_KEY`, with its digest there."""
    at = data.rindex(_BEFORE_DIGEST) + len(_BEFORE_DIGEST)
    return data[:at] + _parquet_digest(data, at) + data[at + len(NO_DIGEST) :]


def check_parquet(path: Path, data: bytes) -> None:
    """Raises StoreError if `data`, the content of `path`, is not as `seal_parquet` returned it."""
    at = data.rfind(_BEFORE_DIGEST) + len(_BEFORE_DIGEST)
    if data[at : at + len(NO_DIGEST)] != _parquet_digest(data, at):
        raise damaged(path, "checksum mismatch")


def _parquet_digest(data: bytes, at: int) -> bytes:
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(NO_DIGEST)
    digest.update(view[at + len(NO_DIGEST) :])
    return digest.hexdigest().encode()

"""Checksums of the files that hold figures, each of which contains the SHA-256 of its own content.

The digest is inside the file, so a crash cannot make the two inconsistent, and a copied file can be
verified on its own. In a JSON document, the digest is the key `sha256`. In a Parquet file, the
digest is the metadata key `writecliff.sha256`, and is calculated with zeros in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from writecliff.errors import StoreError, texts_only
from writecliff.store.files import read_regular, write_atomically

PARQUET_KEY = b"writecliff.sha256"
NO_DIGEST = b"0" * 64  # Value of `PARQUET_KEY` that `seal_parquet` expects.
_JSON_KEY = "sha256"
_PIECE_BYTES = 1 << 20
_BEFORE_DIGEST = PARQUET_KEY + b"\x18\x40"  # Thrift compact protocol: next field, 64 bytes.


class DamagedError(StoreError):
    """Raised if a run file was modified after it was written."""

    exit_code = 2


def damaged(path: Path, why: str) -> DamagedError:
    """Return the error for a run file that was modified after it was written."""
    return DamagedError(
        f"damaged: {path}: {why}", hint="restore the file from a backup, or run the test again"
    )


def write_document(path: Path, schema: str, fields: Mapping[str, object]) -> None:
    """Replace `path` atomically by a JSON document with its schema and checksum.

    Raises:
        StoreError: If the file cannot be written.
        ValueError: If a value cannot be expressed in JSON.
    """
    write_atomically(path, sealed_document(schema, fields))


def sealed_document(schema: str, fields: Mapping[str, Any]) -> bytes:
    """Return the content of a JSON document, including its schema and checksum.

    Raises:
        ValueError: If a value cannot be expressed in JSON.
    """
    document = {"schema": schema, **texts_only(fields)}
    sealed = {**document, _JSON_KEY: _json_digest(document)}
    return (json.dumps(sealed, indent=2, allow_nan=False) + "\n").encode()


def read_document(path: Path, schema: str) -> dict[str, Any]:
    """Return the fields of a document written by `write_document`.

    Raises:
        FileNotFoundError: If the file does not exist.
        NotADirectoryError: If a folder in the path is a file.
        StoreError: If the file is unreadable or damaged, or if it has a different schema.
    """
    try:
        data = read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    return parse_document(data, path, schema)


def parse_document(data: bytes, path: Path, schema: str) -> dict[str, object]:
    """Return a document's fields from the content of `path`.

    Raises:
        StoreError: If the content is not JSON, is damaged, or has a different schema.
    """
    try:
        document = json.loads(data)
        # Numbers beyond the floating-point range are read as infinity.
        json.dumps(document, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"the file is not JSON: {error}") from None
    stored = document.get("schema") if isinstance(document, dict) else None
    if stored != schema:
        raise StoreError(
            f"{path} has schema {json.dumps(stored)}, but this version reads {json.dumps(schema)}"
        )
    if document.pop(_JSON_KEY, None) != _json_digest(document):
        raise damaged(path, "checksum mismatch")
    del document["schema"]
    return dict(document)


def _json_digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(document, allow_nan=False).encode()).hexdigest()


def seal_parquet(data: bytes) -> bytes:
    """Return a Parquet file with its digest in place of `NO_DIGEST` under `PARQUET_KEY`."""
    at = data.rindex(_BEFORE_DIGEST) + len(_BEFORE_DIGEST)
    return data[:at] + _parquet_digest(data, at) + data[at + len(NO_DIGEST) :]


def check_parquet(path: Path, data: bytes) -> None:
    """Check that `data`, the content of `path`, is unchanged since it was sealed by `seal_parquet`.

    Raises:
        StoreError: If the checksum does not match.
    """
    at = data.rfind(_BEFORE_DIGEST) + len(_BEFORE_DIGEST)
    if data[at : at + len(NO_DIGEST)] != _parquet_digest(data, at):
        raise damaged(path, "checksum mismatch")


def seal_parquet_file(path: Path) -> None:
    """Seal a file in place like `seal_parquet`, but without reading it into memory.

    Raises:
        OSError: If the file cannot be read or written.
    """
    with path.open("r+b") as file:
        at = _place(file)
        digest = _file_digest(file, at)
        file.seek(at)
        file.write(digest)
        file.flush()
        os.fsync(file.fileno())


def check_parquet_file(path: Path) -> None:
    """Check a file like `check_parquet`, but without reading it into memory.

    Raises:
        StoreError: If the checksum does not match.
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        at = _place(file)
        file.seek(at)
        if file.read(len(NO_DIGEST)) != _file_digest(file, at):
            raise damaged(path, "checksum mismatch")


def _place(file: BinaryIO) -> int:
    """Return the digest's position in the metadata at the end of a file."""
    size = file.seek(-8, os.SEEK_END) + 8
    begin = max(0, size - 8 - int.from_bytes(file.read(4), "little"))
    file.seek(begin)
    return begin + file.read().rfind(_BEFORE_DIGEST) + len(_BEFORE_DIGEST)


def _file_digest(file: BinaryIO, at: int) -> bytes:
    """Return a file's digest, as `_parquet_digest` does for bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    left = at
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
    digest.update(NO_DIGEST)
    file.seek(at + len(NO_DIGEST))
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest().encode()


def _parquet_digest(data: bytes, at: int) -> bytes:
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(NO_DIGEST)
    digest.update(view[at + len(NO_DIGEST) :])
    return digest.hexdigest().encode()

"""Extraction of run archives from untrusted sources.

Files are created only inside the target folder. Limits are checked before any data are written.
The limits compare the unpacked size with the archive size and the free space, and restrict the
number and depth of names and the memory used by a single read.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from writecliff import units
from writecliff.errors import ConfigError, StoreError, printable
from writecliff.input_files import opened, shortened

RATIO_MAX = 200  # Maximum number of unpacked bytes per archive byte; runs have 1 to 20.
FREE_BYTES = 64 << 20  # Unpacked size that is always allowed.
ENTRIES_MAX = 200_000
DEPTH_MAX = 16  # Maximum number of folders in a name.
READ_BYTES_MAX = 16 << 20  # Maximum bytes per read; only a damaged header requests more.
_NAME_BYTES_MAX = 200
_MAGICS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open))
_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError,
    NotImplementedError, RuntimeError, OverflowError, KeyError,
)  # fmt: skip
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unpack(path: Path, folder: Path) -> None:
    """Unpack an archive into `folder`.

    Raises:
        ConfigError: If the archive is damaged, unpacks to too much data, or contains links,
            devices, duplicate names, or names outside the folder.
        StoreError: If the disk is full.
    """
    with opened(path) as file:  # Reject a pipe, which would block.
        try:
            if path.name.endswith(".zip"):
                _zip(file, _Budget(path, folder), folder)
            else:
                _tar(file, _Budget(path, folder), folder)
        except _DAMAGED as error:
            raise ConfigError(f"{path} is not an archive of runs: {shortened(error)}") from None
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise StoreError(f"cannot unpack {path}: {error.strerror}") from None
            why = error.strerror or shortened(error)
            raise ConfigError(f"{path} is not an archive of runs: {why.lower()}") from None


class _Budget:
    """Remaining bytes and names that the archive may contain."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path = path
        most = max(FREE_BYTES, RATIO_MAX * path.stat().st_size)
        room = shutil.disk_usage(folder).free
        self.bytes_max = min(most, room)
        self._why = "the disk has free" if room < most else "an archive of its size may contain"
        self._bytes = 0
        self._names: set[str] = set()

    def add(self, name: str, size_bytes: int) -> None:
        """Count an archive entry before it is unpacked.

        Raises:
            ConfigError: If the entry's name is not allowed or if a limit is exceeded.
        """
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self.refusal(
                f"contains the name {printable(name)!r}, which is outside the archive"
            )
        if len(parts) > DEPTH_MAX:
            raise self.refusal(f"contains a name with more than {DEPTH_MAX} path components")
        if any(len(os.fsencode(part)) > _NAME_BYTES_MAX for part in parts):
            raise self.refusal(f"contains a path component of more than {_NAME_BYTES_MAX} bytes")
        plain = "/".join(parts)
        if plain in self._names:
            raise self.refusal(f"contains the name {printable(plain)!r} twice")
        self._names.add(plain)
        if len(self._names) > ENTRIES_MAX:
            raise self.refusal(f"contains more than {ENTRIES_MAX:,} entries")
        self._bytes += max(size_bytes, 0)
        self.check(self._bytes)

    def check(self, size_bytes: int) -> None:
        """Check the total unpacked size in bytes.

        Raises:
            ConfigError: If `size_bytes` exceeds the limit.
        """
        if size_bytes > self.bytes_max:
            limit = units.size(self.bytes_max)
            raise self.refusal(f"unpacks to more than the {limit} that {self._why}")

    def refusal(self, why: str) -> ConfigError:
        """Return an error that names the archive and the reason."""
        return ConfigError(
            f"{self._path} {why}", hint="if you trust the archive, unpack it with another program"
        )


def _zip(file: BinaryIO, budget: _Budget, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        for entry in entries:
            budget.add(entry.filename.rstrip("/") or ".", entry.file_size)
        for entry in entries:  # Extraction stops at the size stated in the entry's header.
            archive.extract(entry, folder)


def _tar(file: BinaryIO, budget: _Budget, folder: Path) -> None:
    magic_bytes = file.read(6)
    file.seek(0)
    unpacked = next((opens for magic, opens in _MAGICS if magic_bytes.startswith(magic)), None)
    stream = file if unpacked is None else cast(BinaryIO, unpacked(file, "rb"))
    bounded = cast(IO[bytes], _Bounded(stream, budget))
    with tarfile.open(fileobj=bounded, mode="r:") as archive:
        for entry in archive:
            budget.add(entry.name, entry.size)
            archive.extract(entry, folder, filter="data")
            archive.members = []  # type: ignore[attr-defined]  # else all headers stay in memory


class _Bounded:
    """Input for tarfile, limited in the bytes per read and in total."""

    def __init__(self, stream: BinaryIO, budget: _Budget) -> None:
        self._stream, self._budget = stream, budget

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= READ_BYTES_MAX:
            raise tarfile.ReadError(
                f"a header requests {size:,} bytes at once, which exceeds the limit"
            )
        data = self._stream.read(size)
        self._budget.check(self._stream.tell())
        return data

    def seek(self, to: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET:
            self._budget.check(to)
        return self._stream.seek(to, whence)

    def tell(self) -> int:
        return self._stream.tell()

"""What the data of a file are to a drive that compresses or stores no data twice.

Drives are sensitive to what is written: the SNIA primer (2013, figures 15 and 16) sets a file of a
database program against random data. A file is described by two shares, which simulated drives and
fio (`buffer_compress_percentage`, `dedupe_percentage`) both take: how many of its 4 KiB blocks
repeat an earlier one, and how much compression saves of the others.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import ConfigError

BLOCK_BYTES = 4096  # the unit in which drives map, compress and compare data
_COMPRESSED_MAX = 1 << 14  # blocks that are compressed, evenly over the file
_LEVEL = 1  # of zlib: what hardware does in the time of a write


@dataclass(frozen=True)
class DataPattern:
    """The shares of a file, in whole percents, as fio takes them."""

    compressible_pct: float  # of the data of blocks that are not duplicates
    duplicate_pct: float  # of the blocks
    blocks: int
    sha256: str  # of the whole file


def data_pattern_of(path: Path) -> DataPattern:
    """Measure the file at `path`: every whole block of it. Raises ConfigError: not a readable file,
    or smaller than a block.
    """
    try:
        size = path.stat().st_size
        if not path.is_file() or size < BLOCK_BYTES:
            raise ConfigError(
                f"{path} is not a file of {BLOCK_BYTES} bytes or more",
                hint="a data pattern is measured in blocks of it",
            )
        return _measured(path, size // BLOCK_BYTES)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _measured(path: Path, blocks: int) -> DataPattern:
    every = max(1, blocks // _COMPRESSED_MAX)
    whole = hashlib.sha256()
    seen: set[bytes] = set()
    compressed = unique_bytes = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            whole.update(block)
            if len(block) < BLOCK_BYTES:
                break
            digest = hashlib.blake2b(block, digest_size=16).digest()
            if digest in seen:
                continue
            if len(seen) % every == 0:
                compressed += min(BLOCK_BYTES, len(zlib.compress(block, _LEVEL)))
                unique_bytes += BLOCK_BYTES
            seen.add(digest)
    return DataPattern(
        compressible_pct=float(round(100 * (1 - compressed / unique_bytes))),
        duplicate_pct=float(round(100 * (1 - len(seen) / blocks))),
        blocks=blocks,
        sha256=whole.hexdigest(),
    )

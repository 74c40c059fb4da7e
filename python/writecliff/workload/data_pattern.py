"""Compressibility and duplicates in a file's data, for drives that compress or deduplicate data.

The performance of such drives depends on the data; the SNIA primer (2013, figures 15 and 16)
compares a database file with random data. Two percentages describe a file: the 4 KiB blocks that
repeat an earlier block, and the compression savings on all other blocks. Simulated drives and fio
(`buffer_compress_percentage`, `dedupe_percentage`) accept both percentages.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from writecliff.errors import ConfigError

BLOCK_BYTES = 4096  # Unit in which drives map, compress and compare data.
_COMPRESSED_MAX = 1 << 14  # Maximum number of blocks to compress, evenly spaced in the file.
_LEVEL = 1  # zlib level with a compression ratio similar to that of drive hardware during writes.


@dataclass(frozen=True)
class DataPattern:
    """Properties of a file's data in whole percent, as fio requires."""

    # Compressible percentage of the data in blocks that are not duplicates.
    compressible_pct: float
    duplicate_pct: float  # Percentage of duplicate blocks.
    blocks: int
    sha256: str  # SHA-256 digest of the whole file.


def data_pattern_of(path: Path) -> DataPattern:
    """Measure all complete blocks in a file.

    Raises:
        ConfigError: If the file cannot be read or is smaller than a block.
    """
    try:
        size = path.stat().st_size
        if not path.is_file() or size < BLOCK_BYTES:
            raise ConfigError(
                f"{path} is not a regular file of at least {BLOCK_BYTES} bytes",
                hint="choose a larger file, because data patterns are measured by block",
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

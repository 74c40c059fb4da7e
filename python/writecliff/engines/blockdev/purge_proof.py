"""Proof that a purge did something: blocks that are read before it and after it.

Some drives and most bridges acknowledge an erase that they do not carry out; a test that starts on
such a drive does not start fresh. So blocks all over the drive are read with direct I/O before a
purge, and those that held anything must not hold the same afterwards. Nothing is written.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass

_SAMPLES = 256
_BLOCK = 4096


@dataclass(frozen=True)
class Samples:
    """Content of blocks by their offset; blocks of one repeated byte are left out, because an
    erased drive may return the same."""

    path: str
    block_bytes: int
    content: Mapping[int, bytes]

    def kept(self) -> int:
        """How many blocks still hold what they held. A block that cannot be read is gone."""
        now = _read(self.path, tuple(self.content), self.block_bytes)
        return sum(now.get(offset) == content for offset, content in self.content.items())


def take_samples(path: str, size_bytes: int, sector_bytes: int) -> Samples:
    """Read blocks spread evenly over the drive, the first and the last among them.

    A device that cannot be read yields none.
    """
    block = max(_BLOCK, sector_bytes)
    count = size_bytes // block
    chosen = sorted({i * (count - 1) // (_SAMPLES - 1) for i in range(_SAMPLES)}) if count else []
    read = _read(path, tuple(index * block for index in chosen), block)
    content = {offset: data for offset, data in read.items() if len(set(data)) > 1}
    return Samples(path, block, content)


def _read(path: str, offsets: tuple[int, ...], block: int) -> dict[int, bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return {}
    found: dict[int, bytes] = {}
    with mmap.mmap(-1, block) as buffer:  # direct I/O needs an aligned buffer
        for offset in offsets:
            try:
                if os.preadv(fd, [buffer], offset) == block:
                    found[offset] = bytes(buffer)
            except OSError:
                continue
    os.close(fd)
    return found

"""RocksDB under power cuts: `python -m writecliff.lab.torture.rocksdb`; see `ledger.main`.

The memory table is small, so that files are flushed and compacted continuously.
"""

from __future__ import annotations

import sys

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from writecliff.lab.torture import ledger

_FOLDER = "database"
_MEMORY_BYTES = 512 << 10


def _open() -> Rdict:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_MEMORY_BYTES)
    options.set_target_file_size_base(_MEMORY_BYTES)
    options.set_max_bytes_for_level_base(4 * _MEMORY_BYTES)
    return Rdict(_FOLDER, options)


def prepare() -> None:
    """Create the database."""
    _open().close()


def write(sync: bool) -> None:
    """Write batches until the drive fails."""
    database, options = _open(), WriteOptions()
    options.sync = sync
    number = 0
    while True:
        number += 1
        batch = WriteBatch(raw_mode=True)
        for row in range(ledger.ROWS):
            batch.put(f"{number:012d}/{row}".encode(), ledger.payload(number, row))
        database.write(batch, options)
        ledger.acknowledge(number)


def check() -> list[str]:
    """Return the problems of the database, which recovers when it is opened."""
    try:
        with _open() as database:
            rows = [(*_numbers(key), data) for key, data in database.items()]
    except Exception as error:
        return [f"cannot be read: {str(error).splitlines()[0]}"]
    return ledger.wrong_with(rows)


def _numbers(key: bytes) -> tuple[int, int]:
    number, _, row = key.partition(b"/")
    return int(number), int(row)


if __name__ == "__main__":
    sys.exit(ledger.main(prepare, write, check))

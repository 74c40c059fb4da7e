"""Numbered transactions of several rows, and what a check wants of them after a power cut.

What a program has printed is committed: it must be there, whole. Of what it had not printed yet, a
transaction may be there or not, but never in part, and never with other data.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ACKNOWLEDGED = "WRITECLIFF_ACKNOWLEDGED"
ROWS = 4  # of a transaction
_PAYLOAD_BYTES = 3000  # so that rows spread over pages


def payload(number: int, row: int) -> bytes:
    """The data of a row, which follow from its number."""
    seed = hashlib.sha256(f"{number}/{row}".encode()).digest()
    return (seed * (_PAYLOAD_BYTES // len(seed) + 1))[:_PAYLOAD_BYTES]


def acknowledge(number: int) -> None:
    """Say that a transaction is durable."""
    print(number, flush=True)


def acknowledged() -> set[int]:
    """The numbers that were printed, a line each; the last line may be cut."""
    text = Path(os.environ[ACKNOWLEDGED]).read_text(encoding="ascii")
    return {int(line) for line in text.split("\n")[:-1]}


def wrong_with(rows: Iterable[tuple[int, int, bytes]]) -> list[str]:
    """What is wrong with all rows of a database: numbers, rows of them, data."""
    there: dict[int, set[int]] = {}
    for number, row, data in rows:
        if data != payload(number, row):
            return [f"transaction {number} has other data than were written"]
        there.setdefault(number, set()).add(row)
    wrong = [f"transaction {n} is there in part" for n, found in there.items() if len(found) < ROWS]
    lost = sorted(acknowledged() - set(there))
    if lost:
        wrong.append(f"{len(lost)} committed transactions are lost, the first is {lost[0]}")
    return wrong


def main(
    prepare: Callable[[], None], write: Callable[[bool], None], check: Callable[[], list[str]]
) -> int:
    """The command line of a program: `prepare`, `write [--no-sync]` or `check`.

    Returns the exit code: 1 if the database is not intact, with the reason on stdout.
    """
    what, *options = sys.argv[1:]
    if what == "prepare":
        prepare()
    elif what == "write":
        write("--no-sync" not in options)
    elif wrong := check():
        print(wrong[0])
        return 1
    return 0

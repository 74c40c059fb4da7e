"""Numbered transactions of several rows, and their check after a power cut.

Transactions that a program has printed are committed, and must be present and complete. A
transaction that was not printed may be present or missing, but must not be partial or contain wrong
data.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ACKNOWLEDGED = "WRITECLIFF_ACKNOWLEDGED"
ROWS = 4  # Number of rows per transaction.
_PAYLOAD_BYTES = 3000  # The payload is large enough to spread rows over several pages.


def payload(number: int, row: int) -> bytes:
    """Return a row's data, which are derived from its numbers."""
    seed = hashlib.sha256(f"{number}/{row}".encode()).digest()
    return (seed * (_PAYLOAD_BYTES // len(seed) + 1))[:_PAYLOAD_BYTES]


def acknowledge(number: int) -> None:
    """Print the number of a durable transaction."""
    print(number, flush=True)


def acknowledged() -> set[int]:
    """Return the printed numbers, one per line, ignoring an incomplete last line."""
    text = Path(os.environ[ACKNOWLEDGED]).read_text(encoding="ascii")
    return {int(line) for line in text.split("\n")[:-1]}


def wrong_with(rows: Iterable[tuple[int, int, bytes]]) -> list[str]:
    """Check all rows (number, row, data) of a database and return the problems."""
    there: dict[int, set[int]] = {}
    for number, row, data in rows:
        if data != payload(number, row):
            return [f"transaction {number} contains wrong data"]
        there.setdefault(number, set()).add(row)
    wrong = [
        f"transaction {n} is incomplete"
        for n, row_numbers in there.items()
        if len(row_numbers) < ROWS
    ]
    lost = sorted(acknowledged() - set(there))
    if lost:
        wrong.append(f"{len(lost)} committed transactions are lost, starting with {lost[0]}")
    return wrong


def main(
    prepare: Callable[[], None], write: Callable[[bool], None], check: Callable[[], list[str]]
) -> int:
    """Run the command line of a program: `prepare`, `write [--no-sync]` or `check`.

    Returns:
        The exit code, which is 1 if the database is damaged (the reason is printed).
    """
    action, *options = sys.argv[1:]
    if action == "prepare":
        prepare()
    elif action == "write":
        write("--no-sync" not in options)
    elif wrong := check():
        print(wrong[0])
        return 1
    return 0

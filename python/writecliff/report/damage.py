"""Reporting of unexpected data in a run as damage.

The store checks the types and ranges of the data that it reads. Only a test's report can detect
that a run's steps do not belong to that test, because a lookup then fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from writecliff.errors import printable
from writecliff.input_files import STUMBLES
from writecliff.store.checksums import DamagedError

_SHOWN = 120  # Maximum number of message characters displayed.


@contextmanager
def damage_reported(run: Path) -> Iterator[None]:
    """Convert the errors that a report about `run` raises within the block to `DamagedError`.

    With --debug, the traceback shows where the report failed.
    """
    try:
        yield
    except STUMBLES as error:
        message = printable(" ".join(str(error).split()))[:_SHOWN]
        raise DamagedError(
            f"damaged: {run}: the report cannot use its steps and options "
            f"({type(error).__name__}: {message})",
            hint="if nobody has modified the run, this is a bug: --debug shows where",
        ) from error

"""What a report stumbles over in a run is damage, and is said as such.

The store checks the types and ranges of what it reads. That the steps of a run are those of its
test, only the test's own report can tell, at whatever place it looks for what is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from writecliff.errors import printable
from writecliff.input_files import STUMBLES
from writecliff.store.checksums import DamagedError

_SHOWN = 120  # characters of what went wrong


@contextmanager
def damage_said(run: Path) -> Iterator[None]:
    """Errors of a report that is made of `run` while the block runs become StoreError: damaged.
    With --debug, the place that stumbled is shown.
    """
    try:
        yield
    except STUMBLES as error:
        said = printable(" ".join(str(error).split()))[:_SHOWN]
        raise DamagedError(
            f"damaged: {run}: no report can be made of its steps and options "
            f"({type(error).__name__}: {said})",
            hint="if nobody has changed the run, this is a bug: --debug shows where",
        ) from error

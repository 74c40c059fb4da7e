"""A twin of a drive, and a drive beside its twin, as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from writecliff.twin.check import Check
    from writecliff.twin.result import TwinResult

Log = Callable[[str], None]


@dataclass(frozen=True)
class TwinMade:
    """A twin: its device file, what it is judged by, and the page about it."""

    device_file: Path
    result: TwinResult
    page: Path


@dataclass(frozen=True)
class TwinChecked:
    """A drive beside what it should be, and the page about it."""

    check: Check
    page: Path


def twin_of_run(
    run: Path,
    *,
    name: str | None = None,
    device_file: Path | None = None,
    said: Mapping[str, object] | None = None,
    log: Log = lambda text: None,
) -> TwinMade:
    """Fit a twin to the measurements in `run` (a directory of `writecliff twin`).

    `name` of the drive (default: of its model); `device_file` is where the twin is written, too
    (default: only into the run directory). `said`: answers of a data sheet, which go before
    defaults. Raises ConfigError, StoreError.
    """
    from writecliff.twin.evidence import read_evidence
    from writecliff.twin.fitting import make_twin
    from writecliff.twin.page import write_twin_page
    from writecliff.twin.result import DEVICE_NAME, FOLDER, keep

    evidence = read_evidence(run)
    called = name or name_of(evidence.identity.model)
    fitted = make_twin(evidence, run / FOLDER, called, said=said or {}, log=log)
    path = device_file or run / DEVICE_NAME
    result = keep(fitted, evidence, run, called, path)
    return TwinMade(path, result, write_twin_page(result, run))


def check_run(run: Path, expected: str, *, log: Log = lambda text: None) -> TwinChecked:
    """Compare the measurements in `run` with `expected`: a device file, a drive of the catalogue,
    or the answers of a data sheet. Raises ConfigError, StoreError."""
    from writecliff.twin.check import check
    from writecliff.twin.evidence import read_evidence
    from writecliff.twin.page import write_check_page

    found = check(read_evidence(run), expected, log).write(run)
    return TwinChecked(found, write_check_page(found, run))


def name_of(model: str) -> str:
    """A name for the twin of a model: "twin-samsung-pm9a3"."""
    import re

    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return f"twin-{words or 'drive'}"

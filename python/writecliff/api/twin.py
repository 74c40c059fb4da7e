"""A twin of a drive, and a drive beside its twin, as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.api.runs import PathLike, execute, opened, output_path
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.engines.base import Engine
    from writecliff.procedures.progress import RunProgress
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


def make_twin(
    on: str | Engine,
    *,
    output: PathLike | None = None,
    name: str | None = None,
    device_file: PathLike | None = None,
    answers: Mapping[str, object] | None = None,
    progress: RunProgress | None = None,
    log: Log = lambda text: None,
    **options: Any,
) -> TwinMade:
    """Measure a drive and make a twin of it, as `writecliff twin` does.

    `on`, `output`, `progress`: as in `run_test` (default of `output`: runs/twin-TARGET-TIME).
    `name`, `device_file`, `said`: as in `twin_of_run`; the file must not exist. `log` receives the
    progress of the fit. `options` of the measurements: `gentle`, `seconds` (of a load),
    `overwrite_minutes`, `rest_s`, `no_purge`, `seed`. Raises the errors of `run_test`, and
    ConfigError for a drive that cannot be modelled.
    """
    from writecliff.procedures.twin import Twin
    from writecliff.twin.start import check_drive

    procedure = Twin.from_mapping(options)
    file = new_device_file(device_file)
    with opened(on, procedure.seed) as engine:
        identity = engine.identify()
        check_drive(identity)
        procedure.check_purge(simulated=identity.simulated)
        with output_path(output, "runs", Twin.name, identity.target) as directory:
            execute(procedure, engine, directory, progress)
    return twin_of_run(directory, name=name, device_file=file, answers=answers, log=log)


def new_device_file(path: PathLike | None) -> Path | None:
    """Return the path of a device file to write. Raises ConfigError: the file exists."""
    if path is not None and Path(path).exists():
        raise ConfigError(f"{path} exists", hint="give another name")
    return None if path is None else Path(path)


def twin_of_run(
    run: Path,
    *,
    name: str | None = None,
    device_file: Path | None = None,
    answers: Mapping[str, object] | None = None,
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
    fitted = make_twin(evidence, run / FOLDER, called, said=answers or {}, log=log)
    path = device_file or run / DEVICE_NAME
    result = keep(fitted, evidence, run, called, path)
    return TwinMade(path, result, write_twin_page(result, run))


def check_run(run: Path, expected: str, *, log: Log = lambda text: None) -> TwinChecked:
    """Compare the measurements in `run` with `expected`: a device file, a drive of the catalogue,
    or the answers of a data sheet. Raises ConfigError, StoreError.
    """
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

"""Twins of drives, and checks of drives against their twins."""

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
    """A twin: its device file, its errors and its page."""

    device_file: Path
    result: TwinResult
    page: Path


@dataclass(frozen=True)
class TwinChecked:
    """The comparison of a drive with its twin or data sheet, and its page."""

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
    """Measure a drive and create a twin of it, as `writecliff twin` does.

    `on`, `output` and `progress` are as in `run_test` (default of `output`: runs/twin-TARGET-TIME);
    `name`, `device_file` and `answers` are as in `twin_of_run`; the file must not exist. `log`
    receives the progress of the fit. `options` of the measurements are `gentle`, `seconds` (of a
    load), `overwrite_minutes`, `rest_s`, `no_purge` and `seed`. Raises as `run_test`, and
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
    """Return the path of a device file to write. Raises ConfigError if the file exists."""
    if path is not None and Path(path).exists():
        raise ConfigError(f"{path} exists", hint="give another name, or remove the file")
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

    `name` is that of the twin (default: from the drive's model). `device_file` is an additional
    file for the twin (default: only the run directory). `answers` are those of a data sheet, which
    take precedence over defaults.

    Raises:
        ConfigError: The drive cannot be modelled, or an answer is invalid.
        StoreError: The run is damaged, or a file cannot be written.
    """
    from writecliff.twin.evidence import read_evidence
    from writecliff.twin.fitting import make_twin
    from writecliff.twin.page import write_twin_page
    from writecliff.twin.result import DEVICE_NAME, FOLDER, keep

    evidence = read_evidence(run)
    called = name or name_of(evidence.identity.model)
    fitted = make_twin(evidence, run / FOLDER, called, facts=answers or {}, log=log)
    path = device_file or run / DEVICE_NAME
    result = keep(fitted, evidence, run, called, path)
    return TwinMade(path, result, write_twin_page(result, run))


def check_run(run: Path, expected: str, *, log: Log = lambda text: None) -> TwinChecked:
    """Compare the measurements in `run` with `expected`.

    `expected` is a device file, a drive of the catalogue, or a file of a data sheet's answers.

    Raises:
        ConfigError: `expected` cannot be compared with.
        StoreError: The run is damaged, or the page cannot be written.
    """
    from writecliff.twin.check import check
    from writecliff.twin.evidence import read_evidence
    from writecliff.twin.page import write_check_page

    checked = check(read_evidence(run), expected, log).write(run)
    return TwinChecked(checked, write_check_page(checked, run))


def name_of(model: str) -> str:
    """Return a name for the twin of a model: "twin-samsung-pm9a3"."""
    import re

    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return f"twin-{words or 'drive'}"

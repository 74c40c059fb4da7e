"""Drive twins, and checks of drives against their twins."""

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
    """A twin, with its device file, errors and page."""

    device_file: Path
    result: TwinResult
    page: Path


@dataclass(frozen=True)
class TwinChecked:
    """A comparison of a drive with its twin or data sheet, and the comparison page."""

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
    """Measure a drive, and create its twin, as `writecliff twin` does.

    `on`, `output` and `progress` are as in `run_test`, except that `output` defaults to
    runs/twin-TARGET-TIME. `name`, `device_file` and `answers` are as in `twin_of_run`; the file
    must not exist. `log` receives progress messages during the fit. The measurement `options` are
    `gentle`, `seconds` (per load), `overwrite_minutes`, `rest_s`, `no_purge` and `seed`. Raises the
    exceptions of `run_test`, and ConfigError if the drive cannot be modelled.
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
        raise ConfigError(
            f"the device file {path} already exists",
            hint="choose another file name, or remove the existing file",
        )
    return None if path is None else Path(path)


def twin_of_run(
    run: Path,
    *,
    name: str | None = None,
    device_file: Path | None = None,
    answers: Mapping[str, object] | None = None,
    log: Log = lambda text: None,
) -> TwinMade:
    """Fit a twin to the measurements in `run`, a directory written by `writecliff twin`.

    `name` is the twin's name (default: derived from the drive's model). `device_file` is an
    additional file to write the twin to (default: only the run directory). `answers` contains data
    sheet values, which take precedence over defaults.

    Raises:
        ConfigError: If the drive cannot be modelled, or a data sheet value is invalid.
        StoreError: If the run is damaged, or a file cannot be written.
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

    `expected` is a device file, a catalogue drive, or a file of data sheet values.

    Raises:
        ConfigError: If the measurements cannot be compared with `expected`.
        StoreError: If the run is damaged, or the page cannot be written.
    """
    from writecliff.twin.check import check
    from writecliff.twin.evidence import read_evidence
    from writecliff.twin.page import write_check_page

    checked = check(read_evidence(run), expected, log).write(run)
    return TwinChecked(checked, write_check_page(checked, run))


def name_of(model: str) -> str:
    """Return a name for the twin of a drive model, such as "twin-samsung-pm9a3"."""
    import re

    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return f"twin-{words or 'drive'}"

"""What becomes a run of the store: run directories, suites, folders and archives of them, and fio's
JSON output.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Literal

from writecliff.errors import ConfigError
from writecliff.output_files import part_of, remove_part
from writecliff.runs.fio_json import SUFFIX, store_fio_json
from writecliff.runs.place import Place
from writecliff.runs.unpacking import DEPTH_MAX, unpack
from writecliff.store.files import store_error
from writecliff.store.manifest import MANIFEST_NAME, SUITE_NAME, read_manifest

FOLDER = "imports"


def import_path(place: Place, path: Path, *, capacity_bytes: int | None = None) -> list[str]:
    """Copy what `path` holds into the store; the names of the new runs and suites.

    `capacity_bytes` is of the drive of a fio result. Runs keep their directories' names below
    `imports`; one that is taken gets a number. Raises ConfigError: nothing to import; StoreError.
    """
    if not path.exists():
        raise ConfigError(f"{path} is not there")
    if path.is_dir():
        return _folders(place, path, path)
    with tempfile.TemporaryDirectory(prefix="writecliff-") as made:
        if suffix_of(path) is not None:
            unpack(path, Path(made))
            return _folders(place, Path(made), path)
        if path.suffix != SUFFIX:
            raise ConfigError(
                f"{path} is neither a run nor an archive of runs nor fio's JSON output",
                hint="give a run directory, a suite, .zip, .tar.gz, or .json of fio",
            )
        folder = Path(made) / path.stem
        store_fio_json(path, folder, capacity_bytes=capacity_bytes)
        from writecliff.report import write_report

        write_report(folder)
        return [_add(place, folder)]


def _folders(place: Place, folder: Path, named: Path) -> list[str]:
    """Import the runs and suites in a folder, which may be one itself."""
    found = list(_in(folder))
    if not found:
        raise ConfigError(f"there is no run in {named}")
    for one in found:
        if not is_suite(one):
            read_manifest(one)  # a damaged run is refused before anything is copied
    return [_add(place, one) for one in found]


def _in(folder: Path, depth: int = 0) -> Iterator[Path]:
    if (folder / MANIFEST_NAME).is_file() or is_suite(folder):
        yield folder
        return
    if depth > DEPTH_MAX:
        return
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.is_symlink() and not child.name.startswith("."):
            yield from _in(child, depth + 1)


def _add(place: Place, folder: Path) -> str:
    begin = f"{FOLDER}/{folder.resolve().name}"
    names = (begin if number == 1 else f"{begin}-{number}" for number in count(1))
    name = next(one for one in names if place.is_free(one))
    place.add(folder, name)
    return name


# -- runs as archives (.zip, .tar and compressed ones) ---------------------------------------------

# Runs as archives (.zip, .tar and compressed ones). `unpacking.py` reads them.

_MODES: dict[str, Literal["w", "w:gz", "w:xz"]] = {
    ".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz",
}  # fmt: skip
SUFFIXES = (".zip", *_MODES)


def suffix_of(path: Path) -> str | None:
    """The suffix that says which kind of archive a file is; None: it is none."""
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)


def write_archive(place: Place, runs: Sequence[str], output: Path) -> None:
    """Write runs to an archive, each under its name in the store, which is whole or not there.

    Raises ConfigError for another suffix, StoreError.
    """
    suffix = suffix_of(output)
    if suffix is None:
        raise ConfigError(f"{output} is no archive", hint=f"name it {', '.join(SUFFIXES)}")
    made = part_of(output)
    try:
        with ExitStack() as stack:
            folders = {run: stack.enter_context(place.as_folder(run)) for run in runs}
            files = [
                (file, f"{run}/{file.relative_to(folder).as_posix()}")
                for run, folder in folders.items()
                for file in sorted(folder.rglob("*"))
                if file.is_file() and not file.is_symlink() and file.name != ".lock"
            ]
            if suffix == ".zip":
                with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
                    for file, name in files:
                        archive.write(file, name)
            else:
                with tarfile.open(made, _MODES[suffix]) as tar:
                    for file, name in files:
                        tar.add(file, name, recursive=False)
        made.replace(output)
    except OSError as error:
        raise store_error(error, output) from error
    finally:
        remove_part(made)


def is_suite(folder: Path) -> bool:
    """Whether the folder is a suite or a sweep."""
    return (folder / SUITE_NAME).is_file()

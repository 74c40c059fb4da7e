"""What becomes a run of the store: run directories, suites, folders and archives of them, and fio's
JSON output."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from writecliff.errors import ConfigError
from writecliff.runs.archive import is_suite, suffix_of
from writecliff.runs.fio_json import SUFFIX, store_fio_json
from writecliff.runs.place import Place
from writecliff.runs.unpacking import DEPTH_MAX, unpack
from writecliff.store.manifest import MANIFEST_NAME, read_manifest

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

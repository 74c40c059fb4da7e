"""Import of run directories, suites, folders, archives and fio's JSON output."""

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
    """Copy the runs in `path` into the store, and return the names of the new runs and suites.

    Runs retain their directory names, below `imports`. If a name is already in use, a number is
    appended.

    Args:
        place: Run store to copy to.
        path: Run directory, suite, folder, archive, or file with fio's JSON output.
        capacity_bytes: Drive capacity in bytes, for fio output.

    Raises:
        ConfigError: If `path` does not exist or contains no runs.
        StoreError: If a run is damaged or the store cannot be written.
    """
    if not path.exists():
        raise ConfigError(f"{path} does not exist")
    if path.is_dir():
        return _folders(place, path, path)
    with tempfile.TemporaryDirectory(prefix="writecliff-") as made:
        if suffix_of(path) is not None:
            unpack(path, Path(made))
            return _folders(place, Path(made), path)
        if path.suffix != SUFFIX:
            raise ConfigError(
                f"{path} is not a run, an archive of runs, or fio's JSON output",
                hint="specify a run directory, a suite, a .zip or .tar.gz archive, or fio's .json",
            )
        folder = Path(made) / path.stem
        store_fio_json(path, folder, capacity_bytes=capacity_bytes)
        from writecliff.report import write_report

        write_report(folder)
        return [_add(place, folder)]


def _folders(place: Place, folder: Path, named: Path) -> list[str]:
    """Import the runs and suites in `folder`, which may itself be a run or a suite."""
    folders = list(_in(folder))
    if not folders:
        raise ConfigError(
            f"{named} contains no run", hint="specify a run directory, a suite, or a folder of them"
        )
    for run in folders:
        if not is_suite(run):
            read_manifest(run)  # Reject damaged runs before copying anything.
    return [_add(place, run) for run in folders]


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
    stem = f"{FOLDER}/{folder.resolve().name}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    name = next(name for name in names if place.is_free(name))
    place.add(folder, name)
    return name


# -- run archives (.zip, .tar and compressed ones) -------------------------------------------------

# The module `unpacking.py` reads these archives.

_MODES: dict[str, Literal["w", "w:gz", "w:xz"]] = {
    ".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz",
}  # fmt: skip
SUFFIXES = (".zip", *_MODES)


def suffix_of(path: Path) -> str | None:
    """Return the suffix that identifies the archive type, or None if the file is not an archive."""
    return next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)


def write_archive(place: Place, runs: Sequence[str], output: Path) -> None:
    """Write runs to an archive, each under its store name.

    The archive file appears only when it is complete.

    Raises:
        ConfigError: If the suffix of `output` is not in `SUFFIXES`.
        StoreError: If a run cannot be read or the archive cannot be written.
    """
    suffix = suffix_of(output)
    if suffix is None:
        raise ConfigError(
            f"{output} does not have the suffix of an archive",
            hint=f"use {', '.join(SUFFIXES)}",
        )
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
    """Return `True` if the folder is a suite or sweep."""
    return (folder / SUITE_NAME).is_file()

"""Runs as archives (.zip, .tar and compressed ones). `unpacking.py` reads them."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from writecliff.errors import ConfigError
from writecliff.output_files import part_of, remove_part
from writecliff.runs.place import Place
from writecliff.store.files import store_error
from writecliff.store.manifest import SUITE_NAME

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

"""Runs as archives (.zip, .tar and compressed ones), and what archives hold."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Literal

from writecliff.errors import ConfigError, StoreError
from writecliff.input_files import opened
from writecliff.output_files import part_of
from writecliff.runs.place import Place
from writecliff.store.files import store_error
from writecliff.store.manifest import SUITE_NAME

_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError
)  # fmt: skip
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
        made.unlink(missing_ok=True)


def unpack(path: Path, folder: Path) -> None:
    """Unpack an archive into `folder`. Nothing gets out of it: absolute names, names with "..",
    links and devices are refused. Raises ConfigError: damaged, or with such names."""
    with opened(path):  # not a pipe, which would be waited for
        pass
    try:
        if path.name.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    parts = PurePosixPath(name).parts
                    if name.startswith("/") or ".." in parts:
                        raise ConfigError(f"{path} holds {name!r}, which is outside of it")
                archive.extractall(folder)
        else:
            with tarfile.open(path) as tar:
                tar.extractall(folder, filter="data")
    except _DAMAGED as error:
        raise ConfigError(f"{path} is not an archive of runs: {error}") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None


def is_suite(folder: Path) -> bool:
    """Whether the folder is a suite or a sweep."""
    return (folder / SUITE_NAME).is_file()

"""The runs in a folder, newest first. Reads manifests only, so that it is quick for many runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from writecliff.errors import StoreError
from writecliff.store.files import is_locked
from writecliff.store.manifest import MANIFEST_NAME, Manifest, Status, read_manifest


@dataclass(frozen=True)
class RunListing:
    """A run directory. `manifest` is None where it cannot be read; `problem` then says why."""

    path: Path
    manifest: Manifest | None
    status: Status | None
    problem: str = ""


def list_runs(folder: Path) -> list[RunListing]:
    """Every run directory directly in `folder`, the latest created first, unreadable ones last.

    Raises StoreError if the folder cannot be listed.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if (path / MANIFEST_NAME).is_file())
    except OSError as error:
        raise StoreError(f"cannot list {folder}: {(error.strerror or '').lower()}") from None
    listings = [_listing(path) for path in paths]
    return sorted(listings, key=_created, reverse=True)


def latest_run(folder: Path) -> Path | None:
    """The run of `folder` that was created last; None if it has none that can be read."""
    readable = [listing for listing in list_runs(folder) if listing.manifest is not None]
    return readable[0].path if readable else None


def _listing(path: Path) -> RunListing:
    try:
        manifest = read_manifest(path)
    except StoreError as error:
        return RunListing(path, None, None, str(error))
    status = manifest.status
    if status == "running" and not is_locked(path):
        status = "interrupted"
    return RunListing(path, manifest, status)


def _created(listing: RunListing) -> tuple[float, str]:
    if listing.manifest is None:
        return (0.0, listing.path.name)
    return (datetime.fromisoformat(listing.manifest.created).timestamp(), listing.path.name)

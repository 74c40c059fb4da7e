"""Locations of the run store and of new runs."""

from __future__ import annotations

import os
from pathlib import Path

from writecliff.errors import ConfigError

ENVIRONMENT = "WRITECLIFF_STORE"
HERE = "."


def store_location(given: str | None = None) -> str:
    """Return `given`, the store set in `WRITECLIFF_STORE`, or the current folder.

    Returns:
        The result is a path, or the URL of an object store.

    Raises:
        ConfigError: `given` is empty.
    """
    location = given if given is not None else os.environ.get(ENVIRONMENT) or HERE
    if not location:
        raise ConfigError("--store is empty", hint="specify a folder, or a URL such as s3://runs")
    return location.removeprefix("file://")


def is_remote(location: str) -> bool:
    """Return `True` if the location is a URL."""
    return "://" in location


def output_root(given: str | None = None) -> Path:
    """Return the folder where new runs are created.

    If the store is an object store, new runs are created in the current folder, because a run is
    written step by step and object stores cannot append.

    Raises:
        ConfigError: `given` is empty.
    """
    location = store_location(given)
    return Path(HERE) if is_remote(location) else Path(location)

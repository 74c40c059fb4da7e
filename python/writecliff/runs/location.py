"""Which store a command works with, and where new runs go."""

from __future__ import annotations

import os
from pathlib import Path

from writecliff.errors import ConfigError

ENVIRONMENT = "WRITECLIFF_STORE"
HERE = "."


def store_location(given: str | None = None) -> str:
    """The store that is `given`, else that of the environment, else the current folder: a path, or
    the URL of an object store. Raises ConfigError for an empty one.
    """
    location = given if given is not None else os.environ.get(ENVIRONMENT) or HERE
    if not location:
        raise ConfigError("--store is empty", hint="give a folder, or a URL such as s3://runs")
    return location.removeprefix("file://")


def is_remote(location: str) -> bool:
    """Whether the location is a URL."""
    return "://" in location


def output_root(given: str | None = None) -> Path:
    """The folder below which new runs are made. Those of an object store are made in the current
    folder: a run is written step by step, which an object store cannot. Raises ConfigError.
    """
    location = store_location(given)
    return Path(HERE) if is_remote(location) else Path(location)

"""`figures.json`, a file with a run's headline figures in the run directory.

A report takes 0.1 s to evaluate a run, which is too slow for lists of thousands of runs. The file
is a cache that contains the digest of the manifest it was computed from. If the manifest's digest
has changed, the figures are recomputed from the run.

Importing this module does not import the report modules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import StoreError
from writecliff.store.checksums import parse_document, write_document
from writecliff.store.files import read_regular
from writecliff.store.manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from writecliff.report.base import TestReport
    from writecliff.report.headline import Headline

KEPT_NAME = "figures.json"
SCHEMA = "writecliff/figures/1"


def figures_mapping(report: TestReport) -> dict[str, Any]:
    """Return the file contents without the manifest digest.

    Keys: The keys are `verdict`, `stamp`, `steps`, `device_time_ns`, `host_write_bytes`, and
        `figures`, each with the fields of a `Headline`.
    """
    data = report.data
    return {
        "verdict": report.answer(),
        "stamp": data.stamp,
        "steps": len(data.rows),
        "device_time_ns": round(data.elapsed_ns),
        "host_write_bytes": data.host_write_bytes,
        "figures": [_fields(item) for item in report.quoted],
    }


def _fields(figure: Headline) -> dict[str, Any]:
    """Return the stored fields of a figure. Comparisons read the other fields from the run."""
    return {
        name: value
        for name, value in asdict(figure).items()
        if name not in ("group", "load", "metric")
    }


def keep_figures(report: TestReport) -> None:
    """Write the file into the run directory of `report`.

    The file is not written for a running run, and write errors are ignored.
    """
    data = report.data
    if data.status == "running":
        return
    folder = data.run.path
    with suppress(StoreError, OSError):
        digest = manifest_digest(read_regular(folder / MANIFEST_NAME))
        write_document(folder / KEPT_NAME, SCHEMA, {"manifest": digest, **figures_mapping(report)})


def parse_kept_figures(data: bytes, path: Path, digest: str) -> Mapping[str, Any] | None:
    """Return the contents of a file written by `keep_figures`.

    Returns:
        The result is `None` if the file is damaged or if `digest` does not match its manifest
        digest.
    """
    try:
        document = parse_document(data, path, SCHEMA)
    except StoreError:
        return None
    return document if document.pop("manifest", None) == digest else None


def manifest_digest(manifest: bytes) -> str:
    """Return the digest found in a manifest, or an empty text."""
    try:
        document = json.loads(manifest)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("sha256", "")) if isinstance(document, dict) else ""

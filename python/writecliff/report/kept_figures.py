"""`figures.json`: the headline figures of a run, kept in its directory.

A report takes a tenth of a second to judge a run again; a list of thousands of runs cannot. The
file belongs to one state of the manifest, whose digest it carries: with any other manifest it does
not count, and the figures are made again from the run. It is never the truth.

Importing this module loads nothing of reports.
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
    """What a list of runs shows of one: `verdict`, `stamp`, `steps`, `device_time_ns`,
    `host_write_bytes` and `figures`, each with the fields of a `Headline`.
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
    """Write the file into the run directory of `report`; without effect for a run that goes on,
    and where nothing can be written.
    """
    data = report.data
    if data.status == "running":
        return
    folder = data.run.path
    with suppress(StoreError, OSError):
        digest = manifest_digest(read_regular(folder / MANIFEST_NAME))
        write_document(folder / KEPT_NAME, SCHEMA, {"manifest": digest, **figures_mapping(report)})


def parse_kept_figures(data: bytes, path: Path, digest: str) -> Mapping[str, Any] | None:
    """What `keep_figures` wrote of the run whose manifest has `digest`; None if it is of another
    state of the run, or damaged: it can be made again.
    """
    try:
        document = parse_document(data, path, SCHEMA)
    except StoreError:
        return None
    return document if document.pop("manifest", None) == digest else None


def manifest_digest(manifest: bytes) -> str:
    """The digest that a manifest carries; empty if it has none."""
    try:
        document = json.loads(manifest)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("sha256", "")) if isinstance(document, dict) else ""

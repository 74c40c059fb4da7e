"""A store with any number of runs, each only a manifest and tags, for tests of lists."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.run_store import make_run
from writecliff.runs.tags import SCHEMA as TAGS_SCHEMA
from writecliff.store.checksums import sealed_document
from writecliff.store.manifest import SCHEMA

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def make_many_runs(root: Path, runs: int) -> None:
    """Store runs of 40 drives, seven minutes apart; every third run has the tag `nightly`."""
    template = json.loads((make_run(root / ".template") / "manifest.json").read_text())
    for key in ("sha256", "schema"):
        del template[key]
    tags = sealed_document(TAGS_SCHEMA, {"tags": ["nightly"]})
    for number in range(runs):
        begun = (_FIRST + timedelta(minutes=7 * number)).isoformat(timespec="seconds")
        device = {**template["device"], "model": f"drive {number % 40}"}
        fields = {**template, "device": device, "seed": number, "created": begun, "updated": begun}
        folder = root / "runs" / f"run-{number:05d}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(sealed_document(SCHEMA, fields))
        if number % 3 == 0:
            (folder / "tags.json").write_bytes(tags)

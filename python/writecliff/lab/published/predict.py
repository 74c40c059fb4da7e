"""Write the stored predictions of published figures (`writecliff.published.predictions`).

`tools/predict-figures` writes the table of the shipped fits. The tables of current drives and of
SSD-iq's loads come from what `reproduce` simulates:

    writecliff lab reproduce modern --short --json > modern.json
    writecliff lab reproduce ssd-iq --json > ssd-iq.json
    .venv/bin/python -m writecliff.lab.published.predict modern.json ssd-iq.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from writecliff.lab.published.cross_validation import Prediction
from writecliff.published.figures import COLUMNS, COMPRESSIBLE
from writecliff.published.predictions import (
    HASH_DIGITS,
    MODERN_PREDICTIONS,
    SSD_IQ_PREDICTIONS,
    device_hashes,
    hash_of,
)
from writecliff.report.csvs import csv_text

_COLUMNS = (*COLUMNS, COMPRESSIBLE, "predicted")
_SSD_IQ_COLUMNS = ("condition", "metric", "value", "unit", "predicted", "device_hash")


def table_of(folds: int, predictions: Iterable[Prediction]) -> str:
    """The predictions as CSV, after the columns of the table of figures."""
    lines = (
        [*one.row.figure.columns.values(), one.row.simulated, " ".join(one.fits), folds,
         device_hashes(one.row.figure)]
        for one in predictions
        if one.row.simulated is not None
    )  # fmt: skip
    return csv_text((*_COLUMNS, "fit", "folds", "device_hashes"), lines)


def table_of_modern(results: str) -> str:
    """Return the simulated figures of `reproduce modern` as CSV. `results`: its JSON output."""
    lines = (
        [
            *(row[name] for name in (*COLUMNS, COMPRESSIBLE)),
            row["simulated"],
            hash_of(row["preset"]),
        ]
        for row in json.loads(results)["figures"]
        if row.get("part") in ("aside", "fit") and row["simulated"] is not None
    )
    return csv_text((*_COLUMNS, "device_hashes"), lines)


def table_of_ssd_iq(results: str) -> str:
    """Return the simulated figures of `reproduce ssd-iq` as CSV. `results`: its JSON output."""
    comparison = json.loads(results)
    hashes = {drive["drive"]: drive["device_hash"][:HASH_DIGITS] for drive in comparison["drives"]}
    lines = (
        [row["condition"], row["metric"], row["value"], row["unit"], row["simulated"],
         hashes[row["drive"]]]
        for row in comparison["rows"]
        if row["value"] and row["simulated"] is not None
    )  # fmt: skip
    return csv_text(_SSD_IQ_COLUMNS, lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        if json.loads(text)["campaign"] == "ssd-iq":
            SSD_IQ_PREDICTIONS.write_text(table_of_ssd_iq(text), encoding="utf-8")
        else:
            MODERN_PREDICTIONS.write_text(table_of_modern(text), encoding="utf-8")

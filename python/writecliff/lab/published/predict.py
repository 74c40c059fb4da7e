"""Writer of the stored predictions of published figures (`writecliff.published.predictions`).

`tools/predict-figures` writes the table for the shipped fits. The tables for current drives and
SSD-iq's loads are made from the output of `reproduce`:

    writecliff lab reproduce modern --short --json > modern.json
    writecliff lab reproduce measured --short --json > measured.json
    writecliff lab reproduce ssd-iq --json > ssd-iq.json
    .venv/bin/python -m writecliff.lab.published.predict modern.json measured.json ssd-iq.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from writecliff.lab.published.cross_validation import Prediction
from writecliff.published.figures import COLUMNS, COMPRESSIBLE, STATE
from writecliff.published.predictions import (
    HASH_DIGITS,
    MEASURED_PREDICTIONS,
    MODERN_PREDICTIONS,
    SSD_IQ_PREDICTIONS,
    device_hashes,
    hash_of,
)
from writecliff.report.csvs import csv_text

_COLUMNS = (*COLUMNS, COMPRESSIBLE, "predicted")
_MODERN_COLUMNS = (*COLUMNS, COMPRESSIBLE, STATE)
_SSD_IQ_COLUMNS = ("condition", "metric", "value", "unit", "predicted", "device_hash")


def table_of(folds: int, predictions: Iterable[Prediction]) -> str:
    """Return the predictions as CSV, after the columns of the figure table."""
    lines = (
        [*prediction.row.figure.columns.values(), prediction.row.simulated,
         " ".join(prediction.fits), folds, device_hashes(prediction.row.figure)]
        for prediction in predictions
        if prediction.row.simulated is not None
    )  # fmt: skip
    return csv_text((*_COLUMNS, "fit", "folds", "device_hashes"), lines)


def table_of_modern(results: str) -> str:
    """Return the simulated figures of `reproduce modern` or `reproduce measured` as CSV.

    `results` is the command's JSON output.
    """
    lines = (
        [*(row[name] for name in _MODERN_COLUMNS), row["simulated"], hash_of(row["preset"])]
        for row in json.loads(results)["figures"]
        if row["simulated"] is not None
    )
    return csv_text((*_MODERN_COLUMNS, "predicted", "device_hashes"), lines)


def table_of_ssd_iq(results: str) -> str:
    """Return the simulated figures of `reproduce ssd-iq` as CSV.

    `results` is the command's JSON output.
    """
    comparison = json.loads(results)
    hashes = {drive["drive"]: drive["device_hash"][:HASH_DIGITS] for drive in comparison["drives"]}
    lines = (
        [row["condition"], row["metric"], row["value"], row["unit"], row["simulated"],
         hashes[row["drive"]]]
        for row in comparison["rows"]
        if row["value"] and row["simulated"] is not None
    )  # fmt: skip
    return csv_text(_SSD_IQ_COLUMNS, lines)


_TABLES = {
    "modern": (MODERN_PREDICTIONS, table_of_modern),
    "measured": (MEASURED_PREDICTIONS, table_of_modern),
    "ssd-iq": (SSD_IQ_PREDICTIONS, table_of_ssd_iq),
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        path, convert = _TABLES[json.loads(text)["campaign"]]
        path.write_text(convert(text), encoding="utf-8")

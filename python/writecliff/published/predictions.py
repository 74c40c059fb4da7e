"""Stored predictions of published figures, by fits that have not seen them.

`tools/predict-figures` writes the table of the shipped fits, which is their cross-validation. The
tables of current drives and of SSD-iq's loads contain the figures that `reproduce` simulates:

    writecliff reproduce modern --short --json > modern.json
    writecliff reproduce ssd-iq --json > ssd-iq.json
    .venv/bin/python -m writecliff.published.predictions modern.json ssd-iq.json

The table of current drives also contains figures that the rule uses, for comparisons of two drives.
A prediction belongs to a version of a drive model, and is ignored once the model changes.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.devices import describe_device, read_device_file
from writecliff.published.conditions import preset_of
from writecliff.published.figures import COLUMNS, COMPRESSIBLE, PublishedFigure, read_figures
from writecliff.published.scores import Row
from writecliff.report.csvs import csv_text

if TYPE_CHECKING:
    from writecliff.published.fit.cross_validation import Prediction as CrossValidated
    from writecliff.published.ssd_iq.conditions import Load
    from writecliff.published.ssd_iq.drives import Sheet

PREDICTIONS = Path(__file__).parent / "predictions.csv"
MODERN_PREDICTIONS = Path(__file__).parent / "modern_predictions.csv"
SSD_IQ_PREDICTIONS = Path(__file__).parent / "ssd_iq_predictions.csv"
_COLUMNS = (*COLUMNS, COMPRESSIBLE, "predicted")
_HASH_DIGITS = 16  # stored digits of the hash of an SSD-iq drive, to keep the file small
_SSD_IQ_COLUMNS = ("condition", "metric", "value", "unit", "predicted", "device_hash")


@dataclass(frozen=True)
class Prediction:
    """What a fit of other loads makes of a figure, and the hashes of the presets that it is of."""

    simulated: float
    device_hashes: str


def table_of(folds: int, predictions: Iterable[CrossValidated]) -> str:
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
        [*(row[name] for name in (*COLUMNS, COMPRESSIBLE)), row["simulated"], _hash(row["preset"])]
        for row in json.loads(results)["figures"]
        if row.get("part") in ("aside", "fit") and row["simulated"] is not None
    )
    return csv_text((*_COLUMNS, "device_hashes"), lines)


def table_of_ssd_iq(results: str) -> str:
    """Return the simulated figures of `reproduce ssd-iq` as CSV. `results`: its JSON output."""
    comparison = json.loads(results)
    hashes = {drive["drive"]: drive["device_hash"][:_HASH_DIGITS] for drive in comparison["drives"]}
    lines = (
        [row["condition"], row["metric"], row["value"], row["unit"], row["simulated"],
         hashes[row["drive"]]]
        for row in comparison["rows"]
        if row["value"] and row["simulated"] is not None
    )  # fmt: skip
    return csv_text(_SSD_IQ_COLUMNS, lines)


@lru_cache(maxsize=2)
def read_predictions(path: Path = PREDICTIONS) -> Mapping[PublishedFigure, Prediction]:
    """The predictions by figure."""
    lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {
        figure: Prediction(float(line["predicted"]), line["device_hashes"])
        for figure, line in zip(read_figures(path), lines, strict=True)
    }


@dataclass(frozen=True)
class SsdIqPrediction:
    """A figure of SSD-iq and its prediction. `value` and `simulated` are in the table's unit."""

    drive: str  # name and capacity on the data sheet
    family: str  # catalogue family, or the name of the drive
    load: Load
    metric: str
    value: float
    simulated: float


def read_ssd_iq_predictions(path: Path = SSD_IQ_PREDICTIONS) -> list[SsdIqPrediction]:
    """Read the predictions whose drive still has the hash of the drive that the rule derives."""
    from writecliff.published.ssd_iq.conditions import drive_text, load_of
    from writecliff.published.ssd_iq.drives import family_of, read_sheets, sheet_of

    sheets = read_sheets()
    predictions = []
    for line in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
        sheet = sheet_of(drive_text(line["condition"]), sheets)
        if line["device_hash"] == _derived_hash(sheet):
            predictions.append(
                SsdIqPrediction(
                    sheet.label,
                    family_of(sheet.name) or sheet.name,
                    load_of(line["condition"]),
                    line["metric"],
                    float(line["value"]),
                    float(line["predicted"]),
                )
            )
    return predictions


@lru_cache(maxsize=64)
def _derived_hash(sheet: Sheet) -> str:
    """Return the first digits of the hash of the drive that `reproduce ssd-iq` simulates."""
    from writecliff.published.ssd_iq.drives import device_text
    from writecliff.published.ssd_iq.play import SmallDrive

    return SmallDrive.of(sheet.sheet.name, device_text(sheet)).device_hash[:_HASH_DIGITS]


def device_hashes(figure: PublishedFigure) -> str:
    """The hashes of the presets of a figure, the drive's and the baseline's, as they are now."""
    return " ".join(_hash(preset_of(name)) for name in (figure.device, figure.baseline) if name)


@lru_cache(maxsize=256)
def _hash(name: str) -> str:
    return describe_device(*read_device_file(name)).device_hash


def predicted_rows(
    rows: Sequence[Row], known: Mapping[PublishedFigure, Prediction] | None = None
) -> list[Row]:
    """Return the rows whose prediction is of the current presets, with the predicted values.

    `known`: predictions by figure; default: those of the shipped fits.
    """
    known = read_predictions() if known is None else known
    return [
        Row(row.figure, prediction.simulated)
        for row in rows
        if (prediction := known.get(row.figure))
        and prediction.device_hashes == device_hashes(row.figure)
    ]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        if json.loads(text)["campaign"] == "ssd-iq":
            SSD_IQ_PREDICTIONS.write_text(table_of_ssd_iq(text), encoding="utf-8")
        else:
            MODERN_PREDICTIONS.write_text(table_of_modern(text), encoding="utf-8")

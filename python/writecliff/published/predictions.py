"""Figures as predicted by fits that have not seen them, kept beside the presets.

`tools/predict-figures` makes the table of the shipped fits: their cross-validation. Those of
current drives and of SSD-iq's loads are the figures that `reproduce` simulates:

    writecliff reproduce modern --short --json > modern.json
    writecliff reproduce ssd-iq --json > ssd-iq.json
    .venv/bin/python -m writecliff.published.predictions modern.json ssd-iq.json

The table of current drives also has figures that the rule knows, for comparisons of two drives. A
prediction is of a drive model; once the model changes it is out of date and not shown.
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
_HASH_DIGITS = 16  # of a drive of SSD-iq; whole hashes would be half of the file
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
    """Return the simulated figures of the JSON of `reproduce modern` as CSV."""
    lines = (
        [*(one[name] for name in (*COLUMNS, COMPRESSIBLE)), one["simulated"], _hash(one["preset"])]
        for one in json.loads(results)["figures"]
        if one.get("part") in ("aside", "fit") and one["simulated"] is not None
    )
    return csv_text((*_COLUMNS, "device_hashes"), lines)


def table_of_ssd_iq(results: str) -> str:
    """Return the simulated figures of the JSON of `reproduce ssd-iq` as CSV."""
    found = json.loads(results)
    hashes = {one["drive"]: one["device_hash"][:_HASH_DIGITS] for one in found["drives"]}
    lines = (
        [one["condition"], one["metric"], one["value"], one["unit"], one["simulated"],
         hashes[one["drive"]]]
        for one in found["rows"]
        if one["value"] and one["simulated"] is not None
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
    """A figure of SSD-iq with its prediction. `value` and `simulated` have the table's unit."""

    drive: str  # name and capacity on its sheet
    family: str  # of the catalogue, or the drive itself
    load: Load
    metric: str
    value: float
    simulated: float


def read_ssd_iq_predictions(path: Path = SSD_IQ_PREDICTIONS) -> list[SsdIqPrediction]:
    """Return the predictions of the drives as the rule derives them now."""
    from writecliff.published.ssd_iq.conditions import drive_text, load_of
    from writecliff.published.ssd_iq.drives import family_of, read_sheets, sheet_of

    sheets = read_sheets()
    found = []
    for line in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))):
        sheet = sheet_of(drive_text(line["condition"]), sheets)
        if line["device_hash"] == _derived_hash(sheet):
            found.append(
                SsdIqPrediction(
                    sheet.label,
                    family_of(sheet.name) or sheet.name,
                    load_of(line["condition"]),
                    line["metric"],
                    float(line["value"]),
                    float(line["predicted"]),
                )
            )
    return found


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
    """Those of the figures for which there is a prediction of the presets as they are now, among
    `known` or those of the shipped fits."""
    known = read_predictions() if known is None else known
    return [
        Row(row.figure, one.simulated)
        for row in rows
        if (one := known.get(row.figure)) and one.device_hashes == device_hashes(row.figure)
    ]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        if json.loads(text)["campaign"] == "ssd-iq":
            SSD_IQ_PREDICTIONS.write_text(table_of_ssd_iq(text), encoding="utf-8")
        else:
            MODERN_PREDICTIONS.write_text(table_of_modern(text), encoding="utf-8")

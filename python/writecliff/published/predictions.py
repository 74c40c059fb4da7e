"""Stored predictions of published figures, from fits that did not use these figures.

The shipped fits' table contains their cross-validation. The tables for current drives and for
SSD-iq's loads contain the figures that `writecliff lab reproduce` simulates. The current drives'
table also contains figures that the rule uses, so that two drives can be compared.
`writecliff.lab.published.predict` writes the tables. A prediction is valid for one drive model
version, and is ignored once the model changes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.devices import describe_device, read_device_file
from writecliff.published.conditions import preset_of
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.scores import Row

if TYPE_CHECKING:
    from writecliff.published.ssd_iq.conditions import Load
    from writecliff.published.ssd_iq.drives import Sheet

PREDICTIONS = Path(__file__).parent / "predictions.csv"
MODERN_PREDICTIONS = Path(__file__).parent / "modern_predictions.csv"
MEASURED_PREDICTIONS = Path(__file__).parent / "measured_predictions.csv"
SSD_IQ_PREDICTIONS = Path(__file__).parent / "ssd_iq_predictions.csv"
HASH_DIGITS = 16  # Number of stored digits of an SSD-iq drive's hash, which keeps the file small.


@dataclass(frozen=True)
class Prediction:
    """Predicted value of a figure, with the hashes of the presets used in the simulation."""

    simulated: float
    device_hashes: str


@lru_cache(maxsize=4)
def read_predictions(path: Path = PREDICTIONS) -> Mapping[PublishedFigure, Prediction]:
    """Read the predictions by figure."""
    lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {
        figure: Prediction(float(line["predicted"]), line["device_hashes"])
        for figure, line in zip(read_figures(path), lines, strict=True)
    }


@dataclass(frozen=True)
class SsdIqPrediction:
    """An SSD-iq figure and its prediction. `value` and `simulated` are in the table's unit."""

    drive: str  # Drive name and capacity on the data sheet.
    family: str  # Catalogue family, or the drive name.
    load: Load
    metric: str
    value: float
    simulated: float


def read_ssd_iq_predictions(path: Path = SSD_IQ_PREDICTIONS) -> list[SsdIqPrediction]:
    """Read the predictions whose drive hash matches the drive that the rule now derives."""
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
    """Return the first hash digits of the drive that `reproduce ssd-iq` simulates."""
    from writecliff.published.ssd_iq.drives import device_text

    text = device_text(sheet)
    return describe_device(text, f"{sheet.sheet.name}.toml").device_hash[:HASH_DIGITS]


def device_hashes(figure: PublishedFigure) -> str:
    """Return the current hashes of a figure's presets, the drive and the baseline."""
    return " ".join(hash_of(preset_of(name)) for name in (figure.device, figure.baseline) if name)


@lru_cache(maxsize=256)
def hash_of(name: str) -> str:
    """Return a preset's current hash."""
    return describe_device(*read_device_file(name)).device_hash


def predicted_rows(
    rows: Sequence[Row], predictions: Mapping[PublishedFigure, Prediction] | None = None
) -> list[Row]:
    """Return the rows with valid predictions for the current presets, with predicted values.

    `predictions` defaults to the predictions of the shipped fits.
    """
    predictions = read_predictions() if predictions is None else predictions
    return [
        Row(row.figure, prediction.simulated)
        for row in rows
        if (prediction := predictions.get(row.figure))
        and prediction.device_hashes == device_hashes(row.figure)
    ]

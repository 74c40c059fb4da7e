"""Figures as predicted by fits that have not seen them, kept beside the presets.

`tools/predict-figures` makes the table of the shipped fits: their cross-validation. That of the
drives of today is of the figures kept aside, as `reproduce modern` simulates them:

    .venv/bin/python -m writecliff.published.predictions reproductions/NAME/results.json

A prediction is of a drive model; once the preset changes it is out of date and not shown.
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

PREDICTIONS = Path(__file__).parent / "predictions.csv"
MODERN_PREDICTIONS = Path(__file__).parent / "modern_predictions.csv"
_COLUMNS = (*COLUMNS, COMPRESSIBLE, "predicted")


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
    """The simulated figures that are kept aside, of the JSON of `reproduce modern`, as CSV."""
    lines = (
        [*(one[name] for name in (*COLUMNS, COMPRESSIBLE)), one["simulated"], _hash(one["preset"])]
        for one in json.loads(results)["figures"]
        if one.get("part") == "aside" and one["simulated"] is not None
    )
    return csv_text((*_COLUMNS, "device_hashes"), lines)


@lru_cache(maxsize=2)
def read_predictions(path: Path = PREDICTIONS) -> Mapping[PublishedFigure, Prediction]:
    """The predictions by figure."""
    lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {
        figure: Prediction(float(line["predicted"]), line["device_hashes"])
        for figure, line in zip(read_figures(path), lines, strict=True)
    }


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
    MODERN_PREDICTIONS.write_text(
        table_of_modern(Path(sys.argv[1]).read_text(encoding="utf-8")), encoding="utf-8"
    )

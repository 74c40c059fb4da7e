"""Listed capacities of current drives, each predicted from other capacities of its model.

The predictions test the rule of `devices/capacities.py`. `writecliff.lab.published.left_out`
simulates the drives and stores the predictions. A prediction is valid for one drive version, and is
ignored once the rule derives a different version.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from writecliff.devices import describe_device
from writecliff.devices.capacities import FamilySheets, all_sheets, text_of_capacity
from writecliff.devices.sheet import DataSheet
from writecliff.published.conditions import RATES
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.modern import is_stated, split
from writecliff.published.scores import Row

PREDICTIONS = Path(__file__).parent / "left_out_predictions.csv"
_BURSTS = ("iops_burst", "throughput_burst")


@lru_cache(maxsize=1)
def left_out_texts() -> Mapping[str, str]:
    """Return each drive's device file, derived from other capacities of its model."""
    return {
        sheet.name: text_of_capacity(sheet.name, sheet.capacity, _without(sheets, sheet.name))
        for sheets in all_sheets()
        if len(sheets.published) > 1
        for sheet in sheets.published
    }


def _without(sheets: FamilySheets, name: str) -> FamilySheets:
    return replace(
        sheets,
        published=tuple(sheet for sheet in sheets.published if sheet.name != name),
        completed=tuple(sheet for sheet in sheets.completed if sheet.name != name),
    )


def left_out_figures() -> list[PublishedFigure]:
    """Return the published rates of the drives that `left_out_texts` derives."""
    sheets = {sheet.name: sheet for family in all_sheets() for sheet in family.published}
    return [
        figure
        for name in left_out_texts()
        for figure in _figures_of(name, sheets[name])
        if figure.metric in (*RATES, *_BURSTS)
    ]


def _figures_of(name: str, sheet: DataSheet) -> list[PublishedFigure]:
    """Return a drive's figures from the table or, if the table has none, from its data sheet."""
    from writecliff.published.sheet_check import sheet_figures

    listed = [figure for figure in split() if figure.device == name and not is_stated(figure)]
    return listed or list(sheet_figures(sheet, name))


def left_out_rows(path: Path = PREDICTIONS) -> list[Row]:
    """Return the predictions for drives whose version the rule still derives."""
    lines = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return [
        Row(figure, float(line["predicted"]))
        for figure, line in zip(read_figures(path), lines, strict=True)
        if line["device_hashes"] == left_out_hashes().get(figure.device)
    ]


@lru_cache(maxsize=1)
def left_out_hashes() -> Mapping[str, str]:
    """Return the hash of each drive returned by `left_out_texts`."""
    return {
        name: describe_device(text, f"{name}.toml").device_hash
        for name, text in left_out_texts().items()
    }

"""Prediction of each capacity of a current drive model from the model's other capacities.

    .venv/bin/python -m writecliff.lab.published.left_out

The command simulates the drives, and writes the table that `writecliff.published.left_out` reads.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from writecliff.lab.published.reproduce import Chosen, reproduce
from writecliff.published.figures import COLUMNS, STATE
from writecliff.published.left_out import (
    PREDICTIONS,
    left_out_figures,
    left_out_hashes,
    left_out_texts,
)
from writecliff.published.scores import Row
from writecliff.published.sheet_check import SMALL_BYTES
from writecliff.report.csvs import csv_text

_COLUMNS = (*COLUMNS, STATE)
_TIME_SHARE = 0.1  # Fraction of the usual load time.


def table_of(rows: Iterable[Row]) -> str:
    """Return the predictions as CSV."""
    lines = (
        [*(row.figure.columns.get(name, row.figure.state) for name in _COLUMNS), row.simulated,
         left_out_hashes()[row.figure.device]]
        for row in rows
        if row.simulated is not None
    )  # fmt: skip
    return csv_text((*_COLUMNS, "predicted", "device_hashes"), lines)


def main() -> None:
    """Simulate the drives and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"{name}.toml") for name in left_out_texts()}
        for name, path in paths.items():
            path.write_text(left_out_texts()[name], encoding="utf-8")
        figures = left_out_figures()
        files = tuple(replace(figure, device=str(paths[figure.device])) for figure in figures)
        chosen = Chosen("left out", "capacities", files, small_bytes=SMALL_BYTES)
        reproduction = reproduce(chosen, time_share=_TIME_SHARE, log=print)
    rows = zip(figures, reproduction.rows, strict=True)
    table = table_of(replace(row, figure=figure) for figure, row in rows)
    PREDICTIONS.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Stored predictions: shown next to figures if they belong to the current presets."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.lab.published.cross_validation import Prediction
from writecliff.lab.published.output import mapping
from writecliff.lab.published.predict import table_of
from writecliff.lab.published.reproduce import Reproduction
from writecliff.lab.published.tables import kinds_table
from writecliff.published import predictions
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.kinds import PURE, kind_of
from writecliff.published.predictions import predicted_rows, read_predictions
from writecliff.published.scores import Row


@pytest.fixture
def figures() -> list[PublishedFigure]:
    """Return two figures of pure loads."""
    pure = [figure for figure in read_figures() if kind_of(figure) is PURE and not figure.baseline]
    return pure[:2]


@pytest.fixture(autouse=True)
def table(figures: list[PublishedFigure], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the shipped table with predictions that are 10 and 30 % too high."""
    path = tmp_path / "predictions.csv"
    rows = [Row(f, f.value * factor) for f, factor in zip(figures, (1.1, 1.3), strict=True)]
    rows.append(Row(figures[0], None))
    predicted = [Prediction(row, fold=1, fits=("test",)) for row in rows]
    path.write_text(table_of(5, predicted), encoding="utf-8")
    stored = read_predictions.__wrapped__(path)
    monkeypatch.setattr(predictions, "read_predictions", lambda: stored)
    return path


def test_predictions_are_read_as_they_were_written(
    figures: list[PublishedFigure], table: Path
) -> None:
    stored = read_predictions.__wrapped__(table)
    assert list(stored) == figures
    assert stored[figures[1]].simulated == pytest.approx(figures[1].value * 1.3)


def test_they_stand_beside_the_errors_of_their_kind(figures: list[PublishedFigure]) -> None:
    rows = tuple(Row(figure, figure.value) for figure in figures)
    reproduction = Reproduction("test", "a test", rows, (), (), (), 0.0)
    (kind,) = (row for row in mapping(reproduction)["kinds"] if row["kind"] == PURE.name)
    assert kind["value"] == 0
    assert kind["cross_validated"] == {"figures": 2, "value": pytest.approx(20)}
    shown = kinds_table(reproduction)
    column = shown.header.index("cross-validated")
    assert shown.rows[0][column] == "20.0 % (2)"


def test_they_are_not_shown_of_another_version_of_a_drive(
    figures: list[PublishedFigure], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Row(figure, figure.value) for figure in figures]
    assert len(predicted_rows(rows)) == 2
    monkeypatch.setattr(predictions, "device_hashes", lambda figure: "changed")
    assert predicted_rows(rows) == []


def test_the_shipped_table_can_be_read() -> None:
    predictions = read_predictions.__wrapped__()
    assert set(predictions) <= set(read_figures())
    assert all(
        prediction.simulated > 0 or "improvement" in figure.metric
        for figure, prediction in predictions.items()
    )

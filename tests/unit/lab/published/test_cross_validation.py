"""Folds use no held-out figures, and drive values follow from the remaining figures.

Most tests replace the simulation with formulas that determine every figure exactly.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.devices.edit import with_values
from writecliff.devices.quantities import number
from writecliff.engines.state_cache import StateCache
from writecliff.errors import ConfigError
from writecliff.lab.published import cross_validation as cross_validation_module
from writecliff.lab.published.cross_validation import CrossValidation, folds_of
from writecliff.published.conditions import Load, condition, preset_of
from writecliff.published.figures import COLUMNS, COMPRESSIBLE, PublishedFigure, read_figures
from writecliff.published.fit import read_specification, shipped_fits
from writecliff.published.fit import simulations as simulations_module
from writecliff.published.fit.problem import Problem
from writecliff.published.kinds import CONSISTENCY, MIXED
from writecliff.published.measure import (
    ComparedDrive,
    Results,
    measure,
    measure_variants,
)
from writecliff.published.scores import Row, row_of
from writecliff.report.csvs import csv_text

COMMAND, MAPPING, RELOCATION = (
    f"controller.{name}" for name in ("command_time", "mapping_update_time", "relocation_time")
)
TRUE_US = {COMMAND: 25.0, MAPPING: 60.0, RELOCATION: 90.0}
START_US = {COMMAND: 9.0, MAPPING: 45.0, RELOCATION: 140.0}
# Access pattern, size in KiB, read percentage, outstanding I/Os.
LOADS = [
    ("random", 4, 0, 1),
    ("random", 4, 0, 32),
    ("random", 8, 0, 32),
    ("random", 4, 70, 32),
    ("random", 8, 50, 16),
    ("random", 4, 100, 16),
    ("random", 4, 100, 32),
    ("random", 8, 100, 32),
    ("sequential", 128, 0, 32),
    ("sequential", 64, 0, 8),
]


def _text(base: str, values_us: Mapping[str, float]) -> str:
    return with_values(base, {key: (f'"{value:g} us"', None) for key, value in values_us.items()})


@pytest.fixture(scope="module")
def base() -> str:
    return ComparedDrive.preset("sata-tlc-120").scaled(48).text


def _device(folder: Path, name: str, base: str, values_us: Mapping[str, float]) -> str:
    path = folder / f"{name}.toml"
    path.write_text(_text(base, values_us), encoding="utf-8")
    return str(path)


def _specification(
    folder: Path,
    name: str,
    drive: str,
    rivals: Iterable[str] = (),
    keys: Iterable[str] = tuple(TRUE_US),
) -> Path:
    path = folder / f"{name}.toml"
    bounds = "\n".join(f'[parameters."{key}"]\nfrom = "5 us"\nto = "250 us"' for key in keys)
    quoted = ", ".join(f'"{rival}"' for rival in rivals)
    head = f'drives = ["{drive}"]\nrivals = [{quoted}]\nscale = 1\n'
    path.write_text(head + bounds + "\n", encoding="utf-8")
    return path


def _asked(device: str, metrics: Iterable[str] = ("iops", "latency_avg")) -> list[PublishedFigure]:
    return [
        PublishedFigure(
            "test", "test", device, "", access, 1024 * kib, read_pct, depth, metric, 1.0, "", ""
        )
        for access, kib, read_pct, depth in LOADS
        for metric in metrics
    ]


def _answered(
    asked: Iterable[PublishedFigure], results: Mapping[str, Results]
) -> list[PublishedFigure]:
    """Return the figures with the drives' values."""
    rows = [row_of(figure, results, {}) for figure in asked]
    return [replace(row.figure, value=row.simulated or 0.0) for row in rows]


def _sizes_pct(rows: Iterable[Row]) -> list[float]:
    errors_pct = [row.error_pct for row in rows]
    return [abs(error_pct) for error_pct in errors_pct if error_pct is not None]


# -- formulas instead of simulations ---------------------------------------------------------------


def _results(text: str, loads: Iterable[Load]) -> Results:
    """Return the metrics of a drive that executes commands one after another."""
    file = tomllib.loads(text)["controller"]
    times_ns = [number(file[key.rpartition(".")[2]]) for key in TRUE_US]
    return {load: _metrics(load, *times_ns) for load in loads}


def _metrics(load: Load, command: float, mapping: float, relocation: float) -> dict[str, float]:
    slots, share = (load.block_bytes or 0) / 4096, (load.read_pct or 0.0) / 100
    write = slots * (mapping + (relocation if load.pattern == "random" else 0.0))
    time_ns = command + share * 5e3 * slots + (1 - share) * write
    return {
        "iops": 1e9 / time_ns,
        "latency_avg": (load.outstanding or 1) * time_ns / 1e6,
        "iops_consistency": 100 * command / (command + mapping),
    }


@pytest.fixture
def formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(drive: ComparedDrive, loads: Iterable[Load], **options: object) -> Results:
        return _results(drive.text, loads)

    def measure_variants(origin, variants, cache, log, observer, *, time_share):  # type: ignore[no-untyped-def]
        return [_results(drive.text, loads) for drive, loads in variants]

    monkeypatch.setattr(simulations_module, "measure", measure)
    monkeypatch.setattr(cross_validation_module, "measure_variants", measure_variants)


def _true(device: str, base: str) -> dict[str, Results]:
    loads = [c.load for f in _asked(device) if (c := condition(f)) and c.load]
    loads += [replace(load, seconds=1200.0) for load in loads]
    return {device: _results(_text(base, TRUE_US), loads)}


def _predicted(validation: CrossValidation) -> dict[PublishedFigure, float | None]:
    predictions = validation.measure(validation.fold_fits().run())
    return {prediction.row.figure: prediction.row.simulated for prediction in predictions}


def test_every_kind_of_figure_is_predicted(formulas: None, base: str, tmp_path: Path) -> None:
    device = _device(tmp_path, "drive", base, START_US)
    asked = _asked(device, ("iops", "latency_avg", "iops_consistency"))
    figures = _answered(asked, _true(device, base))
    specs = {"own": read_specification(_specification(tmp_path, "own", device))}
    validation = CrossValidation(specs, figures, 5)
    predictions = validation.measure(validation.fold_fits().run())
    assert {prediction.row.figure for prediction in predictions} == set(figures)
    assert {MIXED, CONSISTENCY} <= {prediction.row.kind for prediction in predictions}
    assert {prediction.fold for prediction in predictions} == {1, 2, 3, 4, 5}
    # A fit ends when its cost changes by less than 0.5 %.
    assert max(_sizes_pct(prediction.row for prediction in predictions)) < 1


def test_a_wrong_figure_does_not_change_its_own_prediction(
    formulas: None, base: str, tmp_path: Path
) -> None:
    device = _device(tmp_path, "drive", base, START_US)
    figures = _answered(_asked(device), _true(device, base))
    specs = {"own": read_specification(_specification(tmp_path, "own", device))}
    validation = CrossValidation(specs, figures, 5)
    before = _predicted(validation)
    wrong = figures[2]
    tampered = [replace(f, value=f.value * 10) if f is wrong else f for f in figures]
    after = _predicted(CrossValidation(specs, tampered, 5))
    pairs = list(zip(figures, before.values(), after.values(), strict=True))
    fold = validation.fold_of[wrong]
    assert all(a == b for f, a, b in pairs if validation.fold_of[f] == fold)
    assert any(a != b for f, a, b in pairs if validation.fold_of[f] != fold)


def test_predictions_do_not_depend_on_what_the_device_files_say(
    formulas: None, base: str, tmp_path: Path
) -> None:
    """Check that they depend neither on fitted values in the drive's file nor on a rival's."""
    folders = [tmp_path / "start", tmp_path / "true"]
    predictions = []
    for folder, values_us in zip(folders, (START_US, TRUE_US), strict=True):
        folder.mkdir()
        first, other = (_device(folder, name, base, values_us) for name in ("one", "other"))
        results = {**_true(first, base), **_true(other, base)}
        better = [
            replace(f, baseline=first, metric="iops_improvement") for f in _asked(other, ["iops"])
        ]
        figures = _answered([*_asked(first), *better], results)
        specs = {
            "one": read_specification(_specification(folder, "fit-one", first)),
            "other": read_specification(_specification(folder, "fit-other", other, [first])),
        }
        cross_validation = CrossValidation(specs, figures, 5, ["other"])
        assert {(fit, fold) for fit, fold in cross_validation.fold_fits().needed} == {
            (fit, fold) for fit in specs for fold in range(1, 6)
        }
        predictions.append(list(_predicted(cross_validation).values()))
    assert len(predictions[0]) == len(LOADS)
    assert predictions[0] == predictions[1]


def test_a_drive_without_a_fit_is_not_predicted(base: str, tmp_path: Path) -> None:
    device, other = (_device(tmp_path, name, base, START_US) for name in ("own", "other"))
    figures = [
        *_asked(device),
        *(replace(f, baseline=other) for f in _asked(device)),
        *_asked(other),
    ]
    specs = {"own": read_specification(_specification(tmp_path, "spec", device))}
    validation = CrossValidation(specs, figures, 5)
    assert list(validation.figures) == _asked(device)
    assert set(validation.loads()) == {device}
    with pytest.raises(ConfigError, match="no figures for none to predict"):
        CrossValidation(specs, figures, 5, ["none"])


def test_fits_that_need_each_other_are_refused(base: str, tmp_path: Path) -> None:
    first, other = (_device(tmp_path, name, base, START_US) for name in ("one", "other"))
    specs = {
        "fit-one": read_specification(_specification(tmp_path, "fit-one", first, [other])),
        "fit-other": read_specification(_specification(tmp_path, "fit-other", other, [first])),
    }
    validation = CrossValidation(specs, _asked(first), 5)
    with pytest.raises(ConfigError, match="fit-one and fit-other use each other's drives"):
        validation.fold_fits().run()


# -- folds -----------------------------------------------------------------------------------------


def test_folds_keep_the_figures_of_a_load_together() -> None:
    figures = [f for device in "ab" for f in _asked(device)]
    folds = folds_of(figures, 3)
    assert list(folds) == figures
    assert sorted(set(folds.values())) == [1, 2, 3]
    by_load: dict[object, set[int]] = {}
    for figure, fold in folds.items():
        by_load.setdefault(figure.label, set()).add(fold)
    assert len(by_load) == len(LOADS)
    assert all(len(fold) == 1 for fold in by_load.values())
    for count in (1, len(LOADS) + 1):
        with pytest.raises(ConfigError, match="--cross-validate is"):
            folds_of(figures, count)


def test_a_range_of_outstanding_ios_is_in_the_fold_of_each_of_them() -> None:
    single = [f for f in _asked("a", ["iops"]) if f.access == "random" and f.read_pct == 0]
    spanned = replace(
        single[0], baseline="b", metric="iops_improvement_max", outstanding=None, depths=(1, 32)
    )
    assert [f.outstanding for f in single if f.block_bytes == 4096] == [1, 32]
    folds = folds_of([*_asked("a"), spanned], 4)
    assert {folds[f] for f in single if f.block_bytes == 4096} == {folds[spanned]}


def test_folds_are_the_same_for_every_fit() -> None:
    figures, specs = read_figures(), shipped_fits()
    all_fits = CrossValidation(specs, figures, 5)
    for name in ("840", "pm863", "mlc-a"):
        single = CrossValidation(specs, figures, 5, [name])
        assert single.fold_of == all_fits.fold_of
        assert set(single.figures) < set(all_fits.figures)
    # The white paper compares drives from two fits.
    by_load: dict[object, set[int]] = {}
    for figure in all_fits.figures:
        measured = condition(figure)
        assert measured is not None and measured.load is not None
        load = replace(measured.load, state="fresh", seconds=0.0)
        by_load.setdefault((figure.source, load), set()).add(all_fits.fold_of[figure])
    assert all(len(folds) == 1 for folds in by_load.values())


def test_comparisons_with_a_drive_of_another_fit_are_predicted() -> None:
    validation = CrossValidation(shipped_fits(), read_figures(), 5, ["pm863"])
    both = [f for f in validation.figures if validation.fits_of(f) == ("pm863", "mlc-a")]
    assert both
    assert {preset_of(f.baseline) for f in both} == {"mlc-a-800"}
    assert {"mlc-a-800", "mlc-b-800"} <= set(validation.loads())


# -- simulations -----------------------------------------------------------------------------------

SHARE = 0.1  # Factor on the measurement times: 6 s of writes.


def test_drives_are_found_from_the_other_figures(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that prediction errors are at most twice the noise of short simulations.

    The figures are those of the same drive with other times, measured for longer than in fits. A
    prediction therefore differs from its figure by the noise of short simulations, which is their
    error on the true drive. Figures share parameters, so their noise adds up to less than the full
    amount. A figure may depend on a single other figure, and its own noise was that of a longer
    measurement, so twice the noise is accepted.
    """
    monkeypatch.setattr(simulations_module, "SECONDS_MAX", 1.0)
    wrong_us = {key: START_US[key] for key in (COMMAND, RELOCATION)}
    device = _device(tmp_path, "drive", base, {**TRUE_US, **wrong_us})
    asked = _asked(device, ["latency_avg"])
    loads = {c.load for f in asked if (c := condition(f)) and c.load}
    truth = ComparedDrive("truth", _text(base, TRUE_US), "truth.toml")
    figures = _answered(asked, {device: measure(truth, loads, time_share=SHARE)})
    spec = read_specification(_specification(tmp_path, "own", device, keys=wrong_us))

    true_spec = replace(spec, drives=(_device(tmp_path, "true", base, TRUE_US),))
    problem = Problem(true_spec, [replace(f, device=true_spec.drives[0]) for f in figures])
    short = problem.rows(problem.coordinates.start)
    noise_pct = max(_sizes_pct(short))
    assert noise_pct < 3

    validation = CrossValidation({"own": spec}, figures, 5)
    predictions = validation.measure(validation.fold_fits().run(), time_share=SHARE)
    errors_pct = _sizes_pct(prediction.row for prediction in predictions)
    assert len(errors_pct) == len(LOADS)
    assert max(errors_pct) < 2 * noise_pct


def test_variants_of_a_drive_are_measured_as_if_alone(base: str, tmp_path: Path) -> None:
    """Check that variants share states that are prepared once, on the original drive."""
    loads = {c.load for f in _asked("x", ["iops"])[::4] if (c := condition(f)) and c.load}
    origin = ComparedDrive("drive", _text(base, START_US), "drive.toml")
    variants = [
        replace(origin, text=_text(base, values_us))
        for values_us in (TRUE_US, {**TRUE_US, RELOCATION: 30.0})
    ]
    assert {load.state for load in loads} == {"fill", "sustained"}
    cache = StateCache(tmp_path)
    together = measure_variants(origin, [(v, loads) for v in variants], cache, time_share=0.01)
    assert len(list(tmp_path.glob("*.wcs"))) == 2
    assert together[0] != together[1]
    assert together == [measure(variant, loads, time_share=0.01) for variant in variants]
    assert together == measure_variants(
        origin, [(v, loads) for v in variants], cache, time_share=0.01
    )


# -- the command -----------------------------------------------------------------------------------


def test_the_command_shows_predictions_of_every_kind(
    formulas: None, base: str, tmp_path: Path, cli: CommandLine
) -> None:
    device = _device(tmp_path, "drive", base, START_US)
    figures = _answered(_asked(device, ("iops", "iops_consistency")), _true(device, base))
    table_path = tmp_path / "own.csv"
    table_path.write_text(csv_text((*COLUMNS, COMPRESSIBLE), (f.columns.values() for f in figures)))
    spec = _specification(tmp_path, "spec", device)
    out = tmp_path / "predictions.csv"
    words = ["lab", "fit", str(spec), "--figures", str(table_path), "--cross-validate", "5"]
    output = cli([*words, "--predictions", str(out), "--json"])
    assert output.code == 0, output.err
    assert "[5/5 fits" in output.err
    answer = json.loads(output.out)
    by_kind = {row["kind"]: row for row in answer["errors"]}
    assert by_kind[MIXED.name]["before"] > 5 > by_kind[MIXED.name]["cross_validated"]
    assert by_kind[CONSISTENCY.name]["before"] is None  # No fit uses this figure.
    assert by_kind[CONSISTENCY.name]["cross_validated"] < 1
    assert len(answer["figures"]) == len(figures)
    assert all(figure["predicted"] for figure in answer["figures"])
    assert len(read_figures(out)) == len(figures)
    shown = cli(words).out
    assert "cross-validated" in shown and CONSISTENCY.name in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lab fit all", "'all' requires --cross-validate"),
        ("lab fit all --cross-validate 5 --output x", "--output requires a single fit"),
        ("lab fit 840 --predictions x.csv", "--predictions requires --cross-validate"),
        ("lab fit 84", "unknown fit '84'"),
    ],
)
def test_what_cannot_be_done_is_refused(words: str, message: str, cli: CommandLine) -> None:
    output = cli(words)
    assert output.code == 2
    assert message in output.err

"""Priors from drives of other fits: their weights, and the figures that they use.

Simulations are replaced with formulas that determine every figure exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from writecliff.devices.edit import with_values
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.lab.published import cross_validation as cross_validation_module
from writecliff.lab.published.cross_validation import CrossValidation
from writecliff.lab.published.fold_fits import FoldFit
from writecliff.published.conditions import Load, condition
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit import Specification, read_specification
from writecliff.published.fit import simulations as simulations_module
from writecliff.published.fit.coordinates import Coordinates
from writecliff.published.fit.problem import Problem
from writecliff.published.fit.relatives import LogValue, Prior, prior_of
from writecliff.published.fit.specification import SOFT
from writecliff.published.measure import ComparedDrive, Results

MAPPING, RELOCATION = "controller.mapping_update_time", "controller.relocation_time"
TEXT = '[controller]\nmapping_update_time = "{} us"\nrelocation_time = "{} us"\n'
LOADS = [("sequential", 128), ("sequential", 64), ("random", 4), ("random", 8)]


# -- weights of the prior --------------------------------------------------------------------------


def test_nothing_is_believed_without_relatives() -> None:
    assert prior_of([], 1.3) is None


def test_a_relative_that_is_known_counts_more_than_one_that_is_not() -> None:
    near, far = LogValue(float(np.log(20.0)), 0.1), LogValue(float(np.log(80.0)), 10.0)
    prior = prior_of([near, far], 1.3)
    assert prior is not None and np.exp(prior.centre) == pytest.approx(20, rel=0.01)
    alone = prior_of([near], 1.3)
    # The model differs from its relatives by the spread, just as the relatives differ from their
    # mean.
    assert alone is not None
    assert alone.deviation == pytest.approx(np.sqrt(2 * np.log(1.3) ** 2 + 0.01))
    assert np.log(1.3) < prior.deviation < alone.deviation


def _spec(folder: Path, drive: str, name: str = "spec", **options: str) -> Specification:
    """Return a fit of two times (5 to 250 us); `options` are lines of the relocation time."""
    lines = "\n".join(f"{key} = {value}" for key, value in options.items())
    path = folder / f"{name}.toml"
    path.write_text(
        f'drives = ["{drive}"]\nscale = 1\n'
        f'[parameters."{MAPPING}"]\nfrom = "5 us"\nto = "250 us"\n'
        f'[parameters."{RELOCATION}"]\nfrom = "5 us"\nto = "250 us"\n{lines}\n',
        encoding="utf-8",
    )
    return read_specification(path)


def test_a_value_is_drawn_to_its_relatives_in_place_of_the_middle(tmp_path: Path) -> None:
    spec = _spec(tmp_path, "a", relatives='["b"]', spread="1.3")
    priors = {RELOCATION: Prior(float(np.log(90e3)), 0.2)}
    coordinates = Coordinates(spec, {"a": TEXT.format(10, 20)}, priors)
    centre, weights = coordinates.priors()
    assert np.exp(centre) == pytest.approx([np.sqrt(5e3 * 250e3), 90e3])
    assert SOFT * weights[0] * np.log(250 / 5) / 2 == pytest.approx(0.05)
    assert weights[1] == pytest.approx(5)
    # A single value for all drives has a prior that is not based on figures.
    assert coordinates.common.tolist() == [True, False]


def test_the_weight_of_bounds_is_given(tmp_path: Path) -> None:
    spec = _spec(tmp_path, "a")
    weights = [
        Coordinates(replace(spec, at_bound=share), {"a": TEXT.format(10, 20)}).priors()[1]
        for share in (0.05, 0.25)
    ]
    assert weights[1] == pytest.approx(5 * weights[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relatives": '["b"]'}, "'relatives' requires 'spread'"),
        ({"relatives": '["a"]', "spread": "1.3"}, "'a' is one of the fit's drives"),
    ],
)
def test_relatives_that_cannot_be_are_refused(
    options: Mapping[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        _spec(tmp_path, "a", **options)


@pytest.mark.parametrize("share", ["0", "2"])
def test_a_weight_out_of_range_is_refused(share: str, tmp_path: Path) -> None:
    _spec(tmp_path, "a")
    path = tmp_path / "spec.toml"
    path.write_text(f"at_bound = {share}\n{path.read_text()}", encoding="utf-8")
    with pytest.raises(ConfigError, match="must be above 0 and at most 1"):
        read_specification(path)


# -- without a fold --------------------------------------------------------------------------------


def _results(text: str, loads: Iterable[Load]) -> Results:
    """Return the metrics of a drive that writes one slot after another."""
    mapping, relocation = (_value_us(text, key) for key in (MAPPING, RELOCATION))

    def iops(load: Load) -> float:
        slot_us = mapping + (relocation if load.pattern == "random" else 0.0)
        return 1e6 / (slot_us * (load.block_bytes or 0) / 4096)

    return {load: {"iops": iops(load)} for load in loads}


def _value_us(text: str, key: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith(key.rpartition(".")[2]))
    return number(line.split('"')[1]) / 1e3


@pytest.fixture(autouse=True)
def formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(drive: ComparedDrive, loads: Iterable[Load], **options: object) -> Results:
        return _results(drive.text, loads)

    def measure_variants(origin, variants, cache, log, observer, *, time_share):  # type: ignore[no-untyped-def]
        return [_results(drive.text, loads) for drive, loads in variants]

    monkeypatch.setattr(simulations_module, "measure", measure)
    monkeypatch.setattr(cross_validation_module, "measure_variants", measure_variants)


@pytest.fixture(scope="module")
def base() -> str:
    return ComparedDrive.preset("sata-tlc-120").scaled(48).text


def _device(folder: Path, name: str, base: str, mapping_us: float, relocation_us: float) -> str:
    path = folder / f"{name}.toml"
    values = {
        MAPPING: (f'"{mapping_us:g} us"', None),
        RELOCATION: (f'"{relocation_us:g} us"', None),
    }
    path.write_text(with_values(base, values), encoding="utf-8")
    return str(path)


def _figures(
    device: str, source: str, mapping_us: float, relocation_us: float
) -> list[PublishedFigure]:
    """Return the figures of a drive with these times instead of the times in its file."""
    asked = [
        PublishedFigure(
            source, "test", device, "", access, 1024 * kib, 0.0, 32, "iops", 1.0, "", ""
        )
        for access, kib in LOADS
    ]
    text = TEXT.format(mapping_us, relocation_us)
    results = []
    for figure in asked:
        measured = condition(figure)
        assert measured is not None and measured.load is not None
        results.append(
            replace(figure, value=_results(text, [measured.load])[measured.load]["iops"])
        )
    return results


def _predicted(
    specs: Mapping[str, Specification], figures: list[PublishedFigure], chosen: str
) -> dict[PublishedFigure, float]:
    validation = CrossValidation(specs, figures, 2, [chosen])
    predictions = validation.measure(validation.fold_fits().run())
    return {
        prediction.row.figure: abs(prediction.row.error_pct or 0.0) for prediction in predictions
    }


def test_what_no_figure_tells_comes_from_relatives(base: str, tmp_path: Path) -> None:
    """A relative improves the prediction of a drive whose random loads are all held out.

    All random loads of the drive are in one fold; the relative's loads are in both folds.
    """
    device = _device(tmp_path, "own", base, 10, 20)
    other = _device(tmp_path, "other", base, 10, 20)
    figures = _figures(device, "one", 60, 95)[1:3] + _figures(other, "two", 50, 90)
    related = _spec(tmp_path, device, relatives=f'["{other}"]', spread="1.3")
    alone = _spec(tmp_path, device, "alone")
    rival = _spec(tmp_path, other, "fit-other")
    errors = [
        _predicted({"own": spec, "other": rival}, figures, "own") for spec in (alone, related)
    ]
    random = next(f for f in errors[0] if f.access == "random")
    assert errors[0][random] > 30
    assert errors[1][random] < 8


def test_relatives_without_a_fit_have_the_values_of_their_files(base: str, tmp_path: Path) -> None:
    device = _device(tmp_path, "own", base, 10, 20)
    other = _device(tmp_path, "other", base, 10, 90)
    figures = _figures(device, "one", 60, 95)[1:3]
    spec = _spec(tmp_path, device, relatives=f'["{other}"]', spread="1.3")
    errors = _predicted({"own": spec}, figures, "own")
    assert max(errors.values()) < 8
    # A fit to all figures has the same prior.
    centre, _ = Problem(spec, figures).coordinates.priors()
    assert np.exp(centre[1]) == pytest.approx(90e3)


def test_relatives_know_nothing_of_the_fold(base: str, tmp_path: Path) -> None:
    device = _device(tmp_path, "own", base, 10, 20)
    other = _device(tmp_path, "other", base, 10, 20)
    figures = _figures(device, "one", 60, 95) + _figures(other, "one", 50, 90)
    specs = {
        "own": _spec(tmp_path, device, relatives=f'["{other}"]', spread="1.3"),
        "other": _spec(tmp_path, other, "fit-other", relatives=f'["{device}"]', spread="1.3"),
    }
    validation = CrossValidation(specs, figures, 2, ["own"])
    wrong = next(f for f in figures if f.device == other and f.access == "random")
    tampered = [replace(f, value=f.value * 5) if f is wrong else f for f in figures]
    before = _predicted(specs, figures, "own")
    after = _predicted(specs, tampered, "own")
    fold = validation.fold_of[wrong]
    same = {f: before[f] == after[f] for f in before}
    assert all(same[f] for f in same if validation.fold_of[f] == fold)
    assert not all(same[f] for f in same if validation.fold_of[f] != fold)


def test_fits_with_relatives_are_done_twice(base: str, tmp_path: Path) -> None:
    device = _device(tmp_path, "own", base, 10, 20)
    other = _device(tmp_path, "other", base, 10, 20)
    figures = _figures(device, "one", 60, 95) + _figures(other, "one", 50, 90)
    specs = {
        "own": _spec(tmp_path, device, relatives=f'["{other}"]', spread="1.3"),
        "other": _spec(tmp_path, other, "fit-other"),
    }
    fold_fits = CrossValidation(specs, figures, 2, ["own"]).fold_fits()
    done: list[FoldFit] = []
    fold_fits.run(done.append)
    assert sorted((fold_fit.fit, fold_fit.fold, fold_fit.again) for fold_fit in done) == [
        *(("other", fold, False) for fold in (1, 2)),
        *(("own", fold, again) for fold in (1, 2) for again in (False, True)),
    ]
    assert sum(fold_fit.work for fold_fit in done) == pytest.approx(1)

"""Fits of drive parameters to figures, and reports of undetermined parameters."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from writecliff.devices import read_device_file
from writecliff.devices.edit import with_values
from writecliff.devices.families import FOLDER as FAMILIES
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.fit import FITS, Fit, progress, read_specification, simulations
from writecliff.published.fit.coordinates import Coordinates, Vector
from writecliff.published.fit.device_text import with_numbers
from writecliff.published.fit.problem import Problem
from writecliff.published.fit.residuals import Residuals, is_fitted
from writecliff.published.fit.simulations import Simulations
from writecliff.published.fit.solve import suggestions
from writecliff.published.fit.specification import SOFT
from writecliff.published.measure import ComparedDrive, measure
from writecliff.published.scores import Row

TRUE = {
    "controller.command_time": ('"12 us"', None),
    "controller.mapping_update_time": ('"60 us"', None),
    "controller.relocation_time": ('"90 us"', None),
}
START = {
    "controller.command_time": ('"9 us"', None),
    "controller.mapping_update_time": ('"45 us"', None),
    "controller.relocation_time": ('"140 us"', None),
}


def _figure(device: str, metric: str, read_pct: float, depth: int, size: int) -> PublishedFigure:
    access = "sequential" if size > 4096 else "random"
    return PublishedFigure(
        "test", "test", device, "", access, size, read_pct, depth, metric, 1.0, "", ""
    )


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[PublishedFigure]]:
    """Return a drive with wrong parameters, and figures of this drive with the right parameters."""
    base = ComparedDrive.preset("sata-tlc-120").scaled(48).text
    path = tmp_path_factory.mktemp("fit") / "drive.toml"
    path.write_text(with_values(base, START), encoding="utf-8")
    asked = [
        _figure(str(path), "iops", 100.0, 32, 4096),
        _figure(str(path), "iops", 0.0, 32, 4096),
        _figure(str(path), "latency_avg", 0.0, 1, 4096),
        _figure(str(path), "throughput", 0.0, 32, 131072),
        _figure(str(path), "latency_avg", 100.0, 1, 4096),
    ]
    loads = {c.load for f in asked if (c := condition(f)) and c.load}
    truth = ComparedDrive("truth", with_values(base, TRUE), "truth.toml")
    results = measure(truth, loads, log=lambda text: None)
    measured = []
    for figure in asked:
        c = condition(figure)
        assert c is not None and c.load is not None
        value = results[c.load][c.metric]
        measured.append(PublishedFigure(**{**figure.__dict__, "value": value}))
    return path, measured


def _specification(folder: Path, drive: Path, extra: str = "") -> Path:
    path = folder / "spec.toml"
    bounds = "\n".join(f'[parameters."{key}"]\nfrom = "5 us"\nto = "250 us"' for key in TRUE)
    path.write_text(f'drives = ["{drive}"]\nscale = 1\n{bounds}\n{extra}', encoding="utf-8")
    return path


def test_a_fit_finds_what_the_figures_were_made_with(
    drive: tuple[Path, list[PublishedFigure]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "SECONDS_MAX", 2.0)
    path, figures = drive
    # No measurement depends on the drive's idle delay.
    idle = '[parameters."controller.idle_delay"]\nfrom = "1 ms"\nto = "90 ms"'
    result = Fit(read_specification(_specification(tmp_path, path, idle)), figures).run()
    fitted = {e.key: e for e in result.estimates}
    for key, true_us in (
        ("command_time", 12),
        ("mapping_update_time", 60),
        ("relocation_time", 90),
    ):
        estimate = fitted[f"controller.{key}"]
        assert estimate.value == pytest.approx(true_us * 1e3, rel=0.05), key
        assert estimate.determined and not estimate.at_bound
    assert not fitted["controller.idle_delay"].determined
    assert [key for combination in result.unidentifiable for key, _ in combination] == [
        "controller.idle_delay"
    ]
    worst = max(abs(row.error_pct or 0) for row in result.before)
    assert worst > 20
    assert max(abs(row.error_pct or 100) for row in result.after) < 3
    text = result.texts[str(path)]
    assert f"{fitted['controller.relocation_time'].value / 1e3:.4g} us" in text


def test_the_next_figure_to_measure_depends_on_what_is_open(
    drive: tuple[Path, list[PublishedFigure]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulations, "SECONDS_MAX", 0.5)
    monkeypatch.setattr("writecliff.progress.PACED_S", 0.0)
    path, figures = drive
    lines: list[str] = []
    observed = Simulations(progress.FitProgress(lines.append))
    problem = Problem(read_specification(_specification(tmp_path, path)), figures[:1], observed)
    coordinates = problem.coordinates
    alone = np.eye(len(coordinates.start))
    relocation, command = (
        alone[coordinates.index(f"controller.{key}", None)]
        for key in ("relocation_time", "command_time")
    )
    # The link is slower than the command time, so no load in the menu depends on the command time.
    # Any change alters the course of garbage collection by about one percent.
    proposed = suggestions(problem, coordinates.start, [command, relocation])
    assert all(suggestion.change_pct < 2 for suggestion in proposed if suggestion.combination == 0)
    assert proposed[-1].combination == 1 and proposed[-1].change_pct > 5
    load = condition(proposed[-1].figure)
    assert load is not None and load.load is not None and load.load.read_pct != 100
    assert suggestions(problem, coordinates.start, []) == ()
    assert any(line.endswith("1 loads simulated") for line in lines)


def test_a_fit_ends_with_the_whole_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulations, "SECONDS_MAX", 0.5)
    small = ComparedDrive.preset("sata-tlc-120").scaled(48).text
    path = tmp_path / "drive.toml"
    path.write_text(with_values(small, START), encoding="utf-8")
    text = _specification(tmp_path, path).read_text().replace("scale = 1", "scale = 2")
    (tmp_path / "half.toml").write_text(text, encoding="utf-8")
    figure = replace(_figure(str(path), "iops", 100.0, 32, 4096), value=90_000.0)
    lines: list[str] = []
    result = Fit(read_specification(tmp_path / "half.toml"), [figure], lines.append).run(whole=True)
    assert (
        lines[0] == "1 figures, 3 free parameters" and "simulating the drives at full size" in lines
    )
    assert [row.figure for row in result.whole] == [figure]
    assert result.whole[0].simulated == pytest.approx(result.after[0].simulated, rel=0.02)
    assert result.next_figures and len(result.unidentifiable) >= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drives = []", "'drives' or 'parameters' is missing"),
        ('drives = ["x"]\nspeed = 1\n[parameters]', "unknown key 'speed'"),
        ('drives = ["x"]\n[parameters.a]\nfrom = "1 us"', "a must contain 'from' and 'to'"),
        ('drives = ["x"]\n[parameters.a]\nfrom = "2 us"\nto = "1 us"', "below 'to'"),
        ('drives = ["x"]\n[parameters.a]\nfrom = 1\nto = 2\nspread = 1', "above 1 and below 10"),
        (
            'drives = ["x"]\n[parameters.a]\nfrom = 1\nto = 2\nat_least = "a"',
            "not another parameter",
        ),
        ('drives = ["x"]\n[parameters.a]\nfrom = 1\nto = 2\ndrives = ["y"]', "'y' is not among"),
    ],
)
def test_a_bad_specification_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_specification(path)


@pytest.mark.parametrize("path", sorted(FITS.glob("*.toml")), ids=lambda path: path.stem)
def test_presets_are_within_the_bounds_of_their_fits(path: Path) -> None:
    spec = read_specification(path)
    for drive in spec.drives:
        file = tomllib.loads(read_device_file(drive)[0])
        for parameter in spec.parameters:
            table, _, key = parameter.key.rpartition(".")
            assert parameter.low <= number(file[table][key]) <= parameter.high, parameter


@pytest.mark.parametrize("path", sorted(FAMILIES.glob("*.toml")), ids=lambda path: path.stem)
def test_what_a_family_calls_fitted_is_what_its_fit_varies(path: Path) -> None:
    base = path.read_text(encoding="utf-8").partition("[variants]")[0]
    fit_file = FITS / path.name
    varied = (
        {p.key for p in read_specification(fit_file).parameters} if fit_file.exists() else set()
    )
    table = ""
    for line in base.splitlines():
        table = line.strip("[]") if line.startswith("[") else table
        if marked := re.match(r"(\w+) = [^#]*# fit\b", line):
            assert f"{table}.{marked[1]}" in varied, line


def test_values_are_written_as_device_files_have_them() -> None:
    text = (
        'name = "x"\n[controller]\ncommand_time = "1 us"  # source\n'
        'write_buffer = "4 MiB"\n[flash]\nread = ["40 us", "60 us"]\n'
    )
    values = {
        "controller.command_time": 822.34,
        "flash.read": 55e3,
        "controller.write_buffer": float(2 << 20),
    }
    fitted = with_numbers(text, values)
    assert 'command_time = "0.822 us"  # source' in fitted
    assert 'read = ["44 us", "66 us"]' in fitted
    assert 'write_buffer = "2048 KiB"' in fitted


def test_a_fit_without_figures_is_refused(
    drive: tuple[Path, list[PublishedFigure]], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="the figures include none of"):
        Fit(read_specification(_specification(tmp_path, drive[0])), [])


# -- several drives -------------------------------------------------------------------------------

TEXTS = {
    "a": '[controller]\nlatency = "10 us"\ncommand_time = "4 us"\n',
    "b": '[controller]\nlatency = "40 us"\ncommand_time = "8 us"\n[nand]\nbus = "1 us"\n',
}


@pytest.fixture
def coordinates(tmp_path: Path) -> Coordinates:
    path = tmp_path / "family.toml"
    path.write_text(
        'drives = ["a", "b"]\n'
        '[parameters."controller.command_time"]\nfrom = "1 us"\nto = "20 us"\n'
        '[parameters."controller.latency"]\nfrom = "1 us"\nto = "100 us"\nspread = 2\n'
        '[parameters."nand.bus"]\nfrom = "0.5 us"\nto = "2 us"\n',
        encoding="utf-8",
    )
    return Coordinates(read_specification(path), TEXTS)


def test_drives_of_a_family_share_values_or_have_their_own(coordinates: Coordinates) -> None:
    a, b = (coordinates.values(drive, coordinates.start) for drive in "ab")
    shared = {"controller.command_time": 4000.0}
    assert a == pytest.approx(shared | {"controller.latency": 10_000.0})
    assert b == pytest.approx(shared | {"controller.latency": 40_000.0, "nand.bus": 1000.0})
    family = coordinates.index("controller.latency", None)
    assert np.exp(coordinates.start[family]) == pytest.approx(20_000.0)
    at = coordinates.start.copy()
    at[family] += np.log(2)
    at[coordinates.index("controller.latency", "b")] += np.log(2)
    assert coordinates.values("a", at)["controller.latency"] == pytest.approx(20_000.0)
    at_bound = coordinates.values("b", at)["controller.latency"]
    assert at_bound == pytest.approx(100_000.0)


def test_a_parameter_is_at_least_another(tmp_path: Path) -> None:
    path = tmp_path / "family.toml"
    path.write_text(
        'drives = ["a"]\n'
        '[parameters."controller.latency"]\nfrom = "1 us"\nto = "100 us"\n'
        'at_least = "controller.command_time"\n'
        '[parameters."controller.command_time"]\nfrom = "1 us"\nto = "20 us"\n',
        encoding="utf-8",
    )
    coordinates = Coordinates(read_specification(path), TEXTS)
    command = {"controller.command_time": 20_000.0}
    below, above = np.log([2_000.0, 20_000.0]), np.log([50_000.0, 20_000.0])
    assert coordinates.values("a", below) == pytest.approx(
        command | {"controller.latency": 20_000.0}
    )
    assert coordinates.values("a", above) == pytest.approx(
        command | {"controller.latency": 50_000.0}
    )


def test_drives_far_from_their_family_cost_something(coordinates: Coordinates) -> None:
    nothing = Residuals([], coordinates)
    at = coordinates.start
    # Both values are twice or half the family value, so this factor is the spread.
    assert np.abs(nothing.without_weak_priors(nothing.vector([], at))) == pytest.approx(
        [SOFT, SOFT]
    )
    slopes = nothing.without_weak_priors(nothing.derivatives([], np.ones(len(at)), [[]] * len(at)))
    assert slopes.shape == (2, len(at))
    assert slopes @ at == pytest.approx(nothing.without_weak_priors(nothing.vector([], at)))


def test_values_far_from_the_middle_of_their_bounds_cost_a_little(coordinates: Coordinates) -> None:
    nothing = Residuals([], coordinates)
    steps = np.ones(len(coordinates.all))

    def cost(at: Vector) -> Vector:
        residuals = nothing.vector([], at)
        middle = nothing.vector([], coordinates.middle)
        slopes = nothing.derivatives([], steps, [[]] * len(steps))
        assert slopes @ (at - coordinates.middle) == pytest.approx(residuals - middle)
        return residuals[coordinates.common]

    assert coordinates.common.tolist() == [True, True, False, False, True]
    assert cost(coordinates.middle) == pytest.approx([0.0] * 3)
    # The bound costs as much as a figure with an error of 5 %.
    assert cost(coordinates.low) == pytest.approx([-0.05] * 3)
    assert cost(coordinates.high) == pytest.approx([0.05] * 3)


def test_loads_that_no_value_explains_are_not_fitted() -> None:
    figures = [f for f in read_figures() if f.access == "messenger"]
    assert figures and not any(is_fitted(f) for f in figures)


def _row(device: str, published: float, simulated: float, metric: str = "iops") -> Row:
    figure = _figure(device, metric, 0.0, 32, 4096)
    return Row(replace(figure, value=published), simulated)


@pytest.mark.parametrize(
    ("simulated", "wrong"),
    [((100.0, 200.0), False), ((150.0, 149.0), True), ((200.0, 100.0), True)],
)
def test_a_wrong_winner_costs_something(
    simulated: tuple[float, float], wrong: bool, coordinates: Coordinates
) -> None:
    rows = [_row("a", 100.0, simulated[0]), _row("b", 200.0, simulated[1])]
    residuals = Residuals(rows, coordinates)
    vector = residuals.vector(rows, coordinates.start)
    assert bool(vector[2] > 0) is wrong
    # A step that makes the second drive faster reduces the winner error.
    there = [rows[0], _row("b", 200.0, simulated[1] * 1.01)]
    steps = np.full(len(coordinates.start), 0.01)
    slopes = residuals.derivatives(rows, steps, [there] * len(steps))
    assert (slopes[2] < 0).all() if wrong else not slopes[2].any()

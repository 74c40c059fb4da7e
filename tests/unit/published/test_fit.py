"""A fit finds the parameters of a drive whose figures it is given, and reports what they do not determine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from writecliff.devices import open_device, read_device_file
from writecliff.devices.edit import with_values
from writecliff.devices.families import FOLDER as FAMILIES
from writecliff.devices.quantities import number
from writecliff.errors import ConfigError
from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure
from writecliff.published.fit import (
    FITS,
    LARGEST_IO_BYTES,
    Estimate,
    FitResult,
    fit,
    fitted_text,
    read_specification,
)
from writecliff.published.measure import ComparedDrive, measure

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
    """A drive with wrong parameters, and figures of the same drive with the right ones."""
    base = open_device(*read_device_file("sata-tlc-120")).scaled(48, LARGEST_IO_BYTES).text
    path = tmp_path_factory.mktemp("fit") / "drive.toml"
    path.write_text(with_values(base, START), encoding="utf-8")
    asked = [
        _figure(str(path), "iops", 100.0, 32, 4096),
        _figure(str(path), "iops", 0.0, 32, 4096),
        _figure(str(path), "latency_avg", 0.0, 1, 4096),
        _figure(str(path), "throughput", 0.0, 32, 131072),
        _figure(str(path), "latency_avg", 100.0, 1, 4096),
    ]
    loads = {one.load for f in asked if (one := condition(f)) and one.load}
    truth = ComparedDrive("truth", with_values(base, TRUE), "truth.toml")
    results = measure(truth, loads, log=lambda text: None)
    measured = []
    for figure in asked:
        one = condition(figure)
        assert one is not None and one.load is not None
        value = results[one.load][one.metric]
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
    monkeypatch.setattr("writecliff.published.fit._SECONDS_MAX", 2.0)
    path, figures = drive
    # Nothing that is measured depends on how long an idle drive waits.
    idle = '[parameters."controller.idle_delay"]\nfrom = "1 ms"\nto = "90 ms"'
    result = fit(read_specification(_specification(tmp_path, path, idle)), figures)
    found = {e.key: e for e in result.estimates}
    for key, true_us in (
        ("command_time", 12),
        ("mapping_update_time", 60),
        ("relocation_time", 90),
    ):
        estimate = found[f"controller.{key}"]
        assert estimate.value == pytest.approx(true_us * 1e3, rel=0.05), key
        assert estimate.determined and not estimate.at_bound
    assert not found["controller.idle_delay"].determined
    assert [key for combination in result.unidentifiable for key, _ in combination] == [
        "controller.idle_delay"
    ]
    worst = max(abs(row.error_pct or 0) for row in result.before)
    assert worst > 20
    assert max(abs(row.error_pct or 100) for row in result.after) < 3
    text = fitted_text(path.read_text(encoding="utf-8"), result)
    assert f"{found['controller.relocation_time'].value / 1e3:.4g} us" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drives = []", "needs 'drives'"),
        ('drives = ["x"]\nspeed = 1\n[parameters]', "unknown key 'speed'"),
        ('drives = ["x"]\n[parameters.a]\nfrom = "1 us"', "a needs 'from' and 'to'"),
        ('drives = ["x"]\n[parameters.a]\nfrom = "2 us"\nto = "1 us"', "below 'to'"),
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
    estimates = (
        Estimate("controller.command_time", "ns", 1000.0, 822.34, 1.0, 9e9, None),
        Estimate("flash.read", "ns", 50e3, 55e3, 1.0, 9e9, 1.0),
        Estimate("controller.write_buffer", "bytes", 4 << 20, 2 << 20, 1.0, 9e9, 1.0),
    )
    fitted = fitted_text(text, FitResult(estimates, (), (), (), 0))
    assert 'command_time = "0.822 us"  # source' in fitted
    assert 'read = ["44 us", "66 us"]' in fitted
    assert 'write_buffer = "2048 KiB"' in fitted


def test_a_fit_without_figures_is_refused(
    drive: tuple[Path, list[PublishedFigure]], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no figures"):
        fit(read_specification(_specification(tmp_path, drive[0])), [])

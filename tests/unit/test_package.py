"""The installed program: its version and the files that it reads besides its modules."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from writecliff.cli.main import main

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{cargo['workspace']['package']['version']}\n"


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("writecliff.devices", {"sata-tlc-120.toml", "nvme-tlc-960.toml"}),
        (
            "writecliff.report",
            {"templates/report.html.j2", "templates/report.css", "templates/figures.js"},
        ),
        ("writecliff.ui", {"templates/list.html.j2", "static/ui.css", "static/plots.js"}),
    ],
)
def test_data_files_are_resources_of_the_package(package: str, names: set[str]) -> None:
    missing = [name for name in names if not files(package).joinpath(name).is_file()]
    assert missing == []

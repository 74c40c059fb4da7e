"""Figures over the setting in which runs differ, and IOPS over block size for both."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from writecliff.report.axes import block_size_axis
from writecliff.report.compared import Curve
from writecliff.report.comparison import Comparison
from writecliff.report.comparison.contenders import Contender
from writecliff.report.comparison.pictures import (
    curves_section,
    models_of,
    setting_of,
    setting_section,
)
from writecliff.report.comparison.runs import Run
from writecliff.report.headline import Headline
from writecliff.report.iops import LOG_IOPS


def contender(label: str, iops: float, *, curves: Any = (), **setup: str | None) -> Contender:
    """Return a run with two figures, IOPS and a write amplification of 1."""
    figures = [
        Headline(key="iops", label="Saturated", value=iops, unit="IOPS"),
        Headline(key="waf", label="Write amplification", value=1.0, unit=""),
    ]
    measured = {"drive": "d", **{name.replace("_", " "): value for name, value in setup.items()}}
    run = Run(Path(label), "wsat", "2026-01-01T00:00:00+00:00", measured, figures, curves)
    return Contender({"wsat": run}, label, fixed=True)


@pytest.mark.draws
def test_runs_of_a_sweep_are_drawn_over_what_is_varied() -> None:
    labels = ("over-provisioning 28 %", "over-provisioning 7 %", "over-provisioning 14 %")
    comparison = Comparison(
        [contender(label, 1000.0 * n, capacity=f"{n} GB") for n, label in enumerate(labels, 1)]
    )
    setting = setting_of(comparison)
    assert setting is not None
    assert (setting.name, setting.unit, setting.numbers) == ("over-provisioning", "%", [28, 7, 14])
    part = setting_section(comparison)
    assert part.title == "Figures by over-provisioning"
    assert [figure.title for figure in part.figures] == [
        "Saturated v over-provisioning",
        "Write amplification v over-provisioning",
    ]
    assert "Over-provisioning (%)" in part.figures[0].svg
    data = part.figures[0].data
    assert not isinstance(data, str)
    rows = list(csv.DictReader(data.text.splitlines()))
    of = {float(r["over_provisioning"]): float(r["value"]) for r in rows if r["unit"] == "IOPS"}
    assert of == {28: 1000, 7: 2000, 14: 3000}


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({"active_range_pct": "100"}, {"active_range_pct": "25"}, "active range"),
        ({"capacity": "120 GB"}, {"capacity": "107 GB"}, "capacity"),
        ({"capacity": "960 GB"}, {"capacity": "1.92 TB"}, None),
        ({"seed": "1"}, {"seed": "2"}, None),
        ({"active_range_pct": "100", "threads": "4"}, {"active_range_pct": "25", "threads": "1"},
         None),
        ({"edition": "PTS-E 1.1"}, {"edition": "PTS-C 1.2"}, None),
    ],
)  # fmt: skip
def test_two_runs_are_drawn_over_the_one_number_in_which_they_differ(
    first: dict[str, str], second: dict[str, str], name: str | None
) -> None:
    setting = setting_of(Comparison([contender("a", 1.0, **first), contender("b", 2.0, **second)]))
    assert (None if setting is None else setting.name) == name


def test_equal_settings_are_no_axis() -> None:
    pair = [contender("a", 1.0, threads="4"), contender("b", 2.0, threads="4")]
    assert setting_section(Comparison(pair)).figures == ()


@pytest.mark.parametrize(
    ("drive", "capacity", "model"),
    [
        ("PM863 960 GB", "960 GB", "PM863"),
        ("pm9d3a-3840", "3.84 TB", "pm9d3a"),
        ("micron-7450-15360", "15.4 TB", "micron-7450"),
        ("Samsung SSD 850 EVO 500GB", "500 GB", "Samsung SSD 850 EVO"),
        ("Intel 530", "240 GB", "Intel 530"),
        ("850-256", "2 GB", "850-256"),
    ],
)
def test_a_model_is_a_drive_without_its_capacity(drive: str, capacity: str, model: str) -> None:
    assert models_of([contender("a", 1.0, drive=drive, capacity=capacity)]) == [model]


@pytest.mark.draws
def test_lines_join_capacities_of_one_model_only() -> None:
    a = contender("a", 1.0, drive="A 100 GB", capacity="100 GB")
    b = contender("b", 2.0, drive="B 200 GB", capacity="200 GB")
    assert setting_section(Comparison([a, b])).figures == ()
    more = contender("c", 3.0, drive="A 400 GB", capacity="400 GB")
    part = setting_section(Comparison([a, b, more]))
    assert part.intro.endswith("Lines join runs of one model.")
    figure = part.figures[0]
    assert ">A<" in figure.svg and ">B<" in figure.svg
    assert not isinstance(figure.data, str)
    rows = list(csv.DictReader(figure.data.text.splitlines()))
    models = [(row["model"], row["capacity"]) for row in rows if row["unit"] == "IOPS"]
    assert models == [("A", "100"), ("B", "200"), ("A", "400")]


@pytest.mark.draws
def test_iops_over_block_size_of_two_active_ranges_are_on_one_plot() -> None:
    sizes = [4096, 131072]

    def curve(iops: float) -> Curve:
        points = [(float(size), iops * 4096 / size) for size in sizes]
        title = "IOPS v block size, 0/100"
        return Curve("iops-by-size-0", title, block_size_axis(sizes), LOG_IOPS, points)

    part = curves_section(
        [contender("8 GiB", 1.0, curves=[curve(40_000)]),
         contender("all", 1.0, curves=[curve(9_000)])]
    )  # fmt: skip
    (figure,) = part.figures
    assert part.choices == ("8 GiB", "all")
    for text in ("8 GiB", "all", "Block size (KiB)", "IOPS (logarithmic)"):
        assert text in figure.svg
    assert not isinstance(figure.data, str)
    rows = list(csv.DictReader(figure.data.text.splitlines()))
    assert list(rows[0]) == ["contender", "block_bytes", "iops"]
    assert float(rows[0]["iops"]) == 40_000


def test_one_drive_with_more_spare_flash_is_one_model() -> None:
    """Check an over-provisioning sweep, which reduces the capacity stated in the drive's name."""
    sizes = ("1 GB", "959 MB", "885 MB")
    drives = [contender(size, 1.0, drive="first 1 GB", capacity=size) for size in sizes]
    assert models_of(drives) == ["first"] * 3
    other = contender("x", 1.0, drive="second", capacity="1 GB")
    assert models_of([*drives, other]) == [*["first"] * 3, "second"]

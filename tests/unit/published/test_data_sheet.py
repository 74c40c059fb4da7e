"""Data sheets of drives: every row has a source, and measured rows match the drive."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.devices import read_device_file, show_device
from writecliff.devices.class_defaults import CLASS_DEFAULT
from writecliff.published.data_sheet import GROUPS, Sheet, _stated, page_of, sheet_of
from writecliff.published.measure import ComparedDrive
from writecliff.report.pages import render_page


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Sheet:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WRITECLIFF_CACHE", str(tmp_path_factory.mktemp("cache")))
        return sheet_of(ComparedDrive.preset("pm863-960"))


def rows(sheet: Sheet, start: str) -> dict[str, str]:
    return {row.name: row.value for row in sheet.rows if row.source.startswith(start)}


def test_every_row_has_a_source_and_groups_are_in_order(sheet: Sheet) -> None:
    assert all(row.source for row in sheet.rows)
    order = [GROUPS.index(row.group) for row in sheet.rows]
    assert order == sorted(order)


def test_stated_values_are_those_of_the_device_file(sheet: Sheet) -> None:
    stated = rows(sheet, "device file, line")
    assert stated["Capacity"] == "960 GB"
    assert stated["Power-loss protection"] == "yes"
    assert stated["Total bytes written (TBW)"] == "1400 TB"
    assert rows(sheet, "derived") == {"Drive writes per day (DWPD)": "0.8"}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "micron-9550-max-12800",
            {
                "flash.read": "38.98 us, 48.46 us, 38.98 us",
                "controller.write_command_time": "1.08 us",
                "controller.suspend_time": "10 us",
                "ecc.rber": "0.001",
                "read_ahead.window": "1 MiB",
            },
        ),
        ("d5-p5336-122880", {"ftl.indirection_unit": "16 KiB", "ftl.merged_units": "16"}),
        ("pm863-960", {}),
    ],
)
def test_every_value_that_the_file_marks_as_class_default_is_a_row(
    name: str, values: dict[str, str]
) -> None:
    drive = show_device(name)
    rows = {row.name: row.value for row in _stated(drive) if row.group == "Class defaults"}
    assert rows.items() >= values.items()
    assert set(rows) == {value.key for value in drive.values if CLASS_DEFAULT in value.source}


def test_published_figures_stand_beside_measured_ones(sheet: Sheet) -> None:
    published, measured = rows(sheet, "published"), rows(sheet, "measured here by")
    assert published["Sequential 128 KiB 100 % read QD 32, throughput"] == "540.0 MB/s"
    rate = float(measured["Random 4 KiB reads, QD 32: IOPS"].removesuffix(" IOPS").replace(",", ""))
    assert rate == pytest.approx(99_000, rel=0.02)
    assert published["Writing, at most"] == "4.000 W"
    assert "Random 4 KiB writes, QD 32: active power" in measured
    assert all("at 1/64 of its capacity" in r.source for r in sheet.rows if r.name in measured)


def test_a_small_drive_has_no_high_percentiles(sheet: Sheet) -> None:
    assert not any("within" in row.name for row in sheet.rows)
    assert sheet.scale == 64
    page = render_page(page_of(sheet))
    assert "High percentiles can be slower or faster, so they are left out" in page
    assert "Without a source:" not in page, "the sheet of this drive has everything"


def test_what_only_sheets_show_does_not_change_the_drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    text, _ = read_device_file("sata-tlc-120")
    for key, value in (
        ("form_factor", '2.5", 7 mm'),
        ("uber", "1 sector in 10^17 bits"),
        ("mtbf", "2,000,000 h"),
    ):
        text = f"{key} = '{value}'\n{text}"
    Path("mine.toml").write_text(text)
    mine = ComparedDrive.preset("./mine.toml")
    assert (
        mine.describe().device_hash == ComparedDrive.preset("sata-tlc-120").describe().device_hash
    )
    made = sheet_of(mine)
    stated = rows(made, "device file, line")
    assert stated["Form factor"] == '2.5", 7 mm'
    assert stated["Uncorrectable bit error rate (UBER)"] == "1 sector in 10^17 bits"
    assert made.not_stated == ()

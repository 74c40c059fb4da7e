"""Tables of published figures: their contents, and errors for invalid rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.errors import ConfigError
from writecliff.published.conditions import condition
from writecliff.published.figures import (
    CAMPAIGNS,
    COLUMNS,
    COMPRESSIBLE,
    OTHERS,
    campaign,
    read_figures,
    read_table,
    unit_of,
)

HEAD = ",".join(COLUMNS)
GOOD = "me,table 1,pm863-960,,random,4,70,32,iops,36000,IOPS,"


def _table(folder: Path, *lines: str) -> Path:
    path = folder / "own.csv"
    path.write_text("\n".join((HEAD, *lines)) + "\n")
    return path


def test_every_campaign_has_figures_and_every_figure_a_campaign() -> None:
    figures = read_figures()
    assert {campaign.source for campaign in CAMPAIGNS} == {figure.source for figure in figures}
    assert len({campaign.name for campaign in CAMPAIGNS}) == len(CAMPAIGNS)
    for figure in figures:
        assert figure.value > -100 and figure.unit, figure


def test_cells_become_numbers_and_empty_ones_are_unknown(tmp_path: Path) -> None:
    lines = (GOOD, "me,t,a,b,random,mixed,,,iops_improvement,-3.5,%,a note")
    first, second = read_figures(_table(tmp_path, *lines))
    assert (first.block_bytes, first.read_pct, first.outstanding, first.value) == (
        4096, 70.0, 32, 36000.0,
    )  # fmt: skip
    assert (second.block_bytes, second.read_pct, second.outstanding) == (None, None, None)
    assert (second.baseline, second.value, second.note) == ("b", -3.5, "a note")
    assert first.label == "random 4 KiB 70 % read QD 32"


def test_a_unit_that_is_left_out_is_the_metrics(tmp_path: Path) -> None:
    line = GOOD.replace("IOPS", "")
    lines = [line.replace("iops", name) for name in ("iops", "latency_max", "tbw", "iosp")]
    figures = [figure.unit for figure in read_figures(_table(tmp_path, *lines))]
    assert figures == ["IOPS", "ms", "TB", ""]
    for figure in read_figures():
        assert figure.unit == unit_of(figure.metric)


def test_data_are_random_unless_the_table_says_how_far_they_compress(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"{HEAD},{COMPRESSIBLE}\n{GOOD},\n{GOOD},46\n{GOOD},101\n")
    with pytest.raises(ConfigError, match=r":4: compressible_pct is 101; it must be 0 to 100"):
        read_figures(path)
    path.write_text(path.read_text().replace(",101", ",0"))
    figures = read_figures(path)
    assert [figure.compressible_pct for figure in figures] == [0.0, 46.0, 0.0]
    assert figures[1].label == "random 4 KiB 70 % read QD 32, 46 % compressible"
    assert figures[0] == figures[2] == read_figures(_table(tmp_path, GOOD))[0]


def test_no_fit_uses_a_figure_of_compressible_data() -> None:
    """Check that figures of drives that compress are predicted, not fitted."""
    assert not any(figure.compressible_pct for figure in read_figures())
    assert sum(figure.compressible_pct == 100 for figure in read_figures(OTHERS)) >= 5


def test_columns_may_stand_in_any_order_and_others_beside_them(tmp_path: Path) -> None:
    """Check that the program's own figures.csv is a valid input."""
    path = tmp_path / "own.csv"
    path.write_text("extra," + ",".join(reversed(COLUMNS)) + "\n")
    with path.open("a") as file:
        file.write("x," + ",".join(reversed(GOOD.split(","))) + "\n")
    assert read_figures(path) == read_figures(_table(tmp_path, GOOD))


def test_a_range_of_outstanding_ios(tmp_path: Path) -> None:
    line = GOOD.replace("iops,", "iops_improvement_min,").replace("IOPS", "%")
    texts = ("QD1-QD128", "1-128", "QD 1 - QD 128")
    lines = [line.replace(",32,", f",{text},") for text in texts]
    figures = read_figures(_table(tmp_path, *lines))
    assert [(figure.depths, figure.outstanding, figure.oio) for figure in figures] == [
        ((1, 128), None, "QD1-QD128")
    ] * 3
    assert figures[0].label == "random 4 KiB 70 % read QD 1 to 128"


def test_rows_that_cannot_be_read_are_skipped_with_the_reason(tmp_path: Path) -> None:
    path = _table(tmp_path, GOOD.replace("36000", "much"), GOOD, GOOD.replace(",32,", ",9-2,"))
    table = read_table(path)
    assert [figure.value for figure in table.figures] == [36000.0]
    assert [str(row) for row in table.skipped] == [
        f"{path}:2: value is 'much', not a number",
        f"{path}:4: oio is '9-2'; a range must be ascending and within 1 to 1048576",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("36000", "much"), ":3: value is 'much', not a number"),
        (GOOD.replace(",32,", ",deep,"), ":3: oio is 'deep', not a number"),
        (
            GOOD.replace("36000", ""),
            ":3: device, metric or value is missing; a figure needs all three",
        ),
        (
            GOOD.replace("pm863-960", ""),
            ":3: device, metric or value is missing; a figure needs all three",
        ),
        (GOOD.replace("36000", "nan"), ":3: value is 'nan', not a number"),
        (GOOD.replace(",70,", ",170,"), ":3: read_pct is 170; it must be 0 to 100"),
        (GOOD.replace(",4,70", ",0,70"), ":3: block_kib is 0; it must be above 0, up to 1048576"),
        (
            GOOD.replace("iops,36000,IOPS", "latency_avg,90,us"),
            ":3: unit is 'us'; latency_avg is in ms",
        ),
        (
            GOOD.replace(",32,", ",2.5,"),
            ":3: oio is 2.5; it must be a whole number from 1 to 1048576",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = _table(tmp_path, GOOD, line)
    with pytest.raises(ConfigError) as caught:
        read_figures(path)
    assert str(caught.value) == f"{path}{message}"


def test_a_missing_column_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(HEAD.replace("read_pct,", "") + "\n")
    with pytest.raises(
        ConfigError, match=r"own\.csv:1: the column 'read_pct' is missing"
    ) as caught:
        read_figures(path)
    assert "oio" in (caught.value.hint or "")
    with pytest.raises(ConfigError, match=r"cannot read .*none\.csv"):
        read_figures(tmp_path / "none.csv")
    (tmp_path / "own.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"own\.csv is not UTF-8 text"):
        read_figures(path)


def test_campaigns_by_name() -> None:
    assert campaign("pm863").source == "pm863-whitepaper"
    with pytest.raises(ConfigError, match="unknown campaign 'pm836'") as caught:
        campaign("pm836")
    assert caught.value.hint == "did you mean 'pm863'?"


def test_nearly_every_shipped_figure_has_a_condition() -> None:
    without = {figure.metric for figure in read_figures() if condition(figure) is None}
    assert without == {"lifetime_ratio_streams_vs_none", "iops_ratio_streams_vs_none"}

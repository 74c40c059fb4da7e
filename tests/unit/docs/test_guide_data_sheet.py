"""The guide from a data sheet to a drive, run as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from writecliff.cli.main import main
from writecliff.devices import show_device
from writecliff.published.figures import read_figures
from writecliff.published.fit import read_specification

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "data-sheet.md"


def test_the_drive_of_the_guide_meets_its_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    (answers,) = re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S)
    Path("my-sata-answers.toml").write_text(answers, encoding="utf-8")
    (command,) = re.findall(r"^writecliff (device new .*)$", text, re.M)
    assert main([*command.split(), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["figures"]) == 5
    for figure in answer["figures"]:
        assert abs(figure["error_pct"]) < 3, figure
    drive = show_device("./my-sata.toml")
    assert drive.rated_tbw_bytes == 1400e12 and drive.capacity_bytes == 960e9
    assert all(row.source for row in drive.values)
    figures = read_figures(Path(answer["figures_file"]))
    assert [figure.value for figure in figures] == [540, 520, 97000, 25000, 0.11]
    spec = read_specification(Path(answer["fit_file"]))
    assert spec.drives == ("./my-sata.toml",) and 3 <= len(spec.parameters) <= 6
    (table,) = re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
    assert [line.split("  ")[0] for line in table.splitlines()[1:]] == [
        figure["load"] for figure in answer["figures"]
    ]

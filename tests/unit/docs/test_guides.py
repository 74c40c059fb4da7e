"""Examples of the guides: they produce the results that the guides describe."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.small_drive import write_small_drive
from writecliff.capture.rules import parse_rules, presets
from writecliff.capture.trace import COLUMNS
from writecliff.cli.main import main
from writecliff.devices import FOLDER, preset_names, show_device
from writecliff.engines.blockdev.ata_erase import removal_hint
from writecliff.errors import ConfigError
from writecliff.published.conditions import condition
from writecliff.published.figures import read_figures

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


def _examples(name: str) -> list[str]:
    text = (GUIDES / name).read_text(encoding="utf-8")
    return re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S)


def test_there_are_six_workloads() -> None:
    assert len(_examples("workloads.md")) == 6


@pytest.mark.parametrize("example", _examples("workloads.md"))
def test_each_workload_runs(
    example: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRITECLIFF_CACHE", str(tmp_path / "cache"))
    drive = write_small_drive(tmp_path)
    file = tmp_path / "w.toml"
    file.write_text(example, encoding="utf-8")
    assert main(["run", str(file), "--on", f"sim:{drive}", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    jobs = len(re.findall(r"job\]\]", example)) - example.count("measure = false")
    assert sum(len(step["jobs"]) for step in steps) == jobs


def test_the_device_opens_and_a_mistake_is_named_as_the_guide_says(tmp_path: Path) -> None:
    example, *_sections = _examples("devices.md")
    file = tmp_path / "my.toml"
    file.write_text(example, encoding="utf-8")
    assert show_device(str(file)).capacity_bytes == 960_000_000
    file.write_text(example.replace("channels =", "chanels ="), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        show_device(str(file))
    guide = (GUIDES / "devices.md").read_text(encoding="utf-8")
    assert f"error: my.toml{str(caught.value).removeprefix(str(file))}" in guide
    assert f"hint: {caught.value.hint}" in guide


def test_every_key_of_the_presets_is_in_the_guide() -> None:
    guide = (GUIDES / "devices.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.toml"):
        for key in re.findall(r"^(\w+) = ", path.read_text(encoding="utf-8"), re.M):
            assert f"`{key}`" in guide, key


def test_the_rules_of_the_capture_guide_are_rules() -> None:
    (example,) = _examples("capture.md")
    rules = parse_rules(example, "guide")
    assert [rule.stream for rule in rules.rules] == [1, 3, 2]
    guide = (GUIDES / "capture.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in guide for name in presets())
    assert all(f"`{column}`" in guide for column in COLUMNS)


def test_the_guide_says_how_to_remove_the_password_of_an_interrupted_erase() -> None:
    guide = (GUIDES / "real-drives.md").read_text(encoding="utf-8")
    commands = re.findall(r"hdparm .*?/dev/sdX", removal_hint("/dev/sdX", locked=True))
    assert len(commands) == 2
    assert all(f"\n{command}\n" in guide for command in commands)


def test_the_catalogue_names_every_drive_and_no_other() -> None:
    guide = (GUIDES / "catalogue.md").read_text(encoding="utf-8")
    table = guide.split("## The drives")[1].split("## Families")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = {name for cell in first_cells for name in re.findall(r"`([\w-]+)`", cell)}
    assert named == set(preset_names())


def test_the_figures_of_the_catalogue_guide_are_figures(tmp_path: Path) -> None:
    guide = (GUIDES / "catalogue.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```text\n(source,.*?)^```$", guide, re.M | re.S)
    path = tmp_path / "mine.csv"
    path.write_text(example, encoding="utf-8")
    figures = read_figures(path)
    assert len(figures) == 3
    assert all(condition(figure) is not None for figure in figures)
    metrics = guide.split("Metrics are")[1].split("`access` may be")[0]
    for figure in read_figures():
        if not figure.metric.startswith(("power_", "lifetime_", "iops_ratio")):
            parts = re.fullmatch(r"(.+?)(_read|_write)?(_improvement)?(_min|_max)?", figure.metric)
            assert parts is not None
            named = {figure.metric, parts[1]}
            assert any(f"`{name}`" in metrics for name in named), named

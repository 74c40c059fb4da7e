"""The guide to Python runs as it stands, on a small drive, and gives what the command line gives."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import writecliff
from tests.support.small_drive import write_small_drive
from writecliff import Job
from writecliff.cli.main import main

SHORT = "end='time', time_hours=0.0005, sample_seconds=0.1, round_minutes=0.005"
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "python.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the examples have made, run one after the other in a folder of their own."""
    folder = tmp_path_factory.mktemp("guide")
    drive = write_small_drive(folder)
    made: dict[str, Any] = {"folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for text in re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S):
            code = text.replace("sim:sata-tlc-120", f"sim:{drive}").replace("quick=True", SHORT)
            code = code.replace('"sata-tlc-120"', f'"{drive}"')
            exec(compile(code, "guide", "exec"), made)
    return made


def test_the_examples_give_what_the_guide_says(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(names["folder"])
    assert names["run"].status == "complete" and names["run"].test == "wsat"
    assert names["both"].verdict and names["page"].is_file()
    assert (names["folder"] / "numbers").is_dir()
    rounds, series = names["rounds"], names["per_second"]
    assert isinstance(rounds, pa.Table) and rounds.num_rows == names["run"].directory.steps
    assert set(series.column("operation").to_pylist()) <= {"read", "write", "trim"}
    assert names["found"].column("worst")[0].as_py() > 0
    assert names["series"].column("job").to_pylist()[0] == "job"
    assert names["captured"].metadata["bytes_written"] == 64 * (64 << 10)
    assert names["replay"].years > 0 and names["advice"].best.scheme == "rules"


def test_the_command_line_gives_the_same(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(names["folder"])
    assert main(["report", "runs/first", "--output", "again.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == names["run"].summary
    words = f"replay store.parquet --on sim:{names['folder'] / 'small.toml'} --fills 2 --no-timed"
    assert main([*words.split(), "--writes-per-day", "500GB", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["waf"], found["years"]) == (names["replay"].waf, names["replay"].years)


def test_every_function_of_the_package_is_in_the_guide_and_documented() -> None:
    guide = GUIDE.read_text()
    for name in writecliff.__all__:
        thing = getattr(writecliff, name)
        assert thing.__doc__, name
        if not isinstance(thing, type) and name not in ("version", "load_workload"):
            assert f"`{name}`" in guide, name


def test_every_field_of_a_job_is_explained() -> None:
    text = Path(sys.modules[Job.__module__].__file__ or "").read_text()
    body = text.split("class Job:", 1)[1].split("def __post_init__", 1)[0]
    for item in fields(Job):
        (line,) = re.findall(rf"^    {item.name}: .*$", body, re.M)
        assert "  # " in line, item.name
    assert Job(block_size="8 KiB", ios=1).block_sizes == Job(block_size=8192, ios=1).block_sizes
    assert Job(block_size="8 KiB").with_duration_s(1).block_sizes[0].bytes == 8192


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import writecliff, sys; dir(writecliff); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""The Python guide, run as written on a small drive; results match the command line."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import writecliff
from tests.support.small_drive import write_small_drive
from writecliff import Job
from writecliff.api import Replay, Run, Suite
from writecliff.capture.run import Captured
from writecliff.cli.main import main
from writecliff.devices import DeviceDescription, DeviceSummary, DeviceValue
from writecliff.engines.base import (
    CacheReport,
    DeviceIdentity,
    JobResult,
    OperationResult,
    Progress,
    PurgeReport,
    StepResult,
)
from writecliff.replay.advice import StreamAdvice
from writecliff.replay.model import Replayed, ReplaySetup, Sizing
from writecliff.report.comparison import Comparison
from writecliff.report.comparison.figures import Figure
from writecliff.report.headline import Headline, Interval
from writecliff.workload.load import WorkloadFile
from writecliff.workload.model import Addresses, BlockSize, Segments, Workload, Zone

SHORT = "end='time', time_hours=0.0005, sample_seconds=0.1, round_minutes=0.005"
EXPLAINED = (
    Addresses, BlockSize, CacheReport, Captured, Comparison, DeviceDescription, DeviceIdentity,
    DeviceSummary, DeviceValue, Figure, Headline, Interval, Job, JobResult, OperationResult,
    Progress, PurgeReport, Replay, Replayed, ReplaySetup, Run, Segments, Sizing, StepResult,
    StreamAdvice, Suite, Workload, WorkloadFile, Zone,
)  # fmt: skip
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "python.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the examples in order in a separate folder, and return their variables."""
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
    assert names["mix"].test == "workload" and "reads/s" in names["mix"].verdict
    assert names["both"].verdict and names["page"].is_file()
    assert (names["folder"] / "numbers").is_dir()
    rounds, series = names["rounds"], names["per_second"]
    assert isinstance(rounds.arrow, pa.Table) and rounds.num_rows == names["run"].directory.steps
    assert set(series.column("operation").to_pylist()) <= {"read", "write", "trim"}
    assert names["first"].path == Path("runs/first") and names["difference"].judgement == "equal"
    assert len(names["store"].list()) == 3 and names["medians"].num_rows == 5
    assert names["worst"].column("worst")[0].as_py() > 0
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
    answer = json.loads(capsys.readouterr().out)
    assert (answer["waf"], answer["years"]) == (names["replay"].waf, names["replay"].years)


def test_every_function_of_the_package_is_in_the_guide_and_documented() -> None:
    guide = GUIDE.read_text()
    for name in writecliff.__all__:
        thing = getattr(writecliff, name)
        assert thing.__doc__, name
        if not isinstance(thing, type) and name not in ("version", "load_workload"):
            assert f"`{name}`" in guide, name


@pytest.mark.parametrize("kind", EXPLAINED, ids=lambda kind: kind.__name__)
def test_every_field_is_explained(kind: type) -> None:
    """Check for a comment on its line or above it, a text below it, or a docstring entry."""
    lines, _ = inspect.getsourcelines(kind)
    (body,) = (
        node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.ClassDef)
    )
    for here, after in pairwise([*body.body, None]):
        if not isinstance(here, ast.AnnAssign) or not isinstance(here.target, ast.Name):
            continue
        declaration = "".join(lines[here.lineno - 2 : here.end_lineno])
        below = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        documented = f"`{here.target.id}`" in (kind.__doc__ or "")
        assert "# " in declaration or below or documented, here.target.id


def test_a_job_takes_one_block_size_as_a_file_does() -> None:
    assert Job(block_size="8 KiB", ios=1).block_sizes == Job(block_size=8192, ios=1).block_sizes
    assert Job(block_size="8 KiB").with_duration_s(1).block_sizes[0].bytes == 8192


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import writecliff, sys; dir(writecliff); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

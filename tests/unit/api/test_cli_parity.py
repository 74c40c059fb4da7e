"""Parity of commands and their functions: both create the same files, and no others.

Both run in an empty working directory that must stay empty. The fields that may differ are declared
in this module: times, the command line, digests over both, and the process that held the lock.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import writecliff
from tests.support.cli import CommandLine
from tests.support.small_drive import write_small_drive
from writecliff import api
from writecliff.capture.trace import write_trace
from writecliff.choice.question import Question
from writecliff.engines.target import open_target
from writecliff.procedures.framework import RunInterrupted
from writecliff.procedures.model import History, StepRow
from writecliff.procedures.progress import RunProgress
from writecliff.replay.model import Sizing
from writecliff.replay.synthetic import synthetic_table
from writecliff.twin import fitting

STAMP_KEYS = {"command", "created", "manifest", "sha256", "started", "updated", "resumed"}
STAMP_FILES = {".lock"}
# Times in files, and times as the standard writes them.
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d)?|\d\d/\d\d/\d{4} \d\d:\d\d [AP]M"
)

SHORT: dict[str, Any] = {"drive_fills": 0.5, "sample_seconds": 1.0, "round_minutes": 0.1}
FDP = """
[data_placement]
interface = "nvme-fdp"
"""
LOAD = """
name = "load"
[[job]]
name = "a"
stream = 12
volume = "1 MiB"
read = "30 %"
"""
FIO_JOB = """
[a]
rw=randrw
iodepth=4
number_ios=300
size=16m
"""


@dataclass(frozen=True)
class Inputs:
    """Files that a case reads, in a separate folder."""

    folder: Path

    @property
    def on(self) -> str:
        return f"sim:{self.folder / 'small.toml'}"

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def run(self, seed: int) -> str:
        """Return the directory of a finished run, which is created on the first request."""
        path = self.folder / f"run-{seed}"
        if not path.exists():
            writecliff.run_workload(self.path("load.toml"), self.on, output=path, seed=seed)
        return str(path)

    def captured(self) -> str:
        """Return a captured trace of a small store."""
        path = self.folder / "store.parquet"
        if not path.exists():
            table = synthetic_table(
                table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=40 << 20
            )
            write_trace(path, table, {"command": ["store"], "program": "store 1.0"})
        return str(path)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    drive = write_small_drive(folder)
    plain = drive.read_text()
    (folder / "plain.toml").write_text(plain)
    (folder / "large").mkdir()  # The trace needs enough I/Os for a model.
    write_small_drive(folder / "large", user_capacity='"1100 MB"', blocks_per_plane="208")
    drive.write_text(plain + FDP)
    (folder / "load.toml").write_text(LOAD)
    (folder / "short.toml").write_text(LOAD.replace("stream = 12", "stream = 1"))
    (folder / "load.fio").write_text(FIO_JOB)
    begin, ways = 128_166_372_003_061_629, ("Read", "Read", "Write")
    (folder / "msr.csv").write_text("".join(
        f"{begin + 5000 * n},host,0,{ways[n % 3]},{(n * 7919 % 60_000) * 4096},4096,100\n"
        for n in range(300)
    ))  # fmt: skip
    return Inputs(folder)


@dataclass(frozen=True)
class Pair:
    """Arguments of a command without --output, and the function that must do the same."""

    words: Callable[[Inputs], list[str]]
    function: Callable[[Inputs, Path], Any]
    files: set[str]  # Files that both the command and the function create.
    output: str = "out"


def _choose(inputs: Inputs, output: Path) -> None:
    drives = (inputs.path("plain.toml"),)
    question = Question(workload=inputs.path("msr.csv"), candidates=drives, precondition="none",
                        limits=("iops >= 1",), what_if=False)  # fmt: skip
    api.choose_drive(question, output=output)


PAIRS = {
    "run": Pair(
        lambda i: ["run", i.path("load.toml"), "--on", i.on, "--quiet"],
        lambda i, output: writecliff.run_workload(i.path("load.toml"), i.on, output=output),
        {"rounds.parquet", "report.html"},
    ),
    "run-prepared": Pair(
        lambda i: ["run", i.path("load.fio"), "--on", i.on, "--precondition", "fill", "--seed",
                   "3", "--quiet"],
        lambda i, output: writecliff.run_workload(
            i.path("load.fio"), i.on, output=output, precondition="fill", seed=3
        ),
        {"rounds.parquet", "histograms.parquet"},
    ),
    "test": Pair(
        lambda i: ["test", "wsat", "--drive-fills", "0.5", "--sample-seconds", "1",
                   "--round-minutes", "0.1", "--on", i.on, "--seed", "2", "--quiet"],
        lambda i, output: writecliff.run_test("wsat", i.on, output=output, seed=2, **SHORT),
        {"rounds.parquet", "intervals.parquet"},
    ),
    "suite": Pair(
        lambda i: ["suite", "pts-e", "--on", i.on, "--tests", "wsat", "--set",
                   "wsat.drive_fills=0.5", "--set", "wsat.sample_seconds=1", "--set",
                   "wsat.round_minutes=0.1", "--quiet"],
        lambda i, output: writecliff.run_suite(
            "pts-e", i.on, output=output, tests=["wsat"], special={"wsat": SHORT}
        ),
        {"suite.json", "wsat/rounds.parquet", "summary.html"},
    ),
    "choose": Pair(
        lambda i: ["choose", "--workload", i.path("msr.csv"), "--candidates",
                   i.path("plain.toml"), "--precondition", "none", "--limit", "iops >= 1",
                   "--no-what-if", "--quiet"],
        _choose,
        {"choice.json", "choice.html", "synthetic/workload.toml", "synthetic/synthetic.html"},
    ),
    "replay": Pair(
        lambda i: ["replay", i.path("msr.parquet"), "--on", i.on, "--whole-drive", "--repeat", "1",
                   "--no-timed"],
        lambda i, output: api.replay_trace(
            i.path("msr.parquet"), i.on, sizing=Sizing(fill_pct=None, repeats=1), timed=False
        ).store(output),
        {"manifest.json", "report.html"},
    ),
    "sweep": Pair(
        lambda i: ["sweep", "--workload", i.path("short.toml"), "--vary", "load.queue_depth=1,4",
                   "--on", i.on, "--jobs", "1", "--quiet"],
        lambda i, output: writecliff.run_sweep(
            {"load.queue_depth": ["1", "4"]}, i.on, workload=i.path("short.toml"), output=output,
            workers=1
        ),
        {"suite.json", "load-queue-depth-4/rounds.parquet", "summary.html"},
    ),
    "compare": Pair(
        lambda i: ["compare", i.run(1), i.run(2)],
        lambda i, output: writecliff.write_page(
            writecliff.compare(i.run(1), i.run(2)), output
        ),
        {"out.html"},
        "out.html",
    ),
    "report": Pair(
        lambda i: ["report", i.run(1)],
        lambda i, output: writecliff.write_report(i.run(1), output=output),
        {"out.html"},
        "out.html",
    ),
    "convert": Pair(
        lambda i: ["trace", "convert", i.path("msr.csv"), "--to", "parquet"],
        lambda i, output: api.convert_trace(i.path("msr.csv"), output),
        {"out.parquet"},
        "out.parquet",
    ),
    "characterise": Pair(
        lambda i: ["characterise", i.path("msr.csv")],
        lambda i, output: writecliff.write_page(
            writecliff.characterise_trace(i.path("msr.csv")), output
        ),
        {"out.html"},
        "out.html",
    ),
    "advise-streams": Pair(
        lambda i: ["advise-streams", i.captured(), "--on", i.on, "--counts", "2", "--fills", "1",
                   "--no-timed"],
        lambda i, output: writecliff.write_page(
            api.advise_streams(i.captured(), i.on, counts=(2,), sizing=Sizing(fills=1),
                               timed=False), output
        ),
        {"out.html"},
        "out.html",
    ),
    "twin": Pair(
        lambda i: ["twin", f"sim:{i.path('large/small.toml')}", "--gentle", "--seconds", "0.1",
                   "--name", "mine", "--seed", "2", "--quiet"],
        lambda i, output: api.make_twin(
            f"sim:{i.path('large/small.toml')}", output=output, name="mine", gentle=True,
            seconds=0.1, seed=2
        ),
        {"rounds.parquet", "twin.toml", "twin.html"},
    ),
    "synthesise": Pair(
        lambda i: ["trace", "synthesise", i.path("msr.csv")],
        lambda i, output: api.synthesise_trace(i.path("msr.csv")).write(output),
        {"workload.toml", "workload.fio"},
    ),
}  # fmt: skip
# `synthesise` writes the page that belongs to the function's result.
PAGES_OF_COMMANDS = {"synthetic.html"}


@pytest.mark.parametrize("name", PAIRS)
def test_a_command_and_its_function_make_the_same_files(
    name: str,
    inputs: Inputs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "twin":  # Use a short fit.
        for most in ("ROUNDS", "FITS_MOST"):
            monkeypatch.setattr(fitting, most, 1)
        monkeypatch.setattr(fitting, "IOS_ENOUGH", 1000)
    here, output = tmp_path / "here", tmp_path / "elsewhere" / PAIRS[name].output
    here.mkdir()
    output.parent.mkdir()
    monkeypatch.chdir(here)
    if name == "replay" and not Path(inputs.path("msr.parquet")).exists():
        api.convert_trace(inputs.path("msr.csv"), inputs.path("msr.parquet"))
    pair = PAIRS[name]
    done = CommandLine(capsys)([*pair.words(inputs), "--output", str(output)])
    assert done.code == 0, done.err
    of_command = contents(output)
    shutil.rmtree(output) if output.is_dir() else output.unlink()
    pair.function(inputs, output)
    assert pair.files <= of_command.keys()
    assert differences(of_command, contents(output)) == set()
    assert [*here.iterdir()] == [] and [*output.parent.iterdir()] == [output]


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, or the file itself, by name."""
    if folder.is_file():
        return {folder.name: folder.read_bytes()}
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def differences(first: dict[str, bytes], second: dict[str, bytes]) -> set[str]:
    """Return files that only one side has, or whose contents differ beyond the allowed fields."""
    names = (first.keys() | second.keys()) - STAMP_FILES
    return {
        name
        for name in names
        if Path(name).name not in STAMP_FILES | PAGES_OF_COMMANDS
        and (name not in first or name not in second
             or unstamped(name, first[name]) != unstamped(name, second[name]))
    }  # fmt: skip


def unstamped(name: str, data: bytes) -> Any:
    if name.endswith(".json"):
        return _without_stamps(json.loads(data))
    if name.endswith((".html", ".toml")):
        return _TIME.sub("", data.decode())
    return data


def _without_stamps(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_stamps(v) for k, v in value.items() if k not in STAMP_KEYS}
    return [_without_stamps(element) for element in value] if isinstance(value, list) else value


class _StopsAfterAStep(RunProgress):
    """Simulate Ctrl-C after the first step has been stored."""

    def step_end(self, row: StepRow, history: History, *, again: bool) -> None:
        raise KeyboardInterrupt


def test_a_run_is_resumed_alike(
    inputs: Inputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that a resumed run keeps the original options, such as latency causes."""
    load = tmp_path / "steps.toml"
    job = '[[step.job]]\nname = "a"\nvolume = "400 kB"\nread = "50 %"\nstream = 12\n'
    load.write_text(f'name = "steps"\n[[step]]\nname = "x"\n{job}[[step]]\nname = "y"\n{job}')
    output, begun = tmp_path / "out", tmp_path / "begun"
    opened = closing(open_target(inputs.on, attribute_latency=True))
    with opened as engine, pytest.raises(RunInterrupted):
        writecliff.run_workload(load, engine, output=output, progress=_StopsAfterAStep())
    shutil.copytree(output, begun)
    done = CommandLine(capsys)(["run", "--resume", str(output), "--quiet"])
    assert done.code == 0, done.err
    of_command = contents(output)
    shutil.rmtree(output)
    begun.rename(output)
    resumed = writecliff.resume_run(output)
    assert differences(of_command, contents(output)) == set()
    causes = resumed.directory.latency_causes([1, 2])
    assert {label for label, _ in causes} >= {"x", "y"}


def test_a_run_from_python_has_the_events_of_the_drive(inputs: Inputs, tmp_path: Path) -> None:
    run = writecliff.run_workload(inputs.path("load.toml"), inputs.on, output=tmp_path / "out")
    (step,) = run.summary["steps"]
    assert len(step["data_placement"]["log"]) == 63


@pytest.mark.parametrize("output", [None, "given"])
def test_runs_that_need_too_much_memory_are_refused_before_any_begins(
    output: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that neither the named output nor a default folder remains, as with the commands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("writecliff.suite.memory.available_memory_bytes", lambda: 100 << 20)
    with pytest.raises(writecliff.WritecliffError, match="not enough memory: iops requires"):
        writecliff.run_suite("pts-e", "sim:sata-tlc-120", output=output)
    with pytest.raises(
        writecliff.WritecliffError, match="not enough memory: queue-depth-1 requires"
    ):
        writecliff.run_sweep({"queue_depth": [1, 2]}, "sim:sata-tlc-120", output=output)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_run_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default folders are created early, so that no other process takes their names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WRITECLIFF_STORE", raising=False)
    for cells in ({}, {"queue_depth": [1]}, {"device.no.such.key": [1, 2]}):
        with pytest.raises(writecliff.WritecliffError):
            writecliff.run_sweep(cells, "sim:sata-tlc-120")
        assert list(tmp_path.iterdir()) == []


def test_a_page_and_a_sweep_of_nothing_are_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for result in ([], 3):
        with pytest.raises(writecliff.WritecliffError, match="cannot be shown as a page"):
            writecliff.write_page(result, page)  # type: ignore[arg-type]
    with pytest.raises(
        writecliff.WritecliffError, match="a sweep requires at least one setting to vary"
    ):
        writecliff.run_sweep({}, "sim:sata-tlc-120", output=tmp_path / "sweep")
    assert list(tmp_path.iterdir()) == []

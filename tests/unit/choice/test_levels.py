"""Simulation levels of `choose`: scales, errors, and the drives that are simulated again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.cli import CommandLine
from writecliff.choice.levels import FINE, LEVELS, MEDIUM, ROUGH, class_of, scale_errors
from writecliff.choice.plan import plan_choice
from writecliff.choice.question import Question
from writecliff.devices import preset_names, show_device
from writecliff.lab.validate.scales import KINDS, SHOWN
from writecliff.profiles import find_workload
from writecliff.store.rundir import RunDirectory
from writecliff.suite.runner import SuiteStopped
from writecliff.workload.model import SECOND_NS

DRIVES = "pm9a3-960,micron-7450-960,pe8110-960"


def choose(cli: CommandLine, output: Path, *more: str, code: int = 0) -> dict[str, object]:
    words = ["choose", "--workload", "oltp-4k", "--candidates", DRIVES, "--scale", "192", "--quiet"]
    done = cli([*words, "--output", str(output), "--json", *more])
    assert done.code == code, done.err
    answer = json.loads(done.out)
    assert isinstance(answer, dict)
    return answer


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


def levels_of(drive: str, tmp_path: Path, **options: object) -> list[tuple[str, float, float]]:
    """Return the name, scale and seconds on the scaled drive for each level of a drive."""
    workload = str(find_workload(Path("oltp-4k")))
    question = Question(workload=workload, candidates=(drive,), **options)  # type: ignore[arg-type]
    plan = plan_choice(question, tmp_path)
    rows = []
    for step, level in zip(plan.steps, plan.levels[drive], strict=True):
        run = step[drive, 1].options
        scale = run.get("scale") or 1.0
        duration_ns = run["steps"][0]["workload"]["jobs"][0]["duration_ns"]
        rows.append((level.name, scale, duration_ns / scale / SECOND_NS))
    return rows


def test_a_stationary_load_lasts_longer_on_a_drive_that_is_scaled_down(tmp_path: Path) -> None:
    rows = levels_of("pm9a3-960", tmp_path)
    assert [name for name, _, _ in rows] == ["rough", "medium", "fine"]
    capacity = show_device("pm9a3-960").capacity_bytes
    for (_, scale, seconds), level in zip(rows, LEVELS, strict=True):
        assert capacity / scale >= level.stationary_bytes > capacity / scale / 4
        assert seconds == pytest.approx(level.stationary_ns / SECOND_NS)


def test_the_load_of_a_drive_with_an_slc_cache_is_shortened_with_it(tmp_path: Path) -> None:
    rows = levels_of("t500-1000", tmp_path)
    # The durations are at least 0.5, 2 and 10 s.
    assert [scale for _, scale, _ in rows] == [64.0, 16.0, 4.0]
    assert [seconds for _, _, seconds in rows] == [60 / 64, 60 / 16, 60 / 4]


def test_the_finest_level_of_a_drive_with_stalls_is_the_whole_drive(tmp_path: Path) -> None:
    assert levels_of("pm863-240", tmp_path)[-1] == ("fine", 1.0, 60.0)


def test_the_user_sets_the_finest_scale(tmp_path: Path) -> None:
    assert levels_of("pm9a3-960", tmp_path, scale=1.0)[-1][1] == 1.0
    assert (
        levels_of("pm9a3-960", tmp_path, exhaustive=True) == levels_of("pm9a3-960", tmp_path)[-1:]
    )


def test_every_class_has_errors_of_all_levels() -> None:
    classes = {class_of(show_device(name)) for name in preset_names()
               if show_device(name).kind != "disk"}  # fmt: skip
    assert set(scale_errors()) == classes
    for table in scale_errors().values():
        assert set(table) == {level.name for level in LEVELS}
        for factors in table.values():
            assert set(factors) <= set(KINDS) and factors
            assert all(factor >= 1 for factor in factors.values())


def test_the_guide_shows_the_errors_that_are_used() -> None:
    guide = Path("docs/guides/choose.md").read_text(encoding="utf-8")
    section = guide.partition("### Errors of smaller drives")[2]
    rows = re.findall(r"(?m)^\| ([^|]+) \| (rough|medium|fine) \| (.+) \|$", section)
    assert len(rows) == sum(map(len, scale_errors().values()))
    for of_class, level, cells in rows:
        factors = scale_errors()[of_class][level]
        assert [f"{factors[kind]:.2f}" if kind in factors else "" for kind in SHOWN] == [
            cell.strip() for cell in cells.split("|")
        ]


def test_only_drives_that_could_be_first_are_simulated_again(
    tmp_path: Path, cli: CommandLine
) -> None:
    limit = ["--limit", "iops >= 150000"]
    rough = choose(cli, tmp_path / "c", *limit, "--budget", "0s")
    assert {row["level"] for row in rough["ranking"]} == {ROUGH.name}  # type: ignore[attr-defined]
    assert rough["ended"] == "budget" and rough["open"]
    # A longer budget continues the choice.
    words = ["choose", "--resume", str(tmp_path / "c"), "--quiet", "--json", "--budget", "5min"]
    answer = json.loads(cli(words).out)
    levels = {row["device"]: row["level"] for row in answer["ranking"]}
    assert levels["micron-7450-960"] == answer["ranking"][0]["level"] == FINE.name
    assert ROUGH.name in (levels["pm9a3-960"], levels["pe8110-960"])
    assert (answer["ended"], answer["open"]) == ("decided", [])
    page = (tmp_path / "c" / "choice.html").read_text(encoding="utf-8")
    assert "were not simulated at the fine level" in page

    whole = choose(cli, tmp_path / "e", *limit, "--exhaustive")
    assert {row["level"] for row in whole["ranking"]} == {FINE.name}  # type: ignore[attr-defined]
    first = [each["ranking"][0] for each in (answer, whole)]  # type: ignore[index]
    assert first[0]["metrics"] == first[1]["metrics"]


def test_an_interrupted_level_keeps_the_ranking_so_far(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from writecliff.suite import runner

    run, calls = runner.run_suite, []

    def stopped(*args: object, **options: object) -> object:
        calls.append(args)
        if len(calls) == 2:
            raise SuiteStopped("stopped")
        return run(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "run_suite", stopped)
    answer = choose(cli, tmp_path / "c", code=130)
    assert answer["ended"] == "interrupted" and len(answer["ranking"]) == 3  # type: ignore[arg-type]
    assert MEDIUM.name not in {row["level"] for row in answer["ranking"]}  # type: ignore[attr-defined]
    runs = list((tmp_path / "c").glob("*/manifest.json"))
    assert len(runs) == 3 and all(
        RunDirectory.open(run.parent).status == "complete" for run in runs
    )

"""Contenders in a comparison, read from paths, and their labels.

A suite is a single contender, whereas each run in a sweep is a contender. Single runs of different
tests on the same drive and set-up form one contender. The IOPS and throughput tests of drive A are
therefore compared with the same tests of drive B. Two runs of the same test are separate
contenders. Saved outputs from `run --json` and `replay --json`, which have no run directory, are
also contenders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.errors import ConfigError, StoreError
from writecliff.input_files import STUMBLES, parse_json, read_bytes
from writecliff.procedures.options import value_text
from writecliff.replay.summary import REPLAY_SCHEMA
from writecliff.report.comparison.runs import DRIVE, Difference, Run, read_run, run_of, telling
from writecliff.report.loads import step_headlines
from writecliff.report.trace_replay import replay_headlines
from writecliff.store.manifest import MANIFEST_NAME
from writecliff.suite.folder import SUITE_NAME, Member, SuiteFolder
from writecliff.suite.sweep import DEVICE, LOAD, OVERPROVISION

if TYPE_CHECKING:
    from writecliff.report.base import TestReport


# Settings that separate runs on the same drive into different contenders.
_ONE_DRIVE = (DRIVE, "target", "firmware", "serial number", "capacity", "description", "seed",
              "write cache", "quick", "edition")  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """A contender in a comparison, consisting of a drive's runs in one set-up, by test."""

    runs: Mapping[str, Run]  # Runs by test.
    label: str = ""  # Name in the comparison.
    name: str = ""  # Name of the given file or folder, or of a run in a folder.
    # `True` for a suite, a run from a sweep, or saved output, which no other run may join.
    fixed: bool = False
    left_out: Sequence[Path] = field(default_factory=tuple)  # Runs that have no complete step.

    @property
    def first(self) -> Run:
        """First run of the contender."""
        return next(iter(self.runs.values()))

    def takes(self, run: Run) -> bool:
        """Return `True` if `run` has the same drive and set-up but a different test."""
        mine, its = self.first.setup, run.setup
        return (
            not self.fixed
            and run.test not in self.runs
            and all(mine.get(what) == its.get(what) for what in _ONE_DRIVE)
        )


def contenders_in(paths: Iterable[Path], cache: dict[Path, Run] | None = None) -> list[Contender]:
    """Return the labelled contenders in `paths`, in path order.

    Args:
        paths: See `compare`.
        cache: Runs that have already been read, by resolved path; newly read runs are added.

    Raises:
        ConfigError: If a path contains no run.
        StoreError: If a run is damaged.
    """
    contenders: list[Contender] = []
    seen: set[Path] = set()
    for path in paths:
        here = list(_in(path, seen, cache))
        if not here and path.resolve() not in seen:
            raise ConfigError(
                f"{path} contains no run",
                hint="specify run directories, suites, sweeps, folders of them, or saved .json",
            )
        seen.add(path.resolve())
        for contender in here:
            _add(contenders, contender)
    return labelled(contenders)


def _add(contenders: list[Contender], new: Contender) -> None:
    """Add a run to the contender that accepts it, or create a new contender."""
    for number, old in enumerate(contenders):
        if not new.fixed and old.takes(new.first):
            name = old.name if old.name == new.name else f"{old.name} and {new.name}"
            contenders[number] = replace(old, runs={**old.runs, **new.runs}, name=name)
            return
    contenders.append(new)


def _in(path: Path, seen: set[Path], cache: dict[Path, Run] | None) -> Iterator[Contender]:
    """Yield the contenders in `path`, visiting each directory only once."""
    if path.resolve() in seen:
        return
    if path.is_file() and path.suffix == SUFFIX:
        seen.add(path.resolve())
        run = read_answer(path)
        yield Contender({run.test: run}, name=path.name, fixed=True)
        return
    if (path / MANIFEST_NAME).is_file():
        seen.add(path.resolve())
        run = read_run(path, cache)
        yield Contender({run.test: run}, name=path.resolve().name)
    elif (path / SUITE_NAME).is_file():
        seen.add(path.resolve())
        name = path.resolve().name
        runs = of_folder(SuiteFolder.open(path), {}, cache)
        yield from (replace(run, name=name) for run in runs)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from _in(child, seen, cache)


def of_folder(
    folder: SuiteFolder,
    reports: Mapping[str, TestReport],
    cache: dict[Path, Run] | None = None,
) -> Iterator[Contender]:
    """Yield a suite as a single contender, or each run in a sweep as a contender.

    Runs without measurements are omitted.

    Args:
        folder: Suite or sweep to read.
        reports: Reports that have already been read, by run name.
        cache: See `contenders_in`.
    """
    runs, left_out = _measured(folder, reports, cache)
    if folder.kind == "sweep":
        for name, run in runs.items():
            label = settings_text(folder.members[name])
            yield Contender({run.test: run}, label or name, fixed=True)
    elif runs:
        by_test = {run.test: run for run in runs.values()}
        yield Contender(by_test, fixed=True, left_out=left_out)


def members_of(folder: SuiteFolder, reports: Mapping[str, TestReport]) -> list[Contender]:
    """Return the runs of a suite as contenders.

    For example, "iops-75-8gib" and "wsat-75-8gib" form the contender "75-8gib". Runs without such a
    suffix are labelled by drive. `reports`: see `of_folder`.
    """
    members: dict[str, dict[str, Run]] = {}
    for name, run in _measured(folder, reports)[0].items():
        label = name.removeprefix(folder.members[name].test).strip("-") or run.drive
        members.setdefault(label, {})[run.test] = run
    return [Contender(runs, label, fixed=True) for label, runs in members.items()]


def _measured(
    folder: SuiteFolder,
    reports: Mapping[str, TestReport],
    cache: dict[Path, Run] | None = None,
) -> tuple[dict[str, Run], list[Path]]:
    """Return the runs by name, and the directories of runs without measurements."""
    runs: dict[str, Run] = {}
    left_out = []
    for name in folder.members:
        path = folder.run_directory(name)
        if not (path / MANIFEST_NAME).is_file():
            continue
        try:
            runs[name] = run_of(reports[name]) if name in reports else read_run(path, cache)
        except StoreError:
            left_out.append(path)
    return runs, left_out


def settings_text(member: Member) -> str:
    """Return the label of a sweep's run, such as "queue depth 32, threads 4"."""
    return ", ".join(
        f"{option_text(key)} {value}{' %' if key.endswith('_pct') else ''}"
        for key, value in member.settings.items()
    )


def option_text(option: str) -> str:
    """Return a text for an option that a sweep varies."""
    if option == OVERPROVISION:
        return "over-provisioning"
    if option.startswith(DEVICE):
        return option.removeprefix(DEVICE)  # Option name in the device file.
    return option.removeprefix(LOAD).removesuffix("_pct").replace("_", " ")


# -- differences and labels ------------------------------------------------------------------


def differences(contenders: Sequence[Contender]) -> list[Difference]:
    """Return the set-up differences between tests run by at least two contenders."""
    tests = dict.fromkeys(test for contender in contenders for test in contender.runs)
    shared = [test for test in tests if sum(test in contender.runs for contender in contenders) > 1]
    differences: dict[tuple[str, tuple[str | None, ...]], list[str]] = {}
    for test in shared:
        runs = [contender.runs.get(test) for contender in contenders]
        for what in dict.fromkeys(w for run in runs if run is not None for w in run.setup):
            values = tuple(None if run is None else run.setup.get(what) for run in runs)
            if len({v for v, run in zip(values, runs, strict=True) if run is not None}) > 1:
                differences.setdefault((what, values), []).append(test)
    return [
        Difference(what, values, () if len(of) == len(shared) else tuple(of))
        for (what, values), of in differences.items()
    ]


def labelled(contenders: Sequence[Contender]) -> list[Contender]:
    """Return the contenders with unique labels.

    A label consists of the drive and the settings that distinguish the contender from other
    contenders on the same drive. If all contenders use the same drive, the label consists of the
    settings only.
    """
    named = list(contenders)
    drives = [contender.first.drive for contender in named]
    for drive in dict.fromkeys(drives):
        group = [number for number, name in enumerate(drives) if name == drive]
        distinctions = (
            _distinctions([named[number] for number in group]) if len(group) > 1 else [""]
        )
        for number, text in zip(group, distinctions, strict=True):
            label = named[number].label or text
            whole = label if len(group) == len(named) else ", ".join(filter(None, (drive, label)))
            named[number] = replace(named[number], label=whole or drive)
    return _unique(named)


def _distinctions(group: Sequence[Contender]) -> list[str]:
    """Return texts that distinguish runs on the same drive.

    The texts are the user's names or, failing that, the first setting that differs in each run,
    several settings, or the start times.
    """
    names = [contender.name for contender in group]
    if all(names) and len(set(names)) == len(group):
        return names
    parts = sorted(differences(group), key=lambda part: telling(part.what))
    for part in parts:
        if len(set(part.values)) == len(group):
            return [_setting_text(part, value) for value in part.values]
    texts = ["" for _ in group]
    for part in parts:
        more = [", ".join(filter(None, (text, _setting_text(part, value))))
                for text, value in zip(texts, part.values, strict=True)]  # fmt: skip
        if len(set(more)) > len(set(texts)):
            texts = more
    times = (datetime.fromisoformat(contender.first.created) for contender in group)
    starts = [f"{time:%Y-%m-%d %H:%M:%S}" for time in times]
    if len(set(texts)) < len(group):
        texts = [", ".join(filter(None, pair)) for pair in zip(texts, starts, strict=True)]
    return texts


def _setting_text(part: Difference, value: str | None) -> str:
    """Return a setting such as "queue depth 32"; the last word identifies a target."""
    text = units.UNKNOWN if value is None else value
    if part.what == "target":
        return text.rpartition("/")[2].removeprefix("sim:").removesuffix(".toml")
    if part.what == "capacity":
        return text
    return f"{part.what} {text}"


def _unique(contenders: Sequence[Contender]) -> list[Contender]:
    """Append the directory name to labels that are not unique."""
    labels = [contender.label for contender in contenders]
    return [
        contender
        if labels.count(contender.label) == 1
        else replace(contender, label=f"{contender.label} ({contender.first.path.name})")
        for contender in contenders
    ]


# -- saved command output ----------------------------------------------------------------------


RUN_SCHEMA = "writecliff/workload-run/1"
SUFFIX = ".json"


def read_answer(path: Path) -> Run:
    """Return the run contained in a saved JSON output.

    Raises:
        ConfigError: If the file is not output from `run --json` or `replay --json`.
    """
    try:
        data = parse_json(read_bytes(path), path)
        read = _READERS[data["schema"]]
        return read(path, data)
    except (OSError, *STUMBLES):
        raise ConfigError(
            f"{path} is not a saved result that can be compared",
            hint="save a result with `writecliff run ... --json > A.json` or `writecliff replay "
            "...`",
        ) from None


def _file_time(path: Path) -> str:
    """Return the file's modification time, because the saved output contains no date."""
    return datetime.fromtimestamp(path.stat().st_mtime).astimezone().isoformat(timespec="seconds")


# -- run --json -------------------------------------------------------------------------------


def _workload_run(path: Path, data: Mapping[str, Any]) -> Run:
    steps = data["steps"]
    seeds = dict.fromkeys(str(step["seed"]) for step in steps)
    return Run(
        path=path,
        test="workload",
        created=_file_time(path),
        setup={
            DRIVE: data["target"],
            "workload": Path(data["file"]).name,
            "seed": ", ".join(seeds),
        },
        headlines=[item for step in steps for item in step_headlines(step, many=len(steps) > 1)],
    )


# -- replay --json ----------------------------------------------------------------------------


def _replay(path: Path, data: Mapping[str, Any]) -> Run:
    trace, device = data["trace"], data["device"]
    return Run(
        path=path,
        test="trace_replay",
        created=_file_time(path),
        setup={
            DRIVE: device["name"],
            "capacity": units.size(device["capacity_bytes"]),
            "trace": Path(trace["path"]).name,
            **{name: value_text(data[name]) for name in ("assign", "streams")},
            "mistagged": f"{data['mistag_pct']:g} %",
            **{
                name: value_text(trace[name])
                for name in ("writeback", "copies", "allocator", "trim", "rounds")
            },
            "simulated capacity": units.size(device["simulated_capacity_bytes"]),
        },
        headlines=replay_headlines(data),
    )


_READERS: Mapping[str, Callable[[Path, Mapping[str, Any]], Run]] = {
    RUN_SCHEMA: _workload_run,
    REPLAY_SCHEMA: _replay,
}

"""Who is compared: contenders from the paths that were given, and what each of them is called.

A suite is one contender, each run of a sweep is one. Runs given one by one are put together where
they are of one drive in one set-up and of different tests, so that the IOPS and the throughput test
of drive A meet those of drive B; two runs of the same test are two contenders. Saved
answers of `run --json` and `replay --json`, which have no run directory, are contenders too.
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


# Two runs of one drive that differ in one of these are not put together.
_ONE_DRIVE = (DRIVE, "target", "firmware", "serial number", "capacity", "description", "seed",
              "write cache", "quick", "edition")  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """What is compared with others: the runs of a drive in one set-up, by test."""

    runs: Mapping[str, Run]  # by test
    label: str = ""  # what it is called
    name: str = ""  # of the file or folder that was given, or of the run in a folder
    fixed: bool = False  # a suite, a part of a sweep or a saved answer: nothing joins it
    left_out: Sequence[Path] = field(default_factory=tuple)  # its runs without a complete step

    @property
    def first(self) -> Run:
        return next(iter(self.runs.values()))

    def takes(self, run: Run) -> bool:
        """Whether `run` is of the same drive in the same set-up, and of another test."""
        mine, its = self.first.setup, run.setup
        return (
            not self.fixed
            and run.test not in self.runs
            and all(mine.get(what) == its.get(what) for what in _ONE_DRIVE)
        )


def contenders_in(paths: Iterable[Path], known: dict[Path, Run] | None = None) -> list[Contender]:
    """The contenders in `paths` in their order, labelled. `known`: runs that are already read, by
    resolved path; those that are read are added. Raises ConfigError for a path without a run,
    StoreError for a damaged one.
    """
    found: list[Contender] = []
    seen: set[Path] = set()
    for path in paths:
        here = list(_in(path, seen, known))
        if not here and path.resolve() not in seen:
            raise ConfigError(
                f"there is no run in {path}",
                hint="give run directories, suites, sweeps, folders of them, or saved .json",
            )
        seen.add(path.resolve())
        for contender in here:
            _add(found, contender)
    return labelled(found)


def _add(found: list[Contender], new: Contender) -> None:
    """Put a single run to the contender that takes it, if there is one."""
    for number, old in enumerate(found):
        if not new.fixed and old.takes(new.first):
            name = old.name if old.name == new.name else f"{old.name} and {new.name}"
            found[number] = replace(old, runs={**old.runs, **new.runs}, name=name)
            return
    found.append(new)


def _in(path: Path, seen: set[Path], known: dict[Path, Run] | None) -> Iterator[Contender]:
    """What `path` holds, each directory once."""
    if path.resolve() in seen:
        return
    if path.is_file() and path.suffix == SUFFIX:
        seen.add(path.resolve())
        run = read_answer(path)
        yield Contender({run.test: run}, name=path.name, fixed=True)
        return
    if (path / MANIFEST_NAME).is_file():
        seen.add(path.resolve())
        run = read_run(path, known)
        yield Contender({run.test: run}, name=path.resolve().name)
    elif (path / SUITE_NAME).is_file():
        seen.add(path.resolve())
        name = path.resolve().name
        runs = of_folder(SuiteFolder.open(path), {}, known)
        yield from (replace(run, name=name) for run in runs)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            if child.is_dir():
                yield from _in(child, seen, known)


def of_folder(
    folder: SuiteFolder,
    reports: Mapping[str, TestReport],
    known: dict[Path, Run] | None = None,
) -> Iterator[Contender]:
    """A suite as one contender, a sweep as one for each of its runs. Runs that have not measured
    anything yet are left out. `reports` has those reports, by name of the run, that are already
    read; `known`: see `contenders_in`.
    """
    runs, left_out = _measured(folder, reports, known)
    if folder.kind == "sweep":
        for name, run in runs.items():
            label = settings_text(folder.members[name])
            yield Contender({run.test: run}, label or name, fixed=True)
    elif runs:
        by_test = {run.test: run for run in runs.values()}
        yield Contender(by_test, fixed=True, left_out=left_out)


def members_of(folder: SuiteFolder, reports: Mapping[str, TestReport]) -> list[Contender]:
    """The runs of a suite as contenders: "iops-75-8gib" and "wsat-75-8gib" are one, "75-8gib"; runs
    that are the only ones of their test are called by the drive. `reports`: see `of_folder`.
    """
    found: dict[str, dict[str, Run]] = {}
    for name, run in _measured(folder, reports)[0].items():
        label = name.removeprefix(folder.members[name].test).strip("-") or run.drive
        found.setdefault(label, {})[run.test] = run
    return [Contender(runs, label, fixed=True) for label, runs in found.items()]


def _measured(
    folder: SuiteFolder,
    reports: Mapping[str, TestReport],
    known: dict[Path, Run] | None = None,
) -> tuple[dict[str, Run], list[Path]]:
    """The runs by name, and the directories of those that have not measured anything yet."""
    runs: dict[str, Run] = {}
    left_out = []
    for name in folder.members:
        path = folder.run_directory(name)
        if not (path / MANIFEST_NAME).is_file():
            continue
        try:
            runs[name] = run_of(reports[name]) if name in reports else read_run(path, known)
        except StoreError:
            left_out.append(path)
    return runs, left_out


def settings_text(member: Member) -> str:
    """What a run of a sweep is called: "over-provisioning 7 %", "queue depth 32, threads 4"."""
    return ", ".join(
        f"{option_text(key)} {value}{' %' if key.endswith('_pct') else ''}"
        for key, value in member.settings.items()
    )


def option_text(option: str) -> str:
    """What is varied by a sweep, in words."""
    if option == OVERPROVISION:
        return "over-provisioning"
    if option.startswith(DEVICE):
        return option.removeprefix(DEVICE)  # as the file has it
    return option.removeprefix(LOAD).removesuffix("_pct").replace("_", " ")


# -- what differs, and names ------------------------------------------------------------------


def differences(contenders: Sequence[Contender]) -> list[Difference]:
    """What differs in the set-up of the tests that at least two contenders ran."""
    tests = dict.fromkeys(test for one in contenders for test in one.runs)
    shared = [test for test in tests if sum(test in one.runs for one in contenders) > 1]
    found: dict[tuple[str, tuple[str | None, ...]], list[str]] = {}
    for test in shared:
        runs = [one.runs.get(test) for one in contenders]
        for what in dict.fromkeys(w for run in runs if run is not None for w in run.setup):
            values = tuple(None if run is None else run.setup.get(what) for run in runs)
            if len({v for v, run in zip(values, runs, strict=True) if run is not None}) > 1:
                found.setdefault((what, values), []).append(test)
    return [
        Difference(what, values, () if len(of) == len(shared) else tuple(of))
        for (what, values), of in found.items()
    ]


def labelled(contenders: Sequence[Contender]) -> list[Contender]:
    """The contenders with labels of their own: the drive, and what tells it from the others where
    several are of one drive. If all are, that alone is the label.
    """
    found = list(contenders)
    drives = [one.first.drive for one in found]
    for drive in dict.fromkeys(drives):
        group = [number for number, name in enumerate(drives) if name == drive]
        own = _own([found[number] for number in group]) if len(group) > 1 else [""]
        for number, text in zip(group, own, strict=True):
            label = found[number].label or text
            whole = label if len(group) == len(found) else ", ".join(filter(None, (drive, label)))
            found[number] = replace(found[number], label=whole or drive)
    return _unique(found)


def _own(group: Sequence[Contender]) -> list[str]:
    """Return names that distinguish runs of one drive: those that the user gave, else the first
    setting that differs for each run, else several of them, else the times of their starts.
    """
    names = [one.name for one in group]
    if all(names) and len(set(names)) == len(group):
        return names
    parts = sorted(differences(group), key=lambda part: telling(part.what))
    for part in parts:
        if len(set(part.values)) == len(group):
            return [_said(part, value) for value in part.values]
    texts = ["" for _ in group]
    for part in parts:
        more = [", ".join(filter(None, (text, _said(part, value))))
                for text, value in zip(texts, part.values, strict=True)]  # fmt: skip
        if len(set(more)) > len(set(texts)):
            texts = more
    begun = [f"{datetime.fromisoformat(one.first.created):%Y-%m-%d %H:%M:%S}" for one in group]
    if len(set(texts)) < len(group):
        texts = [", ".join(filter(None, pair)) for pair in zip(texts, begun, strict=True)]
    return texts


def _said(part: Difference, value: str | None) -> str:
    """ "seed 2", "queue depth 32"; a target by its last word."""
    text = units.UNKNOWN if value is None else value
    if part.what == "target":
        return text.rpartition("/")[2].removeprefix("sim:").removesuffix(".toml")
    if part.what == "capacity":
        return text
    return f"{part.what} {text}"


def _unique(contenders: Sequence[Contender]) -> list[Contender]:
    """Labels that are still the same get the names of the directories."""
    labels = [one.label for one in contenders]
    return [
        one
        if labels.count(one.label) == 1
        else replace(one, label=f"{one.label} ({one.first.path.name})")
        for one in contenders
    ]


# -- answers of commands -----------------------------------------------------------------------


RUN_SCHEMA = "writecliff/workload-run/1"
SUFFIX = ".json"


def read_answer(path: Path) -> Run:
    """The answer in a file. Raises ConfigError: it is none of these."""
    try:
        data = parse_json(read_bytes(path), path)
        read = _READERS[data["schema"]]
        return read(path, data)
    except (OSError, *STUMBLES):
        raise ConfigError(
            f"{path} is not an answer that can be compared",
            hint="save one with `writecliff run ... --json > A.json` or `writecliff replay ...`",
        ) from None


def _begun(path: Path) -> str:
    """An answer has no date; that of its file tells two of them apart."""
    return datetime.fromtimestamp(path.stat().st_mtime).astimezone().isoformat(timespec="seconds")


# -- run --json -------------------------------------------------------------------------------


def _workload_run(path: Path, data: Mapping[str, Any]) -> Run:
    steps = data["steps"]
    seeds = dict.fromkeys(str(step["seed"]) for step in steps)
    return Run(
        path=path,
        test="workload",
        created=_begun(path),
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
        created=_begun(path),
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

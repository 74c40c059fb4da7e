"""Limits on headline figures: "iops_4k_0_100 >= 100000", and what became of them in a run.

A limit is held against the figure itself. Whether all of its 95 % interval is on the same side is
said beside it (`certain`): a figure whose interval reaches across the limit may be on the other
side when the run is repeated. The results are in the manifest, so that reports show them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from writecliff.errors import ConfigError, did_you_mean
from writecliff.report.headline import Headline, value_text
from writecliff.report.model import Section, section, table

if TYPE_CHECKING:
    from writecliff.store.manifest import Manifest

Result = Literal["met", "missed", "unknown"]

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FORM = re.compile(r"\s*(?P<figure>.+?)\s*(?P<relation>>=|<=|>|<)\s*(?P<limit>\S+)\s*(?P<unit>.*)")
_QUALIFIERS = ("service", "flush")  # before figures that only a name with them means
_TIMES_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Expectation:
    """A limit on a figure; `test` is the run of a suite that it is for, "" for all."""

    text: str  # as given
    figure: str
    relation: str
    limit: float
    unit: str = ""
    test: str = ""


@dataclass(frozen=True)
class Judged:
    """A limit and what became of it; a row of `expectations` in the manifest."""

    text: str
    figure: str  # the key of the figure; as given if there is none
    relation: str
    limit: float  # in `unit`
    unit: str  # of the figure
    value: float | None
    result: Result
    certain: bool | None  # all of the interval is on that side; None: a single value
    note: str = ""

    @property
    def met(self) -> bool:
        return self.result == "met"

    @property
    def said(self) -> str:
        """ "met: iops_4k_0_100 >= 100,000 IOPS: 104,000 IOPS"."""
        words = f"{self.figure} {self.relation} {value_text(self.limit)} {self.unit}".rstrip()
        if self.value is None:
            return f"{self.result}: {words}: {self.note}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.result}: {words}: {value_text(self.value)} {self.unit}".rstrip() + note


def parse_expectation(text: str, tests: Iterable[str] = ()) -> Expectation:
    """A limit from `FIGURE >= LIMIT [UNIT]`; in a suite, `TEST.FIGURE` is for one of `tests`.

    Raises ConfigError for another form.
    """
    found = _FORM.fullmatch(text)
    limit = _number(found["limit"]) if found else None
    if found is None or limit is None:
        raise ConfigError(
            f"'{text}' is not FIGURE >= LIMIT",
            hint='for example "iops >= 100000" or "p99.9 <= 2 ms"; also > and <',
        )
    test, dot, rest = found["figure"].partition(".")
    if not dot or test not in tests:
        test, rest = "", found["figure"]
    return Expectation(text.strip(), rest, found["relation"], limit, found["unit"].strip(), test)


def parse_expectations(texts: Iterable[str], tests: Iterable[str] = ()) -> list[Expectation]:
    """All of them, each once. Raises ConfigError."""
    known = tuple(tests)
    return [parse_expectation(text, known) for text in dict.fromkeys(texts)]


def check_names(expected: Iterable[Expectation], keys: Sequence[str] | None) -> None:
    """Refuse a limit on a figure that a run cannot have; `keys` are those that it can have, None if
    that is not known. Raises ConfigError, with the nearest name."""
    if keys is None:
        return
    for one in expected:
        if not matching(one.figure, keys):
            names = [key.lstrip("/") for key in keys]
            raise ConfigError.unknown("figure", one.figure, names, where=f"'{one.text}'")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


# -- judging ----------------------------------------------------------------------------------


def judge(expected: Expectation, headlines: Sequence[Headline]) -> Judged:
    """Hold a limit against the figures of a run. A figure that is not there, or not the only one
    of that name, makes it "unknown", with the nearest names."""
    known = {item.key: item for item in headlines}
    keys = matching(expected.figure, known)
    if len(keys) != 1:
        names = [name.lstrip("/") for name in known]
        note = f"no such figure: {did_you_mean(expected.figure, names, 'nothing was measured')}"
        if keys:
            note = f"not one figure but several: {', '.join(key.lstrip('/') for key in keys)}"
        return _unknown(expected, note)
    item = known[keys[0]]
    factor = _factor(expected.unit, item.unit)
    if factor is None:
        return _unknown(expected, f"it is in {item.unit or 'no unit'}, not in {expected.unit}")
    limit, holds = expected.limit * factor, _RELATIONS[expected.relation]
    met, certain = holds(item.value, limit), None
    if item.interval is not None:
        certain = all(holds(end, limit) is met for end in (item.interval.low, item.interval.high))
    if met and item.not_sustained:  # it grows for as long as the load runs
        return _unknown(expected, item.not_sustained)
    notes = ["its 95 % interval reaches across the limit"] if certain is False else []
    notes += [] if item.steady else [item.not_sustained or "not in steady state"]
    return Judged(
        expected.text, item.key.lstrip("/"), expected.relation, limit, item.unit, item.value,
        "met" if met else "missed", certain, "; ".join(notes),
    )  # fmt: skip


def matching(name: str, keys: Iterable[str]) -> list[str]:
    """Return the keys that `name` may mean: itself, else those that end with it as a whole part.

    "iops" is "/randread/reads/iops" where that is the only one. A key of service times or flushes
    needs a name of them: "p99.9" is never "/randread/reads/service/p99.9".
    """
    name = name.strip("/")
    known = list(keys)
    exact = [key for key in known if key.strip("/") == name]
    return exact or [
        key
        for key in known
        if f"/{key.strip('/')}".endswith(f"/{name}") and _qualified(key) == _qualified(name)
    ]


def _qualified(name: str) -> str:
    """The measure at the end of a figure's name, with the qualifiers before it: "service/p99.9"."""
    *parts, measure = name.split("/")
    qualifiers = takewhile(lambda part: part in _QUALIFIERS, reversed(parts))
    return "/".join((*reversed([*qualifiers]), measure))


def _factor(given: str, own: str) -> float | None:
    """What a limit in the unit `given` is multiplied by to be in the figure's; None: it cannot."""
    if not given or given.lower() == own.lower():
        return 1.0
    return _TIMES_MS.get(given) if own == "ms" else None


def _unknown(expected: Expectation, note: str) -> Judged:
    return Judged(expected.text, expected.figure, expected.relation, expected.limit,
                  expected.unit, None, "unknown", None, note)  # fmt: skip


def judge_run(folder: Path, expected: Sequence[Expectation]) -> list[Judged]:
    """Hold limits against a run and write what became of them into its manifest.

    Raises StoreError: nothing measured, damaged, or in use by another process.
    """
    from writecliff.report import report_of
    from writecliff.store.rundir import RunDirectory

    with RunDirectory.open(folder, write=True) as run:
        figures = report_of(run).limit_figures()
        judged = [judge(one, figures) for one in expected]
        run.update(
            updated=run.manifest.updated,  # when it was measured
            expectations=tuple(asdict(one) for one in judged),
        )
    return judged


def judge_members(
    members: Mapping[str, tuple[str, Path]], expected: Sequence[Expectation]
) -> dict[str, list[Judged]]:
    """Hold limits against the runs of a suite (test and directory by name), each against those that
    it is for and that have its figure; by run. What no run has is under the name "".

    Writes the manifests and reports of the runs. Raises StoreError.
    """
    from writecliff.report import report_of, write_report
    from writecliff.store.rundir import RunDirectory

    found: dict[str, list[Judged]] = {}
    used: set[Expectation] = set()
    for name, (test, path) in members.items():
        keys = [item.key for item in report_of(RunDirectory.open(path)).limit_figures()]
        mine = [
            one
            for one in expected
            if one.test in (name, test) or (not one.test and matching(one.figure, keys))
        ]
        used |= {*mine}
        if mine:
            found[name] = judge_run(path, mine)
            write_report(path)
    if left := [one for one in expected if one not in used]:
        found[""] = [_unknown(one, "no run has such a figure") for one in left]
    return found


# -- reporting --------------------------------------------------------------------------------


def expectations_section(manifest: Manifest) -> Iterator[Section]:
    """The limits of a run as a section of its page."""
    if not manifest.expectations:
        return
    judged = [Judged(**item) for item in manifest.expectations]
    missed = sum(not one.met for one in judged)
    said = "All are met." if not missed else f"{missed} of {len(judged)} are not met."
    head = ("Figure", "Limit", "Measured", "Result", "")
    rows = [
        (
            one.figure,
            f"{one.relation} {value_text(one.limit)} {one.unit}".rstrip(),
            "-" if one.value is None else f"{value_text(one.value)} {one.unit}".rstrip(),
            one.result,
            one.note,
        )
        for one in judged
    ]
    yield section("Limits", said, table("Limits on figures", head, rows, "lrrll"))


def expectations_disclosure(manifest: Manifest) -> tuple[str, ...]:
    """A sentence for each limit that is not met."""
    judged = (Judged(**item) for item in manifest.expectations)
    return tuple(f"Limit {one.said}." for one in judged if not one.met)

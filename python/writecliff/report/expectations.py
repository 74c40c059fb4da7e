"""Limits on headline figures ("iops_4k_0_100 >= 100000") and the verdicts on these limits.

A limit applies to the figure's value. `certain` is `True` if the whole 95 % interval is on the same
side of the limit. If part of the interval is on the other side of the limit, a repeated run may
have a different verdict. The verdicts are stored in the manifest, where reports read them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from writecliff.errors import ConfigError, did_you_mean
from writecliff.report import kinds
from writecliff.report.headline import Headline, value_text
from writecliff.report.model import Section, section
from writecliff.report.table import Quantity, table

if TYPE_CHECKING:
    from writecliff.procedures.model import Procedure
    from writecliff.report.base import TestReport
    from writecliff.store.manifest import Manifest

Result = Literal["met", "missed", "unknown"]

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FORM = re.compile(
    r"\s*(?P<figure>[^<>=]+?)\s*(?P<relation>[<>=]+)\s*"
    r"(?P<limit>[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"(?P<thousands>[kKMG](?=$|\s|IOPS))?\s*(?P<unit>(?:[^\s\d,.]\S*)?)\s*"
)
_THOUSANDS = {None: 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_LISTED = 40  # Maximum number of figures that an error lists.
_QUALIFIERS = ("service", "flush")  # Key components that a name must include to match the key.
_FACTORS: Mapping[str, Mapping[str, float]] = {
    "ms": {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3},
    "MB/s": {"B/s": 1e-6, "kB/s": 1e-3, "MB/s": 1.0, "GB/s": 1e3, "KiB/s": 1024e-6,
             "MiB/s": 1024**2 / 1e6, "GiB/s": 1024**3 / 1e6},
}  # fmt: skip
"""Factors from the unit of a limit to the unit of its figure, by the latter."""


@dataclass(frozen=True)
class Expectation:
    """A limit on a figure; `test` is the suite run to which it applies, or "" for all runs."""

    text: str  # Limit as given by the user.
    figure: str
    relation: str
    limit: float
    unit: str = ""
    test: str = ""


@dataclass(frozen=True)
class Judged:
    """A verdict on a limit, stored as a row of `expectations` in the manifest."""

    text: str
    figure: str  # Key of the figure; the given name if no key matches.
    relation: str
    limit: float  # Limit value in `unit`.
    unit: str  # Unit of the figure.
    value: float | None
    result: Result
    # `True` if the whole interval lies on that side of the limit; `None` for a single value.
    certain: bool | None
    note: str = ""

    @property
    def met(self) -> bool:
        """`True` if the limit is met."""
        return self.result == "met"

    @property
    def summary(self) -> str:
        """Verdict as text, such as "met: iops_4k_0_100 >= 100,000 IOPS: 104,000 IOPS"."""
        words = f"{self.figure} {self.relation} {value_text(self.limit)} {self.unit}".rstrip()
        if self.value is None:
            return f"{self.result}: {words}: {self.note}"
        note = f" ({self.note})" if self.note else ""
        return f"{self.result}: {words}: {value_text(self.value)} {self.unit}".rstrip() + note


def parse_expectation(text: str, tests: Iterable[str] = ()) -> Expectation:
    """Parse a limit in the form `FIGURE >= LIMIT [UNIT]`.

    In a suite, `TEST.FIGURE` applies the limit to one of `tests`.

    Raises:
        ConfigError: If `text` does not have this form.
    """
    match = _FORM.fullmatch(text.replace("≤", "<=").replace("≥", ">="))
    limit = _number(match["limit"].replace(",", "")) if match else None
    hint = 'for example "iops >= 100k" or "p99.9 <= 2 ms"; also > and <'
    if match is None or limit is None:
        raise ConfigError(f"'{text}' is not FIGURE >= LIMIT", hint=hint)
    if match["relation"] not in _RELATIONS:
        raise ConfigError(f"'{text}' is not FIGURE >= LIMIT: unknown relation "
        f"'{match['relation']}'",
                          hint=f"use {', '.join(_RELATIONS)}")  # fmt: skip
    limit *= _THOUSANDS[match["thousands"]]
    test, dot, rest = match["figure"].partition(".")
    if not dot or test not in tests:
        test, rest = "", match["figure"]
    return Expectation(text.strip(), rest, match["relation"], limit, match["unit"].strip(), test)


def parse_expectations(texts: Iterable[str], tests: Iterable[str] = ()) -> list[Expectation]:
    """Parse limits, removing duplicates.

    Raises:
        ConfigError: If a text is not a limit.
    """
    measured = tuple(tests)
    return [parse_expectation(text, measured) for text in dict.fromkeys(texts)]


def check_figures(expected: Iterable[Expectation], figures: Mapping[str, str] | None) -> None:
    """Reject a limit on a figure that a run cannot have, before the run starts.

    Args:
        expected: Limits to check.
        figures: Units of the figures that the run can have, by key, or None if unknown.

    Raises:
        ConfigError: If a figure is unknown or ambiguous, or has a different unit.
    """
    for limit in expected if figures is not None else ():
        assert figures is not None
        keys = matching(limit.figure, figures)
        if not keys:
            nearest = _nearest(limit.figure, figures)
            raise ConfigError(f"'{limit.text}': unknown figure '{limit.figure}'",
                              hint=f"the figures are {nearest}")  # fmt: skip
        if len(keys) > 1:
            raise ConfigError(f"'{limit.text}': '{limit.figure}' is ambiguous",
                              hint=f"specify one of {', '.join(map(_shown, keys))}")  # fmt: skip
        unit = unit_of(keys[0], figures)
        if _factor(limit.unit, unit) is None:
            raise ConfigError(f"'{limit.text}': {_shown(keys[0])} is in {unit or 'no unit'}, not "
            f"in {limit.unit}", hint=_units_hint(unit))  # fmt: skip


def check_procedure(expected: Sequence[Expectation], procedure: Procedure) -> list[Expectation]:
    """Return the limits from the procedure's file and from `expected`, after `check_figures`."""
    limits = [*parse_expectations(getattr(procedure, "expect", ())), *expected]
    if limits:
        check_figures(limits, figures_of_procedure(procedure))
    return limits


def check_members(
    expected: Iterable[Expectation], members: Mapping[str, tuple[str, Mapping[str, str] | None]]
) -> None:
    """Reject a limit that applies to no run of a suite or sweep, before the first run starts.

    Args:
        expected: Limits to check.
        members: Test and figures of each run, by run name.

    Raises:
        ConfigError: As `check_figures`.
    """
    for limit in expected:
        mine = [
            item
            for name, (test, item) in members.items()
            if not limit.test or limit.test in (name, test)
        ]
        fitting = [key for key in mine if key is None or matching(limit.figure, key)]
        every: dict[str, str] = {}
        for key in mine:
            every |= key or {}
        for key in fitting or [every]:
            check_figures([limit], key)


def percentiles_of(expected: Iterable[Expectation]) -> list[float]:
    """Return the percentiles that the limits refer to, in percent."""
    names = (_PERCENTILE.fullmatch(limit.figure.rpartition("/")[2]) for limit in expected)
    return sorted({float(name[1]) for name in names if name is not None and float(name[1]) > 0})


def unit_of(key: str, figures: Mapping[str, str]) -> str:
    """Return the unit of a figure that `matching` has returned for `figures`."""
    return figures.get(key, "ms")  # The name is a percentile that is not a headline figure.


def _nearest(name: str, keys: Iterable[str]) -> str:
    """List the keys, starting with the most similar to `name`."""
    names = sorted(map(_shown, keys), key=lambda key: -_likeness(name, key))
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _likeness(name: str, key: str) -> float:
    """Return the similarity (0 to 1) between a name and a key or a key's end."""
    tail = "/".join(key.split("/")[-1 - name.count("/") :])
    return max(SequenceMatcher(None, name, text).ratio() for text in (key, tail))


def _shown(key: str) -> str:
    return key.lstrip("/")


def _units_hint(unit: str) -> str:
    return f"use {', '.join(_FACTORS[unit])}" if unit in _FACTORS else "omit the unit"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


# -- judging ----------------------------------------------------------------------------------


def judge(
    expected: Expectation, headlines: Sequence[Headline], missing: Mapping[str, str] | None = None
) -> Judged:
    """Compare a limit with a run's figures.

    `missing` gives the reasons why figures are unknown, by key. The verdict is "unknown" if the
    figure is missing or ambiguous.
    """
    measured = {item.key: item for item in headlines}
    missing = missing or {}
    keys = matching(expected.figure, [*measured, *missing])
    if len(keys) != 1:
        names = [name.lstrip("/") for name in measured]
        note = f"no such figure: {did_you_mean(expected.figure, names, 'nothing was measured')}"
        if keys:
            note = f"not one figure but several: {', '.join(key.lstrip('/') for key in keys)}"
        return _unknown(expected, note)
    if keys[0] not in measured:
        return _unknown(expected, missing.get(keys[0], "not measured"))
    item = measured[keys[0]]
    factor = _factor(expected.unit, item.unit)
    if factor is None:
        return _unknown(expected, f"it is in {item.unit or 'no unit'}, not in {expected.unit}")
    limit, holds = expected.limit * factor, _RELATIONS[expected.relation]
    met, certain = holds(item.value, limit), None
    if item.interval is not None:
        certain = all(holds(end, limit) is met for end in (item.interval.low, item.interval.high))
    if met and item.not_sustained:  # The latency grows while the load runs.
        return _unknown(expected, item.not_sustained)
    notes = ["its 95 % interval spans the limit"] if certain is False else []
    notes += [] if item.steady else [item.not_sustained or "not in steady state"]
    return Judged(
        expected.text, item.key.lstrip("/"), expected.relation, limit, item.unit, item.value,
        "met" if met else "missed", certain, "; ".join(notes),
    )  # fmt: skip


def matching(name: str, keys: Iterable[str]) -> list[str]:
    """Return `name` if it is a key, or all keys that end with its parts.

    For example, "iops" matches "/randread/reads/iops". A key for service times or flushes requires
    a name that includes that part, so "p99.9" never matches "/randread/reads/service/p99.9".
    """
    name = name.strip("/")
    measured = list(keys)
    matching = _matching(name, measured)
    path, slash, measure = name.rpartition("/")
    asked = _PERCENTILE.fullmatch(measure)
    if matching or asked is None or not float(asked[1]):
        return matching
    # The histogram that provides p99 also provides any other percentile.
    return [
        f"{key.rpartition('/')[0]}/p{float(asked[1]):.10g}".lstrip("/" if "/" not in key else "")
        for key in _matching(f"{path}{slash}p99", measured)
    ]


def _matching(name: str, names: Sequence[str]) -> list[str]:
    exact = [key for key in names if key.strip("/") == name]
    return exact or [
        key
        for key in names
        if f"/{key.strip('/')}".endswith(f"/{name}") and _qualified(key) == _qualified(name)
    ]


def _qualified(name: str) -> str:
    """Return the last part of a figure's name with its qualifiers, such as "service/p99.9"."""
    *parts, measure = name.split("/")
    qualifiers = takewhile(lambda part: part in _QUALIFIERS, reversed(parts))
    return "/".join((*reversed([*qualifiers]), measure))


def _factor(given: str, unit: str) -> float | None:
    """Return the conversion factor from the unit `given` to `unit`, or None if there is none."""
    if not given or given.lower() == unit.lower():
        return 1.0
    return _FACTORS.get(unit, {}).get(given)


def _unknown(expected: Expectation, note: str) -> Judged:
    return Judged(expected.text, expected.figure, expected.relation, expected.limit,
                  expected.unit, None, "unknown", None, note)  # fmt: skip


def figures_of_procedure(procedure: Procedure) -> Mapping[str, str] | None:
    """Return the unit of each possible figure in a run of `procedure`, or None if unknown."""
    from writecliff.procedures.registry import entry_of

    report = entry_of(procedure.name).load_report()
    units: Mapping[str, str] | None = report.figure_units(procedure)
    return units


def judge_run(folder: Path, expected: Sequence[Expectation]) -> list[Judged]:
    """Check a run's figures against limits, and write the verdicts to the run's manifest.

    Raises:
        StoreError: If the run has no measurements, is damaged, or is in use by a different process.
    """
    from writecliff.report import report_of
    from writecliff.store.rundir import RunDirectory

    with RunDirectory.open(folder, write=True) as run:
        return judge_report(report_of(run), expected)


def judge_report(report: TestReport, expected: Sequence[Expectation]) -> list[Judged]:
    """Check the figures of a run that is open for writing, like `judge_run`."""
    run = report.data.run
    figures, missing = report.limit_figures(percentiles_of(expected))
    judged = [judge(limit, figures, missing) for limit in expected]
    run.update(
        updated=run.manifest.updated,  # Time of the measurement.
        expectations=tuple(asdict(limit) for limit in judged),
    )
    return judged


def judge_members(
    members: Mapping[str, tuple[str, Path]], expected: Sequence[Expectation]
) -> dict[str, list[Judged]]:
    """Check the figures of a suite's runs, and update the runs' manifests and reports.

    Each limit applies to the specified runs that have its figure.

    Args:
        members: Test and directory of each run, by run name.
        expected: The limits.

    Returns:
        Verdicts by run name; limits that match no run are under "".

    Raises:
        StoreError: If a run is damaged or in use.
    """
    from writecliff.report import report_of, write_pages
    from writecliff.store.rundir import RunDirectory

    judge_members: dict[str, list[Judged]] = {}
    used: set[Expectation] = set()
    for name, (test, path) in members.items():
        with RunDirectory.open(path, write=True) as run:
            report = report_of(run)
            figures, missing = report.limit_figures(())
            keys = [*(item.key for item in figures), *missing]
            mine = [
                limit
                for limit in expected
                if limit.test in (name, test) or (not limit.test and matching(limit.figure, keys))
            ]
            used |= {*mine}
            if mine:
                judge_members[name] = judge_report(report, mine)
                write_pages(report)
    if left := [limit for limit in expected if limit not in used]:
        judge_members[""] = [_unknown(limit, "no run has such a figure") for limit in left]
    return judge_members


# -- reporting --------------------------------------------------------------------------------


def expectations_section(manifest: Manifest) -> Iterator[Section]:
    """Yield the section about a run's limits."""
    if not manifest.expectations:
        return
    judged = [Judged(**item) for item in manifest.expectations]
    missed = sum(not limit.met for limit in judged)
    verb = "is" if missed == 1 else "are"
    text = f"{missed} of {len(judged)} {verb} not met." if missed else "All are met."
    head = ("Figure", "Limit", "Measured", "Result", "")
    rows = [
        (
            limit.figure,
            f"{limit.relation} {value_text(limit.limit)} {limit.unit}".rstrip(),
            Quantity(limit.value, kinds.digits(4, limit.unit)),
            limit.result,
            limit.note,
        )
        for limit in judged
    ]
    yield section("Limits", text, table("Limits on figures", head, rows, "lrrll"))


def expectations_disclosure(manifest: Manifest) -> tuple[str, ...]:
    """Return a sentence for each limit that is not met."""
    judged = (Judged(**item) for item in manifest.expectations)
    return tuple(f"Limit {limit.summary}." for limit in judged if not limit.met)

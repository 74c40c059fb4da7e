"""Outcome of a measurement: its limits, its baseline, and the file for CI systems.

A limit is missed if its figure violates the limit or does not exist. A baseline is missed if a
figure is significantly worse than in the baseline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.api.answers.tests import Comparison as ComparisonAnswer
    from writecliff.api.runs import Run
    from writecliff.report.comparison import Comparison
    from writecliff.report.comparison.judgement import Judgement
    from writecliff.report.comparison.runs import Run as ComparedRun
    from writecliff.report.expectations import Expectation, Judged
    from writecliff.suite.folder import Member

EXIT_MISSED = 3
PAGE_NAME = "comparison.html"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def check_limits(
    expect: Sequence[str], junit: Path | None, tests: Iterable[str] = ()
) -> list[Expectation]:
    """Parse limits before a run starts.

    Raises:
        ConfigError: If a text is not a limit, or the JUnit file cannot be created.
    """
    if junit is not None and (junit.is_dir() or not junit.absolute().parent.is_dir()):
        raise ConfigError(
            f"cannot create the --junit file {junit}",
            hint="choose a file in an existing folder",
        )
    if not expect:
        return []
    from writecliff.report.expectations import parse_expectations

    return parse_expectations(expect, tests)


def check_set_limits(expect: Sequence[str], members: Mapping[str, Member]) -> None:
    """Reject a limit that applies to no run in a suite or sweep. Raises ConfigError."""
    if not expect:
        return
    from writecliff.engines.target import is_simulated
    from writecliff.procedures.registry import procedure_from_mapping
    from writecliff.report.expectations import (
        check_members,
        figures_of_procedure,
        parse_expectations,
    )

    tests = {*members} | {member.test for member in members.values()}
    simulated = all(is_simulated(member.target) for member in members.values())
    figures = {
        name: (
            member.test,
            figures_of_procedure(
                procedure_from_mapping(member.test, member.options, simulated=simulated)
            ),
        )
        for name, member in members.items()
    }
    check_members(parse_expectations(expect, tests), figures)


class Baseline:
    """An earlier run, suite or saved JSON output, read before the measurement starts."""

    def __init__(self, path: Path) -> None:
        """Read `path`.

        Raises:
            ConfigError: If the directory contains no run.
            StoreError: If the run is damaged.
        """
        from writecliff.report.comparison.contenders import contenders_in

        self._path = path
        self._runs: dict[Path, ComparedRun] = {}
        contenders_in([path], self._runs)

    def compare(self, path: Path, run: Run | None = None) -> BaselineComparison:
        """Compare the run or suite in `path` with the baseline, and write the page to `path`.

        `run` is the run in `path` if its report already exists. Raises as `api.compare`.
        """
        from writecliff.report.comparison import compare
        from writecliff.report.comparison.page import comparison_page
        from writecliff.report.comparison.runs import run_of
        from writecliff.report.pages import write_page

        if run is not None:
            self._runs[path.resolve()] = run_of(run.report)
        comparison = compare([self._path, path], self._runs)
        return BaselineComparison(
            comparison, write_page(comparison_page(comparison), path / PAGE_NAME)
        )


def read_baseline(path: Path | None) -> Baseline | None:
    """Read a baseline, or return `None` if there is no path. Raises as `Baseline`."""
    return None if path is None else Baseline(path)


@dataclass(frozen=True)
class BaselineComparison:
    """A comparison of a run with its baseline, and the comparison page."""

    comparison: Comparison
    page: Path

    def lines(self) -> list[tuple[str, str]]:
        """Return the lines to print below the run's outcome. The last line is the verdict."""
        return [("comparison", str(self.page)), ("compared", self.comparison.verdict)]

    def judged(self) -> Iterator[tuple[str, Judgement, str]]:
        """Yield each figure's name, its verdict, and a sentence that states both values."""
        from writecliff.report.comparison.judgement import judgement
        from writecliff.report.comparison.page import figure_names

        if len(self.comparison.contenders) != 2:  # A sweep cannot be compared with a single run.
            return
        names = figure_names(self.comparison)
        for name, figure in zip(names, self.comparison.figures, strict=True):
            word = judgement(figure, 0, 1)
            texts = ["-" if value is None else value.full_text for value in figure.values]
            yield name, word, f"{name} is {word}: {texts[1]}, in the baseline {texts[0]}"

    @property
    def worse(self) -> bool:
        """`True` if a figure is significantly worse than in the baseline."""
        return any(word == "worse" for _, word, _ in self.judged())

    def answer(self) -> ComparisonAnswer:
        """Return the comparison in the format of `writecliff compare --json`."""
        return comparison_answer(self.comparison, self.page)


def comparison_answer(comparison: Comparison, page: Path, **files: Path | None) -> ComparisonAnswer:
    """Return a comparison and its page. `files` contains the paths of `pdf` and `csv`."""
    from writecliff.api.answers.tests import Comparison
    from writecliff.report.comparison.page import comparison_mapping

    return Comparison.of(comparison_mapping(comparison), report=page, **files)


@dataclass(frozen=True)
class Outcome:
    """Limits of a measurement, grouped by run, and the comparison with its baseline."""

    name: str  # Name of the run or suite.
    judged: Mapping[str, Sequence[Judged]] = field(default_factory=dict)  # Judgements by run.
    compared: BaselineComparison | None = None

    @classmethod
    def of_run(cls, run: Run, baseline: Baseline | None = None) -> Outcome:
        """Return the outcome of a run whose manifest has its limits. Raises as `api.compare`."""
        compared = None if baseline is None else baseline.compare(run.path, run)
        return cls(run.path.name, {run.path.name: run.limits}, compared)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the lines to print in the terminal below the measurement result."""
        many = len(self.judged) > 1
        for run, limits in self.judged.items():
            prefix = f"{run}: " if many else ""
            yield from (("limit", prefix + limit.summary) for limit in limits)
        if self.compared is not None:
            yield from self.compared.lines()

    @property
    def exit_code(self) -> int:
        """Exit code: 0, or 3 if a limit or the baseline is missed."""
        missed = any(not limit.met for limits in self.judged.values() for limit in limits)
        return EXIT_MISSED if missed or (self.compared and self.compared.worse) else 0

    def answer(self) -> dict[str, Any]:
        """Return the output fields `expectations` and `comparison`."""
        from writecliff.api.answers.base import LimitResult

        limits = [
            LimitResult(run, **vars(limit))
            for run, judged in self.judged.items()
            for limit in judged
        ]
        compared = None if self.compared is None else self.compared.answer()
        return {"expectations": limits, "comparison": compared}

    def end(self, junit: Path | None) -> int:
        """Write the CI file if requested, and return the exit code. Raises StoreError."""
        if junit is not None:
            from writecliff.store.files import write_atomically

            write_atomically(junit, self.junit())
        return self.exit_code

    def junit(self) -> bytes:
        """Return the outcome as a JUnit XML document.

        The document has a test case for each limit, for the run itself, and for each compared
        figure.
        """
        suites = Element("testsuites", name="writecliff")
        for run, limits in self.judged.items():
            suite = _suite(suites, run)
            _case(suite, run, "measured", None)
            for limit in limits:
                _case(suite, run, limit.text, None if limit.met else limit.summary)
        if self.compared is not None:
            suite = _suite(suites, f"{self.name} against its baseline")
            for figure, word, sentence in self.compared.judged():
                _case(suite, self.name, figure, sentence if word == "worse" else None)
        for element in (*suites, suites):
            cases = list(element.iter("testcase"))
            failures = list(element.iter("failure"))
            element.set("tests", str(len(cases)))
            element.set("failures", str(len(failures)))
            element.set("errors", "0")
        indent(suites)
        return bytes(tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(suites: Element, name: str) -> Element:
    return SubElement(suites, "testsuite", name=_xml(name))


def _case(suite: Element, run: str, name: str, failure: str | None) -> None:
    case = SubElement(suite, "testcase", classname=_xml(run), name=_xml(name))
    if failure is not None:
        SubElement(case, "failure", message=_xml(failure)).text = _xml(failure)


def _xml(text: str) -> str:
    """Replace characters that XML does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)

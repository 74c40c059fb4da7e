"""Results in the form of JUnit's XML, which CI systems show: a test case for each limit, for the
run itself, and for each figure that is worse than in the baseline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from writecliff.store.files import write_atomically

if TYPE_CHECKING:
    from writecliff.cli.limits import Outcome

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, outcome: Outcome) -> None:
    """Write the file, as a whole. Raises StoreError."""
    suites = Element("testsuites", name="writecliff")
    for run, limits in outcome.judged.items():
        suite = _suite(suites, run)
        _case(suite, run, "measured", None)
        for one in limits:
            _case(suite, run, one.text, None if one.met else one.said)
    if outcome.compared is not None:
        suite = _suite(suites, f"{outcome.name} against its baseline")
        for figure, word, said in outcome.compared.judged():
            _case(suite, outcome.name, figure, said if word == "worse" else None)
    for element in (*suites, suites):
        cases = list(element.iter("testcase"))
        failures = list(element.iter("failure"))
        element.set("tests", str(len(cases)))
        element.set("failures", str(len(failures)))
        element.set("errors", "0")
    indent(suites)
    write_atomically(path, tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")


def _suite(suites: Element, name: str) -> Element:
    return SubElement(suites, "testsuite", name=_xml(name))


def _case(suite: Element, run: str, name: str, failure: str | None) -> None:
    case = SubElement(suite, "testcase", classname=_xml(run), name=_xml(name))
    if failure is not None:
        SubElement(case, "failure", message=_xml(failure)).text = _xml(failure)


def _xml(text: str) -> str:
    """The text without what XML cannot hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)

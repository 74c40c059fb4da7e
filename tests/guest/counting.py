"""A pytest plugin that counts the cases of figures: `-p tests.guest.counting --figures FILE`.

A mark identifies a test as a case of a figure: `pytest.mark.figure(faults="vanished")`. A case may
name parameters of the test, as in `"{drive} wsat"`; `figures.FIGURES` lists the figures.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.guest.figures import Figures

_KEY = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="file to write the cases of figures to")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEY] = Figures()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    parameters = getattr(item, "callspec", None)
    names = {} if parameters is None else parameters.params
    for mark in item.iter_markers("figure"):
        for figure, case in mark.kwargs.items():
            name = case.format_map(names) or item.nodeid
            item.config.stash[_KEY].count(figure, name, report.outcome)
    path = item.config.getoption("figures")
    if path is not None and report.when == "teardown":
        # Save after each test, because the guest may be lost.
        item.config.stash[_KEY].save(path)
    return report

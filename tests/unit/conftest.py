"""Settings of unit tests.

Generated cases have no deadline, because the machine may be busy. `fsync`, which would take most of
the time of many tests, is left out, because no power is cut. Figures, which take most of the time of
a report, are composed but written as empty drawings, except in modules and tests marked `draws`.
Processes that tests start call `fsync` and draw.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, settings
from matplotlib.figure import Figure

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_medium() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


_SAVE_FIGURE = Figure.savefig


def _write_empty_drawing(figure: Figure, file: IO[str], **how: Any) -> None:
    width, height = figure.get_size_inches() * 72
    file.write(f'<svg viewBox="0 0 {width:g} {height:g}" version="1.1"></svg>')


@pytest.fixture(scope="module", autouse=True)
def _empty_figures_of_modules(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave figures empty in the fixtures and tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("draws") is None:
            patch.setattr(Figure, "savefig", _write_empty_drawing)
        yield


@pytest.fixture(autouse=True)
def _figures_of_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Draw the figures that a marked test makes itself."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("draws") is not None:
            patch.setattr(Figure, "savefig", _SAVE_FIGURE)
        yield

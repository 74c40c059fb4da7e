"""Experiments: published claims, rebuilt so that one command repeats them and says how.

An experiment has two modules: one with `run(...)`, which measures and returns plain data, and one
that renders them: `mapping` for `--json`, `tables` and `page`. `EXPERIMENTS` lists them; nothing
heavy is loaded until one is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.report.model import Table
    from writecliff.report.pages import Page


Log = Callable[[str], None]


@dataclass(frozen=True)
class Experiment:
    """One line of `writecliff experiment --list`."""

    name: str
    about: str
    module: str  # measures; the module of the same name with `_page` at its end renders


class Runner(Protocol):
    """The module of an experiment that measures."""

    def run(self, *, scale: float, log: Log) -> Any:
        """Measure everything; `log` receives lines about the progress."""


class Renderer(Protocol):
    """The module of an experiment that renders the results."""

    def mapping(self, result: Any) -> dict[str, Any]: ...

    def tables(self, result: Any) -> tuple[Table, ...]: ...

    def page(self, result: Any) -> Page: ...


EXPERIMENTS = (
    Experiment(
        "fms-fio",
        "four sequential writers of unequal lifetimes and six random readers, streams off and on",
        "writecliff.experiments.fms_fio",
    ),
    Experiment(
        "fms-cassandra",
        "a real Cassandra's writes, captured and replayed on a drive, streams off and on",
        "writecliff.experiments.fms_cassandra",
    ),
)


def experiment(name: str) -> tuple[Runner, Renderer]:
    """The modules of an experiment. Raises ConfigError for an unknown name."""
    for known in EXPERIMENTS:
        if known.name == name:
            renderer = import_module(f"{known.module}_page")
            return cast(Runner, import_module(known.module)), cast(Renderer, renderer)
    raise ConfigError.unknown("experiment", name, [known.name for known in EXPERIMENTS])


def write_page(page: Page, path: Path) -> Path:
    """Write the page to `path` and return it; an existing file is replaced atomically."""
    from writecliff.report.pages import render_page
    from writecliff.store.files import write_atomically

    write_atomically(path, render_page(page).encode())
    return path

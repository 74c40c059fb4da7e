"""Experiments: published claims, rebuilt so that one command repeats them and says how.

An experiment has two modules: one with `run(...)`, which measures and returns plain data, and one
that renders them: `mapping` for `--json`, `tables` and `page`. `EXPERIMENTS` lists them; nothing
heavy is loaded until one is run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from writecliff.errors import ConfigError

Log = Callable[[str], None]
# By name; an experiment is measured by the module of its name in this folder.
EXPERIMENTS = {
    "fms-fio": "four sequential writers of unequal lifetimes and six random readers, streams off "
    "and on",
    "fms-cassandra": "a real Cassandra's writes, captured and replayed on a drive, streams off and "
    "on",
}


def experiment(name: str) -> tuple[ModuleType, ModuleType]:
    """The modules of an experiment: one with `run(scale=, log=)`, and one with `mapping`, `tables`
    and `page`, which take its result. Raises ConfigError for an unknown name."""
    if name not in EXPERIMENTS:
        raise ConfigError.unknown("experiment", name, EXPERIMENTS)
    module = f"{__name__}.{name.replace('-', '_')}"
    return import_module(module), import_module(f"{module}_page")

"""Experiments: published claims, rebuilt so that one command repeats them and says how.

An experiment has two modules: one with `run(...)`, which measures and returns plain data, and one
that renders them: `mapping` for `--json`, `tables` and `page`. `EXPERIMENTS` lists them; nothing
heavy is loaded until one is run. `LIVE` has those with a real program on a served drive, which
share these modules (`live/`) and differ in the program.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.lab.experiments.live.model import Application

Log = Callable[[str], None]
# By name; an experiment is measured by the module of its name in this folder.
EXPERIMENTS = {
    "fms-fio": "four sequential writers of unequal lifetimes and six random readers, streams off "
    "and on",
    "fms-cassandra": "a real Cassandra's writes, captured and replayed on a drive, streams off and "
    "on",
}
# By name: module and class of the program.
LIVE = {
    "fms-cassandra": ("cassandra", "Cassandra"),
    "streams-rocksdb": ("rocksdb", "RocksDB"),
}
ABOUT_LIVE = {
    "fms-cassandra": "a real Cassandra on a served drive, its commit log in a stream of its own",
    "streams-rocksdb": "a real RocksDB on a served drive, its log and levels in streams",
}


def live_application(name: str) -> Application:
    """The program of a live experiment. Raises ConfigError for an unknown name."""
    if name not in LIVE:
        raise ConfigError.unknown("live experiment", name, LIVE)
    module, kind = LIVE[name]
    application: Application = getattr(import_module(f"{__name__}.live.{module}"), kind)()
    return application


def experiment(name: str) -> tuple[ModuleType, ModuleType]:
    """The modules of an experiment: one with `run(scale=, log=)`, and one with `mapping`, `tables`
    and `page`, which take its result. Raises ConfigError for an unknown name.
    """
    if name not in EXPERIMENTS:
        if name in LIVE:
            raise ConfigError(f"{name} is a live experiment", hint=f"give --live: {name} --live")
        raise ConfigError.unknown("experiment", name, EXPERIMENTS)
    module = f"{__name__}.{name.replace('-', '_')}"
    return import_module(module), import_module(f"{module}_page")

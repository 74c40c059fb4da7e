"""Published experiments that a single command repeats, and their conditions.

An experiment has two modules. One module has `run(...)`, which measures and returns plain data. The
other module renders the data. `mapping` for `--json`, `tables` and `page`. `EXPERIMENTS` lists the
experiments, whose modules are imported only when an experiment runs. `LIVE` lists the experiments
that run a real application on a served drive. Live experiments share the modules in `live/` and
differ in the application.
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
# By name. The module of the same name in this folder runs the experiment.
EXPERIMENTS = {
    "fms-fio": "four sequential writers with different data lifetimes, six random readers, streams "
    "off and on",
    "fms-cassandra": "captured writes of a real Cassandra, replayed on a drive, streams off and on",
}
# Module and class by application name.
LIVE = {
    "fms-cassandra": ("cassandra", "Cassandra"),
    "streams-rocksdb": ("rocksdb", "RocksDB"),
}
ABOUT_LIVE = {
    "fms-cassandra": "a real Cassandra on a served drive, with its commit log in a separate stream",
    "streams-rocksdb": "a real RocksDB on a served drive, with streams for its log and levels",
}


def live_application(name: str) -> Application:
    """Return a live experiment's application.

    Raises:
        ConfigError: If the name is unknown.
    """
    if name not in LIVE:
        raise ConfigError.unknown("live experiment", name, LIVE)
    module, kind = LIVE[name]
    application: Application = getattr(import_module(f"{__name__}.live.{module}"), kind)()
    return application


def experiment(name: str) -> tuple[ModuleType, ModuleType]:
    """Return an experiment's modules.

    The first module has `run(scale=, log=)`. The second module has `mapping`, `tables` and `page`,
    which take the result of `run`.

    Raises:
        ConfigError: If the name is unknown.
    """
    if name not in EXPERIMENTS:
        if name in LIVE:
            raise ConfigError(f"{name} is a live experiment", hint=f"give --live: {name} --live")
        raise ConfigError.unknown("experiment", name, EXPERIMENTS)
    module = f"{__name__}.{name.replace('-', '_')}"
    return import_module(module), import_module(f"{module}_page")

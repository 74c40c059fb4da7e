"""Ready-made loads for three databases, each captured by a command: RocksDB, PostgreSQL, Cassandra.

`run_app` runs a load, and each load is a module that has a function `run`. The data are stored in a
temporary folder, and the servers are stopped even if the capture fails.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.errors import ConfigError
from writecliff.signals import TERMINATIONS, handling

if TYPE_CHECKING:
    from writecliff.capture.run import Captured, Options

APPS = ("rocksdb", "postgres", "cassandra")
Log = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Load size, where `None` selects the load's default."""

    records: int | None = None
    operations: int | None = None
    # Number of records to rewrite before the operations, as preconditioning (Cassandra only).
    updates: int = 0

    def __post_init__(self) -> None:
        """Check that the numbers are in range.

        Raises:
            ConfigError: If a number is too small.
        """
        for name, least in (("records", 1), ("operations", 1), ("updates", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"--{name} must be at least {least}, not {value}")


def run_app(
    name: str, options: Options, size: Size, *, folder: Path | None = None, log: Log
) -> Captured:
    """Capture the ready-made load named `name`.

    Raises:
        ConfigError: If no load has this name.
        TargetError: If a required program is not installed.
    """
    if name not in APPS:
        raise ConfigError.unknown("load", name, APPS, where="--app")
    module = import_module(f"writecliff.capture.apps.{name}")
    # Handle termination signals like Ctrl-C: stop the servers and write the trace.
    with handling(TERMINATIONS, signal.default_int_handler), _data_folder(name, folder) as data:
        done: Captured = module.run(options, size, data, log)
    return done


@contextlib.contextmanager
def _data_folder(name: str, folder: Path | None) -> Iterator[Path]:
    """Create a folder for the data, and remove it on exit."""
    if folder is not None:
        # The path must be absolute because programs use other working directories.
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f"writecliff-{name}-", dir=folder, ignore_cleanup_errors=True
    ) as path:
        Path(path).chmod(0o755)  # A server that runs as another user needs access.
        yield Path(path)

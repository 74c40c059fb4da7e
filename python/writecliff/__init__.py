"""writecliff: an SSD performance laboratory.

It runs the storage industry's tests on simulated and real drives. From Python:

>>> from writecliff import Job, SimEngine, Workload
>>> engine = SimEngine("sata-tlc-120")
>>> load = Workload("reads of an empty drive", (Job(read_pct=100, queue_depth=4, ios=1000),))
>>> engine.run(load).total("read")
(1000, 4096000)

These functions correspond to commands: `run_test`, `run_workload`, `run_suite`, `run_sweep`,
`choose_drive`, `compare`, `write_report`, `capture_program`, `capture_device`, `capture_stack`,
`convert_trace`, `characterise_trace`, `synthesise_trace`, `replay_trace`, `advise_streams`,
`make_twin`.
`load_run` opens a run directory, and `open_store` opens a run store. The Python guide is
docs/guides/python.md. Names are imported at first use, so that `writecliff --help` stays fast.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from writecliff.api import Choice as Choice
    from writecliff.api import Replay as Replay
    from writecliff.api import Run as Run
    from writecliff.api import Store as Store
    from writecliff.api import Suite as Suite
    from writecliff.api import advise_streams as advise_streams
    from writecliff.api import capture_device as capture_device
    from writecliff.api import capture_program as capture_program
    from writecliff.api import capture_stack as capture_stack
    from writecliff.api import characterise_trace as characterise_trace
    from writecliff.api import choose_drive as choose_drive
    from writecliff.api import compare as compare
    from writecliff.api import convert_trace as convert_trace
    from writecliff.api import load_run as load_run
    from writecliff.api import make_twin as make_twin
    from writecliff.api import open_store as open_store
    from writecliff.api import replay_timed as replay_timed
    from writecliff.api import replay_trace as replay_trace
    from writecliff.api import resume_run as resume_run
    from writecliff.api import run_suite as run_suite
    from writecliff.api import run_sweep as run_sweep
    from writecliff.api import run_test as run_test
    from writecliff.api import run_workload as run_workload
    from writecliff.api import synthesise_trace as synthesise_trace
    from writecliff.api import write_page as write_page
    from writecliff.api import write_report as write_report
    from writecliff.choice.question import Question as Question
    from writecliff.engines.base import OperationNumber as OperationNumber
    from writecliff.engines.sim import SimEngine as SimEngine
    from writecliff.engines.target import open_target as open_target
    from writecliff.errors import WritecliffError as WritecliffError
    from writecliff.replay.model import Sizing as Sizing
    from writecliff.workload.load import load_workload as load_workload
    from writecliff.workload.model import Addresses as Addresses
    from writecliff.workload.model import BlockSize as BlockSize
    from writecliff.workload.model import Job as Job
    from writecliff.workload.model import Segments as Segments
    from writecliff.workload.model import Workload as Workload
    from writecliff.workload.model import Zone as Zone

_WHERE = {
    "writecliff.api": (
        "Choice", "Replay", "Run", "Store", "Suite", "advise_streams", "capture_device",
        "capture_program", "capture_stack", "characterise_trace", "choose_drive", "compare",
        "convert_trace", "load_run", "make_twin", "open_store", "replay_trace", "resume_run",
        "run_suite", "run_sweep", "replay_timed", "run_test", "run_workload", "synthesise_trace",
        "write_page", "write_report",
    ),
    "writecliff.choice.question": ("Question",),
    "writecliff.engines.base": ("OperationNumber",),
    "writecliff.engines.sim": ("SimEngine",),
    "writecliff.engines.target": ("open_target",),
    "writecliff.errors": ("WritecliffError",),
    "writecliff.replay.model": ("Sizing",),
    "writecliff.workload.load": ("load_workload",),
    "writecliff.workload.model": (
        "Addresses", "BlockSize", "Job", "Segments", "Workload", "Zone",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = [*sorted(_MODULE_OF), "version"]  # noqa: PLE0604 - names, all of them


def version() -> str:
    """Return the version of the installed package, or "unknown" in a bare source tree."""
    from importlib import metadata

    try:
        return metadata.version("writecliff")
    except metadata.PackageNotFoundError:
        return "unknown"


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'writecliff' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__]

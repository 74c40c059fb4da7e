"""writecliff: an SSD performance laboratory.

The industry's tests on simulated and real drives. From Python:

>>> from writecliff import Job, SimEngine, Workload
>>> engine = SimEngine("sata-tlc-120")
>>> load = Workload("reads of an empty drive", (Job(read_pct=100, queue_depth=4, ios=1000),))
>>> engine.run(load).total("read")
(1000, 4096000)

Names are imported when they are first used, so that `writecliff --help` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from writecliff.engines.sim import SimEngine as SimEngine
    from writecliff.engines.target import open_target as open_target
    from writecliff.workload.load import load_workload as load_workload
    from writecliff.workload.model import Addresses as Addresses
    from writecliff.workload.model import BlockSize as BlockSize
    from writecliff.workload.model import Job as Job
    from writecliff.workload.model import Workload as Workload

_WHERE = {
    "Addresses": "writecliff.workload.model",
    "BlockSize": "writecliff.workload.model",
    "Job": "writecliff.workload.model",
    "SimEngine": "writecliff.engines.sim",
    "Workload": "writecliff.workload.model",
    "load_workload": "writecliff.workload.load",
    "open_target": "writecliff.engines.target",
}
__all__ = [
    "Addresses", "BlockSize", "Job", "SimEngine", "Workload", "load_workload", "open_target",
    "version",
]  # fmt: skip


def version() -> str:
    """The version of the installed package; "unknown" in a source tree that was never installed."""
    from importlib import metadata

    try:
        return metadata.version("writecliff")
    except metadata.PackageNotFoundError:
        return "unknown"


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'writecliff' has no attribute '{name}'")

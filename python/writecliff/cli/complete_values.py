"""Option and argument values that are names, such as drives, tests, workloads and runs.

Each function receives the incomplete value, and returns names with descriptions. The functions have
no side effects and load few modules, because they run at each Tab.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from glob import escape, glob
from itertools import islice
from typing import NamedTuple

Names = Sequence[tuple[str, str]]
_MOST_RUNS = 500


class Values(NamedTuple):
    """A source of names, and possibly paths, for a value or a list of values."""

    find: Callable[[str], Names]
    files: bool = False
    is_list: bool = False


def targets(typed: str) -> Names:
    """Return simulated drives, this machine's block devices, and files."""
    for scheme in ("sim:", "file:"):
        if typed.startswith(scheme) and re.match(r"[./~]", typed.removeprefix(scheme)):
            return _paths(scheme, typed.removeprefix(scheme), "toml" if scheme == "sim:" else "")
    simulated = simulated_targets(typed)
    if typed.startswith("sim:"):
        return simulated
    begin = [] if typed else [("file:", "a file, through fio")]
    return [*simulated, *begin, *_block_devices()]


def simulated_targets(typed: str) -> Names:
    """Return the simulated drives, as `sim:NAME` and `sim:PATH.toml`."""
    if typed.startswith("sim:") and re.match(r"[./~]", typed.removeprefix("sim:")):
        return _paths("sim:", typed.removeprefix("sim:"), "toml")
    return [(f"sim:{name}", "") for name, _ in devices(typed)]


def devices(typed: str) -> Names:
    """Return the catalogue's drives."""
    from writecliff.devices import preset_names

    return [(name, "") for name in preset_names()]


def _paths(scheme: str, typed: str, suffix: str) -> Names:
    """Return the files and folders that start with the typed path (folders end in "/")."""
    paths = sorted(glob(f"{escape(os.path.expanduser(typed))}*"))  # noqa: PTH111, PTH207
    folders = [path for path in paths if os.path.isdir(path)]  # noqa: PTH112
    files = [path for path in paths if path.endswith(suffix) and path not in folders]
    shown = [*files, *(f"{path}/" for path in folders)]
    if typed.startswith("~"):
        home = os.path.expanduser("~")  # noqa: PTH111
        shown = [f"~{path.removeprefix(home)}" for path in shown]
    return [(f"{scheme}{path}", "") for path in shown]


def _block_devices() -> Names:
    folder = "/sys/block"
    names = os.listdir(folder) if os.access(folder, os.R_OK) else []
    drives = (name for name in sorted(names) if re.match(r"sd|nvme|hd|vd|pmem|mmcblk", name))
    return [(f"/dev/{name}", "a drive; its data is destroyed") for name in drives]


def tests(typed: str) -> Names:
    """Return the tests of the standard and the campaigns."""
    from writecliff.procedures.registry import PROCEDURES

    return [(name, entry.title) for name, entry in PROCEDURES.items()]


def editions(typed: str) -> Names:
    """Return the editions of the standard."""
    return [("pts-e", "enterprise"), ("pts-c", "client")]


def workloads(typed: str) -> Names:
    """Return the ready-made workloads."""
    from writecliff.profiles import FOLDER

    return sorted((path.stem, "") for path in FOLDER.glob("*.toml"))


def rules(typed: str) -> Names:
    """Return the rules that assign writes to streams."""
    from writecliff.capture.rules import presets

    return [(name, "") for name in presets()]


def sweeps(typed: str) -> Names:
    """Return the predefined sweeps."""
    from writecliff.suite.sweep import PRESETS

    return [(name, "") for name in PRESETS]


def runs(typed: str) -> Names:
    """Return the runs in the store, or an empty result if the store cannot be read."""
    from writecliff.errors import WritecliffError
    from writecliff.runs.location import is_remote, store_location
    from writecliff.runs.place import open_place

    try:
        location = store_location()
        if is_remote(location):
            return []  # Shell completion must not wait for the network.
        return [(run.run, "") for run in islice(open_place(location).find(), _MOST_RUNS)]
    except (OSError, WritecliffError):
        return []


_TARGET = Values(targets)
SIMULATED = Values(simulated_targets)
RUNS = Values(runs, files=True)

OPTIONS = {
    "--on": _TARGET,
    "--profile": Values(workloads),
    "--rules": Values(rules, files=True),
    "--streams": Values(rules, files=True),
    "--test": Values(tests),
    "--tests": Values(tests, is_list=True),
    "--workload": Values(workloads, files=True),
    "--baseline": RUNS,
    "--resume": RUNS,
}
"""Options by name; a name has the same meaning with every command."""

POSITIONS = {
    "compare": RUNS,
    "device export": Values(devices, files=True),
    "device show": Values(devices, files=True),
    "profile show": Values(workloads),
    "report": RUNS,
    "run": Values(workloads, files=True),
    "runs delete": RUNS,
    "runs diff": RUNS,
    "runs export": RUNS,
    "runs show": RUNS,
    "runs tag": RUNS,
    "serve": SIMULATED,
    "suite": Values(editions),
    "sweep": Values(sweeps),
}
"""Values of positional arguments, by command."""

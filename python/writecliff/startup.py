"""Settings for writecliff processes: a command, or a member of a suite.

writecliff does not change these settings when it is used as a library.
"""

from __future__ import annotations

import gc
import sys

# Most objects in such a process live until the process exits. Garbage collection after every 700
# new objects, which is Python's default, finds nothing and takes a tenth of the time of `runs
# list`.
NEW_OBJECTS = 50_000


class _WithoutPandas:
    """A module finder that hides pandas.

    pyarrow imports pandas, if it is installed, to check whether a list is a pandas column. This
    import takes 0.2 s in every process that stores a run, and no command uses pandas.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("commands do not use pandas", name=name)


def lean() -> None:
    """Disable work that takes time and has no benefit in a short-lived process."""
    gc.set_threshold(NEW_OBJECTS)
    sys.meta_path.insert(0, _WithoutPandas)

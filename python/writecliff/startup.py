"""What a process that is all ours sets when it starts: a command, or a member of a suite.

As a library writecliff leaves these as they are.
"""

from __future__ import annotations

import gc
import sys

# Almost all that such a process makes lives until it ends: collecting at Python's 700 new objects
# finds nothing, and takes a tenth of the time of `runs list`.
_NEW_OBJECTS = 50_000


class _WithoutPandas:
    """A finder of modules that finds no pandas.

    pyarrow loads it, where it is installed, to learn whether a list is one of its columns. That
    takes 0.2 s in every process that stores a run, and no command uses it.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=name)


def lean() -> None:
    """Do without what costs time in a short-lived process and finds or brings nothing."""
    gc.set_threshold(_NEW_OBJECTS)
    sys.meta_path.insert(0, _WithoutPandas)

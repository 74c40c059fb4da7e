"""Settings for writecliff processes, which run a command or a suite member.

writecliff does not change these settings when used as a library.
"""

from __future__ import annotations

import gc
import sys

# Most objects in a command-line process live until the process exits. By default, Python collects
# garbage after every 700 new objects. This finds nothing and takes a tenth of the time of `runs
# list`.
NEW_OBJECTS = 50_000

_keeps_loaded = False


class _WithoutPandas:
    """A module finder that hides pandas.

    If pandas is installed, pyarrow imports it to check whether a list is a pandas column. This
    import takes 0.2 s in every process that stores a run, and no command uses pandas.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not available to commands", name=name)


class _WithoutArtistDocs:
    """A module finder that omits the generated documentation of matplotlib's artists.

    Listing the properties of each class takes a fifth of matplotlib's import time.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "matplotlib.axes":
            import matplotlib.artist

            matplotlib.artist.kwdoc = lambda artist: ""


def lean() -> None:
    """Disable work that takes time and has no benefit in short-lived processes."""
    global _keeps_loaded  # noqa: PLW0603
    _keeps_loaded = True
    gc.set_threshold(NEW_OBJECTS)
    sys.meta_path[:0] = [_WithoutPandas, _WithoutArtistDocs]


def keep_loaded() -> None:
    """Exclude all current objects from garbage collection, once in a process that called `lean`.

    Loaded modules live until the process exits, and collecting them then takes 0.1 s. Call this
    function before the first import of a library whose objects must be collected.
    """
    global _keeps_loaded  # noqa: PLW0603
    if _keeps_loaded:
        _keeps_loaded = False
        gc.freeze()

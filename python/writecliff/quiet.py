"""Keeps remarks of libraries to developers out of the user's terminal."""

from __future__ import annotations

import logging
import sys
import warnings

_TALKATIVE = ("matplotlib", "fontTools", "PIL")


def silence_libraries() -> None:
    """Show no warnings and log messages of libraries, unless Python is asked to (`-W`).

    Once in a process that users see; as a library, writecliff leaves both as they are.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False

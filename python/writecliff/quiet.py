"""Suppression of developer messages of libraries on the user's terminal."""

from __future__ import annotations

import logging
import sys
import warnings

_VERBOSE = ("matplotlib", "fontTools", "PIL")


def silence_libraries() -> None:
    """Suppress warnings and log messages of libraries, unless Python was started with `-W`.

    Commands call it once. As a library, writecliff does not change warnings or logs.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for name in _VERBOSE:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False

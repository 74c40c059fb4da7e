"""Suppress developer messages from libraries on the user's terminal."""

from __future__ import annotations

import logging
import sys
import warnings

_VERBOSE = ("matplotlib", "fontTools", "PIL")


def silence_libraries() -> None:
    """Suppress warnings and log messages from libraries, unless Python was started with `-W`.

    Commands call this function once. When used as a library, writecliff does not change warnings or
    logging.
    """
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for name in _VERBOSE:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False

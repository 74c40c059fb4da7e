"""Checks of the JSON objects that commands print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from writecliff.api.answers.reference import answer_types


def check_answer(found: Mapping[str, Any], name: str) -> None:
    """Check that an object is an answer of the type whose tag has `name`, with all that is in it.

    Raises msgspec.ValidationError.
    """
    kind = {**answer_types(), **answer_types("writecliff.lab.commands.answers")}[name]
    msgspec.convert(found, kind, dec_hook=lambda of, value: Path(value) if of is Path else value)

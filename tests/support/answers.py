"""Checks of the JSON objects that commands print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from writecliff.api.answers.reference import answer_types


def check_answer(answer: Mapping[str, Any], name: str) -> None:
    """Check that an object matches the answer type tagged `name`, down to its nested fields.

    Raises:
        msgspec.ValidationError: a field is missing or has another type.
    """
    kind = {**answer_types(), **answer_types("writecliff.lab.commands.answers")}[name]
    msgspec.convert(answer, kind, dec_hook=lambda of, value: Path(value) if of is Path else value)

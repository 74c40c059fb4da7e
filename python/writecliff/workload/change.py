"""A job with another value of one of its fields, given as text."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_type_hints

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.workload import model
from writecliff.workload.model import BlockSize, Job

BLOCK_SIZE = "block_size"


def job_with(job: Job, name: str, text: str) -> Job:
    """`job` with the field `name` read from `text`: a number, on or off, a word, a size for fields
    of bytes and `block_size`, a time for fields of ns. Raises ConfigError: no such field, or one
    that is not a single value, or an invalid value."""
    kinds = _single_values()
    if name == BLOCK_SIZE:
        return replace(job, block_sizes=(BlockSize(units.parse_size(text)),))
    if name not in kinds:
        raise ConfigError.unknown("field of a job", name, [BLOCK_SIZE, *kinds])
    try:
        value = _read(name, kinds[name], text)
    except ValueError:
        raise ConfigError(f"{name} of a job cannot be '{text}'") from None
    return replace(job, **{name: value})


def _single_values() -> dict[str, Any]:
    """The fields that hold one value, with its type."""
    hints = get_type_hints(Job, vars(model))
    found = {}
    for field in fields(Job):
        hint = hints[field.name]
        parts = {part for part in getattr(hint, "__args__", ()) if part is not type(None)}
        kind: Any = hint if hint in (int, float, bool) else None
        if kind is None and len(parts) == 1 and parts <= {int, float}:
            kind = parts.pop()
        if kind is None and parts and all(isinstance(part, str) for part in parts):
            kind = tuple(sorted(parts))  # the words of a literal
        if kind is not None:
            found[field.name] = kind
    return found


def _read(name: str, kind: Any, text: str) -> Any:
    if kind is bool:
        return text == "on" if text in ("on", "off") else _refuse(text)
    if isinstance(kind, tuple):
        return text if text in kind else _refuse(text)
    if kind is int and name.endswith("_bytes"):
        return units.parse_size(text)
    if name.endswith("_ns"):
        return units.parse_time(text)
    return kind(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)

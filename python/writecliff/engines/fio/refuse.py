"""Refusals of what fio cannot express: one clear line each, with the way out as a hint."""

from __future__ import annotations

from typing import NoReturn

from writecliff.errors import EngineError


def refuse(where: str, why: str, *, hint: str | None = None) -> NoReturn:
    """Raise the `EngineError` for a job (or workload) that fio cannot run as it was meant."""
    raise EngineError(f"fio: {where}: {why}", hint=hint)


def whole_percent(where: str, what: str, value: float) -> int:
    """`value` as the whole number of percent that fio's options take."""
    nearest = round(value)
    if not 0 <= value <= 100:
        refuse(where, f"{what} {value:g} is not between 0 and 100")
    if abs(value - nearest) > 1e-6:
        refuse(where, f"{what} {value:g} %: fio takes whole percent", hint=f"{nearest} is nearest")
    return nearest

"""Builder for a fio job file section, which collects warnings and raises errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from writecliff.errors import EngineError
from writecliff.workload.model import Job


def refuse(where: str, why: str, hint: str | None = None) -> NoReturn:
    """Raise EngineError for a job or workload that fio cannot run as defined."""
    raise EngineError(f"fio: {where}: {why}", hint=hint)


@dataclass
class Section:
    """A job's options, in file order, and warnings about the job."""

    job: Job
    warnings: list[str]  # Warnings shared by all sections of a job file.
    options: list[tuple[str, str]] = field(default_factory=list)

    def add(self, key: str, value: object = "") -> None:
        """Add an option, which is written as its name only if the value is empty."""
        self.options.append((key, str(value)))

    def warn(self, text: str) -> None:
        """Add a warning that names the job."""
        self.warnings.append(f"job {self.job.name}: {text}")

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        """Raise EngineError for this job."""
        refuse(self.job.name, why, hint)

    def whole_percent(self, what: str, value: float) -> int:
        """Return a percentage as a whole number, as fio requires.

        Raises:
            EngineError: If the value is out of range or not a whole number.
        """
        nearest = round(value)
        if not 0 <= value <= 100:
            self.refuse(f"{what} {value:g} is not between 0 and 100")
        if abs(value - nearest) > 1e-6:
            self.refuse(
                f"{what} {value:g} % is not a whole percentage, which fio requires",
                f"use {nearest}",
            )
        return nearest

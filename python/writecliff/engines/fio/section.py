"""One section of a fio job file while it is written: options, warnings, refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from writecliff.errors import EngineError
from writecliff.workload.model import Job


def refuse(where: str, why: str, hint: str | None = None) -> NoReturn:
    """Raise the `EngineError` for a job (or workload) that fio cannot run as defined."""
    raise EngineError(f"fio: {where}: {why}", hint=hint)


@dataclass
class Section:
    """The options of `job` in the order in which they are written, and its warnings."""

    job: Job
    warnings: list[str]  # shared by all sections of a file
    options: list[tuple[str, str]] = field(default_factory=list)

    def add(self, key: str, value: object = "") -> None:
        """Add an option; one without a value is written as its name alone."""
        self.options.append((key, str(value)))

    def warn(self, text: str) -> None:
        self.warnings.append(f"job {self.job.name}: {text}")

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        refuse(self.job.name, why, hint)

    def whole_percent(self, what: str, value: float) -> int:
        """`value` as the whole number of percent that fio's options take; refused if it is not."""
        nearest = round(value)
        if not 0 <= value <= 100:
            self.refuse(f"{what} {value:g} is not between 0 and 100")
        if abs(value - nearest) > 1e-6:
            self.refuse(
                f"{what} {value:g} %: fio takes whole percentages", f"the nearest is {nearest}"
            )
        return nearest

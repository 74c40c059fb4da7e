"""Errors of scaled drives at the levels of `choose`, compared with the full drive.

The result is the table `choice/scale_errors.toml`, which `choose` uses to decide which drives could
still rank first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from writecliff.choice.answer import measure
from writecliff.choice.candidates import target_of
from writecliff.choice.levels import LEVELS, Class, class_of, kind_of
from writecliff.choice.plan import Contender, member_of
from writecliff.choice.question import Question, label_of
from writecliff.devices import show_device
from writecliff.operation_names import FLUSH
from writecliff.profiles import find_workload
from writecliff.suite.folder import Member, SuiteFolder
from writecliff.suite.runner import Log, run_suite

DRIVES = (
    "micron-7450-960",
    "micron-7450-max-800",
    "pe8110-960",
    "pm9a3-960",
    "micron-xtr-1920",
    "d7-p5810-800",
    "nvme-ms-480",
    "pm863-240",
    "mlc-b-800",
    "845dc-evo-240",
    "980-pro-1000",
    "micron-2400-512",
    "nm790-1000",
    "t500-1000",
    "p5800x-400",
)
"""Drives of up to 2 TB that are simulated whole, of each class."""

LOADS = ("oltp-4k", "dbms-ab")
KINDS = (
    "rate",
    "wear",
    *(
        f"{part}{figure}"
        for part in ("", "reads/", "writes/", f"{FLUSH}/")
        for figure in ("mean", "p99", "p99.9", "p99.99")
    ),
)
SHOWN = ("rate", "wear", "mean", "p99", "p99.9", "p99.99", "reads/p99.99", f"{FLUSH}/p99.9")
"""Kinds of figures in the printed table."""
_WHOLE = "whole"


@dataclass(frozen=True)
class ScaleError:
    """A figure of a scaled drive next to the full drive's figure."""

    drive: str
    of_class: Class
    load: str
    level: str
    scale: float
    figure: str
    kind: str
    whole: float
    scaled: float

    @property
    def factor(self) -> float:
        """Ratio of the larger to the smaller value, at least 1."""
        low, high = sorted((self.whole, self.scaled))
        return high / low if low > 0 else 1.0 if high == low else float("inf")


def run(
    folder: Path,
    *,
    drives: Sequence[str] = DRIVES,
    loads: Sequence[str] = LOADS,
    log: Log = lambda event: None,
) -> Iterator[ScaleError]:
    """Run each load on each drive at all levels and at full size, and yield the figures' errors.

    Complete runs in `folder` are reused.

    Raises:
        ConfigError, EngineError: If a run failed.
    """
    for load in loads:
        for drive in drives:
            yield from _errors(folder / f"{Path(load).stem}-{label_of(drive)}", drive, load, log)


def _errors(folder: Path, drive: str, load: str, log: Log) -> Iterator[ScaleError]:
    question = Question(workload=str(find_workload(Path(load))), candidates=(drive,))
    whole = Question(workload=question.workload, candidates=(drive,), scale=1.0)
    contender = Contender(label_of(drive), drive, target_of(drive))
    members = {level.name: member_of(question, contender, 1, level=level) for level in LEVELS}
    members[_WHOLE] = member_of(whole, contender, 1)
    suite = _suite(folder, load, members)
    run_suite(suite, log, opening={}, finish=_no_page)
    measured = {
        name: measure(question, [contender], {contender.name: [suite.run_directory(name)]})[
            contender.name
        ]
        for name in members
    }
    for level in LEVELS:
        scaled = measured[level.name]
        for key, figure in measured[_WHOLE].figures.items():
            kind = kind_of(key)
            if kind in KINDS and key in scaled.figures:
                yield ScaleError(
                    drive,
                    class_of(show_device(drive)),
                    load,
                    level.name,
                    scaled.scale,
                    key,
                    kind,
                    figure.value,
                    scaled.figures[key].value,
                )


def _suite(folder: Path, load: str, members: Mapping[str, Member]) -> SuiteFolder:
    if folder.exists():
        return SuiteFolder.open(folder)
    return SuiteFolder.create(folder, "choice", load, members)


def _no_page(run: Path) -> None:
    """Write no report, because only the figures are needed."""


def largest(errors: Sequence[ScaleError]) -> dict[tuple[Class, str], dict[str, float]]:
    """Return the largest factor for each kind of figure, rounded up, by class and level."""
    table: dict[tuple[Class, str], dict[str, float]] = {}
    for error in errors:
        factors = table.setdefault((error.of_class, error.level), {})
        factors[error.kind] = max(factors.get(error.kind, 1.0), ceil(100 * error.factor) / 100)
    return table


def toml_of(errors: Sequence[ScaleError]) -> str:
    """Return the text of `choice/scale_errors.toml`."""
    lines = [
        "# Largest errors of scaled drives, as factors, by class, level and kind of figure.",
        "# Output of `writecliff lab validate scales --toml`; do not edit.",
    ]
    for of_class in dict.fromkeys(error.of_class for error in errors):
        drives = sorted({error.drive for error in errors if error.of_class == of_class})
        loads = sorted({error.load for error in errors})
        lines += ["", f"# {', '.join(drives)}, each under {', '.join(loads)}"]
        table = largest(errors)
        for level in LEVELS:
            factors = table.get((of_class, level.name), {})
            lines.append(f'["{of_class}".{level.name}]')
            lines += [f'"{kind}" = {factors[kind]:.2f}' for kind in KINDS if kind in factors]
    return "\n".join(lines) + "\n"


def rows_of(errors: Sequence[ScaleError]) -> Iterator[tuple[str, ...]]:
    """Yield the table as text, with class, level, and the largest factor for each kind."""
    for (of_class, level), factors in largest(errors).items():
        cells = (f"{factors[kind]:.2f}" if kind in factors else "" for kind in SHOWN)
        yield of_class, level, *cells

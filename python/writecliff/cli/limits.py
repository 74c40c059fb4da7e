"""`--expect` and `--junit`: whether what was just measured is good enough, by exit code and for CI.

A limit is missed if its figure is not on its side, or is not there. A baseline is missed if a
figure is worse than there by more than noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.cli.baseline import AgainstBaseline
    from writecliff.report.expectations import Expectation, Judged
    from writecliff.suite.folder import Member

EXIT_MISSED = 3


def check_limits(
    expect: Sequence[str], junit: Path | None, tests: Iterable[str] = ()
) -> list[Expectation]:
    """The limits, read before hours are spent. Raises ConfigError: not a limit, or a file that
    cannot be made."""
    if junit is not None and (junit.is_dir() or not junit.absolute().parent.is_dir()):
        raise ConfigError(f"--junit {junit} is no file that can be made")
    if not expect:
        return []
    from writecliff.report.expectations import parse_expectations

    return parse_expectations(expect, tests)


def check_set_limits(
    expect: Sequence[str], members: Mapping[str, Member], *, simulated: bool
) -> None:
    """Reject a limit that applies to no run of a suite or sweep. Raises ConfigError."""
    if not expect:
        return
    from writecliff.procedures.registry import procedure_from_mapping
    from writecliff.report.expectations import (
        check_members,
        figures_of_procedure,
        parse_expectations,
    )

    tests = {*members} | {member.test for member in members.values()}
    figures = {
        name: (
            member.test,
            figures_of_procedure(
                procedure_from_mapping(member.test, member.options, simulated=simulated)
            ),
        )
        for name, member in members.items()
    }
    check_members(parse_expectations(expect, tests), figures)


@dataclass(frozen=True)
class Outcome:
    """How a command that measured has ended: by run, the limits; and the baseline."""

    name: str  # of the run or suite
    judged: Mapping[str, Sequence[Judged]] = field(default_factory=dict)  # by run
    compared: AgainstBaseline | None = None

    def lines(self) -> Iterator[tuple[str, str]]:
        """What the terminal shows below the outcome."""
        many = len(self.judged) > 1
        for run, limits in self.judged.items():
            yield from (("limit", (f"{run}: " if many else "") + one.said) for one in limits)
        if self.compared is not None:
            yield from self.compared.lines()

    @property
    def exit_code(self) -> int:
        """0, or 3 if a limit or the baseline is missed."""
        missed = any(not one.met for limits in self.judged.values() for one in limits)
        return EXIT_MISSED if missed or (self.compared and self.compared.worse) else 0

    def mapping(self) -> dict[str, Any]:
        """The keys `expectations` and `comparison` of the answer with --json."""
        limits = [
            {"run": run, **vars(one)} for run, judged in self.judged.items() for one in judged
        ]
        compared = None if self.compared is None else self.compared.mapping()
        return {"expectations": limits, "comparison": compared}

    def end(self, junit: Path | None) -> int:
        """Write the file for CI, if one is wanted; the exit code. Raises StoreError."""
        if junit is not None:
            from writecliff.cli.junit import write_junit

            write_junit(junit, self)
        return self.exit_code


def outcome_of(
    path: Path, compared: AgainstBaseline | None = None, *, name: str | None = None
) -> Outcome:
    """The outcome of a run, whose manifest has its limits. Raises StoreError."""
    from writecliff.report.expectations import Judged
    from writecliff.store.manifest import read_manifest

    limits = [Judged(**item) for item in read_manifest(path).expectations]
    return Outcome(name or path.name, {name or path.name: limits}, compared)

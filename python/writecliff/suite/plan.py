"""Which tests a suite has, in which order, with which options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from writecliff.engines.target import is_simulated
from writecliff.errors import ConfigError
from writecliff.procedures.pts import EDITIONS
from writecliff.procedures.registry import procedure_from_mapping, suite_tests
from writecliff.suite.folder import Member


def plan_suite(
    edition: str,
    target: str,
    *,
    tests: Sequence[str] | None = None,
    common: Mapping[str, Any] | None = None,
    special: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Member]:
    """The tests of an edition, or those of them in `tests`, in the standard's order.

    `common` goes to every test, `special` to the tests that it names. Raises ConfigError for an
    edition, test or option that does not exist, and for a value that is not allowed.
    """
    if edition not in EDITIONS:
        raise ConfigError.unknown("edition", edition, EDITIONS)
    special = special or {}
    known = suite_tests(edition)
    for name in (*(tests or ()), *special):
        if name not in known:
            raise ConfigError.unknown("test", name, known)
    chosen = [name for name in known if tests is None or name in tests]
    for name in special:
        if name not in chosen:
            raise ConfigError(f"options are given for {name}, which is not among the tests")
    members = {}
    for name in chosen:
        options = {"edition": edition, **(common or {}), **special.get(name, {})}
        # Refuses what does not fit, before anything runs.
        simulated = is_simulated(target)
        procedure = procedure_from_mapping(name, options, simulated=simulated)
        procedure.check_purge(simulated=simulated)
        members[name] = Member(name, options, target)
    return members

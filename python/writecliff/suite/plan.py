"""Plan of a suite, with its tests, their order and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from writecliff.engines.target import is_simulated
from writecliff.errors import ConfigError
from writecliff.procedures.active_range import CLIENT, COMBINATIONS, SegmentOptions
from writecliff.procedures.pts import EDITIONS
from writecliff.procedures.registry import (
    procedure_class,
    procedure_from_mapping,
    standard_tests,
    suite_tests,
)
from writecliff.suite.folder import Member
from writecliff.suite.memory import check_memory

if TYPE_CHECKING:
    from writecliff.engines.base import DeviceIdentity, Engine


def plan_suite(
    edition: str,
    target: str,
    *,
    tests: Sequence[str] | None = None,
    common: Mapping[str, Any] | None = None,
    special: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Member]:
    """Return the runs for an edition's tests by name, in the standard's order.

    `tests` restricts them. A test with several active ranges has a run for each range. `common`
    applies to every test, and `special` applies only to the tests that it names.

    Raises:
        ConfigError: If an edition, test or option does not exist, or if a value is not allowed.
    """
    if edition not in EDITIONS:
        raise ConfigError.unknown("edition", edition, EDITIONS)
    special = special or {}
    standard = standard_tests()
    for name in (*(tests or ()), *special):
        if name not in standard:
            raise ConfigError.unknown("test", name, standard)
    wanted = suite_tests(edition) if tests is None else tests
    chosen = [name for name in standard if name in wanted]
    for name in special:
        if name not in chosen:
            raise ConfigError(
                f"options were specified for {name}, which is not among the tests of the suite",
                hint=f"add {name} to the tests, or omit the options for it",
            )
    members = {}
    for name in chosen:
        given = {"edition": edition, **(common or {}), **special.get(name, {})}
        for member, options in _runs(name, given).items():
            # Reject invalid options before any run starts.
            simulated = is_simulated(target)
            procedure = procedure_from_mapping(name, options, simulated=simulated)
            procedure.check_purge(simulated=simulated)
            members[member] = Member(name, procedure.options_mapping(), target)
    return members


def check_members(members: Mapping[str, Member], engine: Engine) -> None:
    """Check that the target supports all runs before the first run starts.

    Raises:
        TargetError: If the target must not be written to.
        ConfigError: If a run is not suitable for the target or requires more memory than is
            available.
    """
    if (refusal := engine.write_refusal) is not None:
        raise refusal
    check_plans(members, engine.identify())
    check_memory(members, engine)


def check_plans(members: Mapping[str, Member], identity: DeviceIdentity) -> None:
    """Check that every member is suitable for the drive.

    Raises:
        ConfigError: If a member is not suitable for the drive; the message names the first such
            member.
    """
    for name, member in members.items():
        procedure = procedure_from_mapping(
            member.test, member.options, simulated=identity.simulated
        )
        try:
            procedure.stages(identity)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}", hint=error.hint) from None


def _runs(test: str, options: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return a test's runs by name: a single run, or a run per active range (client edition)."""
    limited = issubclass(procedure_class(test).options_type, SegmentOptions)
    client = (options["edition"], options.get("revision", "1.x")) == CLIENT
    chosen = {"active_range_pct", "ar_amount_gib"} & set(options)
    if not (limited and client) or chosen:
        return {test: dict(options)}
    return {
        f"{test}-{pct:g}-{gib:g}gib": {**options, "active_range_pct": pct, "ar_amount_gib": gib}
        for pct, gib in COMBINATIONS
    }

"""Error texts for unknown names."""

from __future__ import annotations

from pathlib import Path

from writecliff.errors import ConfigError, TargetError, did_you_mean


def test_an_unknown_name_hints_at_the_nearest() -> None:
    error = ConfigError.unknown("campaign", "pm836", ["act", "pm863"])
    assert type(error) is ConfigError
    assert (str(error), error.hint) == ("unknown campaign 'pm836'", "did you mean 'pm863'?")


def test_an_unknown_name_with_nothing_near_hints_at_all() -> None:
    error = TargetError.unknown("key", "x", ("path", "stream"), where=Path("rules.toml"))
    assert type(error) is TargetError
    assert (str(error), error.hint) == ("rules.toml: unknown key 'x'", "known: path, stream")


def test_the_beginning_of_a_name_is_near() -> None:
    assert did_you_mean("mail", ["cache", "mail-server"]) == "did you mean 'mail-server'?"
    assert did_you_mean("ma", ["cache", "mail-server"]) == "known: cache, mail-server"


def test_another_hint_for_a_long_list() -> None:
    assert did_you_mean("x", ["path"], "see the list") == "see the list"
    assert did_you_mean("pth", ["path"], "see the list") == "did you mean 'path'?"

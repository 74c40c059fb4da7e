"""ATA security erase through hdparm.

A normal erase erases every block. The enhanced erase, which on many drives only changes the
encryption key, is used only if the drive rejects the normal erase (ACS-4 7.46). The erase command
requires a password, which the drive removes after the erase. An interrupted erase leaves the
password set. A drive that has a password is locked after the next power cycle and rejects all reads
and writes. Therefore, the password is removed if an erase is aborted, and otherwise when the drive
is next opened for writing. If the removal fails, the error contains the command that removes the
password. Drives that are frozen, locked or protected by another password are not erased.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev.tools import Runner
from writecliff.errors import EngineError, TargetError

_PASSWORD = "writecliff"
_MINUTES = re.compile(r"(\d+)min for (ENHANCED )?SECURITY ERASE UNIT")
_TIMEOUT_FACTOR = 3.0
_LEAST_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class SecurityState:
    """A drive's ATA security state."""

    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    minutes: int | None  # Drive's estimate of the erase time, in minutes.
    enhanced: bool = False  # `True` if the drive supports the enhanced erase.
    enhanced_minutes: int | None = None


def parse_security(text: str) -> SecurityState:
    """Parse the "Security:" section of `hdparm -I`, including properties like "not enabled"."""
    section = text.partition("Security:")[2]
    properties = {" ".join(line.split()) for line in section.splitlines()}
    minutes = {bool(enhanced): int(value) for value, enhanced in _MINUTES.findall(section)}
    return SecurityState(
        supported="supported" in properties,
        enabled="enabled" in properties,
        locked="locked" in properties,
        frozen="frozen" in properties,
        minutes=minutes.get(False),
        enhanced="supported: enhanced erase" in properties,
        enhanced_minutes=minutes.get(True),
    )


def _security(run: Runner, path: str) -> SecurityState | None:
    """Read the security state, or None if the drive does not respond or hdparm is missing."""
    answer = run(["hdparm", "-I", path])
    return parse_security(answer.stdout) if answer.ok else None


def _user(*words: str, path: str) -> list[str]:
    return ["hdparm", "--user-master", "u", *words, _PASSWORD, path]


def removal_hint(path: str, *, locked: bool = False) -> str:
    """Return a hint that lists the commands for removing an interrupted erase's password."""
    words = ["--security-unlock"] * locked + ["--security-disable"]
    commands = " && ".join(" ".join(_user(word, path=path)) for word in words)
    return f"if an erase by writecliff was interrupted, this removes its password: {commands}"


def refuse_locked(run: Runner, shown: str, path: str) -> None:
    """Raise TargetError if a password locks the drive against reads."""
    state = _security(run, path)
    if state is not None and state.locked:
        raise TargetError(
            f"{shown}: locked by an ATA security password; the drive refuses reads and writes",
            hint=removal_hint(path, locked=True),
        )


def clear_password(run: Runner, path: str) -> bool:
    """Remove an interrupted erase's password, if one is set.

    A drive that has a different password counts the removal as a failed attempt.

    Returns:
        True if no password is set now, or False if a password is set or the state is unknown.
    """
    state = _security(run, path)
    if state is not None and state.enabled and not (state.locked or state.frozen):
        run(_user("--security-disable", path=path), timeout_s=_LEAST_TIMEOUT_S)
        state = _security(run, path)
    return state is not None and not state.enabled


def ata_secure_erase(run: Runner, path: str) -> PurgeReport | str:
    """Erase the drive, or return the reason why it was not erased.

    Raises:
        EngineError: If the erase was aborted and its password could not be removed.
    """
    info = run(["hdparm", "-I", path])
    if not info.ok:
        return info.message
    state = parse_security(info.stdout)
    if not state.supported:
        return "not supported by the drive"
    if state.locked or (state.enabled and not clear_password(run, path)):
        return f"the drive has a security password ({removal_hint(path, locked=state.locked)})"
    if state.frozen:
        return "the drive is frozen (suspend and resume the machine, or plug it in again)"
    normal = _erase(run, path, "--security-erase", state.minutes)
    if isinstance(normal, PurgeReport) or not state.enhanced:
        return normal
    enhanced = _erase(run, path, "--security-erase-enhanced", state.enhanced_minutes)
    if isinstance(enhanced, str):
        return f"{normal}; enhanced: {enhanced}"
    return PurgeReport("ATA security erase (enhanced)", True, f"not the normal one: {normal}")


def _erase(run: Runner, path: str, option: str, minutes: int | None) -> PurgeReport | str:
    """Set the password, and erase the drive using hdparm's `option`."""
    try:
        prepared = run(_user("--security-set-pass", path=path))
        if not prepared.ok:
            return f"setting the password: {prepared.message}"
        timeout_s = max(_LEAST_TIMEOUT_S, (minutes or 0) * 60 * _TIMEOUT_FACTOR)
        erased = run(_user(option, path=path), timeout_s=timeout_s)
    except BaseException as error:
        _require_clear(run, path, str(error) or "interrupted")
        raise
    after = _security(run, path)
    if after is None or after.enabled:
        _require_clear(run, path, erased.message)
        return f"erasing: {erased.message} (password removed again)"
    if not erased.ok:
        return f"erasing: {erased.message}"
    return PurgeReport("ATA security erase", True)


def _require_clear(run: Runner, path: str, reason: str) -> None:
    if not clear_password(run, path):
        raise EngineError(
            f"{path}: ATA erase: {reason}; the password '{_PASSWORD}' may still be set, and"
            " the drive then locks itself at the next power cycle",
            hint=removal_hint(path),
        )

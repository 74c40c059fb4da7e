"""ATA security erase through hdparm.

Owns: reading the security section of `hdparm -I`, and the sequence set password, erase, verify that
the password is gone. A drive that is frozen, locked or already has a password is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from writecliff.engines.base import PurgeReport
from writecliff.engines.blockdev.tools import Runner

# Needed by the command and removed by the drive when the erase is done.
_PASSWORD = "writecliff"
_MINUTES = re.compile(r"(\d+)min for (ENHANCED )?SECURITY ERASE UNIT")
_TIMEOUT_FACTOR = 3.0
_LEAST_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class SecurityState:
    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    minutes: int | None  # the drive's own estimate


def parse_security(text: str) -> SecurityState:
    """The "Security:" section of `hdparm -I`: each property stands alone or after "not"."""
    section = text.partition("Security:")[2]
    properties = {" ".join(line.split()) for line in section.splitlines()}
    minutes = [int(value) for value, enhanced in _MINUTES.findall(section) if not enhanced]
    return SecurityState(
        supported="supported" in properties,
        enabled="enabled" in properties,
        locked="locked" in properties,
        frozen="frozen" in properties,
        minutes=minutes[0] if minutes else None,
    )


def ata_secure_erase(run: Runner, path: str) -> PurgeReport | str:
    """Erase the drive; a string says why it was not done."""
    info = run(["hdparm", "-I", path])
    if not info.ok:
        return info.message
    state = parse_security(info.stdout)
    if not state.supported:
        return "not supported by the drive"
    if state.enabled or state.locked:
        return "the drive has a security password"
    if state.frozen:
        return "the drive is frozen (suspend and resume the machine, or plug it in again)"
    user = ["hdparm", "--user-master", "u"]
    prepared = run([*user, "--security-set-pass", _PASSWORD, path])
    if not prepared.ok:
        return f"setting the password: {prepared.message}"
    timeout_s = max(_LEAST_TIMEOUT_S, (state.minutes or 0) * 60 * _TIMEOUT_FACTOR)
    erased = run([*user, "--security-erase", _PASSWORD, path], timeout_s=timeout_s)
    after = parse_security(run(["hdparm", "-I", path]).stdout)
    if after.enabled:
        run([*user, "--security-disable", _PASSWORD, path])
        return f"erasing: {erased.message} (password taken off again)"
    if not erased.ok:
        return f"erasing: {erased.message}"
    return PurgeReport("ATA security erase", True)

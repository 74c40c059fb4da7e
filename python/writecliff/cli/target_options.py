"""The options that say which drive is meant, shared by all commands that load one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.errors import ConfigError, TargetError
from writecliff.units import parse_size

if TYPE_CHECKING:
    from writecliff.engines.base import Engine


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Which drive, and what may be done to it."""

    on: Annotated[str | None, Parameter(name="--on")] = None
    """The drive: sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME."""

    destroy: str | None = None
    """For /dev/ targets: the drive's serial number, as proof that losing its data is meant."""

    wipe_signatures: bool = False
    """For /dev/ targets: go on although partition tables or file systems are found."""

    size: str | None = None
    """For file: targets: size of a file that is to be made, such as 10GB or 8GiB."""


NO_TARGET = TargetOptions()


def _check_options_fit(options: TargetOptions, target: str) -> None:
    """An option that means nothing for this kind of target would hide a mistake."""
    if options.size is not None and not target.startswith("file:"):
        raise ConfigError(f"--size means nothing for {target}", hint="it is for file: targets")
    if target.startswith("/dev/"):
        return
    for option, given in (
        ("--destroy", options.destroy is not None),
        ("--wipe-signatures", options.wipe_signatures),
    ):
        if given:
            raise ConfigError(
                f"{option} means nothing for {target}", hint="it is for /dev/ targets"
            )


@contextmanager
def opened(options: TargetOptions, *, seed: int) -> Iterator[Engine]:
    """The engine of the target, closed at the end. Raises TargetError, ConfigError."""
    if options.on is None:
        raise ConfigError("no drive is named", hint="give --on, for example --on sim:sata-tlc-120")
    _check_options_fit(options, options.on)
    from writecliff.engines.target import open_target

    engine = open_target(
        options.on,
        destroy_serial=options.destroy,
        allow_signatures=options.wipe_signatures,
        seed=seed,
        size_bytes=None if options.size is None else parse_size(options.size),
    )
    try:
        if engine.identify().capacity_bytes <= 0:
            raise TargetError(f"{options.on} has no capacity", hint="is there a medium in it?")
        yield engine
    finally:
        engine.close()

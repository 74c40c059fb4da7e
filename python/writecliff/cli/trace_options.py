"""The options that commands on traces share: the drive, its size, the length of the replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.values import Whole
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.replay.columns import FileIO
    from writecliff.replay.model import Sizing


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """On which drive a trace is replayed, and how long."""

    on: Annotated[str | None, Parameter(name="--on")] = None
    """The drive: sim:NAME or sim:PATH.toml."""

    rules: Annotated[str | None, Parameter(name="--streams")] = None
    """Rules that give writes to streams: a file, or the name of a preset."""

    fill: float = 85.0
    """The drive is cut down so that the files fill this much of it at their peak, in percent."""

    whole_drive: bool = False
    """Take the drive as it is, however empty the trace leaves it."""

    units: Whole = None
    """Reclaim units of the drive that is cut down (default: as many as keep their size)."""

    fills: float | None = None
    """Repeat the trace until so many drive fills are written; the second half is measured
    (default: 6, and more on a small drive)."""

    repeat: Whole = None
    """Repeat the trace so many times instead."""

    coalesce: bool = False
    """Let the last block of an append wait for the next one or for fsync, as a page cache does."""

    allocator: str = "next-fit"
    """Where the file system puts what files get new: next-fit, first-fit or folders."""

    trim: Annotated[bool, Parameter(negative="--no-trim")] = True
    """The file system trims what it frees; without, the drive keeps it until it is overwritten."""

    copies: int = 1
    """So many of the traced program beside each other on the drive, out of step."""

    seed: int = 1
    """Of all random choices."""

    @property
    def target(self) -> str:
        if self.on is None:
            raise ConfigError(
                "no drive is named", hint="give --on, for example --on sim:sata-tlc-120"
            )
        return self.on

    def sizing(self) -> Sizing:
        from writecliff.replay.model import Sizing

        return Sizing(
            fill_pct=None if self.whole_drive else self.fill,
            units=self.units,
            fills=self.fills,
            repeats=self.repeat,
            coalesce=self.coalesce,
            allocator=self.allocator,
            trim=self.trim,
            copies=self.copies,
        )

    def read(self, trace: Path) -> FileIO:
        """The trace with the streams of the rules. Raises TraceError, ConfigError."""
        from writecliff.capture.rules import load_rules
        from writecliff.capture.trace import read_trace
        from writecliff.replay.columns import file_io
        from writecliff.replay.model import simulated_name

        simulated_name(self.target)  # before a large file is read
        rules = None if self.rules is None else load_rules(self.rules)
        return file_io(read_trace(trace).table, rules)


NO_TRACE_OPTIONS = TraceOptions()

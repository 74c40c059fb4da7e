"""Mix: random 4 KiB I/O at one read/write mix until steady state."""

from __future__ import annotations

from dataclasses import dataclass

from writecliff.procedures import cells
from writecliff.procedures.iops import CLAUSE, IopsLoop, IopsOptions


@dataclass(frozen=True, kw_only=True)
class MixOptions(IopsOptions):
    """Options of the mix test."""

    read_pcts: tuple[float, ...] = cells.mixes_option(CLAUSE, (65.0, 0.0))
    block_sizes_kib: tuple[float, ...] = cells.block_sizes_option(CLAUSE, (4.0,))


class Mix(IopsLoop[MixOptions]):
    """The mix test. Raises ConfigError for options that are not allowed."""

    name = "mix"
    subtitle = "MIX - Random 4 KiB"
    options_type = MixOptions

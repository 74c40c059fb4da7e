"""Tests in the manufacturer's white paper on a data-centre drive (Samsung PM863, 2015).

Sequential 128 KiB writes of one capacity, then random 4 KiB writes of two capacities, bring the
drive into its sustained state. Each part of the test can be omitted:

    sequential   128 KiB sequential reads and writes, after the first of these capacities only: on a
                 drive that was written at random they differ from the figures of data sheets
    basic        random reads and writes at queue depth 32, latency at depth 1
    mixes        random 4 KiB at several mixes over queue depths 1 to 32, larger blocks at the
                 deepest
    consistency  random 4 KiB reads, then writes, then 70 % reads, second by second
    messenger    one thread of 512 KiB random writes, 32 per second, beside 20 threads of 4 KiB
                 reads
    servers      server profiles over queue depths 1 to 128

All parts except the first issue random writes, so the drive remains in its sustained state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from writecliff.engines.base import DeviceIdentity
from writecliff.engines.preconditioned import RECIPES
from writecliff.errors import ConfigError
from writecliff.procedures.campaigns.base import CampaignOptions, CampaignProcedure
from writecliff.procedures.cells import cell_text, sizes_bytes, supported
from writecliff.procedures.model import Stage, Step
from writecliff.procedures.options import (
    BLOCK_KIB,
    PERCENT,
    QUEUE_DEPTH,
    SECONDS,
    campaign_option,
    option,
)
from writecliff.procedures.pts import block_text
from writecliff.profiles import profile, profile_workload
from writecliff.workload.model import KIB, Pattern

SEQUENTIAL = "sequential"
PARTS = (SEQUENTIAL, "basic", "mixes", "consistency", "messenger", "servers")
DEPTH = 32
Access = tuple[Pattern, int, float, int]  # Block size, read percentage and queue depth.
ACCESSES: Mapping[str, Sequence[Access]] = {
    SEQUENTIAL: (
        ("sequential", 128 * KIB, 100.0, DEPTH),
        ("sequential", 128 * KIB, 0.0, DEPTH),
    ),
    "basic": (
        ("random", 4 * KIB, 100.0, DEPTH),
        ("random", 8 * KIB, 100.0, DEPTH),
        ("random", 4 * KIB, 0.0, DEPTH),
        ("random", 8 * KIB, 0.0, DEPTH),
        ("random", 4 * KIB, 100.0, 1),
        ("random", 4 * KIB, 0.0, 1),
    ),
}
MIXES = (100.0, 75.0, 70.0, 50.0, 25.0, 0.0)
CONSISTENCY_MIXES = (100.0, 0.0, 70.0)
MIX_DEPTHS = (1, 2, 4, 8, 16, 32)
SERVERS = ("web-server", "file-server", "exchange-server", "database-server")
SERVER_DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
MESSENGER = "messenger"
FILLED = "fill"


@dataclass(frozen=True, kw_only=True)
class DatacentreOptions(CampaignOptions):
    """Options of the white paper's tests. Omitted options have the campaign's values."""

    parts: tuple[str, ...] = option(PARTS, "parts to run", choices=PARTS)
    state: str = campaign_option("sustained", "initial state of the drive", choices=tuple(RECIPES))
    step_seconds: float = campaign_option(
        60.0, "duration of each step, in seconds", within=SECONDS, quick=1.0
    )
    consistency_seconds: float = campaign_option(
        1200.0,
        "duration of each load in the part 'consistency', in seconds; the 99.9 % figure"
        " requires 1,000 s",
        within=SECONDS,
        quick=10.0,
    )
    consistency_read_pcts: tuple[float, ...] = campaign_option(
        CONSISTENCY_MIXES, "read percentages in the part 'consistency'", within=PERCENT
    )
    read_pcts: tuple[float, ...] = campaign_option(
        MIXES, "read percentages in the part 'mixes'", within=PERCENT, quick=(100.0, 70.0, 0.0)
    )
    queue_depths: tuple[int, ...] = campaign_option(
        MIX_DEPTHS, "queue depths in the part 'mixes'", within=QUEUE_DEPTH, quick=(1, 32)
    )
    mix_block_kib: tuple[float, ...] = option(
        (4.0, 8.0),
        "block sizes in the part 'mixes', in KiB: the first is measured at every queue depth, the "
        "others only at the highest",
        within=BLOCK_KIB,
    )
    profiles: tuple[str, ...] = option(
        SERVERS, "ready-made workloads in the part 'servers' (see `writecliff profile list`)"
    )
    server_depths: tuple[int, ...] = campaign_option(
        SERVER_DEPTHS, "queue depths in the part 'servers'", within=QUEUE_DEPTH, quick=(1, 32)
    )


class Datacentre(CampaignProcedure[DatacentreOptions]):
    """The tests of the white paper. Raises ConfigError if an option is invalid."""

    name = "datacentre"
    options_type = DatacentreOptions

    def check(self) -> None:
        """Raise ConfigError if there are no parts, or if a block size or profile is invalid."""
        o = self.options
        if not o.parts:
            raise ConfigError("--parts is empty", hint=f"give --parts {','.join(PARTS)}")
        sizes_bytes(o.mix_block_kib)
        for name in o.profiles:
            profile(name)

    @property
    def parts(self) -> Sequence[str]:
        """Parts in execution order."""
        return [name for name in PARTS if name in self.options.parts]

    def setup(self, identity: DeviceIdentity) -> Mapping[str, str]:
        """Return the disclosed parameters (state, parts, steps, mixes, depths and profiles)."""
        o = self.options
        entries = {
            **super().setup(identity),
            "precondition": f"State '{o.state}'",
            "test: Parts": ", ".join(self.parts),
            "test: Step": f"{o.step_seconds:g} s",
            "test: Mixes": ", ".join(f"{mix:g} %" for mix in o.read_pcts),
            "test: Queue depths": ", ".join(map(str, o.queue_depths)),
            "test: Profiles": ", ".join(o.profiles),
            "test: QD of profiles": ", ".join(map(str, o.server_depths)),
        }
        if o.state == "sustained":
            entries["precondition"] = "SEQ 128KiB W, once"
            entries["precondition_toio"] = f"TC 1/QD {DEPTH}"
            entries["precondition_duration"] = "Once User Capacity"
            entries["precondition_2"] = "RND 4KiB W, twice"
            entries["precondition_2_toio"] = f"TC 1/QD {DEPTH}"
        return entries

    def stages(self, identity: DeviceIdentity) -> Sequence[Stage]:
        """Return a stage for each part."""
        random = [name for name in self.parts if name != SEQUENTIAL]
        # The first step of each kind prepares the drive state, and the other steps preserve it.
        states = {SEQUENTIAL: FILLED, **dict.fromkeys(random[:1], self.options.state)}

        def stage(name: str) -> Stage:
            steps = self._steps(identity, name)
            if name not in states:
                return Stage.once(name, name, steps)
            state = self.state(identity, states[name])
            return Stage.once(name, name, steps, purge=True, state=state)

        return [stage(name) for name in self.parts]

    def _steps(self, identity: DeviceIdentity, part: str) -> Sequence[Step]:
        o = self.options
        if part in ACCESSES:
            return self._accesses(identity, part, ACCESSES[part])
        if part == "mixes":
            return self._mixes(identity)
        if part == "consistency":
            return [self._consistency(read) for read in o.consistency_read_pcts]
        if part == MESSENGER:
            return [self._profile(identity, MESSENGER, MESSENGER)]
        return [
            self._profile(identity, f"{name} QD{depth}", name, depth)
            for name, depth in self.servers
        ]

    @property
    def servers(self) -> Sequence[tuple[str, int]]:
        """Profile and queue depth for each step in the part 'servers'."""
        o = self.options
        return [(name, depth) for name in o.profiles for depth in o.server_depths]

    def _accesses(
        self, identity: DeviceIdentity, part: str, accesses: Sequence[Access]
    ) -> Sequence[Step]:
        return [
            self.access(
                f"{cell_text((size, read), pattern)} QD{depth}",
                part,
                number,
                seconds=self.options.step_seconds,
                queue_depth=depth,
                pattern=pattern,
                block_bytes=size,
                read_pct=read,
            )
            for number, (pattern, size, read, depth) in enumerate(accesses)
            if supported([size], identity)
        ]

    def _mixes(self, identity: DeviceIdentity) -> Sequence[Step]:
        o = self.options
        first, *others = supported(sizes_bytes(o.mix_block_kib), identity)
        cells = [(first, read, depth) for read in o.read_pcts for depth in o.queue_depths]
        cells += [(size, read, max(o.queue_depths)) for size in others for read in o.read_pcts]
        return [
            self.access(
                f"{cell_text((size, read))} QD{depth}",
                "mixes",
                size,
                read,
                depth,
                seconds=o.step_seconds,
                queue_depth=depth,
                block_bytes=size,
                read_pct=read,
            )
            for size, read, depth in cells
        ]

    def _consistency(self, read_pct: float) -> Step:
        return self.access(
            f"{cell_text((4 * KIB, read_pct))} QD{DEPTH}",
            "consistency",
            read_pct,
            seconds=self.options.consistency_seconds,
            queue_depth=DEPTH,
            read_pct=read_pct,
        )

    def _profile(
        self, identity: DeviceIdentity, title: str, name: str, depth: int | None = None
    ) -> Step:
        load = profile_workload(
            name,
            identity.capacity_bytes,
            queue_depth=depth,
            seconds=self.options.step_seconds,
            sector_bytes=identity.sector_bytes,
        )
        return self.step(title, load, name, depth)

    def phases(self, identity: DeviceIdentity) -> Sequence[str]:
        """Describe the parts of the run, in order."""
        o = self.options
        consistency = ", ".join(f"{share:g}" for share in o.consistency_read_pcts)
        descriptions = {
            "basic": f"basic figures: {len(ACCESSES['basic'])} accesses",
            "mixes": f"{block_text(sizes_bytes(o.mix_block_kib)[0])} random at {len(o.read_pcts)} "
            f"mixes x {len(o.queue_depths)} queue depths; larger blocks at the deepest",
            "consistency": f"random at {consistency} % reads, {o.consistency_seconds:g} s each",
            "messenger": "messenger service: one writer, 20 readers",
            "servers": f"{len(o.profiles)} profiles x {len(o.server_depths)} queue depths",
            SEQUENTIAL: f"sequential reads and writes, after {RECIPES[FILLED]}",
        }
        return (
            *self.beginning,
            *(descriptions[name] for name in self.parts if name == SEQUENTIAL),
            f"purge it, then {RECIPES[o.state]}",
            *(descriptions[name] for name in self.parts if name != SEQUENTIAL),
            f"in steps of {o.step_seconds:g} s",
        )

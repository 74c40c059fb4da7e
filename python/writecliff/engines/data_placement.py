"""The administrative commands of a simulated drive's data placement interface, between its steps.

Owns: NVMe Streams directive, SCSI stream control and FDP as Python calls. A command that the drive
refuses raises `ConfigError` with the standard's status. Sections are those of NVMe Base
Specification 2.1; a logical block has 512 bytes.

    engine = SimEngine("nvme-tlc-960")
    engine.data_placement.fdp.enable_events(3, ["invalid placement identifier"])
    engine.run(workload)
    engine.data_placement.fdp.statistics().dlwa
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from writecliff.engines.data_placement_status import (
    DataPlacementStatus,
    FdpEvent,
    FdpStatistics,
    HandleStatus,
    status_of,
)
from writecliff.native_errors import with_user_errors

if TYPE_CHECKING:
    from writecliff import _native

DIRECTIVES = ("identify", "streams", "data placement")


@dataclass(frozen=True)
class Directives:
    """Identify directive, Return Parameters (8.1.8.2): names of `DIRECTIVES`."""

    supported: tuple[str, ...]
    enabled: tuple[str, ...]
    persistent: tuple[str, ...]  # enabled across a Controller Level Reset


@dataclass(frozen=True)
class StreamParameters:
    """Streams directive, Return Parameters (8.1.8.3.1.1)."""

    msl: int  # Max Streams Limit
    nssa: int  # NVM Subsystem Streams Available
    nsso: int  # NVM Subsystem Streams Open
    sws: int  # Stream Write Size, in blocks: a program unit
    sgs: int  # Stream Granularity Size, in stream write sizes: a reclaim unit
    nsa: int  # Namespace Streams Allocated
    nso: int  # Namespace Streams Open


@dataclass(frozen=True)
class BlockLimitsExtension:
    """Block Limits Extension VPD page (B7h), the fields about streams (SBC-4)."""

    maximum_number_of_streams: int
    optimal_stream_write_size: int  # blocks: a program unit
    stream_granularity_size: int  # optimal stream write sizes: a reclaim unit


@dataclass(frozen=True)
class FdpConfiguration:
    """FDP configuration descriptor (log page 20h, 5.1.12.1.28) and the namespace's handle list."""

    rgif: int  # Reclaim Group Identifier Format
    fdpvwc: bool  # a volatile write cache is present
    reclaim_groups: int
    handles: tuple[str, ...]  # type of each: "initially isolated", "persistently isolated"
    max_placement_ids: int
    reclaim_unit_bytes: int  # RUNS
    time_limit_s: int  # ERUTL; 0: none
    placement_handles: tuple[int, ...]  # reclaim unit handle of each


class _Commands:
    """Commands of one interface, by way of the native module."""

    def __init__(self, commands: _native.DataPlacementCommands) -> None:
        self._commands = with_user_errors(commands)


class NvmeStreams(_Commands):
    """The Streams directive (8.1.8.3). The host's driver has enabled it on a new drive."""

    def enable(self, enabled: bool = True) -> None:
        """Identify directive, Enable Directive. Disabling releases all streams and resources."""
        self._commands.enable_streams(enabled)

    def parameters(self) -> StreamParameters:
        return StreamParameters(**self._commands.stream_parameters())

    def status(self) -> tuple[int, ...]:
        """Get Status: identifiers that are open, ascending."""
        return tuple(self._commands.stream_status())

    def allocate(self, requested: int) -> int:
        """Allocate Resources: how many streams were granted for exclusive use."""
        return self._commands.allocate_streams(requested)

    def release(self, stream: int) -> bool:
        """Release Identifier. Returns whether it was open; it is no error if it was not."""
        return self._commands.release_stream(stream)

    def release_resources(self) -> None:
        """Release Resources: what was allocated, and the streams that are open in it."""
        self._commands.release_stream_resources()


class ScsiStreams(_Commands):
    """Stream control (SBC-4)."""

    def open(self) -> int:
        """STREAM CONTROL, open: the identifier that the drive has assigned."""
        return self._commands.scsi_open_stream()

    def close(self, stream: int) -> None:
        """STREAM CONTROL, close. Raises ConfigError for a stream that is not open."""
        self._commands.scsi_close_stream(stream)

    def status(self, starting: int = 0) -> tuple[int, ...]:
        """GET STREAM STATUS: identifiers that are open, from one on."""
        return tuple(self._commands.scsi_stream_status(starting))

    def limits(self) -> BlockLimitsExtension:
        return BlockLimitsExtension(**self._commands.scsi_block_limits())


class Fdp(_Commands):
    """Flexible data placement (8.1.10), always enabled."""

    def configuration(self) -> FdpConfiguration:
        raw = self._commands.fdp_configuration()
        lists = {name: tuple(raw[name]) for name in ("handles", "placement_handles")}
        return FdpConfiguration(**{**raw, **lists})

    def usage(self) -> tuple[bool, ...]:
        """Reclaim unit handle usage (log page 21h): host specified (True) or unused, by handle."""
        return tuple(self._commands.fdp_usage())

    def handle_status(self) -> tuple[HandleStatus, ...]:
        """I/O Management Receive, reclaim unit handle status (7.3)."""
        return tuple(HandleStatus(**row) for row in self._commands.fdp_handle_status())

    def update(self, placement_ids: Iterable[int]) -> int:
        """I/O Management Send, reclaim unit handle update (7.4): the next writes of these go to
        empty units. Returns how many units that held data were left for it."""
        return self._commands.fdp_update(list(placement_ids))

    def enable_events(self, placement_id: int, kinds: Iterable[str], enabled: bool = True) -> None:
        """Set Features, FDP events (5.1.25.1.21). None is enabled on a new drive."""
        self._commands.fdp_enable_events(placement_id, list(kinds), enabled)

    def enable_all_events(self) -> None:
        """All events behind every placement handle, on a drive that has them; else nothing."""
        self._commands.fdp_enable_all_events()

    def enabled_events(self, placement_id: int) -> tuple[str, ...]:
        return tuple(self._commands.fdp_enabled_events(placement_id))

    def events(self, *, of_host: bool = True) -> tuple[FdpEvent, ...]:
        """FDP Events log page (23h): the newest 63 of the host or of the controller, oldest
        first."""
        return tuple(FdpEvent(**row) for row in self._commands.fdp_events(of_host))

    def statistics(self) -> FdpStatistics:
        """FDP Statistics log page (22h, 5.1.12.1.30)."""
        return FdpStatistics(**self._commands.fdp_statistics())


class DataPlacementInterface(_Commands):
    """What `SimEngine.data_placement` is. Calls of an interface that the drive does not have raise
    ConfigError."""

    def __init__(self, commands: _native.DataPlacementCommands) -> None:
        super().__init__(commands)
        self.streams = NvmeStreams(commands)
        self.scsi = ScsiStreams(commands)
        self.fdp = Fdp(commands)

    def directives(self) -> Directives:
        """Identify directive, Return Parameters (8.1.8.2), of an NVMe drive."""
        raw = self._commands.directives()

        def names(bits: int) -> tuple[str, ...]:
            return tuple(name for bit, name in enumerate(DIRECTIVES) if bits >> bit & 1)

        return Directives(*(names(raw[key]) for key in ("supported", "enabled", "persistent")))

    def reset(self) -> None:
        """A Controller Level Reset. It disables the Streams directive; a drive without power-loss
        protection gives up the units that its handles fill."""
        self._commands.controller_reset()

    def status(self) -> DataPlacementStatus | None:
        """Everything at once; None for a drive without an interface."""
        return status_of(self._commands.status())

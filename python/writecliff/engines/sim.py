"""The simulated engine: a drive in virtual time, behind the seam of real ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from writecliff import _native
from writecliff.devices import DeviceDescription, describe, open_device, read_device_file
from writecliff.engines.base import (
    SCM,
    Adherence,
    CacheReport,
    DeviceIdentity,
    Engine,
    JobResult,
    OperationResult,
    PowerState,
    PowerStates,
    Progress,
    ProgressHook,
    PurgeHook,
    PurgeReport,
    StepResult,
    described_as,
    unseen,
)
from writecliff.engines.counters import Counters
from writecliff.engines.data_placement_status import (
    DataPlacementStatus,
    FdpEvent,
    FdpStatistics,
    HandleStatus,
    status_of,
)
from writecliff.errors import TargetError
from writecliff.latency_causes import LatencyCauses
from writecliff.native_errors import as_user_errors, with_user_errors
from writecliff.output_files import part_of, remove_part
from writecliff.workload.model import Workload

SECTOR_BYTES = 512
# Fields of the description that are those of the identity.
_AS_DESCRIBED = (
    "vendor", "model", "firmware", "capacity_bytes", "interface", "nand_type", "rated_tbw_bytes",
    "device_hash", "rated_cycles",
)  # fmt: skip


class SimEngine:
    """A simulated drive from a preset name or a device file.

    `seed` fixes the drive's own random choices (the d-choices collection policy, a disk's retries);
    the workload's seed fixes the host's. Same device, workloads and seeds: the same results, to
    the byte. With `attribute_latency` results say what the latency of I/Os was spent on, and a run
    takes longer; nothing else changes. `power_state` is one of the states that the
    device file describes.
    """

    kind: Literal["sim", "fio"] = "sim"
    write_refusal = None
    _attribute_latency = False
    _power_state: int | None = None

    def __init__(
        self,
        name_or_path: str,
        *,
        seed: int = 1,
        attribute_latency: bool = False,
        power_state: int | None = None,
        device_file: tuple[str, str] | None = None,
    ) -> None:
        device = open_device(*(device_file or read_device_file(name_or_path)))
        self._attribute_latency = attribute_latency
        self._power_state = power_state
        self._open(device, target=f"sim:{name_or_path}", seed=seed)

    @classmethod
    def from_text(cls, text: str, file_name: str, *, seed: int = 1) -> Self:
        """A drive from the text of a device file; `file_name` is for messages."""
        return cls.from_device(open_device(text, file_name), seed=seed)

    @classmethod
    def from_device(
        cls,
        device: _native.Device,
        *,
        seed: int = 1,
        attribute_latency: bool = False,
        power_state: int | None = None,
    ) -> Self:
        """A drive from a parsed device file."""
        engine = cls.__new__(cls)
        engine._attribute_latency = attribute_latency
        engine._power_state = power_state
        engine._open(device, target=f"sim:{device.file_name}", seed=seed)
        return engine

    def _open(self, device: _native.Device, *, target: str, seed: int) -> None:
        self.device = device
        self.seed = seed
        self._target = target
        self.described: Mapping[str, str] = {}  # by the user; see `open_target`
        self._check_power_state()

    def _check_power_state(self) -> None:
        """Raises TargetError if the drive lacks the state that it is to be in."""
        wanted, states = self._power_state, self.description.power_states
        if wanted is None or 0 <= wanted < len(states):
            return
        if not states:
            hint = "give it max_active_dies in [power], with a limit for each state"
            raise TargetError(f"{self._target}: its device file has no power states", hint=hint)
        hint = f"it has {', '.join(map(str, range(len(states))))}"
        raise TargetError(f"{self._target}: no power state {wanted}", hint=hint)

    def renew(self) -> None:
        """Take a new drive of the same kind, with the write cache as it is set."""
        if "_drive" not in vars(self):
            return
        write_cache = self.write_cache
        del self._drive  # the memory of two large drives may not be there
        self.set_write_cache(write_cache)

    @cached_property
    def _drive(self) -> _native.Drive:
        """Made when it is first used: its memory may be gigabytes, and a drive that is described,
        or simulated smaller, needs none.
        """
        with as_user_errors():
            return _native.Drive(
                self.device,
                self.seed,
                attribute_latency=self._attribute_latency,
                power_state=self._power_state or 0,
            )

    @property
    def description(self) -> DeviceDescription:
        return describe(self.device)

    @property
    def native_drive(self) -> _native.Drive:
        """The drive itself, for what is not a run of a workload."""
        return self._drive

    @property
    def attribute_latency(self) -> bool:
        return self._attribute_latency

    @property
    def power_state(self) -> int | None:
        """The power state that was asked for."""
        return self._power_state

    @property
    def write_cache(self) -> bool:
        return self._drive.write_cache

    def identify(self) -> DeviceIdentity:
        found = identity_of(self.description, self._target)
        return described_as(found, self.described)

    @property
    def data_placement(self) -> DataPlacementInterface:
        """The administrative commands of its data placement interface, between steps."""
        return DataPlacementInterface(self._drive.data_placement)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        self._drive.purge()
        if self.description.kind == "scm":
            return PurgeReport(
                method="simulated purge (a new key)",
                conformant=True,
                note="memory that is written in place has no state that a purge would reset",
            )
        if self.description.kind == "disk":
            return PurgeReport(
                method="not applicable (hard disk)",
                conformant=True,
                note="platters have no state that a purge would reset",
            )
        return PurgeReport(method="simulated purge (every block erased)", conformant=True)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        self._drive.set_write_cache(enabled)
        protected = self.description.power_loss_protection
        note = "the buffer is protected against power loss" if protected and not enabled else ""
        if self.description.kind == "scm":
            note = "the drive has no volatile write cache"
        return CacheReport(enabled=self._drive.write_cache, note=note)

    def run(
        self,
        workload: Workload,
        on_progress: ProgressHook | None = None,
        *,
        keep_running: bool = False,
    ) -> StepResult:
        with as_user_errors():
            return _step_result(self._drive.run(workload.to_json(), _hook(on_progress)))

    def speed_limit(self, workload: Workload) -> float | None:
        """Not known: an estimate by pilots says more."""
        return None

    def stop_load(self) -> None:
        """Nothing runs between steps: the drive's time stands still."""

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        with as_user_errors():
            return _step_result(self._drive.fast_forward(workload.to_json(), _hook(on_progress)))

    def counters(self) -> Counters:
        return Counters(**self._drive.counters())

    def health(self) -> Mapping[str, object] | None:
        """The counters, which are what a real drive would have in its SMART log."""
        return {"source": "simulated drive", **self.counters()}

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Those that the device file describes, which the drive takes no time to change; None if it
        describes none. A new drive is in 0.
        """
        found = tuple(
            PowerState(number, watts, True, 0, 0, dies)
            for number, (dies, watts) in enumerate(self.description.power_states)
        )
        if not found:
            return None
        before = None if self._power_state is None else 0
        return PowerStates(self._power_state or 0, found, before=before)

    def log_events(self) -> None:
        """Enable all events of FDP behind every placement handle; other drives have none."""
        self.data_placement.fdp.enable_all_events()

    def lose_die(self, die: int) -> None:
        """A die of the flash does not answer from now on. Raises ConfigError for a drive without
        [die_parity], without this die, or without the space to do without it.
        """
        with as_user_errors():
            self._drive.lose_die(die)

    def check(self) -> None:
        """Check every invariant of the drive's state; raises ValueError. For tests."""
        self._drive.check()

    def save(self, path: Path) -> bool:
        """Write the complete device state, atomically. Raises EngineError."""
        part = part_of(path)
        try:
            with as_user_errors():
                self._drive.save(str(part))
                os.replace(part, path)
        finally:
            remove_part(part)
        return True

    def restore(self, path: Path) -> None:
        """Go back to a saved state of the same device. Raises ConfigError, EngineError."""
        with as_user_errors():
            self._drive.restore(str(path))

    def copy_from(self, other: SimEngine) -> None:
        """Take the state of another drive of the same device, or, if this one is new, of a device
        that differs in nothing that preconditioning depends on. Raises ConfigError.
        """
        with as_user_errors():
            self._drive.copy_from(other._drive)

    def least_scale(self) -> float:
        """How many times smaller it must be simulated; 1 for all drives but the largest."""
        return self.description.least_scale

    def scales(self) -> Sequence[float]:
        """How many times smaller the drive can be simulated, largest first."""
        return self.device.scales()

    def scaled(self, scale: float, *, largest_io_bytes: int) -> Engine:
        """The same drive, `scale` times smaller and shorter. Raises ConfigError: not possible."""
        from writecliff.engines.scaled import ScaledEngine

        return ScaledEngine(self, scale, largest_io_bytes=largest_io_bytes)

    def close(self) -> None:
        """Nothing to give back: the drive is memory."""


def identity_of(device: DeviceDescription, target: str) -> DeviceIdentity:
    """Who a simulated drive is that a user named `target`."""
    said = {name: getattr(device, name) for name in _AS_DESCRIBED}
    if device.kind == "scm":
        said["nand_type"] = SCM
    return DeviceIdentity(
        target=target,
        serial=f"SIM-{device.device_hash[:12].upper()}",
        sector_bytes=SECTOR_BYTES,
        simulated=True,
        rotational=device.kind == "disk",
        **said,
    )


def _hook(on_progress: ProgressHook | None) -> Callable[..., None] | None:
    if on_progress is None:
        return None

    def look(
        fraction: float,
        elapsed_ns: int,
        ios: int,
        iops: float,
        waf: float | None,
        counters: Mapping[str, Any],
    ) -> None:
        on_progress(Progress(fraction, elapsed_ns, ios, iops, waf, Counters(**counters)))

    return look


def _step_result(raw: Mapping[str, Any]) -> StepResult:
    jobs = tuple(
        JobResult(
            name=job["name"],
            began_ns=job["began_ns"],
            elapsed_ns=job["elapsed_ns"],
            operations={
                name: _operation_result(operation) for name, operation in job["operations"].items()
            },
            thread_ios=tuple(job["thread_ios"]),
            ended_by=job["ended_by"],
            queue_depth=job["queue_depth"],
            adherence=None if job["adherence"] is None else Adherence(**job["adherence"]),
            flush=None if job["flush"] is None else _operation_result(job["flush"]),
        )
        for job in raw["jobs"]
    )
    return StepResult(
        started_ns=raw["started_ns"],
        elapsed_ns=raw["elapsed_ns"],
        jobs=jobs,
        intervals=raw["intervals"],
        batches=raw["batches"],
        counters_before=Counters(**raw["before"]),
        counters_after=Counters(**raw["after"]),
        warnings=tuple(raw["warnings"]),
        data_placement=_data_placement(raw["data_placement"]),
    )


def _operation_result(raw: Mapping[str, Any]) -> OperationResult:
    causes = raw["causes"]
    return OperationResult(
        **{**raw, "causes": None if causes is None else LatencyCauses.of(causes)},
        scheduled=raw["response"] is not None,
    )


def _data_placement(
    raw: tuple[Mapping[str, Any], Mapping[str, Any]] | None,
) -> tuple[DataPlacementStatus, DataPlacementStatus] | None:
    before, after = (status_of(look) for look in raw or (None, None))
    return (before, after) if before is not None and after is not None else None


# -- data placement --------------------------------------------------------------------------------

# Administrative commands of a simulated drive's data placement interface, between its steps: NVMe
# Streams directive, SCSI stream control and FDP as Python calls. A command that the drive rejects
# raises `ConfigError` with the standard's status. Sections are those of NVMe Base
# Specification 2.1; a logical block has 512 bytes.
#
#     engine = SimEngine("nvme-tlc-960")
#     engine.data_placement.fdp.enable_events(3, ["invalid placement identifier"])
#     engine.run(workload)
#     engine.data_placement.fdp.statistics().dlwa

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
        empty units. Returns how many units that held data were left for it.
        """
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
        first.
        """
        return tuple(FdpEvent(**row) for row in self._commands.fdp_events(of_host))

    def statistics(self) -> FdpStatistics:
        """FDP Statistics log page (22h, 5.1.12.1.30)."""
        return FdpStatistics(**self._commands.fdp_statistics())


class DataPlacementInterface(_Commands):
    """What `SimEngine.data_placement` is. Calls of an interface that the drive does not have raise
    ConfigError.
    """

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
        protection gives up the units that its handles fill.
        """
        self._commands.controller_reset()

    def status(self) -> DataPlacementStatus | None:
        """Everything at once; None for a drive without an interface."""
        return status_of(self._commands.status())

"""Engine for simulated drives, which run in virtual time."""

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
# Identity fields that are copied from the device description.
_AS_DESCRIBED = (
    "vendor", "model", "firmware", "capacity_bytes", "interface", "nand_type", "rated_tbw_bytes",
    "device_hash", "rated_cycles",
)  # fmt: skip


class SimEngine:
    """A simulated drive from a preset name or a device file.

    `seed` determines the drive's random choices (the d-choices collection policy, or a hard disk's
    retries). The workload's seed determines the host's random choices. The same device, workload
    and seeds produce byte-identical results. If `attribute_latency` is set, results split latencies
    by cause, and a run takes longer, but nothing else changes. `power_state` is the number of a
    power state in the device file.
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
        """Open a preset or device file, or a device file given as text and name.

        Raises:
            ConfigError: If the device file is invalid.
            TargetError: If the drive does not have the requested power state.
        """
        device = open_device(*(device_file or read_device_file(name_or_path)))
        self._attribute_latency = attribute_latency
        self._power_state = power_state
        self._open(device, target=f"sim:{name_or_path}", seed=seed)

    @classmethod
    def from_text(cls, text: str, file_name: str, *, seed: int = 1) -> Self:
        """Return a drive from a device file's text; errors quote `file_name`."""
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
        """Return a drive from a parsed device file."""
        engine = cls.__new__(cls)
        engine._attribute_latency = attribute_latency
        engine._power_state = power_state
        engine._open(device, target=f"sim:{device.file_name}", seed=seed)
        return engine

    def _open(self, device: _native.Device, *, target: str, seed: int) -> None:
        self.device = device
        self.seed = seed
        self._target = target
        # Description supplied by the user (see `open_target`).
        self.described: Mapping[str, str] = {}
        self._check_power_state()

    def _check_power_state(self) -> None:
        """Raise TargetError if the device file lacks the requested power state."""
        wanted, states = self._power_state, self.description.power_states
        if wanted is None or 0 <= wanted < len(states):
            return
        if not states:
            hint = "add max_active_dies to [power], with a limit for each state"
            raise TargetError(f"{self._target} has no power states in its device file", hint=hint)
        hint = f"the device file defines the states 0 to {len(states) - 1}"
        raise TargetError(f"{self._target} has no power state {wanted}", hint=hint)

    def renew(self) -> None:
        """Replace the drive with a new drive of the same kind and the same write cache setting."""
        if "_drive" not in vars(self):
            return
        write_cache = self.write_cache
        del self._drive  # Memory may be too small for two large drives.
        self.set_write_cache(write_cache)

    @cached_property
    def _drive(self) -> _native.Drive:
        """The native drive, created on first use because it may occupy gigabytes of memory."""
        with as_user_errors():
            return _native.Drive(
                self.device,
                self.seed,
                attribute_latency=self._attribute_latency,
                power_state=self._power_state or 0,
            )

    @property
    def description(self) -> DeviceDescription:
        """Description of the drive from its device file."""
        return describe(self.device)

    @property
    def native_drive(self) -> _native.Drive:
        """The native drive, for purposes other than running workloads."""
        return self._drive

    @property
    def attribute_latency(self) -> bool:
        """True if results split latencies by cause."""
        return self._attribute_latency

    @property
    def power_state(self) -> int | None:
        """The requested power state, or None if no state was requested."""
        return self._power_state

    @property
    def write_cache(self) -> bool:
        """True if the volatile write cache is enabled."""
        return self._drive.write_cache

    def identify(self) -> DeviceIdentity:
        """Return the identity from the device file and the user's description."""
        identity = identity_of(self.description, self._target)
        return described_as(identity, self.described)

    @property
    def data_placement(self) -> DataPlacementInterface:
        """Administrative commands of the data placement interface, sent between steps."""
        return DataPlacementInterface(self._drive.data_placement)

    def purge(self, on_progress: PurgeHook = unseen) -> PurgeReport:
        """Erase all blocks at once (memory and hard disks have no state to reset)."""
        self._drive.purge()
        if self.description.kind == "scm":
            return PurgeReport(
                method="simulated purge (a new key)",
                conformant=True,
                note="memory that is written in place has no state that a purge could reset",
            )
        if self.description.kind == "disk":
            return PurgeReport(
                method="not applicable (hard disk)",
                conformant=True,
                note="platters have no state that a purge could reset",
            )
        return PurgeReport(method="simulated purge (every block erased)", conformant=True)

    def set_write_cache(self, enabled: bool) -> CacheReport:
        """Enable or disable the volatile write cache, if the drive has one."""
        self._drive.set_write_cache(enabled)
        protected = self.description.power_loss_protection
        note = (
            "the write buffer is protected against power loss" if protected and not enabled else ""
        )
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
        """Run the workload in virtual time, and stop the drive's clock after the step."""
        with as_user_errors():
            return _step_result(self._drive.run(workload.to_json(), _hook(on_progress)))

    def speed_limit(self, workload: Workload) -> float | None:
        """Return None, because pilot runs provide a better estimate."""
        return None

    def stop_load(self) -> None:
        """Do nothing, because no load runs between the steps of a simulated drive."""

    def precondition(
        self, workload: Workload, on_progress: ProgressHook | None = None
    ) -> StepResult:
        """Apply the workload's writes and trims without simulating their timing."""
        with as_user_errors():
            return _step_result(self._drive.fast_forward(workload.to_json(), _hook(on_progress)))

    def counters(self) -> Counters:
        """Return the drive's lifetime counters."""
        return Counters(**self._drive.counters())

    def health(self) -> Mapping[str, object] | None:
        """Return the counters, which are a simulated drive's equivalent of a SMART log."""
        return {"source": "simulated drive", **self.counters()}

    def power_states(self, *, settle: bool = False) -> PowerStates | None:
        """Return the device file's power states, or None if it has none.

        Power state changes take no time. A new drive starts in power state 0.
        """
        states = tuple(
            PowerState(number, watts, True, 0, 0, dies)
            for number, (dies, watts) in enumerate(self.description.power_states)
        )
        if not states:
            return None
        before = None if self._power_state is None else 0
        return PowerStates(self._power_state or 0, states, before=before)

    def log_events(self) -> None:
        """Enable all FDP events for every placement handle, if the drive supports FDP."""
        self.data_placement.fdp.enable_all_events()

    def lose_die(self, die: int) -> None:
        """Make a flash die fail permanently.

        Raises:
            ConfigError: If the drive has no [die_parity], the die does not exist, or too little
                spare flash remains.
        """
        with as_user_errors():
            self._drive.lose_die(die)

    def check(self) -> None:
        """Check, for tests, all invariants of the drive state.

        Raises:
            ValueError: If an invariant is violated.
        """
        self._drive.check()

    def save(self, path: Path) -> bool:
        """Write the device state atomically.

        Raises:
            EngineError: If the state could not be written.
        """
        part = part_of(path)
        try:
            with as_user_errors():
                self._drive.save(str(part))
                os.replace(part, path)
        finally:
            remove_part(part)
        return True

    def restore(self, path: Path) -> None:
        """Load a state that was saved for the same device.

        Raises:
            ConfigError: If the state belongs to another device.
            EngineError: If the file could not be read or is damaged.
        """
        with as_user_errors():
            self._drive.restore(str(path))

    def copy_from(self, other: SimEngine) -> None:
        """Copy the state of another drive that has the same device file.

        A new drive also accepts a state from a device that differs only in settings that do not
        affect preconditioning.

        Raises:
            ConfigError: If the devices differ.
        """
        with as_user_errors():
            self._drive.copy_from(other._drive)

    def least_scale(self) -> float:
        """Return the smallest scale that the drive can be simulated at, which is usually 1."""
        return self.description.least_scale

    def scales(self) -> Sequence[float]:
        """Return the scales at which the drive can be simulated, largest first."""
        return self.device.scales()

    def scaled(self, scale: float, *, largest_io_bytes: int) -> Engine:
        """Return an engine for the drive at 1/`scale` of its capacity and time.

        Raises:
            ConfigError: If the drive cannot be simulated at this scale.
        """
        from writecliff.engines.scaled import ScaledEngine

        return ScaledEngine(self, scale, largest_io_bytes=largest_io_bytes)

    def close(self) -> None:
        """Do nothing, because a simulated drive holds no resources except memory."""


def identity_of(device: DeviceDescription, target: str) -> DeviceIdentity:
    """Return the identity of a simulated drive that the user named `target`."""
    fields = {name: getattr(device, name) for name in _AS_DESCRIBED}
    if device.kind == "scm":
        fields["nand_type"] = SCM
    return DeviceIdentity(
        target=target,
        serial=f"SIM-{device.device_hash[:12].upper()}",
        sector_bytes=SECTOR_BYTES,
        simulated=True,
        rotational=device.kind == "disk",
        **fields,
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

# Administrative commands for a simulated drive's data placement interface, which can be sent
# between steps: NVMe Streams directive, SCSI stream control and FDP as Python calls. A command that
# the drive rejects raises `ConfigError` with the status defined by the standard. Section numbers
# refer to NVMe Base Specification 2.1. A logical block has 512 bytes.
#
#     engine = SimEngine("nvme-tlc-960")
#     engine.data_placement.fdp.enable_events(3, ["invalid placement identifier"])
#     engine.run(workload)
#     engine.data_placement.fdp.statistics().dlwa

DIRECTIVES = ("identify", "streams", "data placement")


@dataclass(frozen=True)
class Directives:
    """Return Parameters of the Identify directive (8.1.8.2), as names from `DIRECTIVES`."""

    supported: tuple[str, ...]
    enabled: tuple[str, ...]
    persistent: tuple[str, ...]  # Directives that stay enabled across a Controller Level Reset.


@dataclass(frozen=True)
class StreamParameters:
    """Return Parameters of the Streams directive (8.1.8.3.1.1)."""

    msl: int  # Max Streams Limit.
    nssa: int  # NVM Subsystem Streams Available.
    nsso: int  # NVM Subsystem Streams Open.
    sws: int  # Stream Write Size in blocks, which equals a program unit.
    sgs: int  # Stream Granularity Size in stream write sizes (a reclaim unit).
    nsa: int  # Namespace Streams Allocated.
    nso: int  # Namespace Streams Open.


@dataclass(frozen=True)
class BlockLimitsExtension:
    """Stream fields of the Block Limits Extension VPD page (B7h, SBC-4)."""

    maximum_number_of_streams: int
    # Optimal stream write size in blocks, which equals a program unit.
    optimal_stream_write_size: int
    # Stream granularity in optimal stream write sizes, which equals a reclaim unit.
    stream_granularity_size: int


@dataclass(frozen=True)
class FdpConfiguration:
    """FDP configuration descriptor (log page 20h, 5.1.12.1.28) and the namespace's handle list."""

    rgif: int  # Reclaim Group Identifier Format.
    fdpvwc: bool  # `True` if the drive has a volatile write cache.
    reclaim_groups: int
    handles: tuple[str, ...]  # Handle types: "initially isolated" or "persistently isolated".
    max_placement_ids: int
    reclaim_unit_bytes: int  # Reclaim Unit Nominal Size (RUNS).
    time_limit_s: int  # ERUTL in seconds; 0 for no time limit.
    placement_handles: tuple[int, ...]  # Reclaim unit handle of each placement handle.


class _Commands:
    """Commands of a single interface, sent through the native module."""

    def __init__(self, commands: _native.DataPlacementCommands) -> None:
        self._commands = with_user_errors(commands)


class NvmeStreams(_Commands):
    """The Streams directive (8.1.8.3), which is enabled on a new drive."""

    def enable(self, enabled: bool = True) -> None:
        """Send Enable Directive. Disabling the directive releases all streams and resources."""
        self._commands.enable_streams(enabled)

    def parameters(self) -> StreamParameters:
        """Send Return Parameters."""
        return StreamParameters(**self._commands.stream_parameters())

    def status(self) -> tuple[int, ...]:
        """Send Get Status and return the open stream identifiers in ascending order."""
        return tuple(self._commands.stream_status())

    def allocate(self, requested: int) -> int:
        """Send Allocate Resources and return the number of streams granted for exclusive use."""
        return self._commands.allocate_streams(requested)

    def release(self, stream: int) -> bool:
        """Send Release Identifier and return True if the stream was open."""
        return self._commands.release_stream(stream)

    def release_resources(self) -> None:
        """Send Release Resources, which also releases the allocation's open streams."""
        self._commands.release_stream_resources()


class ScsiStreams(_Commands):
    """Stream control (SBC-4)."""

    def open(self) -> int:
        """Send STREAM CONTROL (open) and return the identifier that the drive assigns."""
        return self._commands.scsi_open_stream()

    def close(self, stream: int) -> None:
        """Send STREAM CONTROL (close).

        Raises:
            ConfigError: If the stream is not open.
        """
        self._commands.scsi_close_stream(stream)

    def status(self, starting: int = 0) -> tuple[int, ...]:
        """Send GET STREAM STATUS and return the open identifiers from `starting` upwards."""
        return tuple(self._commands.scsi_stream_status(starting))

    def limits(self) -> BlockLimitsExtension:
        """Read the Block Limits Extension VPD page."""
        return BlockLimitsExtension(**self._commands.scsi_block_limits())


class Fdp(_Commands):
    """Flexible data placement (8.1.10), which is always enabled."""

    def configuration(self) -> FdpConfiguration:
        """Read the FDP Configurations log page and the namespace's handle list."""
        raw = self._commands.fdp_configuration()
        lists = {name: tuple(raw[name]) for name in ("handles", "placement_handles")}
        return FdpConfiguration(**{**raw, **lists})

    def usage(self) -> tuple[bool, ...]:
        """Read the Reclaim Unit Handle Usage log page (21h); True means host specified."""
        return tuple(self._commands.fdp_usage())

    def handle_status(self) -> tuple[HandleStatus, ...]:
        """Send I/O Management Receive, Reclaim Unit Handle Status (7.3)."""
        return tuple(HandleStatus(**row) for row in self._commands.fdp_handle_status())

    def update(self, placement_ids: Iterable[int]) -> int:
        """Send I/O Management Send, Reclaim Unit Handle Update (7.4).

        Subsequent writes that use these placement identifiers go to empty reclaim units.

        Returns:
            Number of abandoned reclaim units that held data.
        """
        return self._commands.fdp_update(list(placement_ids))

    def enable_events(self, placement_id: int, kinds: Iterable[str], enabled: bool = True) -> None:
        """Send Set Features for FDP Events (5.1.25.1.21), which are disabled on a new drive."""
        self._commands.fdp_enable_events(placement_id, list(kinds), enabled)

    def enable_all_events(self) -> None:
        """Enable all events for every placement handle, if the drive supports events."""
        self._commands.fdp_enable_all_events()

    def enabled_events(self, placement_id: int) -> tuple[str, ...]:
        """Send Get Features and return the names of the enabled events."""
        return tuple(self._commands.fdp_enabled_events(placement_id))

    def events(self, *, of_host: bool = True) -> tuple[FdpEvent, ...]:
        """Read the latest 63 events in the FDP Events log page (23h), oldest first.

        The log has separate lists for host events and controller events.
        """
        return tuple(FdpEvent(**row) for row in self._commands.fdp_events(of_host))

    def statistics(self) -> FdpStatistics:
        """Read the FDP Statistics log page (22h, 5.1.12.1.30)."""
        return FdpStatistics(**self._commands.fdp_statistics())


class DataPlacementInterface(_Commands):
    """Administrative commands of a simulated drive, grouped by interface.

    Commands of an interface that the drive does not support raise ConfigError.
    """

    def __init__(self, commands: _native.DataPlacementCommands) -> None:
        """Wrap a drive's native commands."""
        super().__init__(commands)
        self.streams = NvmeStreams(commands)
        self.scsi = ScsiStreams(commands)
        self.fdp = Fdp(commands)

    def directives(self) -> Directives:
        """Send Return Parameters of the Identify directive (8.1.8.2) to an NVMe drive."""
        raw = self._commands.directives()

        def names(bits: int) -> tuple[str, ...]:
            return tuple(name for bit, name in enumerate(DIRECTIVES) if bits >> bit & 1)

        return Directives(*(names(raw[key]) for key in ("supported", "enabled", "persistent")))

    def reset(self) -> None:
        """Perform a Controller Level Reset.

        The reset disables the Streams directive. A drive that has no power-loss protection abandons
        the reclaim units that its handles reference.
        """
        self._commands.controller_reset()

    def status(self) -> DataPlacementStatus | None:
        """Return the interface status, or None for a drive that has no data placement interface."""
        return status_of(self._commands.status())

"""Server for a simulated drive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from writecliff import _native
from writecliff.devices import describe, open_device, read_device_file
from writecliff.engines.preconditioned import precondition, recipe_text
from writecliff.engines.sim import SimEngine, identity_of
from writecliff.engines.state_cache import StateCache
from writecliff.engines.target import SIMULATED, is_simulated
from writecliff.errors import ConfigError, TargetError
from writecliff.native_errors import as_user_errors
from writecliff.serve.addresses import check_nvme_addresses, is_open_to_others
from writecliff.serve.figures import PowerCut, Snapshot


@dataclass(frozen=True)
class ServeOptions:
    """Options of a served drive."""

    slow_down: float | None = 1.0
    """Nanoseconds of wall time per nanosecond of drive time; None: no timing."""
    state: Path | None = None
    """State file, restored if it exists and written at the end. Until then, files in its folder
    hold all acknowledged commands, so a killed server does not lose them."""
    contents: Path | None = None
    """Sparse file for the data; None: in memory."""
    compress: bool = False
    """Compress the data in memory."""
    memory_limit_bytes: int | None = None
    """Reject writes that need more memory than this."""
    precondition: str = "none"
    """State of a new drive (`engines.preconditioned`)."""
    seed: int = 1

    def check(self) -> None:
        """Check the options.

        Raises:
            ConfigError: If a value is out of range or if options are incompatible.
        """
        slow = self.slow_down
        if slow is not None and not (math.isfinite(slow) and slow >= 1):
            raise ConfigError(
                f"--slow-down is {slow:g}; it must be 1 or more",
                hint="to reply without waiting for the drive, specify --fast",
            )
        recipe_text(self.precondition)
        restores = self.state is not None and self.state.exists()
        if restores and self.precondition != "none":
            raise ConfigError(
                f"{self.state} exists, but --precondition applies only to a new drive",
                hint="omit --precondition, or choose another file",
            )
        if self.contents is not None and (self.compress or self.memory_limit_bytes is not None):
            raise ConfigError(
                "--compress and --memory apply to data in memory, but --contents is a file",
                hint="omit --contents, or omit --compress and --memory",
            )


class DriveServer:
    """A simulated drive that accepts connections until `end` is called."""

    def __init__(self, target: str, options: ServeOptions) -> None:
        """Create, restore or precondition the drive `sim:...`.

        Raises:
            TargetError: If the target is not a simulated drive.
            ConfigError: If an option or the device file is invalid.
            EngineError: If a file cannot be read or written.
        """
        options.check()
        if not is_simulated(target) or target == SIMULATED:
            raise TargetError(
                f"{target} cannot be served: it is not simulated",
                hint="specify a simulated drive: sim:NAME",
            )
        self._state = options.state
        self.options = options
        device = open_device(*read_device_file(target.removeprefix(SIMULATED)))
        self.device = device
        like = None
        if options.precondition != "none":
            engine = SimEngine.from_device(device, seed=options.seed)
            precondition(engine, options.precondition, cache=StateCache.of_user())
            like = engine.native_drive
        restored = options.state is not None and options.state.exists()
        with as_user_errors():
            self._server = _native.Server(
                device,
                options.seed,
                slow_down=options.slow_down,
                like=like,
                state=None if options.state is None else str(options.state),
                contents_file=None if options.contents is None else str(options.contents),
                compress=options.compress,
                memory_limit_bytes=options.memory_limit_bytes,
            )
        self.description = describe(device)
        self.identity = identity_of(self.description, target)
        self.restored = restored
        self.recovered: bool = self._server.recovered
        """`True` if the previous server with this state file was killed."""
        self.first = self.snapshot()
        self.addresses: list[str] = []
        self.warnings: list[str] = []
        """Warnings about who can reach the addresses."""

    def listen_nbd(self, address: str) -> str:
        """Accept NBD connections at `unix:PATH` or `HOST:PORT`, and return the URI for clients.

        Raises:
            ConfigError: If the address is invalid.
            EngineError: If the address is not available.
        """
        with as_user_errors():
            real = self._server.listen_nbd(address)
        path = real.removeprefix("unix:")
        uri = f"nbd://{real}" if path == real else f"nbd+unix:///?socket={quote(path)}"
        self.addresses.append(uri)
        if is_open_to_others(real):
            self.warnings.append(
                f"{uri}: NBD has no access control, so anyone who can reach this address can read "
                f"and write"
            )
        return uri

    def listen_nvme(self, addresses: Sequence[str], *, hosts: Sequence[str] = ()) -> list[str]:
        """Accept NVMe/TCP connections at each `HOST:PORT`, and return the URIs for clients.

        Args:
            addresses: Addresses to listen on.
            hosts: NVMe qualified names of the hosts that may connect (empty: all hosts).

        Raises:
            ConfigError: If an address is invalid.
            EngineError: If an address is not available.
        """
        check_nvme_addresses(addresses)
        serial, admitted = self.identity.serial, list(hosts) or None
        assert serial is not None  # The device file determines the serial number.
        with as_user_errors():
            real, nqn = self._server.listen_nvme(list(addresses), serial=serial, hosts=admitted)
        uris = [f"nvme+tcp://{address}/{nqn}" for address in real]
        self.addresses += uris
        for address, uri in zip(real, uris, strict=True):
            if admitted is None and is_open_to_others(address):
                self.warnings.append(
                    f"{uri}: any host that can reach this address can read and write; restrict it"
                    " with --allow-host"
                )
        return uris

    def seed_cuts(self, seed: int) -> None:
        """Set the seed for the next power cut; each subsequent cut uses the next seed."""
        self._server.seed_cuts(seed)

    def power_cut(self) -> PowerCut:
        """Cut and restore the power immediately.

        Connections end without replies, and data that are not on flash are lost. If the drive does
        not model which data are lost, the seed selects the lost data among the data that were not
        durable.

        Raises:
            EngineError: If the contents cannot be read or written.
        """
        with as_user_errors():
            return self._cut(self._server.power_cut())

    def plan_cuts(
        self,
        *,
        write: int | None = None,
        after_ns: tuple[int, int] | None = None,
        cuts: int = 1,
    ) -> None:
        """Schedule `cuts` power cuts, replacing previous schedules.

        Args:
            write: Number of the write (from 1) where the power is cut before the drive replies.
            after_ns: Range of a random delay in ns before each cut, counted from now or from the
                time when the drive is ready again, by the drive clock (without timing, by the wall
                clock).
            cuts: Number of power cuts.
        """
        with as_user_errors():
            self._server.plan_cuts(write=write, after_ns=after_ns, cuts=cuts)

    @property
    def power_cuts(self) -> tuple[PowerCut, ...]:
        """Power cuts so far, in order."""
        with as_user_errors():
            return tuple(self._cut(cut) for cut in self._server.power_cuts())

    def _cut(self, raw: dict[str, Any]) -> PowerCut:
        """Return a power cut converted from its native form."""
        device = self.description
        protected = device.power_loss_protection or device.kind == "scm"
        raw = dict(raw)
        undone_as: Literal["unacknowledged", "unflushed"]
        undone_as = "unacknowledged" if protected else "unflushed"
        return PowerCut(pages_undone=raw.pop("pages_lost"), undone_as=undone_as, **raw)

    def snapshot(self) -> Snapshot:
        """Return the current state of the drive."""
        with as_user_errors():
            return Snapshot.of(self._server.snapshot())

    def keep_trace(self) -> None:
        """Start recording requests for `take_trace`."""
        self._server.keep_trace()

    def take_trace(self) -> dict[str, object]:
        """Return the requests since the last call (see `_native.Server.take_trace`)."""
        return self._server.take_trace()

    def stop(self) -> None:
        """Close all connections once the drive has completed its outstanding requests.

        Requests that have not reached the drive get no response, and hosts that reconnect repeat
        these requests.
        """
        with as_user_errors():
            self._server.stop()

    def end(self, *, save: bool = True) -> None:
        """Close all connections, wait for the drive, and save the drive if it has a state file.

        Without `save`, the state file remains unchanged since the server's start.

        Raises:
            EngineError: If the drive state cannot be saved.
        """
        with as_user_errors():
            self._server.end(str(self._state) if save and self._state is not None else None)

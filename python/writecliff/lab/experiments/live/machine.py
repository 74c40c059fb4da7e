"""The drive of a trial, served over NBD with an export per file system, each on its own range.

A loop device with an offset turns an export's range into a block device. Without streams, all file
systems use the whole drive's export, so trials with and without streams differ only in the exports.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff.devices import DeviceDescription, describe, open_device, read_device_file
from writecliff.lab.experiments.live.model import MIB, Condition, Part
from writecliff.lab.torture import file_system
from writecliff.lab.torture.attachment import Attachment, run
from writecliff.native_errors import as_user_errors
from writecliff.serve import DriveServer, ServeOptions
from writecliff.serve.record import SessionRecorder
from writecliff.serve.session import session_mapping

if TYPE_CHECKING:
    from writecliff.serve import Snapshot

FILE_SYSTEM = "ext4"
_JOURNAL_MIB = 4  # Minimum journal size, because the file systems are small.
_LOOK_S = 1.0
_ZEROS = bytes(MIB)


def small_drive(
    name: str, parts: Sequence[Part], unit_bytes: int, folder: Path
) -> tuple[Path, DeviceDescription]:
    """Write the device file for a small drive of type `name` that holds `parts`.

    The drive has a stream for each part in addition to the default stream.

    Raises:
        ConfigError: If no drive of this type can hold the parts.
    """
    opened = open_device(*read_device_file(name))
    whole = describe(opened)
    wanted = sum(part.size_bytes for part in parts)
    raw_bytes = wanted * whole.flash_bytes("a reclaim unit") / whole.capacity_bytes
    streams = max(part.stream for part in parts) + 1
    # Reclaim units consist of whole word lines, so only certain sizes are possible.
    with as_user_errors():
        drive = opened.for_streams(streams, round(1.06 * wanted), round(raw_bytes / unit_bytes))
    path = folder / f"{name}-small.toml"
    path.write_text(drive.text, "utf-8")
    return path, describe(drive)


def stretched(parts: Sequence[Part], capacity_bytes: int) -> dict[str, tuple[int, int]]:
    """Return each part's offset and size in whole MiB, so that the parts fill the drive.

    The last part takes the remainder of the drive.
    """
    ranges, at = {}, 0
    for part in parts:
        is_last = part is parts[-1]
        size = capacity_bytes // MIB * MIB - at if is_last else part.size_bytes // MIB * MIB
        ranges[part.name] = at, size
        at += size
    return ranges


class Machine:
    """A drive that holds the file systems of `parts`, in a separate folder, which must be empty."""

    def __init__(
        self, target: Path, parts: Sequence[Part], condition: Condition, folder: Path, seed: int
    ) -> None:
        """Set up the paths; `prepared` creates the drive from the device file `target`."""
        self._target = f"sim:{target}"
        self._parts = parts
        self._condition = condition
        self._folder = folder
        self._seed = seed
        self._state = folder / "drive.state"
        folder.chmod(0o755)

    @contextmanager
    def prepared(self) -> Iterator[Mapping[str, Path]]:
        """Create, without timing, a drive that is written once and has empty mounted file systems.

        The drive's state is saved for `timed`. Yields the folders of the parts.
        """
        with self._served(None) as server, ExitStack() as stack:
            for part in self._parts:
                device = stack.enter_context(self._attached(server, part))
                journal = ("-J", f"size={_JOURNAL_MIB}", "-m", "0")
                run("mkfs.ext4", "-q", "-F", *journal, device)
                with self._mounted(device, part) as root:
                    _write_once(root)
            yield {
                part.name: stack.enter_context(self._mounted(device, part))
                for part, device in self._devices.items()
            }

    @contextmanager
    def timed(self, slow_down: float, directory: Path, session: dict[str, Any]) -> Iterator[Any]:
        """Serve the prepared drive in real time and record its session in `directory`.

        Yields the folders of the parts. `session` receives the session summary at the end.
        """
        with self._served(slow_down) as server:
            recorder = SessionRecorder(directory, server, trace=False)
            try:
                with _looking(server, recorder), ExitStack() as stack:
                    folders = {}
                    for part in self._parts:
                        device = stack.enter_context(self._attached(server, part))
                        folders[part.name] = stack.enter_context(self._mounted(device, part))
                    yield folders
                server.stop()
                last = server.snapshot()
                recorder.look(last)
                recorder.finish(last, "the client has exited")
            except BaseException as error:
                recorder.fail(str(error) or type(error).__name__)
                raise
            session.update(session_mapping(server, last))

    @contextmanager
    def _served(self, slow_down: float | None) -> Iterator[DriveServer]:
        options = ServeOptions(slow_down=slow_down, state=self._state, seed=self._seed)
        server = DriveServer(self._target, options)
        self._devices: dict[Part, str] = {}
        self._ranges = stretched(self._parts, server.description.capacity_bytes)
        try:
            server.listen_nbd(f"unix:{self._folder / 'drive.sock'}")
            yield server
        finally:
            server.end()

    @contextmanager
    def _attached(self, server: DriveServer, part: Part) -> Iterator[str]:
        """Attach a part as a block device."""
        export = f"stream-{part.stream}" if self._condition.streams else ""
        uri = server.addresses[-1].replace(":///", f":///{export}")
        folder = self._folder / f"{part.name}-device"
        folder.mkdir(exist_ok=True)
        with Attachment(uri, folder, *self._ranges[part.name]) as attached:
            self._devices[part] = attached.device
            yield attached.device

    @contextmanager
    def _mounted(self, device: str, part: Part) -> Iterator[Path]:
        folder = self._folder / part.name
        folder.mkdir(exist_ok=True)
        options = "discard" if self._condition.trim else "nodiscard"
        with file_system.mounted(device, folder, options) as root:
            yield root


def _write_once(root: Path) -> None:
    """Fill a file system with data, then delete the data."""
    path = root / "everything"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(_ZEROS):
            pass
    subprocess.run(["sync", "-f", path], check=False)
    path.unlink()
    subprocess.run(["sync", "-f", root], check=False)


@contextmanager
def _looking(server: DriveServer, recorder: SessionRecorder) -> Iterator[None]:
    """Record the intervals of a session while the block runs."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            now: Snapshot = server.snapshot()
            recorder.look(now)

    thread = threading.Thread(target=look, name="session")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

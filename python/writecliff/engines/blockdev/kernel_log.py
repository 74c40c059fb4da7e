"""Kernel messages about a drive: timeouts, resets and I/O errors."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable

from writecliff.engines.blockdev.topology import BlockDevice

_WARNING = 4  # Severity as defined in syslog(3).
_RECORD_BYTES = 8192


class KernelLog:
    """New messages in /dev/kmsg, which are empty if the process may not read this file."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        """Open the kernel log and seek to its end."""
        self._fd = -1
        with contextlib.suppress(OSError):
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)

    def about(self, names: Iterable[str]) -> list[str]:
        """Return new warnings and errors that mention any of the names, in order of age."""
        named = re.compile("|".join(rf"\b{re.escape(name)}(?!\d)" for name in names))
        return [text for text in self._new() if named.search(text)]

    def _new(self) -> list[str]:
        texts = []
        while self._fd >= 0:
            try:
                record = os.read(self._fd, _RECORD_BYTES).decode(errors="replace")
            except BrokenPipeError:
                continue  # The kernel has overwritten the oldest unread records.
            except OSError:
                break
            head, _, text = record.partition(";")
            level = head.split(",")[0]
            if not record or not level.isdigit():
                break
            if int(level) & 7 <= _WARNING:
                texts.append(text.split("\n")[0].strip())
        return texts

    def close(self) -> None:
        """Close the log (further calls do nothing)."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def names_in_log(disk: BlockDevice) -> tuple[str, ...]:
    """Return the names of a disk and its NVMe controllers in the kernel log."""
    controllers = [disk.directory / "device", *(disk.directory / "device").glob("nvme*")]
    names = {path.resolve().name for path in controllers if (path / "state").exists()}
    nvme = {name for name in names if re.fullmatch(r"nvme\d+", name)}
    return (disk.name, *sorted(nvme))

"""A node of a block device for each write hint, so that jobs with different hints do not mix.

Linux keeps the hint of F_SET_RW_HINT in the inode: of jobs that open the same node, all write with
the hint that was set last, whatever `write_hint` says (fio 3.37 and later set it so). Direct writes
take the hint from the inode of the node that they were opened by (`file_inode`, block/fops.c from
Linux 6.10), so that one node per hint, made with mknod, keeps them apart. The hints are set here,
once; fio has no part in it and may be of any version.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import struct
import tempfile
from pathlib import Path

from writecliff.engines.blockdev.topology import BlockDevice, System

HINTS = 6  # RWH_WRITE_LIFE_NOT_SET, _NONE, _SHORT, _MEDIUM, _LONG, _EXTREME
_SET_RW_HINT = 1036  # fcntl of the inode
_NAME = re.compile(r"^writecliff-(\d+)-")


class HintNodes:
    """Nodes in a folder of /dev. `paths[n]` is the node whose writes have hint n."""

    def __init__(self, system: System, device: BlockDevice) -> None:
        """Raises OSError where nodes cannot be made or the kernel refuses hints."""
        _remove_stale(system.dev)
        self._folder = Path(tempfile.mkdtemp(prefix=f"writecliff-{os.getpid()}-", dir=system.dev))
        try:
            self.paths = tuple(self._make(device, hint) for hint in range(HINTS))
        except OSError:
            self.close()
            raise

    def _make(self, device: BlockDevice, hint: int) -> str:
        path = self._folder / f"{device.name.replace('!', '-')}-hint-{hint}"
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(*device.number))
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.fcntl(fd, _SET_RW_HINT, struct.pack("=Q", hint))
        finally:
            os.close(fd)
        return str(path)

    def close(self) -> None:
        """Remove the nodes. Safe to call again."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _remove_stale(dev: Path) -> None:
    """Remove the nodes of processes that were killed."""
    for folder in dev.glob("writecliff-*"):
        owner = _NAME.match(folder.name)
        if owner is not None and not Path("/proc", owner[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)

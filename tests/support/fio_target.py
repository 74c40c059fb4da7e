"""A fio version and targets for tests that only generate job files."""

from __future__ import annotations

from writecliff.engines.fio.capability import Fio
from writecliff.engines.fio.command import Target

GIB = 1 << 30
FIO = Fio("/usr/bin/fio", (3, 33), "fio-3.33", "io_uring")
DISK = Target("/dev/sdx", 4 * GIB, 512, False, "sdx is not an NVMe drive")
FILE = Target("/data/x.img", GIB, 4096, True, "a file has no streams")

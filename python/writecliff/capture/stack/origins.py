"""Origins of drive requests: program, write-back, journal, metadata and other programs."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from writecliff.capture.trace import codes

DATA, WRITTEN_BACK, METADATA, JOURNAL, OTHERS = range(5)
NAMES = (
    "data, by the program",
    "data, written back by the kernel",
    "metadata",
    "journal",
    "other programs",
)
_KERNEL = re.compile(
    r"kworker/|jbd2/|xfs|btrfs|f2fs|ext4|kswapd|ksoftirqd|kthreadd|flush|loop\d|md\d|dm"
)
_JOURNAL_THREAD = re.compile(r"jbd2/")
_LOGS = ("xfs",)  # File systems that write the log from any thread, as metadata with FUA.


def origins(
    table: pa.Table,
    requests: pa.Table,
    *,
    kind: str,
    program: Collection[int],
    capturing_pid: int,
) -> NDArray[np.int8]:
    """Return the origin of each row in a trace of a file system's device.

    Args:
        table: The trace.
        requests: Request columns of the trace.
        kind: File system type.
        program: Identifiers of the captured processes.
        capturing_pid: Process that runs the capture, which wrote back the remaining data at the
            end.
    """
    thread, names = codes(table, "thread")
    flag, flags = codes(requests, "flags")
    by_kernel = np.array([bool(_KERNEL.match(name)) for name in names], bool)[thread]
    by_journal = np.array([bool(_JOURNAL_THREAD.match(name)) for name in names], bool)[thread]
    words = [set(text.split()) for text in flags]
    is_metadata = np.array(["metadata" in flag_words for flag_words in words], bool)[flag]
    is_fua = np.array([bool(flag_words & {"fua", "preflush"}) for flag_words in words], bool)[flag]
    pid = requests["pid"].to_numpy()
    by_program = np.isin(pid, list(program))
    origin = np.full(table.num_rows, OTHERS, np.int8)
    origin[by_program] = DATA
    origin[by_kernel | (pid == capturing_pid)] = WRITTEN_BACK
    ours = origin != OTHERS
    origin[ours & is_metadata] = METADATA
    logged = by_journal & (is_metadata | (table["op"].to_numpy(zero_copy_only=False) == "fsync"))
    if kind in _LOGS:
        logged |= is_metadata & is_fua
    origin[ours & logged] = JOURNAL
    return origin

"""`writecliff capture` on C programs: C library streams, errno, and libaio."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from writecliff.capture.run import Options, capture
from writecliff.capture.trace import read_trace


def _short(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    FILE *f = fopen("data/log", "w");
    for (int i = 0; i < 3000; i++) fprintf(f, "%09d\\n", i);
    fflush(f);
    fputs("tail", f);
    fclose(f);
    f = fopen("data/log", "a");
    fputs("more", f);
    char name[] = "data/tmpXXXXXX";
    int fd = mkstemp(name);
    if (write(fd, "abc", 3) != 3 || rename(name, "data/made") != 0) return 1;
    exit(5); /* the stream is flushed by this */
}
"""


def _compile(place: Path, source: str, *libraries: str) -> None:
    """Compile a C program to `p`."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (place / "p.c").write_text(source)
    subprocess.run(["cc", "-o", "p", "p.c", *libraries], check=True)


def test_streams_of_the_c_library(place: Path) -> None:
    """`FILE *` bypasses all hooks, so its writes are derived from the file position."""
    _compile(place, C_PROGRAM)
    done = capture(["./p"], Options(place / "t.parquet", place / "data"))
    assert done.exit_code == 5
    rows = read_trace(place / "t.parquet").table.to_pylist()
    log = [row for row in rows if row["path"] == "log"]
    assert sum(row["length_bytes"] for row in log) == 30008 == (place / "data/log").stat().st_size
    assert _short(log, "op", "offset_bytes", "length_bytes") == [
        ("create", 0, 0),
        ("write", 0, 30000),
        ("write", 30000, 4),
        ("write", 30004, 4),
    ]
    made = [(row["op"], row["path"]) for row in rows if row["file"] != log[0]["file"]]
    assert made[0][0] == "create"
    assert [op for op, _ in made] == ["create", "write", "rename"]
    assert made[2] == ("rename", "made")
    assert done.metadata["notes"] == []


ERRNO_PROGRAM = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
int main(void) {
    char room[4096];
    FILE *f = fmemopen(room, sizeof room, "w"); /* a stream without a descriptor */
    errno = 0;
    fwrite(room, 1, 64, f);
    if (errno != 0) return 1;
    fseek(f, 0, SEEK_SET);
    if (errno != 0) return 2;
    fwrite_unlocked(room, 1, 64, f);
    return errno != 0 ? 3 : 0;
}
"""


def test_streams_without_a_descriptor_keep_errno(place: Path) -> None:
    _compile(place, ERRNO_PROGRAM)
    assert capture(["./p"], Options(place / "t.parquet", place / "data")).exit_code == 0


AIO_PROGRAM = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
struct iocb { uint64_t data; uint32_t key[2]; uint16_t opcode; int16_t priority; uint32_t fd;
              uint64_t buffer, length; int64_t offset; uint64_t rest[2]; };
struct io_event { uint64_t data, object; int64_t result[2]; };
int io_setup(int, void **), io_submit(void *, long, struct iocb **);
int io_getevents(void *, long, long, struct io_event *, void *);
enum { REQUESTS = 700 };
int main(void) {
    static char data[512];
    static struct io_event events[REQUESTS];
    struct iocb *list[REQUESTS];
    void *context = 0;
    int fd = open("data/a", O_RDWR | O_CREAT, 0644);
    if (fd < 0 || io_setup(REQUESTS, &context) != 0) return 1;
    for (int i = 0; i < REQUESTS; i++) {
        list[i] = calloc(1, sizeof **list);
        *list[i] = (struct iocb){.opcode = 1, .fd = fd, .buffer = (uint64_t)data,
                                 .length = sizeof data, .offset = i * sizeof data};
    }
    if (io_submit(context, REQUESTS, list) != REQUESTS) return 2;
    if (io_getevents(context, REQUESTS, REQUESTS, events, 0) != REQUESTS) return 3;
    list[400]->fd = -1; /* the kernel accepts 400 and stops */
    return io_submit(context, REQUESTS, list) == 400 ? 0 : 4;
}
"""


def test_all_requests_of_a_long_submission_are_recorded(place: Path) -> None:
    _compile(place, AIO_PROGRAM, "-l:libaio.so.1")
    assert capture(["./p"], Options(place / "t.parquet", place / "data")).exit_code == 0
    rows = read_trace(place / "t.parquet").table.to_pylist()
    written = [row["offset_bytes"] for row in rows if row["op"] == "write"]
    assert written == [512 * n for n in (*range(700), *range(400))]

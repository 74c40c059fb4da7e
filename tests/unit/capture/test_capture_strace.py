"""Captures with strace: parsing of its lines, and traces of real programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.capture import strace
from writecliff.capture.convert import convert
from writecliff.capture.run import Options
from writecliff.capture.run import capture as by_library
from writecliff.capture.strace import calls, events_of, unescaped
from writecliff.capture.trace import read_trace
from writecliff.errors import TargetError

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
Seen = list[tuple[str, str, int, int]]


def _rows(text: str) -> tuple[Seen, list[str]]:
    """Return the operations of a program in /d, with paths relative to /d."""
    lines = [f"{line.strip()}\n" for line in text.strip().splitlines()]
    read = events_of(lines, folder=Path("/d"))
    table = convert(read.events, root=Path("/d")).table.to_pylist()
    return [(r["op"], r["path"], r["offset_bytes"], r["length_bytes"]) for r in table], read.notes


def test_lines_are_put_together_and_taken_apart() -> None:
    text = """
    7<a b> 10.000001 write(3</d/x, "y">, ""..., 9 <unfinished ...>
    8<c> 10.000002 openat(AT_FDCWD</d>, "q\\"\\303\\251,(", O_RDWR|O_CREAT, 0644) = 4</d/q>
    7<a b> 10.500000 <... write resumed>) = 9
    8<c> 10.600000 close(99) = -1 EBADF (Bad file descriptor)
    8<c> 10.700000 --- SIGCHLD {si_signo=SIGCHLD} ---
    8<c> 10.800000 +++ exited with 0 +++
    8<c> 10.900000 mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, 4</d/q>, 0x1000) = 0x7f0000000000
    """
    parsed = list(calls(line.strip() for line in text.splitlines()))
    assert [call.name for call in parsed] == ["openat", "write", "close", "mmap"]
    opened, written, closed, mapped = parsed
    assert opened.text(1) == 'q"é,('.encode() and opened.opened() == b"/d/q"
    assert (written.tid, written.comm, written.time_ns) == (7, b"a b", 10_500_000_000)
    assert written.descriptor(0) == (3, b'/d/x, "y"') and written.number(2) == 9
    assert closed.error == "EBADF" and mapped.result == 0x7F0000000000
    assert mapped.number(5) == 4096 and mapped.number(0) is None
    assert unescaped(r"a\74b\76\n\\") == b"a<b>\n\\"


def test_offsets_follow_descriptors_that_are_shared_and_those_that_append() -> None:
    rows, notes = _rows("""
    1<p> 1.0 openat(AT_FDCWD</d>, "a", O_RDWR|O_CREAT, 0644) = 3</d/a>
    1<p> 1.1 write(3</d/a>, ""..., 100) = 60
    1<p> 1.2 dup(3</d/a>) = 4</d/a>
    1<p> 1.3 clone(child_stack=NULL, flags=SIGCHLD) = 2<p>
    2<p> 1.4 write(4</d/a>, ""..., 5) = 5
    1<p> 1.5 pwritev2(3</d/a>, [...], 1, -1, 0) = 7
    1<p> 1.6 pwrite64(3</d/a>, ""..., 8, 4096) = 8
    1<p> 1.7 read(3</d/a>, ""..., 10) = 10
    1<p> 1.8 write(3</d/a>, ""..., 1) = 1
    1<p> 1.9 openat(AT_FDCWD</d>, "a", O_WRONLY|O_APPEND) = 5</d/a>
    1<p> 2.0 write(5</d/a>, ""..., 2) = 2
    1<p> 2.1 lseek(3</d/a>, -6, SEEK_CUR) = 77
    1<p> 2.2 write(3</d/a>, ""..., 3) = 3
    1<p> 2.3 write(3</d/a>, ""..., 3) = -1 ENOSPC (No space left on device)
    """)
    assert notes == []
    assert [row[2:] for row in rows if row[0] == "write"] == [
        (0, 60), (60, 5), (65, 7), (4096, 8), (82, 1), (4104, 2), (77, 3),
    ]  # fmt: skip
    assert rows[0] == ("create", "a", 0, 0)


def test_names_move_and_go_and_threads_belong_to_their_process() -> None:
    text = """
    1<p> 1.0 mkdir("s", 0777) = 0
    1<p> 1.1 chdir("s") = 0
    1<p> 1.2 openat(AT_FDCWD</d/s>, "a", O_WRONLY|O_CREAT) = 3</d/s/a>
    2<t> 1.3 write(3</d/s/a>, ""..., 4) = 4
    1<p> 1.35 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 2<t>
    1<p> 1.4 renameat2(AT_FDCWD</d/s>, "a", AT_FDCWD</d/s>, "b", RENAME_NOREPLACE) = 0
    1<p> 1.5 link("b", "../c") = 0
    1<p> 1.6 unlink("b") = 0
    1<p> 1.7 write(3</d/c>, ""..., 4) = 4
    1<p> 1.8 unlinkat(AT_FDCWD</d/s>, "../c", 0) = 0
    1<p> 1.9 write(3</d/c>(deleted), ""..., 4) = 4
    1<p> 2.0 close(3</d/c>(deleted)) = 0
    1<p> 2.1 rename("/d/s", "/d/r") = 0
    1<p> 2.2 fallocate(9</d/old>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 8192) = 0
    """
    rows, _ = _rows(text)
    assert [row[:3] for row in rows] == [
        ("create", "s/a", 0), ("write", "s/a", 0), ("rename", "s/b", 0), ("write", "c", 4),
        ("write", "c", 8), ("unlink", "c", 0), ("punch", "old", 4096),
    ]  # fmt: skip
    lines = [line.strip() for line in text.splitlines()]
    read = events_of(lines, folder=Path("/d"))
    table = convert(read.events, root=Path("/d")).table.to_pylist()
    assert {(row["thread"], row["process"]) for row in table} == {("p", "p"), ("t", "p")}


def test_losses_are_noted() -> None:
    rows, notes = _rows("""
    1<p> 1.0 openat(AT_FDCWD</d>, "m", O_RDWR|O_CREAT, 0644) = 3</d/m>
    1<p> 1.1 ftruncate(3</d/m>, 10000) = 0
    1<p> 1.2 mmap(NULL, 12288, PROT_READ|PROT_WRITE, MAP_SHARED, 3</d/m>, 0) = 0x7f0000000000
    1<p> 1.3 msync(0x7f0000001000, 8192, MS_SYNC) = 0
    1<p> 1.4 mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, 4</d/n>, 0) = 0x7f0000100000
    1<p> 1.5 io_uring_setup(8, {flags=0}) = 5<anon_inode:[io_uring]>
    1<p> 1.6 fcntl(3</d/m>, 0x40c /* F_??? */, 0x7ffe) = 0
    1<p> 1.7 fcntl(3</d/m>, F_SET_RW_HINT, [RWH_WRITE_LIFE_SHORT]) = -1 EINVAL (Invalid argument)
    """)
    assert ("write", "m", 4096, 5904) in rows
    assert ("hint", "m", 2, 22) in rows
    assert [note.rpartition(": ")[2] for note in notes[:2]] == ["/d/m", "/d/n"]
    assert "io_uring" in notes[2] and notes[3].startswith("1 write hints")


PROGRAM = """
import os, threading
f = os.open("a.log", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
os.write(f, b"x" * 100); os.pwrite(f, b"z" * 10, 4096); os.writev(f, [b"a" * 5, b"b" * 6])
os.fsync(f); os.ftruncate(f, 5000); os.lseek(f, 0, 2); os.write(f, b"w")
g = os.open("b \\u00e9", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
thread = threading.Thread(target=lambda: os.write(g, b"2" * 20)); thread.start(); thread.join()
if os.fork() == 0:
    os.write(f, b"c" * 9); os._exit(0)
os.wait()
os.rename("b \\u00e9", "c"); os.write(g, b"3" * 30); os.unlink("c"); os.write(g, b"4" * 4)
raise SystemExit(3)
"""


@needs_strace
def test_a_program_comes_out_as_with_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    python = str(Path(sys.executable).resolve())
    for way, run in (("library", by_library), ("strace", strace.capture)):
        folder = tmp_path / way
        folder.mkdir()
        monkeypatch.chdir(folder)
        options = Options(tmp_path / f"{way}.parquet", root=folder)
        done = run([python, "-c", PROGRAM], options)
        assert done.exit_code == 3 and done.metadata["notes"] == []
        table = read_trace(done.output).table.drop_columns(["time_ns"])
        seen[way] = table.to_pylist()
    assert seen["strace"] == seen["library"] and len(seen["strace"]) > 10
    assert list(tmp_path.glob("*.strace")) == []


@needs_strace
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_static_program_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "s.c"
    source.write_text(
        "#include <fcntl.h>\n#include <unistd.h>\nint main(void) {\n"
        'int f = open("out", O_CREAT | O_WRONLY, 0644);\nreturn write(f, "hello", 5) != 5; }\n'
    )
    program = tmp_path / "s"
    built = subprocess.run(
        ["cc", "-static", "-o", program, source], check=False, timeout=WAIT_LIMIT_S
    )
    if built.returncode:
        pytest.skip("no static C library")
    options = Options(tmp_path / "s.parquet", root=tmp_path)
    command = ["sh", "-c", f"cd {tmp_path} && ./s"]
    assert strace.capture(command, options).metadata["bytes_written"] == 5
    (row,) = [r for r in read_trace(options.output).table.to_pylist() if r["op"] == "write"]
    assert (row["path"], row["process"], row["length_bytes"]) == ("out", "s", 5)


def test_without_strace_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "strace" else real(name))
    with pytest.raises(TargetError, match="strace is not installed"):
        strace.capture(["true"], Options(tmp_path / "x.parquet"))

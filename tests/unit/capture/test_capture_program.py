"""`writecliff capture` on small programs with known writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.capture.run import Options, capture, recover
from writecliff.capture.trace import read_trace
from writecliff.cli.main import main

HELPERS = """
import ctypes, fcntl, os, struct, sys, threading
libc = ctypes.CDLL(None)
def name(text): libc.prctl(15, text.encode(), 0, 0, 0)
def make(path): return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
def hint(fd, data):
    try: fcntl.fcntl(fd, 1036, data)
    except OSError as error: return error.errno
"""


def _program(place: Path, text: str) -> list[str]:
    script = place / "program.py"
    script.write_text(HELPERS + text)
    return [sys.executable, "-S", str(script)]


def _captured(
    place: Path, text: str, **options: Any
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows and metadata of a Python program's I/O below `data`."""
    output = place / "t.parquet"
    capture(_program(place, text), Options(output, place / "data", **options))
    trace = read_trace(output)
    assert not output.with_name("t.parquet.events").exists()
    return trace.table.to_pylist(), trace.metadata


def _short(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_writes_of_named_threads_come_back_exactly(place: Path) -> None:
    rows, metadata = _captured(
        place,
        """
def work(who):
    name(who)
    fd = make("data/" + who)
    for size in (1000, 24, 3): os.write(fd, b"x" * size)
    os.pwrite(fd, b"y" * 10, 5)
    os.writev(fd, [b"ab", b"cde"])
    os.pwritev(fd, [b"ab", b"c"], 4096)
    os.fsync(fd); os.fdatasync(fd)
    os.ftruncate(fd, 77)
    os.close(fd)
for who in ("alpha", "beta"):
    thread = threading.Thread(target=work, args=(who,)); thread.start(); thread.join()
""",
    )
    each = [
        ("create", 0, 0),
        ("write", 0, 1000),
        ("write", 1000, 24),
        ("write", 1024, 3),
        ("write", 5, 10),
        ("write", 1027, 5),
        ("write", 4096, 3),
        ("fsync", 0, 0),
        ("fsync", 0, 0),
        ("truncate", 77, 0),
    ]
    wanted = [(op, who, who, at, n) for who in ("alpha", "beta") for op, at, n in each]
    assert _short(rows, "op", "path", "thread", "offset_bytes", "length_bytes") == wanted
    assert [row["file"] for row in rows] == [0] * 10 + [1] * 10
    assert {row["hint"] for row in rows} == {None}
    assert metadata["bytes_written"] == 2 * 1045
    assert (metadata["files"], metadata["dropped"], metadata["notes"]) == (2, 0, [])
    assert metadata["hints"] == {"delivered": 0, "refused": 0, "errors": {}, "repaired": 0}


HINTED = """
fd = make("data/a")
os.write(fd, b"1")
print(hint(fd, struct.pack("Q", 2)))
os.write(fd, b"2")
print(hint(fd, struct.pack("II", 4, 7)))  # a 32-bit number followed by other data
os.write(fd, b"3")
"""


def test_writes_that_bypass_the_page_cache_are_synced(place: Path) -> None:
    rows, _ = _captured(
        place,
        """
fd = os.open("data/log", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o644)
os.write(fd, b"x" * 10)
late = os.open("data/late", os.O_WRONLY | os.O_CREAT, 0o644)
os.pwritev(late, [b"y"], 0, os.RWF_DSYNC)
os.pwritev(late, [b"z"], 1)
""",
    )
    each = [("create", "log"), ("write", "log"), ("fsync", "log")]
    each += [("create", "late"), ("write", "late"), ("fsync", "late"), ("write", "late")]
    assert _short(rows, "op", "path") == each


def test_hints_are_audited(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows, metadata = _captured(place, HINTED)
    assert capfd.readouterr().out.split() == ["None", "22"]
    writes = [row["hint"] for row in rows if row["op"] == "write"]
    assert writes == [None, 2, 4]
    hints = [row for row in rows if row["op"] == "hint"]
    assert _short(hints, "offset_bytes", "length_bytes", "hint") == [(2, 0, 2), (4, 22, 4)]
    assert metadata["hints"] == {
        "delivered": 1,
        "refused": 1,
        "errors": {"EINVAL": 1},
        "repaired": 0,
    }


def test_hints_that_were_too_short_are_repaired_if_asked(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, metadata = _captured(place, HINTED, repair_hints=True)
    assert capfd.readouterr().out.split() == ["None", "None"]
    assert metadata["hints"] == {"delivered": 2, "refused": 0, "errors": {}, "repaired": 1}


def test_repairing_a_hint_preserves_errno(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = """
fd = make("data/a")
calls = ctypes.CDLL(None, use_errno=True)
for high in (7, 0):
    ctypes.set_errno(5)
    data = ctypes.create_string_buffer(struct.pack("II", 4, high), 8)
    print(calls.fcntl(fd, 1036, data), ctypes.get_errno())
"""
    for repairs, refused in ((True, ["0", "5"]), (False, ["-1", "22"])):
        _captured(place, text, repair_hints=repairs)
        assert capfd.readouterr().out.split() == [*refused, "0", "5"]


def test_a_file_is_followed_through_its_names(place: Path) -> None:
    rows, _ = _captured(
        place,
        """
fd = make("data/a"); os.write(fd, b"1")
os.rename("data/a", "data/b"); os.write(fd, b"2")
os.mkdir("data/d"); os.rename("data/b", "data/d/c"); os.write(fd, b"3")
os.rename("data/d", "data/e"); os.write(fd, b"4")
other = make("data/a"); os.write(other, b"5")
os.link("data/a", "data/l"); os.unlink("data/a"); os.write(other, b"6")
os.rename("data/l", "data/e/c")   # replaces the first file
os.close(fd); os.write(other, b"7"); os.truncate("data/e/c", 1)
""",
    )
    assert _short(rows, "op", "file", "path") == [
        ("create", 0, "a"),
        ("write", 0, "a"),
        ("rename", 0, "b"),
        ("write", 0, "b"),
        ("rename", 0, "d/c"),
        ("write", 0, "d/c"),
        ("write", 0, "e/c"),
        ("create", 1, "a"),
        ("write", 1, "a"),
        ("write", 1, "l"),
        ("rename", 1, "e/c"),
        ("unlink", 0, "e/c"),
        ("write", 1, "e/c"),
        ("truncate", 1, "e/c"),
    ]


def test_a_file_without_a_name_lives_until_it_is_closed(place: Path) -> None:
    rows, _ = _captured(
        place,
        """
fd = make("data/a"); os.unlink("data/a"); os.write(fd, b"1"); os.write(fd, b"2"); os.close(fd)
fd = make("data/a"); os.write(fd, b"3")
""",
    )
    assert _short(rows, "op", "file") == [
        ("create", 0),
        ("write", 0),
        ("write", 0),
        ("unlink", 0),
        ("create", 1),
        ("write", 1),
    ]


def test_a_number_given_again_is_another_file(place: Path) -> None:
    """File systems reuse inode numbers immediately; some of these 50 files share a number."""
    rows, metadata = _captured(
        place,
        """
for turn in range(50):
    fd = make("data/a"); os.write(fd, b"1"); os.close(fd); os.unlink("data/a")
""",
    )
    assert [row["file"] for row in rows] == [turn for turn in range(50) for _ in range(3)]
    assert metadata["files"] == 50


def test_old_files_are_truncated_and_punched_not_made(place: Path) -> None:
    (place / "data/old").write_bytes(b"x" * 9000)
    rows, _ = _captured(
        place,
        """
fd = os.open("data/old", os.O_RDWR)
os.pwrite(fd, b"1", 100)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
libc.fallocate(fd, 3, 4096, 4096)
os.close(fd); make("data/old")
""",
    )
    assert _short(rows, "op", "offset_bytes", "length_bytes") == [
        ("write", 100, 1),
        ("punch", 4096, 4096),
        ("truncate", 0, 0),
    ]


def test_children_are_seen(place: Path) -> None:
    rows, metadata = _captured(
        place,
        """
if os.fork() == 0:
    name("forked"); fd = make("data/child"); os.write(fd, b"12"); os._exit(0)
os.wait()
os.system("printf 345 > data/shell; dd if=/dev/zero of=data/dd bs=512 count=2 2>/dev/null")
fd = make("data/parent"); os.write(fd, b"1")
""",
    )
    writes = [row for row in rows if row["op"] == "write"]
    assert _short(writes, "path", "length_bytes", "thread") == [
        ("child", 2, "forked"),
        ("shell", 3, "sh"),
        ("dd", 512, "dd"),
        ("dd", 512, "dd"),
        ("parent", 1, Path(sys.executable).name[:15]),
    ]
    assert {row["process"] for row in writes} >= {"sh", "dd"}
    assert metadata["processes"] >= 4


def test_reads_only_if_asked(place: Path) -> None:
    (place / "data/old").write_bytes(b"x" * 9000)
    text = 'fd = os.open("data/old", os.O_RDONLY); os.read(fd, 10); os.pread(fd, 20, 4096)'
    assert _captured(place, text)[0] == []
    rows, metadata = _captured(place, text, reads=True)
    assert _short(rows, "op", "offset_bytes", "length_bytes") == [
        ("read", 0, 10),
        ("read", 4096, 20),
    ]
    assert metadata["bytes_read"] == 30


def test_writing_through_memory_is_noted(place: Path) -> None:
    _, metadata = _captured(
        place,
        """
import mmap
fd = make("data/a"); os.ftruncate(fd, 8192)
memory = mmap.mmap(fd, 8192); memory[:3] = b"abc"; memory.flush()
""",
    )
    assert metadata["bytes_written"] == 0
    assert metadata["notes"] == [
        "1 file mapped for writing; writes to mapped memory are not in the trace: "
        f"{place.resolve()}/data/a"
    ]


def test_the_exit_code_is_passed_on(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "-o", "t.parquet", "--", "sh", "-c", "echo out; exit 7"]) == 7
    output = capfd.readouterr()
    assert output.out == "out\n"
    assert "hints    none given" in output.err
    assert main(["capture", "-o", "t.parquet", "--", "sh", "-c", "kill -9 $$"]) == 128 + 9
    assert read_trace(place / "t.parquet").metadata["exit_code"] == 137


def test_options_of_the_command_are_its_own(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "--json", "-o", "t.parquet", "--", "echo", "--debug", "--json"]) == 0
    output = capfd.readouterr()
    assert output.err == "--debug --json\n"
    assert '"command": [\n    "echo",\n    "--debug",\n    "--json"\n  ]' in output.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("capture", "error: neither a command nor a load was specified"),
        ("capture -- no-such-program", "error: the program no-such-program does not exist"),
        ("capture --records 3 -- true", "error: --records requires --app"),
        ("capture --app rocksdb -- true", "error: a command, --app and --recover are mutually exclusive"),
        ("capture --app rockdb", "error: --app: unknown load 'rockdb'"),
        ("capture --app rocksdb --records 0", "error: --records must be at least 1, not 0"),
        ("capture --recover no.events", "error: the event file no.events does not exist"),
    ],
)  # fmt: skip
def test_mistakes(
    place: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.splitlines()[0] == message
    assert not list(place.rglob("*.parquet")) + list(place.rglob("*.events"))


ENDLESS = """
import time
fd = make("data/a"); os.write(fd, b"123"); print("ready", flush=True); time.sleep(60)
"""


def _started(place: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "writecliff", "capture", "-o", "t.parquet", "--root", "data"]
    child = subprocess.Popen(
        [*command, "--", *_program(place, ENDLESS)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_interrupted_keeps_what_it_has(place: Path, number: signal.Signals) -> None:
    child = _started(place)
    if number == signal.SIGINT:
        os.killpg(child.pid, number)  # A terminal sends the signal in the same way.
    else:
        child.send_signal(number)
    code = child.wait(WAIT_LIMIT_S)
    assert code == (130 if number == signal.SIGINT else 128 + number)
    rows = read_trace(place / "t.parquet").table.to_pylist()
    assert _short(rows, "op", "length_bytes") == [("create", 0), ("write", 3)]


def test_a_killed_capture_is_recovered(place: Path) -> None:
    child = _started(place)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait(WAIT_LIMIT_S)
    time.sleep(0.05)
    left = place / "t.parquet.events"
    assert left.exists()
    assert not (place / "t.parquet").exists()
    done = recover(left, Options(place / "t.parquet", place / "data"))
    assert done.metadata["bytes_written"] == 3
    assert left.exists() and str(left) in " ".join(done.metadata["notes"])
    assert done.metadata["duration_ns"] >= read_trace(done.output).table["time_ns"][-1].as_py() > 0


def test_a_program_may_lock_its_memory(place: Path) -> None:
    """Locking memory, as Cassandra does, must not load the whole event mapping."""
    rows, metadata = _captured(
        place,
        """
done = libc.mlockall(3)
fd = make("data/a"); os.write(fd, b"1")
# Not ru_maxrss, because a child inherits the value of the test process.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
os.write(fd, b"x" * (2 if done == 0 and peak > 500_000 else 1))
""",
    )
    assert metadata["bytes_written"] == 2
    assert len(rows) == 3


def test_many_events_of_many_threads(place: Path) -> None:
    """Record more events from threads and processes than the file's first segment holds."""
    _, metadata = _captured(
        place,
        """
def work(who):
    fd = make("data/" + who)
    for turn in range(35000): os.pwrite(fd, b"123", turn)
child = os.fork()
threads = [threading.Thread(target=work, args=(f"{child > 0}{n}",)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
if child: os.wait()
""",
    )
    assert metadata["bytes_written"] == 8 * 35000 * 3
    assert (metadata["files"], metadata["dropped"]) == (8, 0)


def test_what_cannot_be_seen_is_said(place: Path) -> None:
    done = capture(["env", "-i", "sh", "-c", "echo x > data/a"], Options(place / "t.parquet"))
    assert done.metadata["bytes_written"] == 0
    assert done.metadata["processes"] == 1  # The only process is env itself.

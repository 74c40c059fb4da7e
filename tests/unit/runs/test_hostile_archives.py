"""Hostile archives: bombs, names outside the folder, links, devices, truncated and absurd content.

Each archive is rejected with a one-line error and exit code 2, in bounded memory and time, and
leaves no files.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from writecliff.runs import unpacking

MIB = 1 << 20
MEMORY_BYTES_MAX, SECONDS_MAX = 2 << 30, 10.0
Make = Callable[[], bytes]
ARCHIVES: dict[str, tuple[str, Make, str]] = {}


def archive(suffix: str, says: str) -> Callable[[Make], Make]:
    """Register the decorated function as an archive with this suffix and error message."""

    def add(make: Make) -> Make:
        ARCHIVES[make.__name__] = (suffix, make, says)
        return make

    return add


def _tar(*entries: tuple[tarfile.TarInfo, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=kind) as made:
        for entry, data in entries:
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return sink.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, link
    return header


def _head(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header that promises `size` bytes."""
    header = _entry(name, kind)
    header.size = size
    return header.tobuf(tarfile.GNU_FORMAT)


def _zeros_gz(head: bytes, size: int) -> bytes:
    """Return a header and zeros, compressed 1,000 to 1."""
    sink = io.BytesIO()
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=6) as made:
        made.write(head)
        for _ in range(size // MIB):
            made.write(bytes(MIB))
    return sink.getvalue()


def _zip(*entries: tuple[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in entries:
            made.writestr(name, data)
    return sink.getvalue()


@archive(".tar.gz", "unpacks to more than")
def a_bomb_of_one_file() -> bytes:
    return _zeros_gz(_head("run/manifest.json", 200 * MIB), 200 * MIB)


@archive(".tar.gz", "unpacks to more than")
def a_bomb_that_promises_petabytes() -> bytes:
    return gzip.compress(_head("run/x", 1 << 50))


@archive(".tar.gz", "a header requests")
def a_bomb_in_a_header() -> bytes:
    return _zeros_gz(_head("x", 200 * MIB, tarfile.XHDTYPE), 200 * MIB)


@archive(".tar.gz", "a header requests")
def a_bomb_in_a_long_name() -> bytes:
    return _zeros_gz(_head("x", 200 * MIB, tarfile.GNUTYPE_LONGNAME), 200 * MIB)


@archive(".tar.xz", "unpacks to more than")
def a_bomb_in_xz() -> bytes:
    return lzma.compress(_head("run/x", 100 * MIB) + bytes(100 * MIB), preset=0)


@archive(".zip", "unpacks to more than")
def a_bomb_in_zip() -> bytes:
    return _zip(*((f"run/{n}", bytes(20 * MIB)) for n in range(5)))


@archive(".zip", "is not an archive of runs")
def a_zip_that_says_less_than_it_holds() -> bytes:
    data = bytearray(_zip(("run/x", bytes(4 * MIB))))
    for at in (22, data.index(b"PK\1\2") + 24):
        data[at : at + 4] = (100).to_bytes(4, "little")
    return bytes(data)


@archive(".tar.gz", "is not an archive|contains no run|twice")
def an_archive_in_an_archive() -> bytes:
    inner = _tar((_entry("run/manifest.json"), b"{}"))
    return gzip.compress(_tar((_entry("inner.tar"), inner)))


for _name, _path in {
    "a_way_out": "../../x", "a_way_out_in_the_middle": "run/../../x", "the_root": "/etc/x",
    "a_way_out_at_the_end": "run/..",
}.items():  # fmt: skip
    for _suffix in (".tar", ".zip"):

        def _out(path: str = _path, suffix: str = _suffix) -> bytes:
            return _zip((path, b"x")) if suffix == ".zip" else _tar((_entry(path), b"x"))

        ARCHIVES[f"{_name} in {_suffix}"] = (_suffix, _out, "which is outside the archive")

for _name, (_kind, _link) in {
    "a_link_out": (tarfile.SYMTYPE, "../../x"), "a_link_to_a_file": (tarfile.SYMTYPE, "/etc/passwd"),
    "a_hard_link_out": (tarfile.LNKTYPE, "../x"), "a_device": (tarfile.BLKTYPE, ""),
    "a_character_device": (tarfile.CHRTYPE, ""), "a_pipe": (tarfile.FIFOTYPE, ""),
}.items():  # fmt: skip

    def _special(kind: bytes = _kind, link: str = _link) -> bytes:
        return _tar((_entry("run/x", kind, link), b""))

    ARCHIVES[_name] = (".tar", _special, "is not an archive of runs")


@archive(".tar", "is not an archive of runs|contains no run")
def a_link_and_a_file_through_it() -> bytes:
    return _tar((_entry("run", tarfile.SYMTYPE, "/tmp"), b""), (_entry("run/x"), b"x"))


@archive(".tar", "contains the name 'run/manifest.json' twice")
def one_name_twice() -> bytes:
    return _tar((_entry("run/manifest.json"), b"{}"), (_entry("run/./manifest.json"), b"[]"))


@archive(".zip", "twice")
def one_name_twice_in_zip() -> bytes:
    return _zip(("run/x", b"{}"), ("run//x", b"[]"))


@archive(".tar", "is not an archive of runs")
def a_file_that_is_a_folder_too() -> bytes:
    return _tar((_entry("run"), b"{}"), (_entry("run/x"), b"[]"))


@archive(".tar", "contains a name with more than 16 path components")
def a_name_of_a_thousand_folders() -> bytes:
    return _tar((_entry("a/" * 1000 + "x"), b"x"))


@archive(".tar", "contains a path component of more than 200 bytes")
def a_name_that_no_disk_takes() -> bytes:
    return _tar((_entry("run/" + "x" * 4000), b"x"))


@archive(".tar.gz", "is not an archive of runs")
def cut_off() -> bytes:
    whole = gzip.compress(_tar((_entry("run/manifest.json"), os.urandom(9000))))
    return whole[: len(whole) // 2]


@archive(".zip", "is not an archive of runs")
def cut_off_in_zip() -> bytes:
    return _zip(("run/x", os.urandom(9000)))[:4000]


@archive(".zip", "is not an archive of runs")
def encrypted() -> bytes:
    data = bytearray(_zip(("run/x", b"secret")))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


@archive(".zip", "is not an archive of runs")
def packed_in_a_way_that_nobody_knows() -> bytes:
    data = bytearray(_zip(("run/x", b"data")))
    data[8], data[data.index(b"PK\1\2") + 10] = 99, 99
    return bytes(data)


@archive(".zip", "is not an archive of runs|contains no run")
def a_directory_beyond_the_end() -> bytes:
    data = bytearray(_zip(("run/x", b"data")))
    at = data.index(b"PK\5\6")
    data[at + 12 : at + 20] = b"\xff\xff\xff\x7f\xff\xff\xff\x7f"
    return bytes(data)


@archive(".tar", "is not an archive of runs")
def a_size_that_is_negative() -> bytes:
    head = bytearray(_head("run/x", 1))
    head[124:136] = b"\xff" * 12
    head[148:156] = b" " * 8
    head[148:156] = f"{sum(head):06o}\0 ".encode()
    return bytes(head) + bytes(1024)


@archive(".tar", "is not an archive of runs|unpacks to more")
def a_sparse_file_of_an_exabyte() -> bytes:
    entry = _entry("run/x")
    entry.pax_headers = {"GNU.sparse.size": str(1 << 60), "GNU.sparse.map": "0,1",
                         "GNU.sparse.major": "0", "GNU.sparse.minor": "1"}  # fmt: skip
    return _tar((entry, b"x"))


@archive(".tar.gz", "is not an archive of runs")
def no_archive_at_all() -> bytes:
    return os.urandom(5000)


@archive(".tar.gz", "is not an archive of runs")
def empty() -> bytes:
    return b""


_LIMITED = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({4 << 30}, {4 << 30}))
from writecliff.cli.main import main
codes = [main(["runs", "import", path, "--store", "store"]) for path in sys.argv[1:]]
# Not ru_maxrss: a child inherits the value of the test process.
(peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps([codes, int(peak.split()[1]) * 1024]))
"""


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from writecliff.cli.main import main

    suffix, make, says = ARCHIVES[name]
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    path = tmp_path / f"sent{suffix}"
    path.write_bytes(make())
    begun = time.process_time()
    assert main(["runs", "import", str(path), "--store", "store"]) == 2
    assert time.process_time() - begun < SECONDS_MAX
    error, *hints = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert any(word in error for word in says.split("|")), error
    assert all(line.startswith("hint: ") for line in hints)
    assert list(folder.iterdir()) == []
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left in ([f"sent{suffix}", "temporary"], [f"sent{suffix}", "store", "temporary"])


def test_bombs_take_little_memory(tmp_path: Path) -> None:
    """Run in a separate process, because the peak memory is never reset."""
    paths = []
    for name in (name for name in ARCHIVES if "bomb" in name):
        suffix, make, _ = ARCHIVES[name]
        (path := tmp_path / f"{name}{suffix}").write_bytes(make())
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, *paths], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    codes, peak = json.loads(done.stdout.splitlines()[-1])
    assert codes == [2] * len(paths)
    assert peak < MEMORY_BYTES_MAX / 4


def test_a_good_archive_is_unpacked(tmp_path: Path) -> None:
    for number, pack in enumerate((bytes, gzip.compress, bz2.compress, lzma.compress)):
        data = pack(_tar((_entry("run", tarfile.DIRTYPE), b""), (_entry("run/x"), b"data")))
        (path := tmp_path / f"{number}.tar").write_bytes(data)
        (folder := tmp_path / f"out{number}").mkdir()
        unpacking.unpack(path, folder)
        assert (folder / "run/x").read_bytes() == b"data"

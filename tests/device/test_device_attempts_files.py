"""Attempts on files, and races where targets change or become busy after the check."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.attempts import ROOM_BYTES, digest
from tests.support.dangers import MIB, SWAP_HEADER, Bench, run, succeeds
from writecliff.cli.main import main
from writecliff.engines.blockdev import claim, protection, regular_file, usage
from writecliff.engines.blockdev.regular_file import FileTarget
from writecliff.engines.target import open_target
from writecliff.errors import TargetError, WritecliffError

pytest.importorskip("writecliff._native", reason="the native module is not built")

Build = Callable[[Bench], tuple[str, list[Path], str]]
FILES: dict[str, Build] = {}
LOAD = 'name = "w"\n[[job]]\nread = "0 %"\nvolume = "1 MB"\n'


def attempt(build: Build) -> Build:
    """Register a target builder, the files that must not change, and the error text."""
    FILES[build.__name__] = build
    return build


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_PROCESS_SETTLE_S", 0.0)


def _written_file(bench: Bench) -> Path:
    """Create a file written by a run."""
    path = bench.path("own")
    held = FileTarget.open(path, ROOM_BYTES)
    held.require_writable()
    os.pwrite(held.fd, b"\x5a" * MIB, MIB)
    held.close()
    return path


def _small_disk(bench: Bench, *options: str) -> Path:
    """Mount an 8 MiB file system, and return its mount point."""
    image = bench.image(ROOM_BYTES)
    bench.mkfs(device := bench.loop(image))
    where = bench.path("small")
    where.mkdir()
    run("mount", *options, device, where)
    bench.callback(lambda: succeeds("umount", "--lazy", where))
    return where


@attempt
def sparse_and_larger_than_its_disk(bench: Bench) -> tuple[str, list[Path], str]:
    path = _small_disk(bench) / "large"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    return str(path), [], "sparse: its holes need 1.07 GB"


@attempt
def sparse_in_memory(bench: Bench) -> tuple[str, list[Path], str]:
    where = bench.path("memory")
    where.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=4m", "none", where)
    bench.callback(run, "umount", where)
    path = where / "large"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    return str(path), [], "sparse"


@attempt
def on_a_read_only_file_system(bench: Bench) -> tuple[str, list[Path], str]:
    where = _small_disk(bench)
    (where / "x").write_bytes(bytes(MIB))
    run("mount", "-o", "remount,ro", where)
    return str(where / "x"), [where / "x"], "Read-only file system"


@attempt
def another_name_of_a_file_behind_a_loop_device(bench: Bench) -> tuple[str, list[Path], str]:
    path, other = _written_file(bench), bench.path("hard")
    os.link(path, other)
    bench.loop(path)
    return str(other), [path], "is behind the loop device"


@attempt
def a_link_to_a_file_behind_a_mounted_loop_device(bench: Bench) -> tuple[str, list[Path], str]:
    path, link = _written_file(bench), bench.path("link")
    bench.mkfs(device := bench.loop(path))
    bench.mount(device)
    link.symlink_to(path)
    return str(link), [path], "in use"


@attempt
def another_name_of_a_swap_file(bench: Bench) -> tuple[str, list[Path], str]:
    path, other = _written_file(bench), bench.path("hard")
    path.chmod(0o600)
    os.link(path, other)
    bench.swap(path)
    return str(other), [], "is active swap space"


@attempt
def a_file_that_is_mounted_over_another(bench: Bench) -> tuple[str, list[Path], str]:
    image, over = bench.image(ROOM_BYTES), bench.path("over")
    over.write_bytes(b"")
    run("mount", "--bind", image, over)
    bench.callback(run, "umount", over)
    return str(over), [image], "holds data that was not written by a test"


@attempt
def a_file_of_others(bench: Bench) -> tuple[str, list[Path], str]:
    image = bench.image(ROOM_BYTES)
    return str(image), [image], "holds data that was not written by a test"


@attempt
def a_way_out_of_a_folder_to_it(bench: Bench) -> tuple[str, list[Path], str]:
    image = bench.image(ROOM_BYTES)
    (inside := bench.path("inside")).mkdir()
    return f"{inside}/../{image.name}", [image], "holds data that was not written by a test"


@attempt
def a_folder(bench: Bench) -> tuple[str, list[Path], str]:
    return str(bench.folder), [], "a directory, not a regular file"


@attempt
def a_pipe(bench: Bench) -> tuple[str, list[Path], str]:
    os.mkfifo(path := bench.path("pipe"))
    return str(path), [], "not a regular file"


@attempt
def a_socket(bench: Bench) -> tuple[str, list[Path], str]:
    path = bench.path("socket")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
    return str(path), [], "not a regular file"


@attempt
def a_link_to_itself(bench: Bench) -> tuple[str, list[Path], str]:
    path = bench.path("loop")
    path.symlink_to(path)
    return str(path), [], "symbolic links"


@attempt
def of_another_size_than_asked_for(bench: Bench) -> tuple[str, list[Path], str]:
    path = _written_file(bench)
    return f"{path}?size={ROOM_BYTES // 2}", [path], "not the requested 4194304"


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused_and_stays(
    name: str, bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    named, guarded, says = FILES[name](bench)
    path, _, size = named.partition("?size=")
    first = SWAP_HEADER if "swap" in name else None
    before = digest(guarded, first)
    with pytest.raises(TargetError, match=says):
        engine = open_target(f"file:{path}", size_bytes=int(size) if size else None)
        try:
            engine.purge()
        finally:
            engine.close()
    (tmp_path / "load.toml").write_text(LOAD)
    words = ["run", str(tmp_path / "load.toml"), "--on", f"file:{path}", "--output"]
    assert main([*words, str(tmp_path / "out"), *(["--size", size] if size else [])]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[:1]
    assert not (tmp_path / "out").exists()
    assert digest(guarded, first) == before


def test_a_new_file_has_room_or_is_not_made(bench: Bench) -> None:
    where = _small_disk(bench)
    before = sorted(where.iterdir())
    with pytest.raises(TargetError, match=r"cannot be created with 1\.07 GB: its file system has"):
        open_target(f"file:{where / 'x'}", size_bytes=1 << 30)
    assert sorted(where.iterdir()) == before


# -- races ----------------------------------------------------------------------------------------


def _after(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, then: Callable[[], object]
) -> None:
    """Call `then` once, immediately after a protection function has returned."""
    whole = getattr(module, name)
    left = [then]

    def raced(*args: object, **more: object) -> object:
        returned = whole(*args, **more)
        if left:
            left.pop()()
        return returned

    monkeypatch.setattr(module, name, raced)


def test_mounted_after_it_was_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    image = bench.image(ROOM_BYTES)
    bench.mkfs(device := bench.loop(image))
    before = digest([image])
    _after(monkeypatch, protection, "inspect", lambda: bench.mount(device))
    with pytest.raises(TargetError, match="in use: the kernel refuses exclusive access"):
        claim(device, device, allow_signatures=True)
    assert digest([image]) == before


def test_swap_after_it_was_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    device = bench.loop(bench.image(ROOM_BYTES))
    _after(monkeypatch, protection, "inspect", lambda: bench.swap(device))
    with pytest.raises(TargetError, match="in use"):
        claim(device, device, allow_signatures=True)


def test_opened_after_it_was_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    device = bench.loop(bench.image(ROOM_BYTES))
    _after(monkeypatch, protection, "inspect", lambda: bench.script(f"exec 3<>{device}"))
    with pytest.raises(TargetError, match="is open in process"):
        claim(device, device)


def test_put_behind_a_loop_device_after_it_was_claimed(bench: Bench) -> None:
    device = bench.loop(bench.image(ROOM_BYTES))
    _, held = claim(device, device)
    bench.callback(held.close)
    bench.loop(device)
    with pytest.raises(TargetError, match="is behind the loop device"):
        held.verify()


def test_what_is_claimed_cannot_be_mounted(bench: Bench) -> None:
    image = bench.image(ROOM_BYTES)
    bench.mkfs(device := bench.loop(image))
    _, held = claim(device, device, allow_signatures=True)
    bench.callback(held.close)
    (where := bench.path("mount")).mkdir()
    assert not succeeds("mount", device, where)
    assert not succeeds("swapon", device)


def test_a_link_that_is_moved_after_it_was_looked_at(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, other = bench.image(ROOM_BYTES), bench.image(ROOM_BYTES)
    device, victim = bench.loop(image), bench.loop(other)
    link = Path(bench.link(f"writecliff-raced-{Path(device).name}", device))

    def moved() -> None:
        link.unlink()
        link.symlink_to(victim)

    before = digest([other])
    _after(monkeypatch, protection, "inspect", moved)
    target, held = claim(str(link), device)
    held.verify()
    assert (target.node, held.fd >= 0) == (device, True)
    held.close()
    assert digest([other]) == before


def _file_raced(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, then: Callable[[Path], object]
) -> str:
    path = _written_file(bench)
    _after(monkeypatch, regular_file, "stat_node", lambda: then(path))
    with pytest.raises(WritecliffError) as caught:
        held = FileTarget.open(path, None)
        try:
            held.require_writable()
        finally:
            held.close()
    return str(caught.value)


def test_a_file_that_becomes_a_link_to_a_device(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = bench.image(ROOM_BYTES)
    device = bench.loop(image)
    before = digest([image])

    def swapped(path: Path) -> None:
        path.unlink()
        path.symlink_to(device)

    error = _file_raced(bench, monkeypatch, swapped)
    assert "cannot open" in error or "a file system of the kernel" in error
    assert digest([image]) == before


def test_a_file_that_becomes_a_device(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    image = bench.image(ROOM_BYTES)
    number = os.stat(bench.loop(image)).st_rdev
    before = digest([image])

    def swapped(path: Path) -> None:
        path.unlink()
        os.mknod(path, 0o060600, number)

    assert "not a regular file" in _file_raced(bench, monkeypatch, swapped)
    assert digest([image]) == before


def test_a_file_that_gets_behind_a_loop_device(bench: Bench) -> None:
    path = _written_file(bench)
    held = FileTarget.open(path, None)
    bench.callback(held.close)
    assert held.refusal is None
    bench.loop(path)
    with pytest.raises(TargetError, match="is behind the loop device"):
        held.require_writable()


def test_a_file_that_is_replaced_before_the_first_write(bench: Bench) -> None:
    path = _written_file(bench)
    held = FileTarget.open(path, None)
    bench.callback(held.close)
    path.unlink()
    path.write_bytes(b"a letter" * 1000)
    before = path.read_bytes()
    with pytest.raises(TargetError, match="no longer the file"):
        held.require_writable()
    assert path.read_bytes() == before


def test_only_one_of_two_concurrent_starts_gets_the_device(bench: Bench) -> None:
    """Check that only one of two simultaneous processes claims the device."""
    device = bench.loop(bench.image(ROOM_BYTES))
    code = (
        "import sys\nfrom writecliff.engines.blockdev import claim, usage\n"
        "usage._PROCESS_SETTLE_S = 0.0\n"
        "try:\n    claim(sys.argv[1], sys.argv[1]); print('has it', flush=True); input()\n"
        "except Exception as error:\n    print(error)"
    )
    words = [sys.executable, "-c", code, device]
    both = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    lines = sorted(process.stdout.readline().strip() for process in both if process.stdout)
    for process in both:
        process.communicate("\n")
    assert lines.count("has it") <= 1
    assert any("in use" in line for line in lines)

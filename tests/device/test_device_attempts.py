"""Hundreds of attempts to destroy data, by situation, name and command, which must all be rejected.

The danger tables check the wording of errors, whereas this module checks that no byte changes.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.attempts import (
    ROOM_BYTES,
    Seen,
    Situation,
    commands_of,
    digest,
    names_of,
    outputs,
    refused,
)
from tests.support.dangers import MIB, SWAP_HEADER, Bench, number_of, run, tool, write_mbr
from writecliff.cli.main import main
from writecliff.engines.blockdev import usage
from writecliff.engines.target import open_target
from writecliff.errors import WritecliffError

pytest.importorskip("writecliff._native", reason="the native module is not built")

Build = Callable[[Bench], Situation]
SITUATIONS: dict[str, Build] = {}
LOAD = 'name = "w"\n[[job]]\nread = "0 %"\nvolume = "1 MB"\n'
TRACE = "".join(f"{128166372003061629 + n},srv,0,Write,{4096 * n},4096,9\n" for n in range(9))
ACT = "device-names: /dev/x\ntest-duration-sec: 5\n"


def situation(build: Build) -> Build:
    SITUATIONS[build.__name__] = build
    return build


def _image(bench: Bench) -> Path:
    return bench.image(ROOM_BYTES)


def _with_file_system(bench: Bench) -> tuple[Path, str]:
    image = _image(bench)
    device = bench.loop(image)
    bench.mkfs(device)
    return image, device


def _partitioned(bench: Bench) -> tuple[str, str]:
    """Return a disk and its partition."""
    image = _image(bench)
    write_mbr(image, sectors=ROOM_BYTES // 512 - 2048)
    device = bench.loop(image)
    run("partx", "--add", device)
    bench.callback(run, "partx", "--delete", device)
    return device, f"{device}p1"


@situation
def mounted(bench: Bench) -> Situation:
    image, device = _with_file_system(bench)
    bench.mount(device)
    return Situation(device, [image])


@situation
def mounted_twice_with_a_bind_mount(bench: Bench) -> Situation:
    image, device = _with_file_system(bench)
    where = bench.mount(device)
    other = bench.path("bound")
    other.mkdir()
    run("mount", "--bind", where, other)
    bench.callback(run, "umount", other)
    return Situation(device, [image])


@situation
def below_an_overlay(bench: Bench) -> Situation:
    image, device = _with_file_system(bench)
    lower, upper, work, merged = bench.mount(device), *(bench.path(n) for n in ("u", "w", "m"))
    for folder in (upper, work, merged):
        folder.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    run("mount", "-t", "overlay", "-o", options, "none", merged)
    bench.callback(run, "umount", merged)
    return Situation(device, [image])


@situation
def mounted_partition_of_the_disk(bench: Bench) -> Situation:
    device, partition = _partitioned(bench)
    bench.mkfs(partition)
    bench.mount(partition)
    return Situation(device, [device])


@situation
def the_mounted_partition(bench: Bench) -> Situation:
    device, partition = _partitioned(bench)
    bench.mkfs(partition)
    bench.mount(partition)
    return Situation(partition, [device])


@situation
def an_unused_partition(bench: Bench) -> Situation:
    device, partition = _partitioned(bench)
    return Situation(partition, [device])


@situation
def swap(bench: Bench) -> Situation:
    image = _image(bench)
    bench.swap(device := bench.loop(image))
    return Situation(device, [image], first=SWAP_HEADER)


@situation
def swap_on_a_partition(bench: Bench) -> Situation:
    device, partition = _partitioned(bench)
    bench.swap(partition)
    return Situation(device, [device], first=MIB)


@situation
def compressed_memory_that_is_swap(bench: Bench) -> Situation:
    tool("zramctl")
    if not Path("/sys/class/zram-control").exists():
        pytest.skip("this kernel has no zram")
    device = run("zramctl", "--find", "--size", "8M")
    bench.callback(run, "zramctl", "--reset", device)
    bench.swap(device)
    return Situation(device, [device], first=SWAP_HEADER)


@situation
def open_in_a_process_that_reads(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    bench.script(f"exec 3<{device}")
    return Situation(device, [image])


@situation
def open_in_a_process_that_writes(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    bench.script(f"exec 3<>{device}")
    return Situation(device, [image])


@situation
def claimed_by_a_process(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    bench.python(f"import os; os.open({device!r}, os.O_RDWR | os.O_EXCL)")
    return Situation(device, [image])


@situation
def a_partition_claimed_by_a_process(bench: Bench) -> Situation:
    device, partition = _partitioned(bench)
    bench.python(f"import os; os.open({partition!r}, os.O_RDWR | os.O_EXCL)")
    return Situation(device, [device])


@situation
def behind_a_loop_device(bench: Bench) -> Situation:
    image = _image(bench)
    bench.loop(device := bench.loop(image))
    return Situation(device, [image])


@situation
def a_loop_device_over_a_mounted_one(bench: Bench) -> Situation:
    image, lower = _with_file_system(bench)
    bench.mount(lower)
    return Situation(bench.loop(lower, "--offset", str(MIB)), [image])


@situation
def two_loop_devices_over_one_file(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    bench.loop(image, "--offset", str(MIB))
    return Situation(device, [image])


@situation
def two_loop_devices_over_a_file_that_was_deleted(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    bench.loop(image, "--offset", str(MIB))
    image.unlink()
    return Situation(device, [device])


@situation
def a_loop_device_over_a_file_on_a_disk_that_is_mounted_by_it(bench: Bench) -> Situation:
    """Mount a file system from an image stored on the disk itself."""
    image, device = _with_file_system(bench)
    bench.mount(device, "-o", "noatime")
    return Situation(bench.loop(image, "--read-only"), [image])


@situation
def read_only(bench: Bench) -> Situation:
    image = _image(bench)
    return Situation(bench.loop(image, "--read-only"), [image])


@situation
def without_a_medium(bench: Bench) -> Situation:
    image = bench.image(0)
    return Situation(bench.loop(image), [image])


@situation
def with_a_file_system_and_half_of_the_consent(bench: Bench) -> Situation:
    image, device = _with_file_system(bench)
    return Situation(device, [image], wipe=False)


@situation
def with_partitions_and_half_of_the_consent(bench: Bench) -> Situation:
    device, _ = _partitioned(bench)
    return Situation(device, [device], wipe=False)


@situation
def with_the_serial_of_another_drive(bench: Bench) -> Situation:
    image = _image(bench)
    return Situation(bench.loop(image), [image], serial="S64GNX0R123456")


@situation
def with_the_path_of_another_drive(bench: Bench) -> Situation:
    image = _image(bench)
    return Situation(bench.loop(image), [image], serial=bench.loop())


@situation
def a_node_of_it_that_was_made_by_hand(bench: Bench) -> Situation:
    image = _image(bench)
    device = bench.loop(image)
    node = bench.node(f"/dev/writecliff-{Path(device).name}", number_of(device))
    return Situation(node, [image])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with input files for commands, without waiting for udev."""
    monkeypatch.setattr(usage, "_PROCESS_SETTLE_S", 0.0)
    monkeypatch.chdir(tmp_path)
    for name, text in (("load.toml", LOAD), ("trace.csv", TRACE), ("act.conf", ACT)):
        Path(name).write_text(text)
    return tmp_path


def _engine(target: str, situation: Situation) -> tuple[int, str]:
    """Open the target as every command does, purge it, and return the exit code and error."""
    serial = target if situation.serial is None else situation.serial
    try:
        engine = open_target(target, destroy_serial=serial, allow_signatures=situation.wipe)
        try:
            engine.purge()  # Files are rejected at the first write.
        finally:
            engine.close()
    except WritecliffError as error:
        return error.exit_code, f"error: {error}"
    return 0, "purged"


def _command(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(words)
    output = capsys.readouterr()
    return code, output.out + output.err


def _all_refused(seen: Seen, before: str, situation: Situation) -> None:
    assert digest(situation.guarded, situation.first) == before, "bytes have changed"
    assert not seen.wrong, "\n".join(seen.wrong)
    assert seen.tried


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_name_of_a_device_leads_to_its_bytes(name: str, bench: Bench, here: Path) -> None:
    situation = SITUATIONS[name](bench)
    before, seen = digest(situation.guarded, situation.first), Seen()
    for how, target in names_of(bench, situation.device).items():
        refused(lambda target=target: _engine(target, situation), seen, f"{how}: {target}")
    _all_refused(seen, before, situation)


@pytest.mark.parametrize("name", ["mounted", "swap_on_a_partition", "claimed_by_a_process"])
def test_no_command_writes_to_it(
    name: str, bench: Bench, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    situation = SITUATIONS[name](bench)
    before, seen = digest(situation.guarded, situation.first), Seen()
    for how, words in commands_of(situation.device, situation.device, here).items():
        refused(lambda words=words: _command(words, capsys), seen, how)
    _all_refused(seen, before, situation)


def _places(bench: Bench, folder: Path) -> Mapping[str, tuple[str, str | None]]:
    """Return paths that must not become output files, with the device or file to protect."""
    image = _image(bench)
    device = bench.loop(image)
    link, null, pipe, door = (folder / name for name in ("link", "null", "pipe", "door"))
    link.symlink_to(device)
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
    return {
        "a device": (device, device),
        "a link to a device": (str(link), device),
        "a character device": (str(null), None),
        "a pipe": (str(pipe), None),
        "a socket": (str(door), None),
        "a file behind a loop device": (str(image), str(image)),
    }


@pytest.mark.parametrize("place", ["a device", "a link to a device", "a character device", "a pipe",
                                   "a socket", "a file behind a loop device"])  # fmt: skip
def test_no_output_takes_the_place_of_a_device(
    place: str, bench: Bench, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, guarded = _places(bench, here)[place]
    situation = Situation(path, [] if guarded is None else [guarded])
    before, mode, seen = digest(situation.guarded), os.lstat(path).st_mode, Seen()
    for how, words in outputs(path):
        refused(lambda words=words: _command(words, capsys), seen, how)
        assert os.lstat(path).st_mode == mode, f"{how}: the file type or mode has changed"
    _all_refused(seen, before, situation)
    assert sorted(path.name for path in here.iterdir() if path.suffix in (".tmp", ".part")) == []


KERNEL_FILES = (
    "/proc/sysrq-trigger", "/proc/kcore", "/proc/self/mem", "/proc/sys/kernel/hostname",
    "/sys/power/state", "/sys/block", "/sys/kernel/mm/ksm/run", "/dev/shm/writecliff-attempt",
    "/dev/writecliff-attempt", "/dev/null", "/dev/zero", "/dev/full", "/dev/mem", "/dev/kmsg",
    "/dev/loop-control", "/dev/fd/0", "/dev", "/proc", "/", "/dev/../proc/kcore",
)  # fmt: skip


def test_no_file_of_the_kernel_is_a_target(here: Path) -> None:
    situation, seen = Situation("", []), Seen()
    for path in KERNEL_FILES:
        there = os.path.lexists(path)
        for target in (f"file:{path}", path):
            refused(lambda target=target: _sized(target), seen, target)
        assert os.path.lexists(path) == there
    _all_refused(seen, digest([]), situation)


def _sized(target: str, size_bytes: int = 2 * MIB) -> tuple[int, str]:
    try:
        engine = open_target(
            target, destroy_serial=target, allow_signatures=True,
            size_bytes=size_bytes if target.startswith("file:") else None,
        )  # fmt: skip
        try:
            engine.purge()
        finally:
            engine.close()
    except WritecliffError as error:
        return error.exit_code, f"error: {error}"
    return 0, "purged"


def test_attempts_are_many() -> None:
    """Check the total number of attempts."""
    names, commands, places = 13, len(commands_of("/dev/x", "x", Path())), 6
    tried = len(SITUATIONS) * names + 3 * commands + places * len(list(outputs("x")))
    assert tried + 2 * len(KERNEL_FILES) > 600

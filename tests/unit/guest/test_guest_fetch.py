"""Cache of the bench: components are complete or absent, and errors name the reason."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.guest import debian, fetch, programs
from tests.guest.reasons import CannotRun

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_part_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(folder: Path, state: Path, final: Path) -> None:
        made.append(final)
        state.mkdir()
        (folder / "file").write_text("here")

    for _ in range(2):
        assert (fetch._part("thing", "recipe 1", make) / "file").read_text() == "here"
    assert made == [tmp_path / "writecliff/guest/thing"]
    fetch._part("thing", "recipe 2", make)
    assert len(made) == 2
    assert sorted(p.name for p in made[0].parent.iterdir()) == ["thing", "thing.lock"]


def test_a_part_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def make(folder: Path, state: Path, final: Path) -> None:
        (folder / "half").touch()
        raise CannotRun("no mirror")

    with pytest.raises(CannotRun, match="no mirror"):
        fetch._part("thing", "recipe", make)
    assert [p.name for p in (tmp_path / "writecliff/guest").iterdir()] == ["thing.lock"]


def test_two_benches_at_once_make_a_part_once() -> None:
    made = []

    def make(folder: Path, state: Path, final: Path) -> None:
        made.append(threading.get_ident())
        (folder / "file").touch()

    threads = [threading.Thread(target=fetch._part, args=("x", "r", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_mirrors_are_those_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = (
        "http://a.example/debian-security/\nhttp://b.example/debian/\nhttp://b.example/debian/\n"
    )
    monkeypatch.setattr(debian, "_run", lambda words: addresses)
    assert debian.mirrors() == ["http://b.example/debian"]
    monkeypatch.setattr(debian, "_run", lambda words: "http://a.example/security/\nfile:/srv/m/\n")
    assert debian.mirrors() == ["file:/srv/m"]


def test_a_machine_without_debian_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "_run", lambda words, folder=None: "")
    with pytest.raises(CannotRun, match="Debian trixie cannot be downloaded: no Debian mirror in"):
        debian.Suite("trixie", tmp_path / "state")


def test_a_program_runs_through_its_own_loader(tmp_path: Path) -> None:
    tree, commands = tmp_path / "tree", tmp_path / "commands"
    for file, content in {
        "usr/lib64/ld-linux-x86-64.so.2": b"#!/bin/sh\necho loader $*\n",
        "usr/sbin/lvm": b"\x7fELF /lib64/ld-linux-x86-64.so.2",
        "bin/static": b"\x7fELF",
        "bin/script": b"#!/bin/sh\n",
    }.items():
        path = tree / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755)
    (tree / "usr/sbin/vgs").symlink_to("/usr/sbin/lvm")
    (tree / "usr/sbin/gone").symlink_to("/usr/sbin/nothing")
    names = ("usr/sbin/lvm", "usr/sbin/vgs", "usr/sbin/gone", "bin/static", "bin/script")
    programs.wrap(tree, names, commands, final=tree)
    assert sorted(path.name for path in commands.iterdir()) == ["lvm", "script", "static", "vgs"]
    completed = subprocess.run(
        [commands / "vgs", "--all"], capture_output=True, text=True, check=True
    )
    assert completed.stdout.startswith("loader --inhibit-cache --library-path ")
    assert completed.stdout.endswith(f"--argv0 vgs {tree}/usr/sbin/lvm --all\n")
    assert (commands / "static").readlink() == tree / "bin/static"


@pytest.mark.parametrize(
    ("words", "environment", "status"),
    [
        (["test"], {"PATH": "/nowhere"}, 3),
        (["--or-skip", "test"], {"PATH": "/nowhere"}, 0),
        (["test"], {"WRITECLIFF_NO_GUEST": "1", "CI": "true"}, 0),
    ],
)
def test_a_skip_is_loud(words: list[str], environment: dict[str, str], status: int) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.guest", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == status
    reason = "WRITECLIFF_NO_GUEST is set" if "PATH" not in environment else "apt-get is not"
    assert completed.stderr.startswith(f"drive tests SKIPPED: {reason}")

"""Stub libraries: a program starts with them as with the libraries to which it was linked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.guest import stubs
from tests.support.processes import WAIT_LIMIT_S

VERSIONED = "LIBNBD_1.0 { global: nbd_create; };\nLIBNBD_2.0 { global: nbd_close; };\n"
SOURCES = {
    "libnbd.so.0": "void nbd_create(void) {} void nbd_close(void) {}",
    "librados.so.2": "void rados_create(void) {}",
    "libused.so.1": "void used(void) {}",
}
CONSTRUCTOR = (
    '#include <stdio.h>\n__attribute__((constructor)) static void begin(void) {{ puts("{}"); }}\n'
)
PROGRAM = """
void nbd_create(void); void nbd_close(void); void rados_create(void); void used(void);
int main(int count, char **words) {
    used();
    if (count > 9) { nbd_create(); nbd_close(); rados_create(); }
    return 0;
}
"""


def build(source: str, output: Path, *words: str) -> None:
    file = output.with_name(f"{output.name}.c")
    file.write_text(source)
    subprocess.run(["cc", "-o", str(output), str(file), *words], check=True, timeout=WAIT_LIMIT_S)


@pytest.mark.skipif(
    not shutil.which("cc") or not shutil.which("readelf"), reason="cc and readelf are not installed"
)
def test_what_is_not_used_is_not_loaded(tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text(VERSIONED)
    for name, source in SOURCES.items():
        words = ["-shared", "-fPIC", f"-Wl,-soname,{name}"]
        words += [f"-Wl,--version-script={script}"] if name == "libnbd.so.0" else []
        build(CONSTRUCTOR.format(name) + source, tmp_path / name, *words)
    program = tmp_path / "program"
    build(PROGRAM, program, *(str(tmp_path / name) for name in SOURCES))

    def loads(*folders: Path) -> list[str]:
        where = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders))}
        done = subprocess.run([program], env=where, capture_output=True, text=True, check=True)
        # The loader treats a library without the requested version in the same way.
        assert done.stderr == ""
        return sorted(done.stdout.split())

    assert loads(tmp_path) == sorted(SOURCES)
    empty = tmp_path / "empty"
    stubs.make(program, empty)
    assert loads(empty, tmp_path) == ["libused.so.1"]


def test_without_a_compiler_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    stubs.make(tmp_path / "program", tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []

"""Cassandra's jar files, resolved by Maven, verified by SHA-256, and stored in the user's cache.

Maven's settings determine the download server. The files must match `cassandra.lock`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.capture.apps.process import last_lines
from writecliff.engines.state_cache import default_folder
from writecliff.errors import TargetError, WritecliffError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log

VERSION = "5.0.2"
LOCK = Path(__file__).with_name("cassandra.lock")
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_POM = LOCK.with_name("cassandra-pom.xml")


def jars(log: Log) -> Path:
    """Return the folder of the jar files, downloading them with Maven if necessary.

    Raises:
        TargetError: If Maven is not installed.
        WritecliffError: If Maven fails, or downloads different files.
    """
    folder = default_folder() / f"cassandra-{VERSION}"
    wanted = locked()
    if folder.is_dir():
        if problem(folder, wanted) is None:
            return folder
        log(f"{folder} is damaged; downloading its files again")
        shutil.rmtree(folder)
    if shutil.which("mvn") is None:
        raise TargetError(
            "Maven, which downloads Cassandra, is not installed",
            hint="on Debian: apt-get install maven openjdk-17-jdk-headless",
        )
    log(f"downloading Cassandra {VERSION} with Maven (once, 65 MB)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="maven-") as work:
        _resolve(Path(work))
        difference = problem(Path(work) / "lib", wanted)
        if difference is not None:
            raise WritecliffError(
                f"Maven downloaded files that differ from {LOCK.name}: {difference}"
            )
        (Path(work) / "lib").rename(folder)
    return folder


def _resolve(work: Path) -> None:
    shutil.copy(_POM, work / "pom.xml")
    log = work / "mvn.log"
    options = [f"-DoutputDirectory={work / 'lib'}", f"-Dcassandra.version={VERSION}"]
    command = ["mvn", "-B", "-q", "-ntp", _PLUGIN, *options]
    with log.open("wb") as file:
        code = subprocess.run(
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False
        ).returncode
    if code:
        raise WritecliffError(
            f"Maven could not download Cassandra {VERSION}: {last_lines(log)}",
            hint="check the repositories in Maven's settings (~/.m2/settings.xml)",
        )


def locked() -> dict[str, str]:
    """Return SHA-256 hashes by file name, read from a list in `sha256sum` format."""
    lines = LOCK.read_text(encoding="ascii").splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: digest for digest, name in pairs}


def problem(folder: Path, wanted: dict[str, str]) -> str | None:
    """Return the first difference between the files in `folder` and the list, or `None`."""
    there = {path.name for path in folder.glob("*")} if folder.is_dir() else set()
    for name in sorted(there ^ set(wanted)):
        return f"the file {name} is {'not listed' if name in there else 'missing'}"
    for name, digest in wanted.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            return f"the SHA-256 checksum of {name} does not match"
    return None

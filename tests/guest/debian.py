"""Packages of a Debian suite, downloaded independently of the machine's own suite.

APT runs with a separate state directory: it verifies signatures and checksums as usual, but installs
nothing and leaves the machine's package lists unchanged. The mirror is the machine's own mirror.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.guest.reasons import CannotRun

_KEYRINGS = ("debian-archive-keyring.pgp", "debian-archive-keyring.gpg")
# Disable the machine's hooks and extra indexes, which concern the machine's state rather than the
# cache.
_CONFIGURATION = """\
Dir::State "{state}";
Dir::State::status "{state}/status";
Dir::State::lists "{state}/lists";
Dir::Cache "{state}";
Dir::Etc::sourcelist "{state}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
#clear APT::Architectures;
APT::Architectures {{ "amd64"; }};
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


def mirrors() -> list[str]:
    """Return the Debian mirrors in this machine's APT sources, the most likely first."""
    output = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)"])
    uris = dict.fromkeys(line.rstrip("/") for line in output.split())
    named_debian = [uri for uri in uris if re.search(r"/debian$", uri)]
    return named_debian or [uri for uri in uris if "security" not in uri]


class Suite:
    """A suite of the mirror, such as `trixie`, with a private APT state in folder `state`.

    Raises CannotRun: no mirror of this machine has the suite.
    """

    def __init__(self, name: str, state: Path) -> None:
        self.name = name
        self._state = state
        for folder in ("lists/partial", "archives/partial"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        (state / "apt.conf").write_text(_CONFIGURATION.format(state=state))
        self._update()

    def _update(self) -> None:
        keyrings = [Path("/usr/share/keyrings", name) for name in _KEYRINGS]
        signed = next((f"[signed-by={path}] " for path in keyrings if path.exists()), "")
        reason = "no Debian mirror in this machine's APT sources"
        for mirror in mirrors():
            line = f"deb {signed}{mirror} {self.name} main\n"
            (self._state / "sources.list").write_text(line)
            try:
                self._apt("apt-get", "--error-on=any", "update")
            except CannotRun as error:
                reason = str(error)
            else:
                return
        raise CannotRun(f"Debian {self.name} cannot be downloaded: {reason}")

    def _apt(self, tool: str, *words: str, folder: Path | None = None) -> str:
        configured = [tool, "-c", str(self._state / "apt.conf"), "--quiet", *words]
        return _run(configured, folder)

    def with_dependencies(self, packages: Sequence[str]) -> list[Path]:
        """Download `packages` and all their dependencies, including the C library."""
        self._apt("apt-get", "--yes", "--download-only", "install", *packages)
        return sorted((self._state / "archives").glob("*.deb"))

    def kernel(self) -> list[Path]:
        """Download the image and modules of the newest amd64 kernel."""
        output = self._apt("apt-cache", "depends", "--recurse", "--important", "linux-image-amd64")
        parts = {
            line
            for line in output.split("\n")
            if re.match(r"linux-(image|binary|modules)-\d", line)
        }
        names = sorted(name for name in parts if name.endswith("-amd64"))
        if not names:
            raise CannotRun(f"Debian {self.name} has no kernel package for amd64")
        folder = self._state / "archives"
        self._apt("apt-get", "download", *names, folder=folder)
        return sorted(folder.glob("*.deb"))


def _run(words: Sequence[str], folder: Path | None = None) -> str:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotRun(f"{words[0]} is not installed") from None
    if done.returncode:
        complaints = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise CannotRun((complaints or done.stderr.splitlines() or [f"{words[0]} failed"])[-1])
    return done.stdout


def unpack(package: Path, folder: Path, without: Sequence[str] = ()) -> list[str]:
    """Unpack a package into `folder`, except paths that match `without`.

    Return the paths of the package's commands, relative to `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = [f"--exclude={pattern}" for pattern in without]
    archive = subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    extract = ["tar", "--extract", "--verbose", "--no-same-owner", *options]
    extract += ["--directory", str(folder)]
    done = subprocess.run(
        extract, stdin=archive.stdout, capture_output=True, text=True, check=False
    )
    if archive.wait() or done.returncode:
        raise CannotRun(f"{package.name} cannot be unpacked: {done.stderr.strip()}")
    return re.findall(r"^\./((?:usr/)?s?bin/[^/\s]+)$", done.stdout, re.M)

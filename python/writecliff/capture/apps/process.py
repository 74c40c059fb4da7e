"""Start and stop the servers and clients of the ready-made loads."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from writecliff.errors import WritecliffError
from writecliff.signals import die_with_parent

_POLL_S = 0.1
_KILL_AFTER_S = 60.0


@dataclass(frozen=True)
class Account:
    """A user account for a program, because some servers refuse to run as root."""

    name: str
    uid: int
    gid: int

    def take_over(self, *folders: Path) -> None:
        """Make this account the owner of the given folders."""
        for folder in folders:
            os.chown(folder, self.uid, self.gid)


def last_lines(log: Path, count: int = 3) -> str:
    """Return the last lines of a log as a single line."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    shown = [" ".join(line.split()) for line in lines if line.strip()]
    return " | ".join(shown[-count:])[-600:] or "no output"


def found_programs(names: Sequence[str], folders: Iterable[Path]) -> Iterator[dict[str, str]]:
    """Yield the program paths, by name, in each folder that contains all programs (PATH last)."""
    for folder in (*map(str, folders), None):
        paths = {name: path for name in names if (path := shutil.which(name, path=folder))}
        if len(paths) == len(names):
            yield paths


def version_of(program: str, option: str = "--version") -> str:
    """Return the version that a program prints, such as "17.0.1", or an empty string."""
    done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    match = re.search(r"\d+(?:\.\d+)+|(?<=\")\d+", done.stdout + done.stderr)
    return match[0] if match else ""


def free_ports(count: int) -> list[int]:
    """Return unused TCP ports on the loopback address."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for server_socket in sockets:
            server_socket.bind(("127.0.0.1", 0))
        return [int(server_socket.getsockname()[1]) for server_socket in sockets]


def run_client(
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
) -> None:
    """Run a program until it exits.

    Raises:
        WritecliffError: If the program fails. The message includes the last lines of the program's
            log.
    """
    with log.open("ab") as file:
        child = _start(command, file.fileno(), env, account)
        try:
            code = child.wait()
        finally:
            _end(child, signal.SIGTERM)
    if code:
        name = Path(command[0]).name
        raise WritecliffError(f"{name} exited with code {code}: {last_lines(log)}")


@contextlib.contextmanager
def server(
    command: Sequence[str],
    log: Path,
    *,
    ready: Callable[[], bool],
    timeout_s: float,
    stop: signal.Signals,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server that is ready inside the block and is shut down afterwards.

    Raises:
        WritecliffError: If the server exits early or is not ready in time. The message includes the
            last lines of the server's log.
    """
    name = Path(command[0]).name
    with log.open("ab") as file:
        child = _start(command, file.fileno(), env, account)
    try:
        deadline = time.monotonic() + timeout_s
        while not ready():
            if child.poll() is not None:
                raise WritecliffError(f"{name} did not start: {last_lines(log)}")
            if time.monotonic() > deadline:
                raise WritecliffError(
                    f"{name} was not ready after {timeout_s:.0f} s: {last_lines(log)}"
                )
            time.sleep(_POLL_S)
        yield child
        if child.poll() is not None:
            raise WritecliffError(f"{name} exited during the load: {last_lines(log)}")
    finally:
        _end(child, stop)


def _start(
    command: Sequence[str], output: int, env: Mapping[str, str] | None, account: Account | None
) -> subprocess.Popen[bytes]:
    """Start a program in a separate session that Ctrl-C does not reach (`_end` stops it)."""
    who: dict[str, object] = {}
    if account is not None:
        who = {"user": account.uid, "group": account.gid, "extra_groups": []}
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=env,
        cwd="/",
        start_new_session=True,
        preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 (only prctl runs)
        **who,
    )


def _end(child: subprocess.Popen[bytes], stop: signal.Signals) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(stop)
        try:
            child.wait(_KILL_AFTER_S)
        except BaseException:  # Shutdown was too slow, or the user pressed Ctrl-C again.
            _kill_group(child)
            raise
    _kill_group(child)  # Also kill the remaining children.


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()

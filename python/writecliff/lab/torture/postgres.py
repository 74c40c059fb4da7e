"""PostgreSQL under power cuts: `python -m writecliff.lab.torture.postgres`; see `ledger.main`.

The cluster has data checksums, which are verified after PostgreSQL's recovery.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from writecliff.capture.apps.postgres import installed, is_ready, server_account
from writecliff.capture.apps.process import run_client, server
from writecliff.errors import WritecliffError
from writecliff.lab.torture import ledger

_FOLDER, _USER = "cluster", "bench"
_TIMEOUT_S = 60.0
_SETTINGS = ("max_wal_size=32MB", "min_wal_size=32MB", "checkpoint_timeout=30s")


@contextmanager
def _started(*, sync: bool) -> Iterator[list[str]]:
    """Run the server and yield psql's command line for it."""
    programs, account = installed(), server_account()
    root = Path.cwd() / _FOLDER
    with TemporaryDirectory(prefix="writecliff-postgres-") as made:
        sockets = Path(made)
        if account is not None:
            account.take_over(sockets)
        settings = [*_SETTINGS, "listen_addresses=", f"unix_socket_directories={sockets}"]
        settings.append(f"fsync={'on' if sync else 'off'}")
        given = [word for setting in settings for word in ("-c", setting)]
        with server(
            [programs["postgres"], "-D", str(root), *given],
            sockets / "log",
            ready=lambda: is_ready(programs["pg_isready"], sockets),
            timeout_s=_TIMEOUT_S,
            stop=signal.SIGINT,  # SIGINT requests PostgreSQL's fast shutdown.
            account=account,
        ):
            yield ["psql", "-X", "-q", "-At", "-h", str(sockets), "-U", _USER, "-d", "postgres"]


def _ask(psql: list[str], statement: str) -> str:
    done = subprocess.run([*psql, "-c", statement], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WritecliffError(done.stderr.strip().splitlines()[0])
    return done.stdout


def prepare() -> None:
    """Create a cluster with an empty table."""
    programs, account = installed(), server_account()
    folder = Path.cwd() / _FOLDER
    folder.mkdir()
    if account is not None:
        account.take_over(folder)
    new = ["-D", str(folder), "-U", _USER, "-A", "trust", "--no-locale", "-E", "UTF8", "-k"]
    run_client([programs["initdb"], *new], Path("initdb.log"), account=account)
    with _started(sync=True) as psql:
        _ask(psql, "CREATE TABLE rows (number int, row int, data bytea, PRIMARY KEY (number, row))")


def write(sync: bool) -> None:
    """Commit transactions until the drive fails."""
    pipe = subprocess.PIPE
    with _started(sync=sync) as psql, subprocess.Popen(psql, stdin=pipe, stdout=pipe) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        number = 0
        while True:
            number += 1
            rows = ", ".join(
                rf"({number}, {row}, '\x{ledger.payload(number, row).hex()}')"
                for row in range(ledger.ROWS)
            )
            client.stdin.write(f"INSERT INTO rows VALUES {rows} RETURNING number;\n".encode())
            client.stdin.flush()
            for _ in range(ledger.ROWS):
                if not client.stdout.readline():
                    raise SystemExit(1)
            ledger.acknowledge(number)


def check() -> list[str]:
    """Return the database's problems after its recovery and a clean shutdown."""
    # The PID file names a process from before the power cut, which no longer exists.
    (Path(_FOLDER) / "postmaster.pid").unlink(missing_ok=True)
    try:
        with _started(sync=True) as psql:
            output = _ask(psql, "SELECT number, row, encode(data, 'hex') FROM rows")
        checksums = [installed()["pg_checksums"], "--check", "-D", str(Path.cwd() / _FOLDER)]
        done = subprocess.run(checksums, capture_output=True, text=True, check=False)
    except WritecliffError as error:
        return [str(error)]
    if done.returncode:
        return [f"pg_checksums: {done.stderr.strip().splitlines()[0]}"]
    parts = (line.split("|") for line in output.splitlines())
    return ledger.wrong_with((int(n), int(row), bytes.fromhex(data)) for n, row, data in parts)


if __name__ == "__main__":
    sys.exit(ledger.main(prepare, write, check))

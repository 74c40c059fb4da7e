"""A new PostgreSQL cluster in a temporary folder, filled and loaded by pgbench (TPC-B-like).

The server has little memory and a small log, so that even a short load causes page evictions,
checkpoints and log file recycling. PostgreSQL refuses to run as root, so root starts the server as
the user `postgres`, or as `nobody` if the user `postgres` does not exist.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from writecliff.capture.apps.process import Account, found_programs, run_client, server, version_of
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log, Size
    from writecliff.capture.run import Captured, Options

ACCOUNTS_PER_SCALE = 100_000
RECORDS = 500_000
OPERATIONS = 20_000
CLIENTS = 4
_START_TIMEOUT_S = 60.0
_PROGRAMS = ("initdb", "postgres", "pgbench", "pg_isready", "pg_checksums", "createdb", "psql")
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "checkpoint_timeout": "30s",
    "work_mem": "1MB",
}


def run(options: Options, size: Size, folder: Path, log: Log) -> Captured:
    """Run and capture the load.

    Raises:
        TargetError: If PostgreSQL is not installed.
    """
    from writecliff.capture.run import session

    programs = installed()
    scale = max(1, round((size.records or RECORDS) / ACCOUNTS_PER_SCALE))
    each = max(1, (size.operations or OPERATIONS) // CLIENTS)
    account = server_account()
    if account is not None:
        _check_reachable(folder, account)
    root, sockets, logs = (folder / name for name in ("postgres", "run", "log"))
    for made in (root, sockets, logs):
        made.mkdir()
    if account is not None:
        account.take_over(root, sockets)
    options = replace(options, root=options.root or root)
    pgbench = [programs["pgbench"], "-h", str(sockets), "-U", "bench"]
    load = [*pgbench, "-c", str(CLIENTS), "-j", "2", "-t", str(each), "--random-seed=1", "bench"]
    with session(options, public=folder) as capture:
        env = capture.environment()
        log("initdb: creating a new cluster")
        new = ["-D", str(root), "-U", "bench", "-A", "trust", "--no-locale", "-E", "UTF8"]
        run_client([programs["initdb"], *new], logs / "initdb.log", env=env, account=account)
        with server(
            _server(programs["postgres"], root, sockets),
            logs / "postgres.log",
            ready=lambda: is_ready(programs["pg_isready"], sockets),
            timeout_s=_START_TIMEOUT_S,
            stop=signal.SIGINT,  # SIGINT requests PostgreSQL's fast shutdown.
            env=env,
            account=account,
        ):
            create = [programs["createdb"], "-h", str(sockets), "-U", "bench", "bench"]
            run_client(create, logs / "pgbench.log")
            log(f"pgbench: {scale * ACCOUNTS_PER_SCALE:,} accounts")
            run_client([*pgbench, "-i", "-q", "-s", str(scale), "bench"], logs / "pgbench.log")
            log(f"pgbench: {each * CLIENTS:,} transactions from {CLIENTS} clients")
            run_client(load, logs / "pgbench.log")
        version = version_of(programs["postgres"])
        return capture.finish(load, f"postgresql {version}".strip(), 0)


def installed() -> dict[str, str]:
    """Return the PostgreSQL programs' paths, because Debian installs the server outside PATH."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: float(folder.parent.name) if folder.parent.name.isdigit() else 0.0,
        reverse=True,
    )
    paths = next(found_programs(_PROGRAMS, folders), None)
    if paths is not None:
        return paths
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    raise TargetError(
        f"PostgreSQL is not installed: the program {missing[0]} is missing",
        hint="on Debian: apt-get install postgresql postgresql-contrib",
    )


def server_account() -> Account | None:
    """Return the account for the server if this process runs as root, otherwise `None`."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise TargetError(
        "PostgreSQL cannot run as root, and there is no user 'postgres' or 'nobody'",
        hint="run the command as a user other than root",
    )


def _check_reachable(folder: Path, account: Account) -> None:
    for part in (folder, *folder.parents):
        if not part.stat().st_mode & 0o001:
            raise TargetError(
                f"the user '{account.name}', who runs PostgreSQL, cannot access {part}",
                hint="choose a --folder that all users can access",
            )


def _server(program: str, root: Path, sockets: Path) -> list[str]:
    settings = {**_SETTINGS, "unix_socket_directories": str(sockets)}
    given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [program, "-D", str(root), *given]


def is_ready(program: str, sockets: Path) -> bool:
    """Return `True` if the server whose socket is in `sockets` accepts connections."""
    command = [program, "-q", "-h", str(sockets), "-U", "bench", "-d", "postgres"]
    return subprocess.run(command, check=False).returncode == 0

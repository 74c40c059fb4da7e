"""Cassandra 5.0 on the machine's Java 17, with the load of Samsung's experiment, scaled down.

The experiment (Flash Memory Summit 2016): one million records, optionally a phase of writes alone,
then half reads and half writes. One node writes to a temporary folder; the client is `Load.java`,
compiled on demand, with the driver that comes with Cassandra. Memtables are small (16 MiB), so that
flushes and three tiers of compaction occur within a gigabyte.

The commit log is written directly (`commitlog_disk_access_mode: direct`): by default it goes
through mapped memory, which a capture of calls cannot see. Where the file system has no direct I/O
it is compressed, which is also written by calls.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from writecliff.capture.apps.jars import VERSION, jars
from writecliff.capture.apps.process import (
    found_programs,
    free_ports,
    run_client,
    server,
    version_of,
)
from writecliff.errors import TargetError

if TYPE_CHECKING:
    from writecliff.capture.apps import Log, Size
    from writecliff.capture.run import Captured, Options

RECORDS = 1_000_000
OPERATIONS = 1_000_000
VALUE_BYTES = 300
JAVA = 17
_START_TIMEOUT_S = 180.0
_CLIENT = Path(__file__).with_name("Load.java")
_CONFIGURATION = Path(__file__).with_name("cassandra.yaml")
_JVM_OPTIONS = Path(__file__).with_name("cassandra-jvm.options")
_LOGGING = f"-Dlogback.configurationFile={Path(__file__).with_name('cassandra-logback.xml')}"


def run(options: Options, size: Size, folder: Path, log: Log) -> Captured:
    """Capture the load. Raises TargetError if Java 17 or Maven is missing."""
    from writecliff.capture.run import session

    java, javac = _java()
    library = jars(log)
    classes, logs, root = (folder / name for name in ("classes", "log", "cassandra"))
    for made in (classes, logs, root):
        made.mkdir()
    compiling = [javac, "-cp", f"{library}/*", "-d", str(classes), str(_CLIENT)]
    run_client(compiling, logs / "javac.log")
    native, storage = free_ports(2)
    _configure(folder, root, native, storage)
    records, operations = size.records or RECORDS, size.operations or OPERATIONS
    path = f"{classes}:{library}/*"
    load = ["Load", *map(str, (native, records, size.updates, operations, VALUE_BYTES))]
    options = replace(options, root=options.root or root)
    with session(options) as capture:
        log(f"Cassandra {VERSION}: starting")
        with server(
            [java, *_server_options(folder, root, library), "-cp", path,
             "org.apache.cassandra.service.CassandraDaemon"],
            logs / "cassandra.log",
            ready=lambda: _answers(native),
            timeout_s=_START_TIMEOUT_S,
            stop=signal.SIGTERM,  # its shutdown hook drains what is in memory
            env=_plain(capture.environment()),
        ):  # fmt: skip
            updates = f" {size.updates:,} writes," if size.updates else ""
            log(f"load: {records:,} records, then{updates} {operations:,} reads and writes")
            run_client(
                [java, "-Xmx256m", _LOGGING, "-cp", path, *load],
                logs / "load.log",
                env=_plain(os.environ),
            )  # fmt: skip
            for line in (logs / "load.log").read_text().splitlines():
                if line.startswith(("insert:", "update:", "mixed:")):
                    log(line)
        size_of_load = {
            "records": records,
            "updates": size.updates,
            "operations": operations,
            "value_bytes": VALUE_BYTES,
        }
        return capture.finish(load, f"cassandra {VERSION}", 0, load=size_of_load)


def _java() -> tuple[str, str]:
    """The paths of java and javac of Java 17. Raises TargetError if they are missing."""
    home = os.environ.get("JAVA_HOME")
    homes = [Path(home)] if home else []
    homes += sorted(Path("/usr/lib/jvm").glob(f"java-{JAVA}-openjdk-*"))
    for found in found_programs(("java", "javac"), [home / "bin" for home in homes]):
        if version_of(found["java"], "-version").split(".")[0] == str(JAVA):
            return found["java"], found["javac"]
    raise TargetError(
        f"Cassandra {VERSION} requires a JDK of Java {JAVA}, which is not installed",
        hint=f"on Debian: apt-get install openjdk-{JAVA}-jdk-headless; JAVA_HOME takes precedence",
    )


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that add options to a JVM."""
    others = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH")
    return {name: value for name, value in environment.items() if name not in others}


def _server_options(folder: Path, root: Path, library: Path) -> list[str]:
    """Options of the JVM."""
    return [
        f"@{_JVM_OPTIONS}",
        f"-javaagent:{next(library.glob('jamm-*.jar'))}",
        f"-Djava.io.tmpdir={folder}",
        f"-Dcassandra.config=file://{folder / 'cassandra.yaml'}",
        f"-Dcassandra.storagedir={root}",
        _LOGGING,
    ]


def _configure(folder: Path, root: Path, native: int, storage: int) -> None:
    """Write the server's configuration for these ports and folders."""
    direct, packed = "disk_access_mode: direct", "compression: [{class_name: LZ4Compressor}]"
    text = Template(_CONFIGURATION.read_text("utf-8")).substitute(
        root=root,
        native=native,
        storage=storage,
        commit_log=direct if _has_direct_io(root) else packed,
    )
    (folder / "cassandra.yaml").write_text(text)


def _has_direct_io(folder: Path) -> bool:
    probe = folder / ".direct"
    try:
        os.close(os.open(probe, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
